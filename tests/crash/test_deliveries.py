"""Receivers that never answer: messages wait for them, the supervision of jobs does not."""

from __future__ import annotations

import socket
import sys
import time
from datetime import datetime

import pytest
from django.utils import timezone

from tests.crash.test_supervision import start_worker, world
from tests.crash.world import World
from webapp.accounts.models import User
from webapp.alerts.deliveries import channel_create
from webapp.alerts.models import Delivery
from webapp.jobs.models import Job
from webapp.jobs.services import job_default, job_stop
from webapp.platform.demo import DELIVERIES

pytestmark = [pytest.mark.services, pytest.mark.slow]
__all__ = ["world"]
RECEIVERS = 12


def test_supervision_goes_on_while_all_receivers_hang(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker with one process for the tasks: a single message sent by it would hold up everything for ten seconds."""
    monkeypatch.setenv("VEDETTE_WEBHOOK_NETWORKS", "127.0.0.0/8")
    job_stop(job=job_default())
    with socket.create_server(("127.0.0.1", 0), backlog=4 * RECEIVERS) as silent:
        for number in range(RECEIVERS):
            _message(f"silent {number}", silent.getsockname()[1])
        start_worker(world, "tasks", beat=True)
        world.start(sys.executable, "-m", "celery", "-A", "webapp.config", "worker", "--loglevel=WARNING", *DELIVERIES, name="celery-deliveries")
        world.wait(lambda: _hanging() >= 4, 60, "messages on their way")
        renewed = [_lease()]
        waits, since = [], time.monotonic()
        while len(renewed) < 4:
            world.wait(lambda: _lease() != renewed[-1], 20, "the next round of supervision")
            renewed.append(_lease())
            waits.append(time.monotonic() - since)
            since = time.monotonic()
            assert _hanging() > 0, "the receivers still hang"
    sys.stdout.write(f"rounds of supervision {', '.join(f'{wait:.1f}' for wait in waits)} s apart while {_hanging()} receivers hang\n")
    assert max(waits) < 9, "a round every three seconds; one that waits for a receiver comes ten later"


def _message(name: str, port: int) -> None:
    owner, _ = User.objects.get_or_create(username="ada")
    channel = channel_create(owner=owner, name=name, url=f"http://127.0.0.1:{port}/")
    Delivery.objects.create(channel=channel, body="{}", next_at=timezone.now())


def _hanging() -> int:
    return Delivery.objects.filter(claimed_until__gt=timezone.now()).count()


def _lease() -> datetime | None:
    return Job.objects.values_list("lease_until", flat=True).get()
