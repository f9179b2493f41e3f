"""`manage.py publish`: carries the outbox, positions and the state of
feeds to the channel layer."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Sends new answers, positions and the state of feeds to open pages."
    # They load every page; the program that migrates has run them.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        from webapp.live.publisher import Publisher
        from webapp.platform.memory import freeze_loaded_objects
        from webapp.platform.waits import limit_waits

        limit_waits()
        publisher = Publisher()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: publisher.stopping.set())
        freeze_loaded_objects()
        publisher.run()
