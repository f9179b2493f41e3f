"""`manage.py play FILE --feed NAME --rate 60x`: a recorded file through
ingest, like any outside source."""

from __future__ import annotations

import os
import signal
import time
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from engine.backtest.documents import RunAborted, read_feed
from engine.model.clock import late
from engine.model.columns import TIME
from engine.model.counts import counted
from engine.model.faults import Refused, unknown_name
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import untranslated
from engine.sources.files import UnreadableFile
from webapp.feeds.client import IngestClient, Rejected
from webapp.feeds.credentials import server_url, token_kept
from webapp.feeds.heartbeats import LONGEST_PAUSE_MS
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed
from webapp.feeds.playback import ChunkRefused, Player, Recording


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


LOST = 3
"""Exit status when rows were lost: everything was sent, but some rows were late or dead."""
WHY = "The page Feeds lists them with their reasons; for `late` see the feed's lateness, for `future` its setting `ahead`."


class Command(BaseCommand):
    """Plays CSV, Parquet or JSON lines; a run that was stopped continues where it was. Ends with 3
    when rows were lost on the way."""

    help = "Sends a recorded file to a feed at the rate of its own times."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--feed", required=True)
        parser.add_argument("--rate", type=rate, default=1.0, help="60x: sixty times as fast as recorded; max: as fast as possible")
        parser.add_argument("--map", type=renames, default={}, help="columns of the file: entity=mmsi,x=lon,...")
        parser.add_argument("--url", help="the server (default: the one on this machine, by the first name of ALLOWED_HOSTS if it is behind TLS)")
        parser.add_argument("--token", default=os.environ.get("VEDETTE_TOKEN"), help="default: VEDETTE_TOKEN, else the one that demo_seed stored")
        parser.add_argument("--schema", type=Path, help="FEED.json of a feed on another server (default: the feed in the database)")
        parser.add_argument(
            "--shift-to-now", action="store_true", help="shift times so that the first row is now (see docs/ingest.md for the others)"
        )
        parser.add_argument("--again", action="store_true", help="from the beginning, even if an earlier run was interrupted")

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        token = options["token"] or token_kept("simulator")
        if not token:
            raise CommandError("No token: give --token or set VEDETTE_TOKEN. `manage.py token USER` makes one for a user who may change the feed.")
        try:
            schema, here = self._feeds(options)
            recording = Recording(options["file"], schema, options["map"])
            notes = Path(settings.VAR) / "play" / f"{recording.identity}.json"
            if options["again"]:
                notes.unlink(missing_ok=True)
            self._play(recording, notes, IngestClient(options["url"] or server_url(), token), here, options)
        except KeyboardInterrupt:
            self.stdout.write("Stopped. The same command continues from here.")
        except ChunkRefused as error:
            raise CommandError(f"{error} {WHY} The same command continues after these rows.", returncode=LOST) from error
        except (UnreadableFile, Refused, Rejected, ConnectionError) as error:
            raise CommandError(str(error)) from error

    def _feeds(self, options: dict[str, Any]) -> tuple[EngineFeed, Feed | None]:
        """The feed's schema, and the feed if it is one of this machine.
        Raises CommandError, Refused."""
        if options["schema"]:
            try:
                return replace(read_feed(options["schema"]), name=options["feed"]), None
            except RunAborted as stop:
                raise CommandError(str(stop)) from stop
        feed = Feed.objects.filter(name=options["feed"]).first()
        if feed is None:
            unknown = unknown_name(options["feed"], Feed.objects.values_list("name", flat=True), what=untranslated("feed"))
            raise CommandError(f"{unknown}; for a feed on another server give --schema FEED.json.")
        return feed.engine_feed(), feed

    def _play(self, recording: Recording, notes: Path, client: IngestClient, here: Feed | None, options: dict[str, Any]) -> None:
        unread = 0

        def not_read(rows: int) -> None:
            nonlocal unread
            unread += rows

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[at]}"), TimeElapsedColumn())
        with Progress(*columns) as bar:
            task = bar.add_task(recording.path.name, total=None, at="")
            client.on_fault = bar.console.print

            def advanced(rows: int, t: int) -> None:
                bar.update(task, advance=rows, at=_at(recording.feed, t))

            check = partial(check_possible, here, shift=options["shift_to_now"], rate=options["rate"])
            player = Player(client, recording, notes, options["rate"], advanced, not_read, check)
            now_ms = time.time_ns() // 1_000_000 if options["shift_to_now"] else None
            done = player.play(now_ms=now_ms, in_step=here is not None and here.wall_clock)
            bar.update(task, total=done.end)
        client.close()
        self.stdout.write(
            f"{counted(done.begin, 'row')} sent: {done.accepted:,} accepted, {done.late:,} late, {done.dead:,} dead; "
            f"{counted(unread, 'row')} of the file unreadable"
        )
        if done.late or done.dead or unread:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(done.reasons.items()))
            named = f" Of the dead letters that were listed: {reasons}." if reasons else ""
            raise CommandError(f"No events of the feed: {counted(done.late + done.dead + unread, 'row')}.{named} {WHY}", returncode=LOST)


def check_possible(feed: Feed | None, rows: pa.Table, *, shift: bool, rate: float | None) -> None:
    """Raises CommandError for a run that would lose rows from the first on: the feed's clock is the
    greatest time it has seen."""
    if feed is None:
        return
    if feed.time != "ms" and shift:
        raise CommandError(f"--shift-to-now is for times in ms; those of {feed.name} are ticks.")
    if feed.wall_clock and rate is None and shift:
        raise CommandError(
            f"{feed.name} goes by the wall clock: at the rate max all rows but the first would lie in its future. Give a rate such as 60x."
        )
    first, clock = rows.column(TIME)[0].as_py(), event_log(feed.name).end[1]
    if feed.wall_clock:
        clock = max(clock or 0, time.time_ns() // 1_000_000 - LONGEST_PAUSE_MS)
    if clock is not None and late(rows.column(TIME)[:1].to_numpy(), clock, feed.lateness).any():
        moment, lateness = feed.engine_feed().moment, f"{feed.lateness / 1000:g} s" if feed.time == "ms" else str(feed.lateness)
        remedy = "play it with --shift-to-now" if feed.time == "ms" and not shift else "play it on a new feed"
        raise CommandError(
            f"The clock of {feed.name} is at {moment(clock)} and rows may be {lateness} behind it, but the recording begins at {moment(first)}: "
            f"its rows would be late. Either {remedy}, or set the clock back (manage.py clock)."
        )


def _at(feed: EngineFeed, t: int) -> str:
    """A time in readable form."""
    if not t or str(feed.time) != "ms":
        return str(t or "")
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(t / 1000))
