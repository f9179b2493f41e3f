"""`manage.py ingest`: the process behind HTTP ingest. Folders, uploaded files, heartbeats,
and maintenance of the logs."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError, close_old_connections

from webapp.feeds.folders import Inbox
from webapp.feeds.heartbeats import Heartbeats
from webapp.feeds.maintenance import feed_maintain
from webapp.feeds.models import Feed
from webapp.feeds.uploads.loading import Loads
from webapp.platform.single import single_service

log = logging.getLogger(__name__)

TICK_S, FOLDERS_EVERY_S, FEEDS_EVERY_S, MAINTAIN_EVERY_S = 0.25, 1.0, 2.0, 20.0


class Command(BaseCommand):
    """Runs until it is stopped. A second one on the same `var` folder
    waits for the first to end."""

    help = "Ingests files dropped into var/inbox/<feed>/, sends heartbeats, keeps the logs compact."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        with single_service(Path(settings.VAR), "ingest", self.stdout.write) as end:
            # Users' files are read in a separate thread: heartbeats must not wait for them.
            threading.Thread(target=Loads().serve, args=(end,), name="uploads", daemon=True).start()
            Service().serve()


class Service:
    """The rounds of the process; each kind of work has its own interval."""

    def __init__(self) -> None:
        self.inbox, self.heartbeats = Inbox(Path(settings.VAR) / "inbox"), Heartbeats()
        self._due: dict[str, float] = {}
        self._feeds: list[Feed] = []

    def serve(self) -> None:
        """Never returns. Waits for an unavailable database or disk: nothing is lost meanwhile,
        files stay in their folders."""
        while True:
            try:
                self.round(time.monotonic(), time.time_ns() // 1_000_000)
            except (DatabaseError, InterfaceError, OSError) as error:
                log.warning("trying again: %s", error)
                close_old_connections()
                time.sleep(1.0)
            time.sleep(TICK_S)

    def round(self, now: float, now_ms: int) -> None:
        """What is due at `now` (monotonic seconds)."""
        if self._is_due("feeds", now, FEEDS_EVERY_S):
            close_old_connections()
            # Suspended feeds wait for their repair: their files stay in the inbox.
            self._feeds = list(Feed.objects.filter(damage=None))
        for feed in self._feeds:
            if feed.wall_clock:
                self.heartbeats.beat(feed, now_ms)
        if self._is_due("folders", now, FOLDERS_EVERY_S):
            self.inbox.scan(self._feeds)
        if self._is_due("maintenance", now, MAINTAIN_EVERY_S):
            for feed in self._feeds:
                feed_maintain(feed=feed)

    def _is_due(self, name: str, now: float, every: float) -> bool:
        if now < self._due.get(name, 0.0):
            return False
        self._due[name] = now + every
        return True
