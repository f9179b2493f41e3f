"""The process behind `manage.py run_job`: one Spark session, one stream for each feed of the job, and somebody who watches all of it.

It ends when it is told to (TERM, or the job is wanted stopped), when a newer start has taken over, when the JVM dies, when a feed
cannot go on, or when a batch hangs. It never repairs itself by starting Spark again: a new process does that.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from engine.failpoints import failpoint
from engine.runtime import spark as spark_runtime
from engine.runtime.executors import ExecutorsProcessor
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from engine.sources.segments import LogDamaged
from webapp.config.connections import limit_statements
from webapp.detections.sink import PATIENCE_S, Fenced
from webapp.feeds.damage import feed_set_aside
from webapp.feeds.models import Feed
from webapp.jobs import processes, services
from webapp.jobs.models import DesiredState, FeedHead, Job
from webapp.jobs.store import FeedStore

logger = logging.getLogger(__name__)

HEARTBEAT_S = 1.0
WATCH_S = 0.25
"""How often the job looks after queries that changed, feeds that came, and streams that ended."""
BATCH_LIMIT_S = 300.0
"""A batch that takes longer hangs."""
STATEMENT_LIMIT_S = 240
"""What a batch found is stored by few statements: one may take most of the batch's time."""
DONE, FAILED, FENCED = 0, 1, 3
"""Exit statuses."""


class JobFailed(RuntimeError):
    """Why the job cannot go on, in words for its users."""


def trigger_ms(feed: Feed) -> int:
    """How far apart the feed's batches begin: a feed that waits for disorder anyway leaves the cores to the others a quarter of that time."""
    waits_ms = feed.lateness if feed.time == "ms" else 0
    return max(settings.VEDETTE_TRIGGER_MS, min(waits_ms // 4, 1000))


class FeedRun:
    """One feed of the job: its processor, its stream, and the thread that follows its queries."""

    def __init__(self, feed: Feed, job: Job, spark: Any) -> None:
        folder = Path(settings.CHECKPOINT_ROOT) / feed.name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = EventLog(settings.EVENT_LOG_ROOT, feed.name)
        self.feed = feed
        make = partial(ExecutorsProcessor, spark) if settings.VEDETTE_PLACEMENT == "executors" else FeedProcessor
        self.store, snapshots = FeedStore(feed, job.epoch, job.pk), Snapshots(folder / "state")
        self.processor: FeedProcessor = make(feed.engine_feed(), log, self.store, snapshots, partitions=settings.VEDETTE_PARTITIONS)
        self.stream = spark_runtime.FeedStream(spark, self.processor, folder, trigger_ms=trigger_ms(feed))
        self.error: BaseException | None = None
        self._rebuilt = False
        self._follower = threading.Thread(target=self._follow, name=f"follow-{feed.name}", daemon=True)

    def start(self) -> None:
        if self.stream.lost_checkpoint():
            self.processor.store.tell(
                "rebuilt", f"{self.feed}: Spark's checkpoint is gone; a new one is begun, and the log says what is stored already."
            )
        if self.processor.evaluator.position < 0:
            # Queries that were there before the first row is processed find nothing in history: all rows may raise their alerts.
            self.processor.follow()
        self.stream.start(new_generation=self.store.came_over)
        self._follower.start()

    def stop(self) -> None:
        self.processor.stopping.set()
        self.stream.stop()

    def check(self) -> None:
        """Raises what ended the feed; a checkpoint that Spark cannot read is replaced by an empty one, once."""
        if self.error is not None:
            raise self.error
        if self.stream.alive:
            if self.processor.batch_seconds() > BATCH_LIMIT_S:
                raise JobFailed(f"{self.feed}: a batch has hung for {BATCH_LIMIT_S:.0f} s")
            self.stream.roll_if_due()
            return
        if not self.stream.broken_checkpoint() or self._rebuilt:
            # A damaged file may have struck Spark first, which says it in its own words.
            self.processor.log.verify(self.processor.head.last_seq + 1, self.processor.log.end[0])
            raise self.stream.error or JobFailed(f"{self.feed}: {self.stream.failure()}")
        self._rebuilt = True
        reason = self.stream.failure()
        self.processor.store.tell("rebuilt", f"{self.feed}: Spark's checkpoint is unusable and is replaced; the log is read again. {reason}")
        self.stream.start(new_generation=True)

    def _follow(self) -> None:
        """Brings changed queries to the running evaluator until the process ends."""
        while not self.processor.stopping.wait(WATCH_S):
            try:
                self.processor.follow()
            except DatabaseError as error:
                # The batches decide how long the database may be away.
                logger.warning("%s: queries cannot be followed: %s", self.feed, error)
                connection.close()
            except Exception as error:
                self.error = error
                return


class JobDriver:
    """Runs one job to its end."""

    def __init__(self, name: str, epoch: int | None) -> None:
        self.name, self.epoch = name, epoch
        self.stopping = threading.Event()
        self.told_to_end = False
        self.job_id = 0
        self.runs: dict[int, FeedRun] = {}
        self.started = time.monotonic()

    def run(self) -> int:
        """Runs until something ends it; the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        # Until here they waited (`processes.start_job`): a start that is told to end at once ends as such.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, processes.HELD_BACK)
        me = psutil.Process()
        job = services.job_claim(
            name=self.name, epoch=self.epoch, pid=me.pid, pgid=os.getpgrp(), pid_started=me.create_time(), host=processes.hostname()
        )
        if job is None:
            logger.info("job %s is not to run here (stopped, or a newer start has it)", self.name)
            return DONE
        self.job_id = job.pk
        os.environ.update(services.job_sessions(job))
        limit_statements(STATEMENT_LIMIT_S)
        connection.close()
        services.job_sessions_end(job)
        failpoint("job.claimed")
        threading.Thread(target=self._heartbeat, args=(job,), name="heartbeat", daemon=True).start()
        try:
            self._work(job)
        except Fenced as error:
            logger.warning("%s", error)
            return FENCED
        except Exception as error:
            if self.told_to_end:
                # What breaks while it ends, Spark's start among it, is no failure.
                logger.warning("told to end: %s", error)
                self._write_down(lambda: services.job_left(job_id=job.pk, epoch=job.epoch))
                return DONE
            logger.exception("job %s failed", self.name)
            reason = f"{type(error).__name__}: {error}"
            self._write_down(lambda: services.job_failed(job_id=job.pk, epoch=job.epoch, error=reason))
            return FAILED
        if self.told_to_end:
            self._write_down(lambda: services.job_left(job_id=job.pk, epoch=job.epoch))
        return DONE

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.told_to_end = True
        self.stopping.set()

    def _work(self, job: Job) -> None:
        host = settings.VEDETTE_SPARK_HOST
        if self.told_to_end:
            return
        spark = spark_runtime.session(
            f"vedette-{job.name}",
            cores=settings.VEDETTE_CORES,
            master=settings.VEDETTE_SPARK_MASTER,
            memory=settings.VEDETTE_SPARK_MEMORY,
            extra=spark_runtime.reached_at(host, settings.VEDETTE_SPARK_SECRET) if host else None,
        )
        try:
            self._open_new_feeds(job, spark)
            services.job_ready(job_id=job.pk, epoch=job.epoch, seconds=time.monotonic() - self.started)
            looked = time.monotonic()
            while not self.stopping.wait(WATCH_S):
                if spark_runtime.jvm_ended(spark):
                    raise JobFailed("Spark's JVM ended")
                self._look_after_feeds()
                if time.monotonic() - looked > 2.0:
                    looked = time.monotonic()
                    self._patiently(lambda: self._open_new_feeds(job, spark))
        finally:
            for run in self.runs.values():
                run.processor.stopping.set()
            if not spark_runtime.jvm_ended(spark):
                for run in self.runs.values():
                    run.stop()
                spark.stop()

    def _look_after_feeds(self) -> None:
        """Raises what ended a feed, unless it was deleted or given to another job in the middle of its work: then it alone ends."""
        for feed_id, run in list(self.runs.items()):
            try:
                run.check()
            except LogDamaged as damage:
                self._set_aside(run.feed, damage)
            except Exception as error:
                if self._was_given_away(feed_id):
                    # The other job begins a checkpoint anew: files of this one's may be missing from one moment to the next.
                    logger.info("%s was given to another job", run.feed)
                elif isinstance(error, Fenced) or Feed.objects.filter(pk=feed_id).exists():
                    raise
                else:
                    logger.info("%s was deleted", run.feed)
                self.runs.pop(feed_id).stop()

    def _was_given_away(self, feed_id: int) -> bool:
        return FeedHead.objects.filter(feed=feed_id).exclude(job=self.job_id).exists()

    def _open_new_feeds(self, job: Job, spark: Any) -> None:
        """Starts the streams of feeds that were added, ends those of feeds that were deleted."""
        services.feed_heads_ensure()
        heads = {head.feed_id: head for head in FeedHead.objects.filter(job=job, feed__damage=None).select_related("feed").order_by("feed__name")}
        for gone in self.runs.keys() - heads.keys():
            self.runs.pop(gone).stop()
        for feed_id in [feed_id for feed_id in heads if feed_id not in self.runs]:
            feed = heads[feed_id].feed
            try:
                run = self.runs[feed_id] = FeedRun(feed, job, spark)
                run.start()
            except LogDamaged as damage:
                self._set_aside(feed, damage)
            except Fenced:
                if not self._was_given_away(feed_id):
                    raise
                if feed_id in self.runs:
                    self.runs.pop(feed_id).stop()
            else:
                logger.info("%s goes on after row %d", feed, run.processor.head.last_seq)

    def _set_aside(self, feed: Feed, damage: LogDamaged) -> None:
        """Goes on without a feed whose log is damaged; it is taken up again when the log has been repaired."""
        logger.error("%s", damage)
        run = self.runs.pop(feed.pk, None)
        if run is not None:
            run.stop()
        feed_set_aside(feed=feed, damage=damage)

    def _patiently(self, act: Callable[[], None]) -> None:
        try:
            act()
        except DatabaseError as error:
            logger.warning("the database does not answer: %s", error)
            connection.close()

    # -- signs of life ------------------------------------------------------------------------------------------------------------

    def _heartbeat(self, job: Job) -> None:
        """Says that the job lives; ends the process when it was fenced, or cannot ask for too long."""
        heard = time.monotonic()
        while True:
            try:
                close_old_connections()
                wanted = services.job_heartbeat(job_id=job.pk, epoch=job.epoch)
                heard = time.monotonic()
            except DatabaseError:
                connection.close()
                if time.monotonic() - heard > 2 * PATIENCE_S:
                    _leave(FAILED, "the database has been away for too long")
            else:
                if wanted is None:
                    _leave(FENCED, "a newer start of this job has taken over")
                if wanted == DesiredState.STOPPED:
                    self.stopping.set()
            time.sleep(HEARTBEAT_S)

    def _write_down(self, last: Callable[[], None]) -> None:
        """The last that this process has to say of the job; the database may be away."""
        try:
            connection.close()
            last()
        except DatabaseError:
            logger.exception("how the job ended could not be written down")


def _leave(status: int, why: str) -> None:
    """Ends the process at once: threads of Spark's may hang, and nothing is owed to a zombie."""
    logger.error("%s; this process ends", why)
    os._exit(status)
