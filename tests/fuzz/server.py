"""The server under test: daphne over the database of Django's settings, with one user,
some feeds and one token."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.fuzz.campaign import FEED_REQUESTS, FEEDS, Campaign, feed
from webapp.platform.folders import ROOT, PortReservation
from webapp.platform.health import healthy
from webapp.platform.web_server import web_command


def migrated() -> None:
    """The tables, and the feeds and user for requests."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def token() -> str:
    """A new user's token with all scopes, with feeds."""
    from webapp.accounts.models import User
    from webapp.accounts.services import token_create
    from webapp.feeds.services import feed_create

    user = User.objects.create_superuser("ada", password="ada has a password")
    columns = {"speed": "float", "kind": "string"}
    for name in (feed(number * FEED_REQUESTS) for number in range(FEEDS)):
        feed_create(owner=user, name=name, title=f"The {name}", crs="planar", time="ms", lateness=1000, columns=columns)
    return token_create(user=user, name="fuzz", scopes=["ingest", "read", "write"]).text


@contextmanager
def running() -> Iterator[Campaign]:
    """The server until the end of the block."""
    text, reservation = token(), PortReservation()
    port = reservation.port
    reservation.release()
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.fuzz.settings"}
    process = subprocess.Popen(web_command(port), env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 120
        while not healthy(port):
            assert process.poll() is None and time.monotonic() < until, "the web server does not answer"
            time.sleep(0.2)
        yield Campaign(port, text, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait()
