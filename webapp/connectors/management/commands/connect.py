"""`manage.py connect`: the process behind connectors, which bring streams from outside into
feeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from webapp.config.postgresql.base import keep_connections
from webapp.connectors.running import Connectors
from webapp.platform.single import single_service


class Command(BaseCommand):
    """Runs until it is stopped. A second one on the same `var` folder
    waits for the first to end."""

    help = "Runs the connectors of all feeds."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        keep_connections()
        with single_service(Path(settings.VAR), "connect", self.stdout.write) as end:
            Connectors().serve(end)
