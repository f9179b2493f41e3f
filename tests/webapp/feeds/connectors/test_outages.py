"""Users are notified that a connector keeps failing, and that it runs again: once each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone, translation
from rest_framework.test import APIClient

from engine.sources.live import SourceKind, SourceUnavailable
from tests.webapp.feeds.connectors.lives import WAIT_S, rows_of, wait_for
from tests.webapp.feeds.connectors.test_connectors import POSITION, receiver, running
from webapp.config.wording import translated
from webapp.connectors.outages import connector_keeps_failing, connector_recovers
from webapp.connectors.services import connector_create, connector_update
from webapp.feeds.heads import feed_head_ensure, feed_status, feed_statuses
from webapp.feeds.models import Connector
from webapp.feeds.services import feed_create
from webapp.jobs.models import JobEvent

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def hasty(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEBHOOK_NETWORKS, settings.VAR = ["127.0.0.0/8"], tmp_path
    for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
        monkeypatch.setattr(f"webapp.connectors.running.{name}", 0.02)


@pytest.fixture
def mast(people: SimpleNamespace) -> Connector:
    """A connector to a port without a listener; of a feed that a job evaluates."""
    sea = feed_create(owner=people.owner, name="sea", title="Sea", crs="geographic", team=people.harbour, ahead=None)
    feed_head_ensure(sea)
    with receiver(POSITION) as port:
        pass
    return connector_create(feed=sea, name="mast", kind="ais-tcp", settings={"host": "127.0.0.1", "port": port})


def events() -> list[tuple[str, str]]:
    return list(JobEvent.objects.filter(kind__startswith="connector").order_by("id").values_list("kind", "text"))


def test_a_failing_connector_is_an_event_once_also_after_restarts_and_so_is_its_recovery(
    mast: Connector, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    for _ in range(2):
        Connector.objects.update(failures=0)
        with running():
            wait_for(lambda: Connector.objects.filter(failures__gt=7).exists(), "it fails several times in a row")
    ((kind, text),) = events()
    assert kind == "connector_failed" and text.startswith("The connector mast of sea keeps failing") and "cannot be reached" in text
    with translation.override("de"):
        assert translated(text).startswith("Der Konnektor mast von sea") and "nicht erreichbar" in translated(text), "the cause is translated too"
    client = client_of(people.viewer)
    (feed,) = client.get("/api/v1/feeds/").json()["results"]
    assert feed["failing_connectors"] == ["mast"] and feed["events"][0]["kind"] == "connector_failed", "a reader of the feed hears of it"
    assert client.get("/api/v1/connectors/").json()["results"][0]["failing_since"] is not None
    assert feed_status(feed_id=mast.feed_id)["failing_connectors"] == feed_statuses()[mast.feed_id]["failing_connectors"] == ["mast"]
    with receiver(POSITION) as port, running():
        connector_update(connector=mast, settings={"host": "127.0.0.1", "port": port})
        wait_for(lambda: rows_of("sea"), "a row comes")
        wait_for(lambda: Connector.objects.get().failing_since is None, "it runs again")
    assert [kind for kind, _ in events()] == ["connector_failed", "connector_runs"] and "mast of sea runs again after" in events()[1][1]
    assert feed_status(feed_id=mast.feed_id)["failing_connectors"] == []


def test_a_connector_without_a_process_is_named_beside_its_feed(mast: Connector) -> None:
    assert feed_status(feed_id=mast.feed_id)["failing_connectors"] == []
    Connector.objects.update(seen_at=timezone.now() - timedelta(minutes=1))
    assert feed_status(feed_id=mast.feed_id)["failing_connectors"] == ["mast"]
    connector_update(connector=mast, enabled=False)
    assert feed_status(feed_id=mast.feed_id)["failing_connectors"] == []
    connector_update(connector=mast, enabled=True)
    assert feed_status(feed_id=mast.feed_id)["failing_connectors"] == [], "its process is about to start"


def test_a_quiet_stream_runs_again_when_its_connection_has_lasted(mast: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.connectors.running.WELL_AFTER_S", 0.1)
    monkeypatch.setattr("webapp.connectors.running.REPORT_S", 0.2)
    Connector.objects.update(failing_since=timezone.now())
    with receiver(b"") as port, running():
        connector_update(connector=mast, settings={"host": "127.0.0.1", "port": port})
        wait_for(lambda: Connector.objects.get().failing_since is None, "it runs again")
    assert [kind for kind, _ in events()] == ["connector_runs"]


def test_a_connector_that_waits_for_its_broker_is_not_without_a_process(mast: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, goes_on = threading.Event(), threading.Event()

    def slow(*_: Any) -> Any:
        waits.set()
        goes_on.wait(2 * WAIT_S)
        raise SourceUnavailable("away")

    monkeypatch.setattr("webapp.connectors.running.kind_of", lambda name: SourceKind("slow", "Slow", (), "", slow))
    with running():
        assert waits.wait(WAIT_S)
        Connector.objects.update(seen_at=None)
        wait_for(lambda: Connector.objects.get().seen_at is not None, "the process reports for it")
        goes_on.set()


def test_a_few_failures_are_no_event(mast: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.connectors.running.REPORTED_AFTER", 10_000)
    with running():
        wait_for(lambda: Connector.objects.filter(failures__gt=3).exists(), "it fails")
    assert events() == [] and Connector.objects.get().failing_since is None


def test_a_connector_that_is_switched_off_or_changed_meanwhile_is_not_reported(mast: Connector) -> None:
    connector_keeps_failing(mast, since=timezone.now(), why="x")
    connector_update(connector=mast, enabled=False)
    assert Connector.objects.get().failing_since is None, "it is meant not to run"
    connector_keeps_failing(mast, since=timezone.now(), why="x")
    connector_recovers(mast)
    assert [kind for kind, _ in events()] == ["connector_failed"]
