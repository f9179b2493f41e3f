"""`manage.py simulate city strait`: demo worlds, live, sent to their feeds through
ingest like any outside source."""

from __future__ import annotations

import json
import os
import queue
import signal
import threading
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.demo.simulation.scenarios import read_scenario
from webapp.demo.simulation.world import WithHistory, World
from webapp.demo.simulation.worlds import WORLDS, world
from webapp.feeds.client import IngestClient, Rejected
from webapp.feeds.credentials import server_url, token_kept

TICK_MS, SLOWEST_TICK_MS = 200, 1_000
FALLEN_BEHIND_MS = 1_500
"""A simulator that could not send for longer than this skips the reports of that time: old
positions are of no use in a demo.

In worlds that report only events nothing is skipped: a missing report would mean that an event did
not happen.
"""
TRUTH_AHEAD_MS = 3_600_000
HISTORY_ROWS = 10_000
"""Rows of the past sent at once."""


class Command(BaseCommand):
    """Sends the reports of a demo world in real time, until stopped."""

    help = "Runs a demo world live: " + ", ".join(WORLDS)
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("worlds", nargs="+", choices=sorted(WORLDS), metavar="world")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--rate", type=float, default=1.0, help="how many times faster than real time things move")
        parser.add_argument("--feed", help="the feed to send to, for a single world (default: the world's name)")
        parser.add_argument("--url", default=None, help="the server (default: the one on this machine)")
        parser.add_argument("--token", default=os.environ.get("VEDETTE_TOKEN"), help="default: VEDETTE_TOKEN, else the one that demo_seed stored")
        parser.add_argument("--seconds", type=float, help="maximum duration")
        parser.add_argument("--truth", type=Path, help="write the ground truth of the next hour of a single world to this JSON file")

    def handle(self, *args: Any, **options: Any) -> None:
        # Without this handler Python would end in the middle of a request with a traceback.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        token = options["token"] or token_kept("simulator")
        if not token:
            raise CommandError("No token: give --token or set VEDETTE_TOKEN (`manage.py token USER` makes one), or run `manage.py demo_seed` first.")
        if len(options["worlds"]) > 1 and (options["feed"] or options["truth"]):
            raise CommandError("--feed and --truth are for a single world.")
        places = [world(name, options["seed"]) for name in options["worlds"]]
        if options["truth"]:
            write_truth(places[0], options["truth"])

        def play(place: World) -> None:
            with closing(IngestClient(options["url"] or server_url(), token, on_fault=self.stderr.write)) as client:
                run(place, client, feed=options["feed"] or place.feed, rate=options["rate"], seconds=options["seconds"])

        try:
            together(play, places)
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
        except (Rejected, ConnectionError) as error:
            raise CommandError(str(error)) from error


def together(play: Callable[[World], None], places: Sequence[World]) -> None:
    """Plays all worlds together, in threads of one process; returns when all have ended, and then
    raises the first error: a feed that accepts no rows does not stop the others."""
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def one(place: World) -> None:
        try:
            play(place)
        except Exception as error:
            ended.put(error)
        else:
            ended.put(None)

    for place in places:
        threading.Thread(target=one, args=(place,), name=f"player-{place.feed}", daemon=True).start()
    errors = [error for error in (ended.get() for _ in places) if error is not None]
    if errors:
        raise errors[0]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def run(place: World, client: IngestClient, *, feed: str, rate: float = 1.0, seconds: float | None = None) -> None:
    """All entities first, then each report within a tick of its time; for `seconds`, else
    forever."""
    tick = tick_ms(place)
    run_id = uuid.uuid4().hex[:12]
    sent_to = now_ms()
    end = None if seconds is None else sent_to + round(1000 * seconds)
    if isinstance(place, WithHistory):
        send_history(place, client, feed=feed, end=sent_to)
    snapshot = place.snapshot(sent_to, rate=rate)
    if snapshot.num_rows:
        client.send(feed, snapshot, key=f"simulate-{run_id}-{sent_to}")
    # A report at the time of the first picture would repeat it.
    sent_to += 1
    while end is None or sent_to < end:
        time.sleep(max(0.0, (sent_to + tick - now_ms()) / 1000))
        now = now_ms()
        if snapshot.num_rows and now - sent_to > FALLEN_BEHIND_MS:
            sent_to = now - tick
        rows = place.rows(sent_to, now, rate=rate)
        if rows.num_rows:
            client.send(feed, rows, key=f"simulate-{run_id}-{now}")
        sent_to = now


def tick_ms(place: World) -> int:
    """How often the world's reports are sent: four times within the feed's lateness, which
    is how often its job looks."""
    return min(SLOWEST_TICK_MS, max(TICK_MS, int(read_scenario(place.feed).feed["lateness"]) // 4))


def send_history(place: WithHistory, client: IngestClient, *, feed: str, end: int) -> None:
    """The history before `end`, sent only once: at a later start, which has another end, ingest
    recognises its key."""
    rows = place.history(end)
    for number, first in enumerate(range(0, rows.num_rows, HISTORY_ROWS)):
        try:
            client.send(feed, rows.slice(first, HISTORY_ROWS), key=f"history-{place.feed}-{number}")
        except Rejected as refusal:
            if refusal.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise


def write_truth(place: World, path: Path) -> None:
    """The ground truth of the coming hour."""
    now = now_ms()
    truth_events = [asdict(event) for event in place.truth(now, now + TRUTH_AHEAD_MS)]
    path.write_text(json.dumps({"from": now, "to": now + TRUTH_AHEAD_MS, "happenings": truth_events}, indent=1) + "\n")
