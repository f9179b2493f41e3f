"""A day of the demo city as the product would have stored it: all reports in the log, and the
answers of the demo's queries, with their alerts.

The reports are the simulation's own: 2,000 cars, each every two to five seconds. The job's own
processor evaluates them and stores the answers, in this process and as fast as it can. A run that
was interrupted continues where it was.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.sources.eventlog import EventLog
    from webapp.feeds.models import Feed

BEGIN = 1_763_700_000_000
HOUR, CHUNK = 3_600_000, 300_000
REPORT_S = 20
"""How often a running build reports its progress."""


@dataclass(frozen=True)
class Day:
    """The existing data, of times `[begin, end]`."""

    begin: int
    end: int
    rows: int
    answers: int


def city_day(folder: Path, hours: float, password: str) -> Day:
    """The feed `city` with `hours` of history; missing parts are generated. Django is set up;
    `folder` keeps the processor's state."""
    from django.conf import settings

    from engine.sources.eventlog import EventLog
    from webapp.demo.seed import seed_feed, seed_users
    from webapp.feeds.heads import feed_head_ensure

    began = time.monotonic()
    feed = seed_feed("city", seed_users(password, password + "!"))
    feed_head_ensure(feed)
    log = EventLog(settings.EVENT_LOG_ROOT, feed.name)
    # In parallel with the evaluation, which leaves one of two cores free.
    reports = get_context("spawn").Process(target=_report, args=(log.folder, BEGIN + round(hours * HOUR)))
    reports.start()
    _evaluate(log, feed, folder, reports)
    next_seq, end = log.end
    day = Day(BEGIN, int(end or BEGIN), next_seq, _answers(feed))
    print(f"{hours:g} hours of the city: {day.rows:,} rows and {day.answers:,} answers, made now in {time.monotonic() - began:.0f} s", flush=True)
    return day


def _report(folder: Path, end: int) -> None:
    """Appends the missing reports up to `end` to the log in `folder`, and
    compacts it as upkeep would."""
    from engine.model.events import check_rows
    from engine.sources.eventlog import EventLog
    from webapp.demo.simulation.scenarios import read_scenario

    scenario, log = read_scenario("city"), EventLog(folder.parent, folder.name)
    own, (_, reached) = scenario.engine_feed(), log.end
    for start in range(BEGIN, end, CHUNK):
        if reached is None or reached < start:
            good, _dead = check_rows(scenario.world.rows(start, min(end, start + CHUNK)), own)
            log.append(good)
        if (start - BEGIN) % HOUR == HOUR - CHUNK:
            log.compact(log.end[0] - 1)
    log.compact(log.end[0] - 1)


def _evaluate(log: EventLog, feed: Feed, folder: Path, reports: BaseProcess) -> None:
    """Has the processor process all rows until `reports` has ended."""
    from engine.runtime.processor import FeedProcessor
    from engine.runtime.snapshots import Snapshots
    from engine.sources.store import files_of
    from webapp.supervisor.store import FeedStore

    processor = FeedProcessor(feed.engine_feed(), log, FeedStore(feed, epoch=1), Snapshots(files_of(folder / "state")))
    processor.follow()
    reported_at = time.monotonic()
    while True:
        were_all = not reports.is_alive()
        if not processor.process():
            if were_all:
                break
            time.sleep(0.2)
        if time.monotonic() - reported_at > REPORT_S:
            reported_at = time.monotonic()
            print(f"  {processor.head.last_seq + 1:,} rows evaluated of {log.end[0]:,} written so far", flush=True)
    if reports.exitcode != 0:
        raise RuntimeError("the city's reports could not be written")


def _answers(feed: Feed) -> int:
    from webapp.detections.models import Detection

    return Detection.objects.filter(feed=feed, weight=1).count()
