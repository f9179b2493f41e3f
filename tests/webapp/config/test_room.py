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
