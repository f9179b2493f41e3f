"""What the driver of a job makes of a feed that cannot go on."""

from __future__ import annotations

from typing import Any, cast

import pytest

from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead, Job
from webapp.supervisor.driver import FeedRun, JobDriver
from webapp.supervisor.sink import Fenced

pytestmark = [pytest.mark.services, pytest.mark.django_db]


class FailingRun:
    """A feed's run whose check fails."""

    def __init__(self, feed: Feed, error: Exception) -> None:
        self.feed, self.error, self.stopped = feed, error, False

    def check(self) -> None:
        raise self.error

    def stop(self) -> None:
        self.stopped = True


def driver_of(feed: Feed, error: Exception) -> tuple[JobDriver, FailingRun]:
    driver, run = JobDriver("main", 1), FailingRun(feed, error)
    driver.runs, driver.job_id = cast("dict[int, FeedRun]", {feed.pk: run}), Job.objects.get().pk
    return driver, run


def test_a_feed_that_fails_ends_the_job(feed: Any) -> None:
    driver, _ = driver_of(feed, RuntimeError("no such row"))
    with pytest.raises(RuntimeError, match="no such row"):
        driver._look_after_feeds()


def test_a_feed_deleted_in_the_middle_of_its_work_ends_alone(feed: Any) -> None:
    driver, run = driver_of(feed, RuntimeError("FeedHead matching query does not exist"))
    Feed.objects.filter(pk=feed.pk).delete()
    driver._look_after_feeds()
    assert run.stopped
    assert driver.runs == {}


def test_a_newer_start_ends_the_job_whatever_became_of_the_feed(feed: Any) -> None:
    driver, _ = driver_of(feed, Fenced("epoch 2 has taken over"))
    Feed.objects.filter(pk=feed.pk).delete()
    with pytest.raises(Fenced):
        driver._look_after_feeds()


def test_a_feed_that_was_given_to_another_job_ends_alone(feed: Any) -> None:
    driver, run = driver_of(feed, Fenced("epoch 0 has taken over"))
    with pytest.raises(Fenced):
        driver._look_after_feeds()
    FeedHead.objects.update(job=Job.objects.create(name="quay"))
    driver._look_after_feeds()
    assert driver.runs == {} and run.stopped
