"""`manage.py play FILE --feed NAME --rate 60x`: a recorded file through ingest, like any outside source."""

from __future__ import annotations

import json
import os
import signal
import time
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from engine.model.faults import Refused
from engine.model.feed import Feed as EngineFeed
from engine.sources.files import Unreadable
from webapp.feeds.client import IngestClient, Rejected
from webapp.feeds.credentials import server_url, token_kept
from webapp.feeds.models import Feed
from webapp.feeds.playback import Player, Recording


def rate(text: str) -> float | None:
    """`60x`, `60` or `max`."""
    if text == "max":
        return None
    try:
        value = float(text.removesuffix("x"))
    except ValueError:
        value = 0.0
    if value <= 0:
        raise ArgumentTypeError("a rate is written 60x, or max")
    return value


def renames(text: str) -> dict[str, str]:
    """`entity=mmsi,x=lon`."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    if not all(ours and theirs for ours, _, theirs in pairs):
        raise ArgumentTypeError("a mapping is written entity=mmsi,x=lon,y=lat")
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}


class Command(BaseCommand):
    """Plays CSV, Parquet or JSON lines; a run that was stopped goes on where it was."""

    help = "Sends a recorded file to a feed at the pace of its own times."
    requires_system_checks: list[str] = []  # noqa: RUF012

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--feed", required=True)
        parser.add_argument("--rate", type=rate, default=1.0, help="60x: sixty times as fast as recorded; max: as fast as it goes")
        parser.add_argument("--map", type=renames, default={}, help="columns of the file: entity=mmsi,x=lon,...")
        parser.add_argument("--url", help="the server (default: the one of this machine)")
        parser.add_argument("--token", default=os.environ.get("VEDETTE_TOKEN"), help="default: VEDETTE_TOKEN, else the one that demo_seed kept")
        parser.add_argument("--schema", type=Path, help="FEED.json of a feed on another server (default: the feed in the database)")
        parser.add_argument("--shift-to-now", action="store_true", help="the first row happens now, all others as long after it as recorded")
        parser.add_argument("--again", action="store_true", help="from the beginning, even if an earlier run was interrupted")

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        token = options["token"] or token_kept("simulator")
        if not token:
            raise CommandError("No token: give --token or set VEDETTE_TOKEN.")
        try:
            recording = Recording(options["file"], self._feed(options), options["map"])
            notes = Path(settings.VAR) / "play" / f"{recording.identity}.json"
            if options["again"]:
                notes.unlink(missing_ok=True)
            self._play(recording, notes, IngestClient(options["url"] or server_url(), token), options)
        except KeyboardInterrupt:
            self.stdout.write("Stopped. The same command goes on from here.")
        except (Unreadable, Refused, Rejected, ConnectionError) as error:
            raise CommandError(str(error)) from error

    def _feed(self, options: dict[str, Any]) -> EngineFeed:
        """The feed's schema. Raises CommandError, Refused."""
        if options["schema"]:
            return EngineFeed.from_json({**json.loads(options["schema"].read_text()), "name": options["feed"]})
        feed = Feed.objects.filter(name=options["feed"]).first()
        if feed is None:
            raise CommandError(f"There is no feed {options['feed']!r}; for one on another server give --schema FEED.json.")
        return feed.engine_feed()

    def _play(self, recording: Recording, notes: Path, client: IngestClient, options: dict[str, Any]) -> None:
        unread = 0

        def not_read(rows: int) -> None:
            nonlocal unread
            unread += rows

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[at]}"), TimeElapsedColumn())
        with Progress(*columns) as bar:
            task = bar.add_task(recording.path.name, total=None, at="")
            client.told = bar.console.print

            def advanced(rows: int, t: int) -> None:
                bar.update(task, advance=rows, at=_at(recording.feed, t))

            player = Player(client, recording, notes, options["rate"], advanced, not_read)
            done = player.play(now_ms=time.time_ns() // 1_000_000 if options["shift_to_now"] else None)
            bar.update(task, total=done.end)
        client.close()
        self.stdout.write(f"{done.end} rows sent" + (f"; {unread} rows of the file cannot be read as events" if unread else ""))


def _at(feed: EngineFeed, t: int) -> str:
    """A time for people."""
    if not t or str(feed.time) != "ms":
        return str(t or "")
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(t / 1000))
