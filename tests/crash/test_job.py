"""A job that dies at the worst moments stores what a job that never dies would have stored."""

from __future__ import annotations

import os
import signal

import pytest

from tests.crash.world import World, jvm_of
from webapp.jobs.models import FeedHead, Job

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow]


def test_a_job_stores_the_oracles_answers_and_stops_when_told(world: World) -> None:
    world.append()
    job = world.start_job()
    world.wait_caught_up(60)
    for _ in range(5):
        world.append()
    world.wait_caught_up()
    job.send_signal(signal.SIGTERM)
    assert job.wait(20) == 0
    world.wait(world.no_process_left, 5)
    world.check()
