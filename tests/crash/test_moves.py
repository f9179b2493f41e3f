"""A feed that is moved to another job while rows arrive: one job releases it, the other continues,
and every answer is stored once."""

from __future__ import annotations

import threading

import pytest

from tests.crash.world import World
from webapp.feeds.heads import feed_place
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead, Job, ObservedState

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow]


def test_a_feed_moves_between_two_running_jobs_while_rows_come_in(world: World) -> None:
    main, quay = Job.objects.get(), Job.objects.create(name="quay")
    world.append()
    world.start_job(), world.start_job(job="quay")
    world.wait_caught_up()
    world.wait(lambda: Job.objects.filter(observed_state=ObservedState.RUNNING).count() == 2, what="both jobs run")
    assert list(Job.objects.values_list("epoch", flat=True)) == [1, 1], "each job counts its starts by itself"
    over = threading.Event()
    rows = threading.Thread(target=_append_on, args=(world, over))
    rows.start()
    try:
        for job in (quay, main, quay):
            before = FeedHead.objects.get().last_seq
            feed_place(feed=Feed.objects.get(), job=job)
            world.wait(lambda: _goes_on(job, before), what=f"{job} continues")  # noqa: B023  it is asked before the next round
    finally:
        over.set()
        rows.join()
    world.wait_caught_up()
    assert [child.poll() for child in world.children] == [None, None], "both jobs outlive the moves"
    assert FeedHead.objects.get().job == quay
    world.check()


def _append_on(world: World, over: threading.Event) -> None:
    while not over.wait(0.1):
        world.append(20)


def _goes_on(job: Job, last_seq: int) -> bool:
    head = FeedHead.objects.get()
    return head.job_id == job.pk and head.epoch == 1 and head.last_seq > last_seq
