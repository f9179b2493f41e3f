"""`manage.py repair FEED`: makes a damaged log readable again, and reports the losses."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from engine.model.counts import counted
from webapp.feeds.damage import RowsLost, feed_repair, sentence_of
from webapp.feeds.models import Feed


class Command(BaseCommand):
    help = "Reads all of a feed's log, keeps what can be read, counts what is lost, and lets the feed continue. Damaged files are kept in damaged/."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("feed", nargs="+", help="name of a feed")
        parser.add_argument("--give-up", action="store_true", help="for a log in a store: give up rows of which the store has no copy")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in options["feed"]:
            feed = Feed.objects.filter(name=name).first()
            if feed is None:
                known = ", ".join(Feed.objects.values_list("name", flat=True).order_by("name"))
                raise CommandError(f"there is no feed {name!r}; known: {known or 'none'}")
            try:
                done = feed_repair(feed=feed, give_up=options["give_up"])
            except RowsLost as error:
                raise CommandError(str(error)) from error
            for one in done:
                self.stdout.write(f"{name}: {sentence_of(one)}")
            lost = sum(len(one.lost) for one in done)
            self.stdout.write(
                f"{name}: {counted(len(done), 'repair')}, {counted(lost, 'row')} lost. The feed continues."
                if done
                else f"{name}: the log is whole. The feed continues."
            )
