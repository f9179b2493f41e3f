"""`manage.py connect`: the process behind connectors, which bring streams from outside into feeds."""

from __future__ import annotations

import fcntl
import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from webapp.config.postgresql.base import keep_connections
from webapp.connectors.running import Connectors
from webapp.platform.waits import limit_waits


class Command(BaseCommand):
    """Runs until it is told to stop. A second one on the same `var` folder waits for the first to end."""

    help = "Runs the connectors of all feeds."
    requires_system_checks: list[str] = []  # noqa: RUF012

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        limit_waits()
        keep_connections()
        Path(settings.VAR).mkdir(parents=True, exist_ok=True)
        end = threading.Event()
        with (Path(settings.VAR) / "connect.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                Connectors().serve(end)
            except KeyboardInterrupt:
                self.stdout.write("Stopped.")
