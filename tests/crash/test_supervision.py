"""Celery starts, adopts, restarts and stops jobs; it may die, and Redis with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from tests.crash.world import PLAIN_START_S, RECOVERY_S, World, assert_within
from webapp.jobs import services
from webapp.jobs.models import Job, JobEvent, ObservedState

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow]


def start_worker(world: World, name: str, *, beat: bool) -> subprocess.Popen[bytes]:
    schedule = ["-B", f"--schedule={world.folder / name}"] if beat else []
    command = [sys.executable, "-m", "celery", "-A", "webapp.config", "worker", "--loglevel=WARNING", "--concurrency=1", "-n", f"{name}@test"]
    return world.start(*command, *schedule, name=f"celery-{name}")


def roots() -> list[int]:
    """The processes that were started as a job."""
    found = [p.info for p in psutil.process_iter(["pid", "cmdline"]) if "run_job" in (p.info["cmdline"] or [])]
    return [info["pid"] for info in found if psutil.Process(info["pid"]).environ().get("VEDETTE_VAR") == os.environ["VEDETTE_VAR"]]


def _starting_took() -> float:
    """Seconds from the reconciler's decision to start the job until it processed rows, which
    measures the speed of the machine."""
    events = JobEvent.objects.in_bulk(field_name="id").values()
    moments = {event.kind: event.at for event in sorted(events, key=lambda event: -event.pk)}
    return float((moments["ready"] - moments["started"]).total_seconds())


def kill_group(child: subprocess.Popen[bytes]) -> None:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@pytest.fixture
def world(transactional_db: None, tmp_path: Path, settings: Any, redis_url: str) -> Any:
    before = os.environ["VEDETTE_VAR"]
    for name in ("VAR", "VEDETTE_LOG_STORE", "EVENT_LOG_ROOT", "CHECKPOINT_ROOT"):
        setattr(settings, name, getattr(settings, name))
    made = World(tmp_path, redis_url=redis_url)
    yield made
    made.close()
    os.environ["VEDETTE_VAR"] = before


def test_a_supervised_job_survives_all_failures(world: World) -> None:
    world.append()
    workers = [start_worker(world, "one", beat=True), start_worker(world, "two", beat=True)]
    world.wait_caught_up()
    pace = _starting_took()
    (first,) = roots()
    assert Job.objects.get().epoch == 1, "two workers and two beats start one job"

    redis.Redis.from_url(world.redis_url).flushall()
    world.append()
    world.wait_caught_up()

    for worker in workers:
        kill_group(worker)
    world.append()
    world.wait_caught_up()
    assert roots() == [first], "the job outlives Celery"

    start_worker(world, "three", beat=True)
    world.wait(lambda: JobEvent.objects.filter(kind="adopted").exists(), 60, "the running job adopted")
    assert roots() == [first]

    killed = time.monotonic()
    os.kill(first, signal.SIGKILL)
    world.append()
    world.wait_caught_up()
    assert_within(RECOVERY_S, time.monotonic() - killed, pace=pace, plain=PLAIN_START_S, what="processing again after the job was killed")
    assert Job.objects.get().epoch == 2

    services.job_stop(job=Job.objects.get())
    world.wait(lambda: Job.objects.get().observed_state == ObservedState.STOPPED, 40, "stopped")
    world.wait(world.no_process_left, 10, "no process left")
    time.sleep(7)
    assert roots() == [], "stopped stays stopped"
    world.check()
