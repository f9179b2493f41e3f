"""A job that dies at the worst moments stores what an undisturbed job would have stored."""

from __future__ import annotations

import os
import shutil
import signal
import time
from io import StringIO

import psutil
import pyarrow as pa
import pytest
from django.core.management import call_command
from django.db import connection

from engine.model.events import row_schema
from engine.sources.eventlog import EventLog
from tests.crash.outage import kill, outage
from tests.crash.world import ACTING_S, PLAIN_BATCH_S, PLAIN_START_S, RECOVERY_S, STAYS, World, assert_within, descendants, jvm_of
from tests.forms import FORMS
from tests.webapp.answers import a_feed, a_user
from webapp.detections.models import Detection
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import LogDamage
from webapp.jobs.models import FeedHead, JobEvent
from webapp.platform.postgres import EmbeddedPostgres
from webapp.queries.models import Query
from webapp.queries.services import query_edit, query_remove

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow]

DEADLY = ["batch.after_evaluate", "files.before_rename", "sink.before_commit", "sink.after_commit", "batch.after_commit"]


def ended(world: World) -> None:
    world.wait(lambda: world.children[-1].poll() is not None, 60, "the job ends")
    world.wait(world.no_process_left, 30, "no process of the job left")


def recovers(world: World, pace: float, what: str) -> None:
    """Started again, the job processes again in time."""
    began = time.monotonic()
    world.start_job()
    world.wait_caught_up()
    assert_within(RECOVERY_S, time.monotonic() - began, pace=pace, plain=PLAIN_START_S, what=f"processing again after {what}")


def test_a_job_killed_at_any_step_of_a_batch_stores_everything_once(world: World) -> None:
    """Kills the whole group, at another step after each start, including before
    and after the sink's commit."""
    world.append()
    for place in DEADLY:
        # The first batch of a start may be the repetition of the one it died in.
        world.start_job(f"{place}=killgroup@2")
        world.wait(lambda: _grows(world), what=place)
        assert world.children[-1].returncode == -signal.SIGKILL
        ended(world)
    world.start_job()
    world.wait_caught_up()
    world.check()


def test_a_killed_jvm_a_damaged_snapshot_and_lost_checkpoints_lose_nothing(world: World) -> None:
    """Killing the JVM ends the job; then the state's snapshot is damaged, then all checkpoints are
    removed. The next start recovers each time."""
    world.append()
    pace = world.plain_start()
    job = world.children[-1]
    jvm_of(job.pid).kill()
    world.append()
    ended(world)
    assert job.returncode == 1
    recovers(world, pace, "the JVM was killed")
    world.append()
    world.wait_caught_up()
    world.children[-1].send_signal(signal.SIGTERM)
    ended(world)
    (world.folder / "checkpoints" / "yard" / "state" / FeedHead.objects.get().snapshot).write_bytes(b"nothing of use")
    world.append()
    recovers(world, pace, "the snapshot was damaged")
    assert JobEvent.objects.filter(kind="rebuilt").count() == 1
    world.children[-1].send_signal(signal.SIGTERM)
    ended(world)
    shutil.rmtree(world.folder / "checkpoints")
    world.append()
    recovers(world, pace, "all checkpoints were removed")
    world.check()


def test_a_job_that_resumes_after_a_takeover_writes_nothing(world: World) -> None:
    """The whole group is stopped inside the sink's transaction, where it holds the head row."""
    world.append()
    # Skips the join of the queries and the first batch.
    zombie = world.start_job("sink.before_commit=stop@3")
    world.wait(lambda: FeedHead.objects.get().last_seq >= 0)
    world.wait(lambda: _stopped(zombie.pid) or _grows(world), what="the job stands still")
    world.append()
    world.start_job()
    world.wait_caught_up()
    before = written()
    os.killpg(zombie.pid, signal.SIGCONT)
    world.wait(lambda: zombie.poll() is not None, 60, "the zombie ends")
    assert zombie.returncode == 3
    assert written() == before
    world.append()
    world.wait_caught_up()
    world.check()


def written() -> dict[str, int]:
    """The columns of the head row that every batch changes. Not the commits: the new job may store
    a snapshot after the answers."""
    return FeedHead.objects.values("epoch", "checkpoint", "last_batch", "last_seq", "outbox_seq").get()


def is_worker(process: psutil.Process) -> bool:
    """Whether it is a live Python worker of Spark: one that was killed may be a zombie
    until its daemon reaps it."""
    try:
        return "pyspark.daemon" in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def test_workers_killed_during_their_tasks_lose_nothing(world: World) -> None:
    """With the placement at executors, in Spark's Python workers: one dies before it has written
    its state, later all of them at once."""
    world.append()
    began = time.monotonic()
    job = world.start_job("executor.before_state=kill@2", VEDETTE_PLACEMENT="executors", VEDETTE_PARTITIONS="2")
    world.wait_caught_up()
    pace = time.monotonic() - began
    world.wait(lambda: (world.folder / "once" / "executor.before_state").exists() or _grows(world), what="a worker kills itself")
    world.append()
    world.wait_caught_up()
    workers = [process for process in descendants(jvm_of(job.pid).pid) if is_worker(process)]
    assert workers, "there are workers"
    for worker in workers:
        worker.kill()
    world.append()
    taken = world.wait_caught_up()
    assert job.poll() is None, "the job outlives its workers"
    assert_within(RECOVERY_S, taken, pace=pace, plain=PLAIN_START_S, what="processing again after all workers were killed")
    world.check()


def test_the_job_survives_an_outage_of_the_database(own_server: EmbeddedPostgres, world: World) -> None:
    """The job recovers without help, whatever it was doing at that moment."""
    world.append()
    pace = world.plain_start()
    job = world.children[-1]
    with outage():
        world.append()
        time.sleep(2)
        world.append()
    world.wait_caught_up()
    for wait in (0.0, 0.3, 0.6):
        for _ in range(4):
            world.append(100)
            time.sleep(wait / 4)
        kill(own_server)
        world.append()
        own_server.start()
        began = time.monotonic()
        world.append()
        world.wait_caught_up()
        assert_within(RECOVERY_S, time.monotonic() - began, pace=pace, plain=PLAIN_START_S, what="processing again after PostgreSQL was killed")
    assert job.poll() is None, "the job outlives its database"
    world.check()


def test_queries_are_registered_and_removed_while_the_job_runs_and_is_killed(world: World) -> None:
    world.append(2000)
    world.plain_start()
    pace = max(world.plain_batch() for _ in range(3))
    world.register("more stays", STAYS)
    # No rows arrive: the change itself must take effect.
    assert_within(ACTING_S, world.wait_caught_up(), pace=pace, plain=PLAIN_BATCH_S, what="a new query acts")
    assert Detection.objects.filter(query__name="more stays", backfill=True).exists()
    query_remove(query=world.stays, stop_dependents=True)
    since = Query.objects.get(pk=world.since.pk)
    assert since.stopped is not None and "stays" in since.stopped.reason
    assert_within(ACTING_S, world.wait_caught_up(), pace=pace, plain=PLAIN_BATCH_S, what="a removed query is gone")
    before = Detection.objects.filter(query=world.stays).count()
    world.append()
    world.wait_caught_up()
    assert Detection.objects.filter(query=world.stays).count() == before > 0
    world.children[-1].send_signal(signal.SIGTERM)
    ended(world)
    world.start_job("join.before_commit=killgroup")
    world.wait_caught_up()
    world.register("still more", STAYS)
    ended(world)
    world.append()
    world.start_job()
    world.wait_caught_up()
    connection.close()
    gone = {world.stays.pk, since.pk}
    Detection.objects.filter(query__in=gone).delete()
    world.check(alerts=False, removed=gone)


def test_a_query_is_edited_while_others_derive_from_it(world: World) -> None:
    """Its derived queries restart with it, from the log; the job is killed before the
    new versions have joined."""
    world.append(2000)
    world.start_job("join.before_commit=killgroup@2")
    world.wait_caught_up()
    assert Detection.objects.filter(query=world.since, weight=1).exists()
    wider = {"family": "border", "version": 1, "region": {"center": [5, 5], "radius": 4}}
    query_edit(query=world.crossings, user=a_user(), specification=wider)
    versions = dict(Query.objects.values_list("name", "version"))
    assert versions == {"crossings": 2, "visits": 2, "since": 2, "stays": 1}
    ended(world)
    world.append()
    world.start_job()
    world.wait_caught_up()
    world.append()
    world.wait_caught_up()
    connection.close()
    old = Detection.objects.exclude(query=world.stays).filter(version=1)
    reported = {bytes(row.key).hex() for row in old}
    assert reported
    old.delete()
    world.check(alerts=False, forgotten=reported)


def test_every_form_of_query_continues_after_its_job_was_killed(world: World) -> None:
    """In the job's process and over executors; some queries run from the beginning, the
    others join in mid-stream."""
    early, late = dict(list(FORMS.items())[:8]), dict(list(FORMS.items())[8:])
    for name, document in early.items():
        world.register(name, {**document, "version": 1})
    world.append(600)
    world.start_job("batch.after_evaluate=killgroup@2")
    world.wait(lambda: _grows(world), what="the job dies in the middle of a batch")
    ended(world)
    world.start_job("join.before_commit=killgroup")
    world.wait_caught_up()
    for name, document in late.items():
        world.register(name, {**document, "version": 1})
    world.register("pairs again", {**FORMS["pair"], "version": 1})
    ended(world)
    world.append(600)
    world.start_job("executor.before_state=kill@2", VEDETTE_PLACEMENT="executors", VEDETTE_PARTITIONS="2")
    world.wait_caught_up()
    world.append()
    world.wait_caught_up()
    found = set(Detection.objects.filter(weight=1).values_list("query__name", flat=True))
    assert found >= {*FORMS, "pairs again"} - {"met in a crowd"}
    world.check()


def _grows(world: World) -> bool:
    """Whether the job has ended; while it runs without work, rows are sent."""
    if world.caught_up():
        world.append(50)
    return world.children[-1].poll() is not None


def _stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def test_a_damaged_log_stops_only_its_own_feed(world: World) -> None:
    """The newest segment of one feed is truncated before the start, later one under the running
    job. The other feed continues."""
    harmed = a_feed("quay", lateness=1000)
    feed_head_ensure(harmed)
    log = EventLog(world.folder / "log-of-events", "quay")
    rows = [{"event": "position", "entity": "q", "t": 1000 * n, "x": 1.0, "y": 1.0} for n in range(20)]

    def append() -> None:
        log.append(pa.Table.from_pylist(rows, schema=row_schema(harmed.engine_feed())))

    def damaged() -> bool:
        return LogDamage.objects.filter(feed=harmed).exists()

    append()
    _cut_newest(log)
    world.append()
    world.start_job()
    world.wait_caught_up()
    world.wait(damaged, what="the damaged feed is set aside")
    call_command("repair", "quay", stdout=StringIO())
    append()
    world.wait(lambda: FeedHead.objects.get(feed=harmed).last_seq == 39, what="the repaired feed continues")
    append()
    _cut_newest(log)
    append()
    world.append()
    world.wait_caught_up()
    world.wait(lambda: damaged() or FeedHead.objects.get(feed=harmed).last_seq == 79, what="it is set aside, or Spark was faster")
    assert world.children[-1].poll() is None, "the job continues"
    call_command("repair", "quay", stdout=StringIO())
    world.wait(lambda: FeedHead.objects.get(feed=harmed).last_seq == 79, what="the repaired feed continues again")
    world.check()


def _cut_newest(log: EventLog) -> None:
    path = max(log.live.glob("*.parquet"), key=lambda path: path.name)
    path.write_bytes(path.read_bytes()[:200])
