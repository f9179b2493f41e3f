"""`manage.py clock FEED --to T`: sets a feed's clock back after a row with a wrong time was
accepted."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from engine.model.counts import counted
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed
from webapp.jobs.models import DesiredState, Job, ObservedState
from webapp.jobs.services import job_start, job_stop
from webapp.supervisor.clock import clock_set_back, newest_times, rows_beyond
from webapp.supervisor.sink import Fenced

STOPS_WITHIN_S = 120.0


class Command(BaseCommand):
    """Shows the clock; with --to it lists the rows that would be removed; with --yes it removes
    them: the job is stopped meanwhile and started again."""

    help = "Shows a feed's clock, or sets it back: rows beyond the time become dead letters, and what is stored is corrected."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("feed")
        parser.add_argument(
            "--to", help="rows later than this are removed from the log: a number in the unit of t or, on an ms feed, 2026-11-22T10:00:00Z"
        )
        parser.add_argument("--reason", default="", help="shown in the audit log and on the page Feeds")
        parser.add_argument("--yes", action="store_true", help="do it; without this the command only shows what it would do")

    def handle(self, *args: Any, **options: Any) -> None:
        feed = Feed.objects.filter(name=options["feed"]).first()
        if feed is None:
            raise CommandError(f"There is no feed {options['feed']!r}.")
        moment, clock = feed.engine_feed().moment, event_log(feed.name).end[1]
        if clock is None:
            self.stdout.write(f"{feed.name} has no rows yet, so its clock has no time.")
            return
        self.stdout.write(f"The clock of {feed.name} is at {moment(clock)}. Furthest ahead are:")
        for t, entity in newest_times(feed):
            self.stdout.write(f"  {moment(t)}  {entity}")
        if options["to"] is None:
            return
        to = _time(options["to"], feed)
        rows = rows_beyond(feed, to)
        if not rows:
            self.stdout.write(f"No row lies beyond {moment(to)}: there is nothing to do.")
        elif not options["yes"]:
            self.stdout.write(f"{counted(rows, 'row')} beyond {moment(to)} would become dead letters. Do it with --yes.")
        else:
            self._set_back(feed, to, options["reason"] or "no reason given")

    def _set_back(self, feed: Feed, to: int, reason: str) -> None:
        job = feed_head_ensure(feed).job
        job.refresh_from_db()
        ran = job.desired_state == DesiredState.RUNNING
        if ran:
            job_stop(job=job, user="manage.py clock")
        try:
            _wait_until_stopped(job)
            done = clock_set_back(feed=feed, to=to, reason=reason)
        except Fenced as error:
            raise CommandError(f"Nothing was changed: {error}.") from error
        finally:
            if ran:
                job_start(job=job, user="manage.py clock")
        answers = f"Answers retracted: {done.retracted:,}; asserted: {done.asserted:,}."
        self.stdout.write(f"Dead letters now: {counted(done.rows, 'row')}. {answers}")


def _wait_until_stopped(job: Job) -> None:
    """Returns when the job's process has ended. Raises CommandError."""
    give_up = time.monotonic() + STOPS_WITHIN_S
    while job.observed_state not in (ObservedState.STOPPED, ObservedState.CRASH_LOOP):
        if time.monotonic() > give_up:
            raise CommandError(f"The job {job.name} did not stop within {STOPS_WITHIN_S:.0f} s. Nothing was changed.")
        time.sleep(0.25)
        job.refresh_from_db()


def _time(text: str, feed: Feed) -> int:
    """A time in the feed's unit. Raises CommandError."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        if feed.time != "ms":
            raise ValueError(text)
        moment = datetime.fromisoformat(text.removesuffix(" UTC"))
    except ValueError as error:
        raise CommandError(f"--to {text!r} is no time: a whole number or, on an ms feed, 2026-11-22T10:00:00Z.") from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
