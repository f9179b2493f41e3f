"""Where a connector begins and continues: "from now on" is one moment, whatever follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.sinks.live import SinkKind
from engine.sources.live import Batch, SourceKind, SourceUnavailable
from engine.sources.live.kafka import FIELDS
from tests.webapp.feeds.connectors.lives import wait_for
from tests.webapp.feeds.connectors.test_connectors import running
from webapp.connectors.services import connector_create, connector_update
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import Connector, Feed
from webapp.feeds.services import feed_create
from webapp.jobs.models import FeedHead

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

BROKER = {"servers": "127.0.0.1:9092", "topic": "vans"}


@pytest.fixture(autouse=True)
def hasty(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEBHOOK_NETWORKS, settings.VAR = ["127.0.0.0/8"], tmp_path
    for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
        monkeypatch.setattr(f"webapp.connectors.running.{name}", 0.02)


@pytest.fixture
def fleet(people: SimpleNamespace) -> Feed:
    fleet = feed_create(owner=people.owner, name="fleet", title="Fleet", crs="geographic", team=people.harbour, ahead=None)
    feed_head_ensure(fleet)
    return fleet


class Quiet:
    """A topic without a message, at 7 when it is first asked; its broker goes away again and
    again."""

    def __init__(self, asked: list[Any]) -> None:
        self.asked = asked

    def batches(self, offset: Any) -> Iterator[Batch]:
        self.asked.append(offset)
        yield Batch(offset={"0": 7} if offset is None else offset)
        raise SourceUnavailable("away")

    def acknowledge(self, offset: Any) -> None:
        """Nothing comes."""

    def close(self) -> None:
        """Nothing is open."""


def test_what_comes_while_a_broker_is_away_is_after_the_beginning(fleet: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise "what comes from now on" would leave out all messages up to the first one that
    finds the connector running."""
    asked: list[Any] = []
    kind = SourceKind("kafka", "Kafka", FIELDS, "", lambda *_: Quiet(asked))
    monkeypatch.setattr("webapp.connectors.running.kind_of", lambda name: kind)
    connector_create(feed=fleet, name="vans", kind="kafka", settings={**BROKER, "start": "latest"})
    with running():
        wait_for(lambda: len(asked) > 2, "it tries again")
    assert asked[0] is None and all(offset == {"0": 7} for offset in asked[1:])


def test_answers_that_come_while_a_broker_is_away_are_after_the_beginning(
    fleet: Feed, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise SourceUnavailable("away")

    monkeypatch.setattr("webapp.connectors.running.kind_of", lambda name: SinkKind("kafka-answers", "Answers", (), "", away))
    connector_create(feed=fleet, name="out", kind="kafka-answers", settings={**BROKER, "start": "now"}, set_by=people.owner)
    with running():
        wait_for(lambda: Connector.objects.filter(failures__gt=1).exists(), "the broker is away")
        FeedHead.objects.update(outbox_seq=12)
        wait_for(lambda: Connector.objects.filter(failures__gt=5).exists(), "it is still away")
    assert Connector.objects.get().offset == {"seq": 0}


def test_another_password_continues_and_another_topic_begins_again(fleet: Feed, people: SimpleNamespace) -> None:
    user = {"security": "sasl_plaintext", "user": "vedette"}
    connector = connector_create(feed=fleet, name="vans", kind="kafka", settings={**BROKER, **user, "password": "old"})
    Connector.objects.update(offset={"0": 7})
    connector_update(connector=connector, settings={**BROKER, **user, "password": "new"}, set_by=people.owner)
    assert Connector.objects.get().offset == {"0": 7}
    connector_update(connector=connector, settings={**BROKER, **user, "password": "new", "topic": "trams"}, set_by=people.owner)
    assert Connector.objects.get().offset is None
