"""Receivers that never answer, and senders that are killed: messages wait, nothing is lost, and the
supervision of jobs continues."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from tests.crash.test_supervision import start_worker, world
from tests.crash.world import World
from tests.webapp.accounts.outside import mail_server
from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.accounts.models import User
from webapp.alerts.deliveries import channel_create
from webapp.alerts.models import Alert, Delivery, Notification
from webapp.jobs.models import Job
from webapp.jobs.services import job_default, job_stop
from webapp.platform.demo import DELIVERIES

pytestmark = [pytest.mark.services, pytest.mark.slow]
__all__ = ["world"]
RECEIVERS = 12
CHIEF = "chief@example.org"


def test_supervision_continues_while_all_receivers_hang(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker with one process for the tasks: a single message sent by it would hold up
    everything for ten seconds."""
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


SENDER = """
import os, time, django
django.setup()
from webapp.alerts.tasks import deliver
from webapp.config.celery import app
app.conf.task_always_eager = True
while True:
    deliver()
    time.sleep(0.02)
"""
"""The work of worker and beat on messages, in one process that can be killed at any moment."""


def test_every_alert_is_mailed_although_the_sender_is_killed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """KILL in the middle of a mail, before the server has confirmed it, and elsewhere: all arrive,
    a repeated one under the id it had.

    So it is with a digest of all of them, which another channel gathers.
    """
    held = threading.Event()
    with mail_server(held) as (port, mails):
        monkeypatch.setenv("EMAIL_URL", f"smtp://127.0.0.1:{port}")
        monkeypatch.setenv("VEDETTE_PUBLIC_URL", "https://watch.example.org")
        channel_create(owner=world.crossings.owner, name="duty", kind="mail", recipient="duty@example.org", per_minute=600)
        pace = {"digest": "daily", "digest_at": (timezone.now() + timedelta(hours=12)).time()}
        digest = channel_create(owner=world.crossings.owner, name="chief", kind="mail", recipient=CHIEF, **pace)
        for round_ in range(4):
            record(world.crossings, *(crossing(world.crossings, "in", f"e{round_}-{i}", i) for i in range(8)))
            if round_ % 2 == 0:
                held.set()
            sender, until = _sender(world), len(mails) + (1 if held.is_set() else 4)
            world.wait(lambda until=until: len(mails) >= until, 60, "mails on their way")
            sender.kill()
            sender.wait()
            held.clear()
            # As after the time that one attempt may take.
            Delivery.objects.filter(sent_at=None).update(claimed_until=None)
        sender = _sender(world)
        world.wait(lambda: Notification.objects.filter(delivery__sent_at__isnull=False).count() == 32, 60, "all are sent")

        # The hour of the digest: its sender dies while the server has it.
        held.set()
        Notification.objects.filter(channel=digest).update(due_at=timezone.now())
        world.wait(lambda: any(mail["To"] == CHIEF for mail in mails), 60, "the digest is on its way")
        sender.kill()
        sender.wait()
        held.clear()
        Delivery.objects.filter(sent_at=None).update(claimed_until=None)
        _sender(world)
        world.wait(lambda: digest.deliveries.filter(sent_at__isnull=False).exists(), 60, "the digest is sent")
    digests = [mail for mail in mails if mail["To"] == CHIEF]
    mails = [mail for mail in mails if mail["To"] != CHIEF]
    assert len(digests) == 2 and len({mail["Message-ID"] for mail in digests}) == 1, "sent again under the id that it had"
    assert all("and 12 more" in str(mail.get_body(("plain",))) for mail in digests)
    assert digest.notifications.count() == 32 and digest.deliveries.count() == 1, "each alert in the one digest"
    delivered = {(mail["Message-ID"], alert) for mail in mails for alert in re.findall(r"/alerts/(\d+)", str(mail.get_body(("plain",))))}
    assert sorted(int(alert) for _, alert in delivered) == sorted(Alert.objects.values_list("pk", flat=True)), "each in one message"
    repeated = [count for count in Counter(mail["Message-ID"] for mail in mails).values() if count > 1]
    sys.stdout.write(f"{len(mails)} mails for 32 alerts; {len(repeated)} came more than once, under one id\n")
    assert len(repeated) >= 2, "two senders were killed while the server had the mail and they did not know"
    assert Delivery.objects.exclude(channel=digest).count() == 32


def _sender(world: World) -> subprocess.Popen[bytes]:
    return world.start(sys.executable, "-c", SENDER, name="sender")


def _message(name: str, port: int) -> None:
    owner, _ = User.objects.get_or_create(username="ada")
    channel = channel_create(owner=owner, name=name, url=f"http://127.0.0.1:{port}/")
    Delivery.objects.create(channel=channel, body="{}", next_at=timezone.now())


def _hanging() -> int:
    return Delivery.objects.filter(claimed_until__gt=timezone.now()).count()


def _lease() -> datetime | None:
    return Job.objects.values_list("lease_until", flat=True).get()
