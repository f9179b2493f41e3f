"""`manage.py log_move`: the logs of all feeds from the folder of this machine into the
store of VEDETTE_LOG_STORE."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from engine.model.counts import counted
from engine.sources.segments import LogDamaged
from webapp.feeds.logs import is_shared, log_move
from webapp.feeds.models import Feed


class Command(BaseCommand):
    help = "Copies the logs of all feeds into the store that VEDETTE_LOG_STORE names. Stop everything before. Logs that are there already stay."

    def handle(self, *args: Any, **options: Any) -> None:
        if not is_shared():
            raise CommandError("Set VEDETTE_LOG_STORE first: it names the store.")
        failed = False
        for feed in Feed.objects.order_by("name"):
            try:
                self.stdout.write(f"{feed.name}: {counted(log_move(feed), 'row')}")
            except (LogDamaged, OSError, ValueError) as error:
                failed = True
                self.stderr.write(f"{feed.name}: {error}")
        if failed:
            raise CommandError("Not all logs were copied; those that were stay. The folder is as it was.")
        self.stdout.write("The folder log-of-events is no longer used; keep it until manage.py audit finds everything exact.")
