"""The process behind `manage.py run_job`: one Spark session, one stream for all feeds of the job,
and a loop that watches them.

It ends when it is asked to (TERM, or the job is wanted stopped), when a newer start has taken over,
when the JVM dies, when a feed cannot continue, or when a batch hangs. It never restarts Spark
itself: a new process does.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
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
from engine.sources.segments import LogDamaged
from webapp.config.connections import limit_statements
from webapp.feeds.damage import feed_set_aside
from webapp.feeds.heads import feed_heads_ensure
from webapp.feeds.logs import event_log, listen, states_of
from webapp.feeds.models import Feed
from webapp.jobs import services
from webapp.jobs.models import DesiredState, FeedHead, Job, ObservedState
from webapp.platform.memory import freeze_loaded_objects
from webapp.supervisor import processes
from webapp.supervisor.sink import TIMEOUT_S, Fenced, with_retries
from webapp.supervisor.store import FeedStore

logger = logging.getLogger(__name__)

HEARTBEAT_S = 1.0
WATCH_S = 0.25
"""How often the job checks for changed queries, new feeds, and ended streams."""
FEEDS_AT_ONCE = 4
"""How many feeds are evaluated concurrently, and how many store their results: while one waits for
the database, another computes."""
LOOK_S = 0.01
"""How often the job looks whether a log has grown."""
SURE_S = 1.0
"""How often it reads the log itself, independent of the folder's modification time: clocks of
shared folders differ."""
BATCH_LIMIT_S = 300.0
"""A batch, or a part of it, that takes longer counts as hung: results that take longer to store
than VEDETTE_STORE_SECONDS are stored in smaller parts."""
DONE, FAILED, FENCED = 0, 1, 3
"""Exit statuses."""


class JobFailed(RuntimeError):
    """The reason why the job cannot continue, for its users."""


class FeedRun:
    """One feed of the job: its processor, and the thread that follows its queries."""

    def __init__(self, feed: Feed, job: Job, spark: Any, storing: Executor) -> None:
        folder = Path(settings.CHECKPOINT_ROOT) / feed.name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in (*folder.glob("spark-*"), folder / "executors"):
            # In earlier releases each feed had a checkpoint of Spark's, and executors
            # a folder for their states.
            shutil.rmtree(left, ignore_errors=True)
        log = event_log(feed.name)
        self.feed = feed
        make = partial(ExecutorsProcessor, spark) if settings.VEDETTE_PLACEMENT == "executors" else FeedProcessor
        store, snapshots = FeedStore(feed, job.epoch, job.pk), Snapshots(states_of(feed.name))
        options: dict[str, Any] = {"partitions": settings.VEDETTE_PARTITIONS, "storing": storing}
        self.processor: FeedProcessor = make(feed.engine_feed(), log, store, snapshots, **options)
        self.error: BaseException | None = None
        self._looked_ns = 0
        self._may_begin = 0.0
        self._follower = threading.Thread(target=self._follow, name=f"follow-{feed.name}", daemon=True)

    def start(self) -> None:
        if self.processor.evaluator.position < 0:
            # Queries that were there before the first row is processed find nothing in history: all
            # rows may raise their alerts.
            self.processor.follow()
        self._follower.start()

    def stop(self) -> None:
        self.processor.stopping.set()

    def is_at_work(self) -> bool:
        """Whether its thread still registers queries at the evaluator, or results are being
        stored."""
        return self._follower.is_alive() or self.processor.is_storing

    def is_due(self) -> bool:
        """Whether the log may hold rows for another batch, and the batch
        before began long enough ago."""
        now = time.monotonic()
        if self.error is not None or self.processor.stopping.is_set() or now < self._may_begin:
            return False
        return now > self._may_begin + SURE_S or self.processor.log.grown_since(self._looked_ns)

    def take(self) -> None:
        """Processes one batch of the feed's rows, if there are any. An error that ends the
        feed is raised by `check`."""
        self._may_begin = time.monotonic() + settings.VEDETTE_TRIGGER_MS / 1000
        looked_ns = time.time_ns()
        try:
            took = self.processor.process()
            # There may be more rows than one batch takes.
            self._looked_ns = 0 if took else looked_ns
            if took and self.processor.batches == 1:
                # Kernels are loaded when they are first called.
                freeze_loaded_objects()
        except BaseException as error:
            self.error = error

    def check(self) -> None:
        """Raises the error that ended the feed."""
        if self.error is not None:
            raise self.error
        if self.processor.batch_seconds() > BATCH_LIMIT_S:
            raise JobFailed(f"{self.feed}: a batch has hung for {BATCH_LIMIT_S:.0f} s")

    def _follow(self) -> None:
        """Brings changed queries to the running evaluator until the process ends."""
        while not self.processor.stopping.wait(WATCH_S):
            try:
                self.processor.follow()
            except DatabaseError as error:
                # The batches decide how long the database may be unavailable.
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
        self.end_requested = False
        self.job_id = 0
        self.runs: dict[int, FeedRun] = {}
        self._leaving: dict[int, FeedRun] = {}
        self.evaluating = ThreadPoolExecutor(FEEDS_AT_ONCE, thread_name_prefix="feed")
        # Not the same threads: those that evaluate wait for those that store.
        self.storing = ThreadPoolExecutor(FEEDS_AT_ONCE, thread_name_prefix="store")
        self._under_way: dict[FeedRun, Future[None]] = {}
        self._beginning = threading.Lock()
        self._spark_began = threading.Event()
        self.started = time.monotonic()

    def run(self) -> int:
        """Runs until something ends it; the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        # Signals were blocked until here (`processes.start_job`): a start that is asked to end
        # immediately ends in order.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, processes.HELD_BACK)
        me = psutil.Process()
        claim = partial(services.job_claim, name=self.name, epoch=self.epoch, pid=me.pid, pgid=os.getpgrp(), pid_started=me.create_time())
        # A brief outage of the database is not a failure of the job: several failures within
        # minutes would delay its next start.
        job = with_retries(lambda: claim(host=processes.hostname()))
        if job is None:
            logger.info("job %s is not to run here (stopped, or a newer start has it)", self.name)
            return DONE
        self.job_id = job.pk
        os.environ.update(services.job_sessions(job))
        limit_statements(settings.VEDETTE_STORE_SECONDS)
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
            if self.end_requested:
                # Errors while it ends, such as an interrupted start of Spark, are not failures.
                logger.warning("asked to end: %s", error)
                self._write_down(lambda: services.job_left(job_id=job.pk, epoch=job.epoch))
                return DONE
            logger.exception("job %s failed", self.name)
            reason = f"{type(error).__name__}: {error}"
            self._write_down(lambda: services.job_failed(job_id=job.pk, epoch=job.epoch, error=reason))
            return FAILED
        if self.end_requested:
            self._write_down(lambda: services.job_left(job_id=job.pk, epoch=job.epoch))
        return DONE

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.end_requested = True
        self.stopping.set()

    def _work(self, job: Job) -> None:
        if self.end_requested:
            return
        listen()
        master, extra = _cluster(job.name)
        spark = spark_runtime.session(
            f"vedette-{job.name}", cores=settings.VEDETTE_CORES, master=master, memory=settings.VEDETTE_SPARK_MEMORY, extra=extra
        )
        stream = spark_runtime.LogStream(spark, Path(settings.CHECKPOINT_ROOT) / f".stream-{job.name}", self._take)
        try:
            stream.start()
            threading.Thread(target=self._take_until_spark_begins, name="first rows", daemon=True).start()
            with_retries(lambda: self._open_new_feeds(job, spark))
            services.job_ready(job_id=job.pk, epoch=job.epoch, seconds=time.monotonic() - self.started)
            looked = time.monotonic()
            while not self.stopping.wait(WATCH_S):
                if spark_runtime.jvm_ended(spark):
                    raise JobFailed("Spark's JVM ended")
                if not stream.alive:
                    raise JobFailed(stream.failure())
                self._check_feeds()
                if time.monotonic() - looked > 2.0:
                    looked = time.monotonic()
                    self._tolerating_outages(lambda: self._open_new_feeds(job, spark))
        finally:
            self.stopping.set()
            for run in self.runs.values():
                run.stop()
            if not spark_runtime.jvm_ended(spark):
                stream.stop()
                for pool in (self.evaluating, self.storing):
                    pool.shutdown(wait=False, cancel_futures=True)
                spark.stop()

    def _take(self, seconds: float) -> None:
        """One micro-batch: during it each feed is evaluated as soon as its log grows, without
        waiting for another's batch.

        Feeds with a backlog take turns, a batch each.
        """
        self._spark_began.set()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not self.stopping.wait(LOOK_S):
            self._begin_batches()
        wait(self._under_way.values())

    def _take_until_spark_begins(self) -> None:
        """A JVM that was started just now needs seconds for its first
        micro-batch: rows do not wait for it."""
        while not self._spark_began.wait(LOOK_S) and not self.stopping.is_set():
            self._begin_batches()

    def _begin_batches(self) -> None:
        """One of each feed that has rows and no running batch."""
        with self._beginning:
            self._under_way = {run: batch for run, batch in self._under_way.items() if not batch.done()}
            for run in list(self.runs.values()):
                if run not in self._under_way and run.is_due():
                    self._under_way[run] = self.evaluating.submit(run.take)

    def _check_feeds(self) -> None:
        """Raises the error that ended a feed, unless it was deleted or moved to another job
        meanwhile: then only this feed ends."""
        for feed_id, run in list(self.runs.items()):
            try:
                run.check()
            except LogDamaged as damage:
                self._set_aside(run.feed, damage)
            except Exception as error:
                if self._was_given_away(feed_id):
                    logger.info("%s was given to another job", run.feed)
                elif isinstance(error, Fenced) and self._came_back(feed_id):
                    logger.info("%s was given to another job, and back", run.feed)
                elif isinstance(error, Fenced) or Feed.objects.filter(pk=feed_id).exists():
                    raise
                else:
                    logger.info("%s was deleted", run.feed)
                self._leave(feed_id)

    def _was_given_away(self, feed_id: int) -> bool:
        return FeedHead.objects.filter(feed=feed_id).exclude(job=self.job_id).exists()

    def _came_back(self, feed_id: int) -> bool:
        """Whether the feed is this job's without belonging to any start of it. This includes a feed
        whose job is to restart (`feed_reopen`)."""
        return FeedHead.objects.filter(feed=feed_id, job=self.job_id, epoch=0).exclude(job__observed_state=ObservedState.STOPPING).exists()

    def _leave(self, feed_id: int) -> None:
        run = self._leaving[feed_id] = self.runs.pop(feed_id)
        run.stop()

    def _is_at_work(self, run: FeedRun) -> bool:
        with self._beginning:
            batch = self._under_way.get(run)
        return run.is_at_work() or (batch is not None and not batch.done())

    def _open_new_feeds(self, job: Job, spark: Any) -> None:
        """Starts feeds that were added and leaves those that were deleted."""
        feed_heads_ensure()
        heads = {head.feed_id: head for head in FeedHead.objects.filter(job=job, feed__damage=None).select_related("feed").order_by("feed__name")}
        for gone in self.runs.keys() - heads.keys():
            self._leave(gone)
        # A feed that returns waits for the unfinished work of its former run: its head does not
        # distinguish the two.
        self._leaving = {feed_id: run for feed_id, run in self._leaving.items() if self._is_at_work(run)}
        for feed_id in [feed_id for feed_id in heads if feed_id not in self.runs and feed_id not in self._leaving]:
            feed = heads[feed_id].feed
            try:
                run = FeedRun(feed, job, spark, self.storing)
                run.start()
                self.runs[feed_id] = run
            except LogDamaged as damage:
                self._set_aside(feed, damage)
            except Fenced:
                if not self._was_given_away(feed_id):
                    raise
            else:
                logger.info("%s continues after row %d", feed, run.processor.head.last_seq)

    def _set_aside(self, feed: Feed, damage: LogDamaged) -> None:
        """Continues without a feed whose log is damaged; the feed is started again when
        the log has been repaired."""
        logger.error("%s", damage)
        if feed.pk in self.runs:
            self._leave(feed.pk)
        feed_set_aside(feed=feed, damage=damage)

    def _tolerating_outages(self, act: Callable[[], None]) -> None:
        try:
            act()
        except DatabaseError as error:
            logger.warning("the database does not answer: %s", error)
            connection.close()

    # -- heartbeats -----------------------------------------------------------------------------

    def _heartbeat(self, job: Job) -> None:
        """Writes heartbeats; ends the process when it was fenced, or cannot reach
        the database for too long."""
        heard = time.monotonic()
        while True:
            # First a pause: the claim has just written a heartbeat, and Spark's JVM is forked
            # meanwhile. A fork while another thread connects may leave locks behind that are never
            # released in the child.
            time.sleep(HEARTBEAT_S)
            try:
                close_old_connections()
                is_wanted = services.job_heartbeat(job_id=job.pk, epoch=job.epoch)
                heard = time.monotonic()
            except DatabaseError:
                connection.close()
                if time.monotonic() - heard > 2 * TIMEOUT_S:
                    _leave(FAILED, "the database has been away for too long")
            else:
                if is_wanted is None:
                    _leave(FENCED, "a newer start of this job has taken over")
                if is_wanted == DesiredState.STOPPED:
                    self.stopping.set()

    def _write_down(self, last: Callable[[], None]) -> None:
        """The last update of the job by this process; the database may be unavailable."""
        try:
            connection.close()
            last()
        except DatabaseError:
            logger.exception("how the job ended could not be written down")


def _cluster(name: str) -> tuple[str | None, dict[str, str]]:
    """The job's Spark master and settings: the named cluster, else this machine."""
    folder, host = Path(settings.VAR) / "spark" / name, settings.VEDETTE_SPARK_HOST
    if not settings.VEDETTE_SPARK_MASTER and settings.VEDETTE_PLACEMENT == "executors":
        return spark_runtime.local_cluster(settings.VEDETTE_CORES, folder)
    extra = spark_runtime.reached_at(host, settings.VEDETTE_SPARK_SECRET) if host else {}
    if not settings.VEDETTE_SPARK_MASTER:
        return None, {**spark_runtime.sockets_in(folder), **extra}
    return settings.VEDETTE_SPARK_MASTER, extra


def _leave(status: int, why: str) -> None:
    """Ends the process immediately: Spark's threads may hang, and a zombie has nothing to clean
    up."""
    logger.error("%s; this process ends", why)
    os._exit(status)
