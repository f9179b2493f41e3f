"""`manage.py audit FEED`: checks that the stored data of a feed are exact."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from engine.model.counts import counted
from webapp.feeds.models import Feed
from webapp.supervisor.audit import feed_audit


class Command(BaseCommand):
    help = "Evaluates a feed's whole log again and compares detections, alerts, counters and outbox; exits with 1 if anything differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("feed", nargs="+", help="name of a feed")

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = False
        for name in options["feed"]:
            feed = Feed.objects.filter(name=name).first()
            if feed is None:
                known = ", ".join(Feed.objects.values_list("name", flat=True).order_by("name"))
                raise CommandError(f"there is no feed {name!r}; known: {known or 'none'}")
            audited = feed_audit(feed=feed)
            lost = f" ({counted(audited.lost, 'row')} lost by damage of the log)" if audited.lost else ""
            found = f"{counted(audited.rows, 'row')}, {counted(audited.facts, 'fact')}, {counted(audited.alerts, 'alert')}"
            verdict = "exact" if not audited.faults else "NOT EXACT: " + "; ".join(audited.faults)
            self.stdout.write(f"{name}: {found}{lost}: {verdict}")
            wrong = wrong or bool(audited.faults)
        if wrong:
            raise CommandError("what is stored is not what the log says")
