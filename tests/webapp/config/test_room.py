"""Limits hold for two requests at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from engine.model.faults import Refused
from tests.webapp.config.conftest import READING

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

Make = Callable[[int], Any]


def overlays(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.overlays.services import overlay_keep

    point = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}, "properties": {}}
    return lambda number: overlay_keep(feed=feed, name=f"{number}", document={"type": "FeatureCollection", "features": [point]})


def connectors(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.connectors.services import connector_create

    return lambda number: connector_create(feed=feed, name=f"{number}", kind="ais-udp", settings={"port": 10110 + number}, reading=READING)


def watches(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.entities.services import watch_begin

    return lambda number: watch_begin(user=people.owner, feed=feed, entity=f"{number}")


def shifts(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.alerts.shifts import shift_save

    return lambda number: shift_save(user=people.owner, name=f"{number}")


def turns(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.alerts.shifts import shift_save, turn_save

    shift, day = shift_save(user=people.owner, name="duty"), timedelta(days=1)

    def make(number: int) -> Any:
        begin = timezone.now() + number * day
        return turn_save(user=people.owner, shift=shift, person="owner", begins_at=begin, ends_at=begin + day / 2)

    return make


def browsers(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.alerts.deliveries import browser_subscribe

    return lambda number: browser_subscribe(owner=people.owner, name="b", url=f"https://push.example.org/{number}", browser_keys="a b")


def notes(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.entities.services import note_add

    return lambda number: note_add(feed=feed, entity="a", author=people.owner, text=f"{number}")


def records(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.entities.services import record_put

    return lambda number: record_put(feed=feed, entity=f"{number}", name="a", attributes={})


def imports(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.entities.registry_files import FileEntity
    from webapp.entities.services import registry_import

    return lambda number: registry_import(feed=feed, entries=[FileEntity(f"{number}", "a", {})])


def mutes(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.alerts.mutes import mute_create

    return lambda number: mute_create(owner=people.owner, feed=feed, reason="noise", entities=[f"{number}"])


def shares(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.live.shares import share_create

    return lambda number: share_create(maker=people.owner, feed=feed, name=f"{number}", expires_at=timezone.now() + timedelta(days=1))


def invitations(feed: Any, people: SimpleNamespace) -> Make:
    from webapp.accounts.models import Role
    from webapp.accounts.teams import invitation_create

    return lambda number: invitation_create(team=people.harbour, email=f"{number}@example.org", role=Role.VIEWER, by=people.owner)


def waits_or_ends(work: Future[Any]) -> None:
    """Returns once the other thread waits for a lock, or is through."""
    end = time.monotonic() + 20
    while not work.done() and time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone() != (0,):
                return
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        (overlays, "webapp.overlays.services.OVERLAYS"),
        (connectors, "webapp.connectors.services.MOST_OF_A_FEED"),
        (connectors, "webapp.connectors.services.MOST_OF_AN_OWNER"),
        (watches, "webapp.entities.services.WATCHES"),
        (shifts, "webapp.alerts.shifts.MOST_OF_A_PERSON"),
        (turns, "webapp.alerts.shifts.TURNS"),
        (notes, "webapp.entities.services.NOTES"),
        (records, "webapp.entities.services.MOST_RECORDS"),
        (imports, "webapp.entities.services.MOST_RECORDS"),
        (mutes, "webapp.alerts.mutes.MUTES"),
        (shares, "webapp.live.shares.SHARES"),
        (invitations, "webapp.accounts.teams.INVITATIONS"),
        (browsers, "webapp.alerts.deliveries.MOST_BROWSERS"),
    ],
)
def test_the_second_of_two_requests_counts_what_the_first_one_makes(
    kind: Callable[[Any, SimpleNamespace], Make], limit: str, feed: Any, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = kind(feed, people)
    monkeypatch.setattr(limit, 1)
    with ThreadPoolExecutor(1) as thread:
        try:
            with transaction.atomic():
                make(1)
                second = thread.submit(make, 2)
                waits_or_ends(second)
            with pytest.raises(Refused):
                second.result(20)
        finally:
            thread.submit(connections.close_all).result()


def moves_feed(feed: Any, people: SimpleNamespace) -> Callable[[], Any]:
    from webapp.feeds.services import feed_update

    return lambda: feed_update(feed=feed, team=people.elsewhere)


def moves_region(feed: Any, people: SimpleNamespace) -> Callable[[], Any]:
    from webapp.feeds.services import region_create
    from webapp.queries.regions import region_update

    square = region_create(owner=people.owner, feed=feed, name="square", geometry={"center": [0, 0], "radius": 1})
    return lambda: region_update(region=square, user=people.owner, team=people.elsewhere)


@pytest.mark.parametrize("change", [moves_feed, moves_region])
def test_whoever_waits_for_a_feed_holds_no_team(
    change: Callable[[Any, SimpleNamespace], Callable[[], Any]], feed: Any, people: SimpleNamespace
) -> None:
    from webapp.config.room import hold

    work = change(feed, people)
    with ThreadPoolExecutor(1) as thread:
        try:
            with transaction.atomic():
                hold(feed, "pk")
                waiting = thread.submit(work)
                waits_or_ends(waiting)
                assert not waiting.done()
                hold(people.elsewhere, "pk")
            waiting.result(20)
        finally:
            thread.submit(connections.close_all).result()


def test_an_import_holds_entities_in_the_order_of_streams(feed: Any) -> None:
    from webapp.entities.learning import registry_learn
    from webapp.entities.models import Record
    from webapp.entities.registry_files import FileEntity
    from webapp.entities.services import registry_import

    registry_learn(feed=feed, facts={"a": {"name": "1"}, "b": {"name": "1"}})
    with ThreadPoolExecutor(1) as thread:
        try:
            with transaction.atomic():
                registry_learn(feed=feed, facts={"a": {"name": "2"}})
                work = thread.submit(registry_import, feed=feed, entries=[FileEntity("b", "3", {}), FileEntity("a", "3", {})])
                waits_or_ends(work)
                assert not work.done()
                Record.objects.select_for_update(nowait=True).get(feed=feed, entity="b")
            assert work.result(20) == 2
        finally:
            thread.submit(connections.close_all).result()


def test_a_stream_counts_a_registry_after_an_import_that_is_under_way(feed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from webapp.entities.learning import registry_learn
    from webapp.entities.models import Record
    from webapp.entities.services import record_put

    monkeypatch.setattr("webapp.entities.learning.RECORDS", 1)
    with ThreadPoolExecutor(1) as thread:
        try:
            with transaction.atomic():
                record_put(feed=feed, entity="a", name="1", attributes={})
                work = thread.submit(registry_learn, feed=feed, facts={"b": {"name": "1"}})
                waits_or_ends(work)
            assert work.result(20) == 0
        finally:
            thread.submit(connections.close_all).result()
    assert [one.entity for one in Record.objects.filter(feed=feed)] == ["a"]


def test_a_feed_that_changes_hands_meanwhile_counts_for_its_new_owner(feed: Any, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    from webapp.feeds.models import Feed

    make = connectors(feed, people)
    Feed.objects.filter(pk=feed.pk).update(owner=people.root)
    held: list[Any] = []
    monkeypatch.setattr("webapp.connectors.services.room_check", lambda things, most, *, of, **_: held.append(of))
    make(1)
    assert held == [feed, people.root]


def test_entities_of_a_full_registry_can_be_changed(feed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from webapp.entities.registry_files import FileEntity
    from webapp.entities.services import record_put, registry_import

    record_put(feed=feed, entity="1", name="a", attributes={})
    monkeypatch.setattr("webapp.entities.services.MOST_RECORDS", 1)
    record_put(feed=feed, entity="1", name="b", attributes={})
    assert registry_import(feed=feed, entries=[FileEntity("1", "c", {})]) == 1
    with pytest.raises(Refused, match="at most 1 entities"):
        registry_import(feed=feed, entries=[FileEntity("1", "c", {}), FileEntity("2", "c", {})])


def test_views_of_one_person_are_limited(people: SimpleNamespace, client_of: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.alerts.saved_views_api.VIEWS", 1)
    client = client_of(people.viewer)
    statuses = [client.post("/api/v1/alert-views/", {"name": name}, content_type="application/json").status_code for name in ("a", "b")]
    assert statuses == [201, 400]
