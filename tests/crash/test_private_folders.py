"""A job continues on another machine: its log and its states are in a store,
and nothing else is needed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.sources.store import Files
from tests.crash.world import World
from webapp.feeds.logs import states_of
from webapp.jobs.models import FeedHead, JobEvent
from webapp.platform.object_store import ObjectStore

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def shared_world(transactional_db: None, tmp_path: Path, settings: Any) -> Iterator[World]:
    """As `world`, with the log and the states in a store of S3's protocol."""
    before = os.environ["VEDETTE_VAR"]
    for name in ("VAR", "VEDETTE_LOG_STORE", "EVENT_LOG_ROOT", "CHECKPOINT_ROOT"):
        setattr(settings, name, getattr(settings, name))
    server = ObjectStore(tmp_path / "s3")
    with server.running():
        made = World(tmp_path, deriving=True, store=server.url)
        try:
            yield made
        finally:
            made.close()
            os.environ["VEDETTE_VAR"] = before


@pytest.mark.nightly
def test_a_job_continues_on_another_machine_from_states_in_the_store(shared_world: World) -> None:
    """Killed between writing a snapshot and naming it, then started on another machine;
    each time in another folder."""
    world, places = shared_world, iter(["one", "two", "three"])

    def start(failpoints: str = "") -> Any:
        var = world.folder / next(places)
        return world.start_job(failpoints, VEDETTE_PLACEMENT="executors", VEDETTE_PARTITIONS="2", VEDETTE_VAR=str(var))

    world.append()
    job = start("batch.after_snapshot=kill@4")
    world.wait(lambda: job.poll() is not None or (world.caught_up() and world.append(50)), what="it dies before it names a snapshot")
    assert job.returncode == -signal.SIGKILL
    states: Files = states_of("yard")
    left = set(states.names())
    job = start()
    world.append()
    world.wait_caught_up()
    snapshot = FeedHead.objects.get().snapshot
    job.kill()
    job.wait()
    start()
    world.append()
    world.wait_caught_up()
    world.check()
    assert not JobEvent.objects.filter(kind="rebuilt").exists(), "a state was built again from the whole log"
    world.wait(lambda: FeedHead.objects.get().snapshot != snapshot, what="it writes snapshots too")
    # The files of the last dumps stay, and the first start's snapshot may be one of them.
    world.wait(lambda: not states.existing(left) or (world.caught_up() and world.append(50)), what="what the first start left is gone")
    assert not list(world.folder.glob("*/checkpoints/yard/*")), "folders of machines hold no states"
