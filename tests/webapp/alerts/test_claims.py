"""Two processes that send the messages of one channel at the same moment."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from webapp.alerts import deliveries
from webapp.alerts.models import Delivery

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


def test_a_message_is_claimed_once_by_senders_that_overlap(people: SimpleNamespace) -> None:
    channel = deliveries.channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/x")
    now = timezone.now()
    pk = Delivery.objects.create(channel=channel, body="{}", created_at=now, next_at=now).pk
    results: list[bool] = []

    def claim() -> None:
        try:
            results.append(deliveries._claim(Delivery.objects.select_related("channel").get(pk=pk), now))
        finally:
            connection.close()

    other = threading.Thread(target=claim)
    with transaction.atomic():
        assert deliveries._claim(Delivery.objects.select_related("channel").get(pk=pk), now)
        other.start()
        until_one_waits()
    other.join(timeout=10)
    assert results == [False]
    assert Delivery.objects.get().attempts == 1


def until_one_waits() -> None:
    """Returns when another connection waits for this one."""
    deadline = time.monotonic() + 10
    with connection.cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute(WAITING)
            if cursor.fetchone()[0]:
                return
            time.sleep(0.02)
    raise AssertionError("the other sender never waited for the row")
