"""A job that dies at the worst moments stores what a job that never dies would have stored."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from django.db import connection

from tests.crash.outage import outage
from tests.crash.world import STAYS, World, busy, jvm_of
from webapp.detections.models import Detection
from webapp.jobs.models import FeedHead, JobEvent
from webapp.queries.services import query_remove

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow]

DEADLY = ["batch.after_evaluate", "snapshot.before_rename", "sink.before_commit", "sink.after_commit", "batch.after_commit"]


def ended(world: World) -> None:
    world.wait(lambda: world.children[-1].poll() is not None, 40, "the job ends")
    world.wait(world.no_process_left, 10, "no process of the job left")


def test_killed_at_each_step_of_a_batch_everything_is_stored_once(world: World) -> None:
    """The whole group, at another step after each start: before and after the sink's commit among them."""
    world.append()
    for place in DEADLY:
        # The first batch of a start may be the repetition of the one it died in.
        world.start_job(f"{place}=killgroup@2")
        world.wait(lambda: _grows(world), 60, place)
        assert world.children[-1].returncode == -signal.SIGKILL
        ended(world)
    world.start_job()
    world.wait_caught_up()
    world.check()


def test_the_jvm_killed_ends_the_job_and_the_next_start_goes_on(world: World) -> None:
    world.append()
    job = world.start_job()
    world.wait_caught_up(60)
    jvm_of(job.pid).kill()
    world.append()
    ended(world)
    assert job.returncode == 1
    world.start_job()
    world.wait_caught_up()
    world.check()


def test_a_stopped_job_that_wakes_up_after_another_took_over_writes_nothing(world: World) -> None:
    """The whole group stands still inside the sink's transaction, where it holds the head row."""
    world.append()
    # The queries' join and the first batch are let through.
    zombie = world.start_job("sink.before_commit=stop@3")
    world.wait(lambda: FeedHead.objects.get().last_seq >= 0, 60)
    world.wait(lambda: _stopped(zombie.pid) or bool(world.append(20)), 20, "the job stands still")
    world.append()
    world.start_job()
    world.wait_caught_up()
    before = FeedHead.objects.values().get()
    os.killpg(zombie.pid, signal.SIGCONT)
    world.wait(lambda: zombie.poll() is not None, 30, "the zombie ends")
    assert zombie.returncode == 3
    assert FeedHead.objects.values("last_seq", "commits", "epoch").get() == {name: before[name] for name in ("last_seq", "commits", "epoch")}
    world.append()
    world.wait_caught_up()
    world.check()


def test_the_database_goes_away_and_comes_back(world: World) -> None:
    world.append()
    job = world.start_job()
    world.wait_caught_up(60)
    with outage():
        world.append()
        time.sleep(4)
        world.append()
    world.wait_caught_up(15)
    assert job.poll() is None
    world.check()


def test_a_damaged_checkpoint_is_replaced_and_a_damaged_snapshot_rebuilt(world: World) -> None:
    world.append()
    world.start_job()
    world.wait_caught_up(60)
    world.append()
    world.wait_caught_up()
    world.children[-1].send_signal(signal.SIGTERM)
    ended(world)
    _truncate_newest(world.folder / "checkpoints" / "yard" / "spark-1" / "offsets")
    (world.folder / "checkpoints" / "yard" / "state" / FeedHead.objects.get().snapshot).write_bytes(b"nothing of use")
    world.append()
    world.start_job()
    world.wait_caught_up()
    assert FeedHead.objects.get().checkpoint == 2
    assert JobEvent.objects.filter(kind="rebuilt").count() == 2
    world.check()


def test_queries_come_and_go_while_the_job_runs_and_is_killed(world: World) -> None:
    world.append(2000)
    world.start_job()
    world.wait_caught_up(60)
    world.register("more stays", STAYS)
    # Nothing arrives: the change alone must be acted upon.
    assert world.wait_caught_up(2) < 2 or busy()
    assert Detection.objects.filter(query__name="more stays", backfill=True).exists()
    query_remove(query=world.stays)
    assert world.wait_caught_up(2) < 2 or busy()
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
    Detection.objects.filter(query=world.stays).delete()
    world.check(alerts=False, removed={world.stays.pk})


def _grows(world: World) -> bool:
    """Whether the job has ended; rows arrive as long as it lives."""
    world.append(50)
    time.sleep(0.5)
    return world.children[-1].poll() is not None


def _stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def _truncate_newest(folder: Path) -> None:
    newest = max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    newest.write_bytes(b"")
    (folder / f".{newest.name}.crc").unlink(missing_ok=True)
