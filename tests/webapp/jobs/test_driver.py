"""How a job's driver handles a feed that cannot continue."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from engine.model.messages import Message
from webapp.feeds.heads import feed_place, feed_reopen
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead, Job, ObservedState
from webapp.supervisor import driver as jobs_driver
from webapp.supervisor.driver import DONE, FeedRun, JobDriver
from webapp.supervisor.sink import Fenced

pytestmark = [pytest.mark.services, pytest.mark.django_db]


class FailingRun:
    """A feed's run whose check fails."""

    def __init__(self, feed: Feed, error: Exception) -> None:
        self.feed, self.error, self.stopped, self.working = feed, error, False, False

    def check(self) -> None:
        raise self.error

    def stop(self) -> None:
        self.stopped = True

    def is_at_work(self) -> bool:
        return self.working


def driver_of(feed: Feed, error: Exception) -> tuple[JobDriver, FailingRun]:
    driver, run = JobDriver("main", 1), FailingRun(feed, error)
    driver.runs, driver.job_id = cast("dict[int, FeedRun]", {feed.pk: run}), Job.objects.get().pk
    return driver, run


def test_a_feed_that_fails_ends_the_job(feed: Any) -> None:
    driver, _ = driver_of(feed, RuntimeError("no such row"))
    with pytest.raises(RuntimeError, match="no such row"):
        driver._check_feeds()


def test_a_feed_deleted_during_its_batch_ends_without_the_others(feed: Any) -> None:
    driver, run = driver_of(feed, RuntimeError("FeedHead matching query does not exist"))
    Feed.objects.filter(pk=feed.pk).delete()
    driver._check_feeds()
    assert run.stopped
    assert driver.runs == {}


def test_a_newer_start_ends_the_job(feed: Any) -> None:
    driver, _ = driver_of(feed, Fenced("epoch 2 has taken over"))
    Feed.objects.filter(pk=feed.pk).delete()
    with pytest.raises(Fenced):
        driver._check_feeds()


def test_a_feed_moved_to_another_job_ends_without_the_others(feed: Any) -> None:
    driver, run = driver_of(feed, Fenced("epoch 2 has taken over"))
    FeedHead.objects.update(epoch=2)
    with pytest.raises(Fenced):
        driver._check_feeds()
    FeedHead.objects.update(job=Job.objects.create(name="quay"), epoch=0)
    driver._check_feeds()
    assert driver.runs == {} and run.stopped


class OpenedRun:
    """A run of a feed that is started."""

    processor = SimpleNamespace(head=SimpleNamespace(last_seq=7))

    def __init__(self, feed: Feed, job: Job, spark: Any, storing: Any) -> None:
        self.feed = feed

    def start(self) -> None:
        pass


def test_a_feed_that_returns_starts_after_its_former_run_ended(feed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moved to another job and back before this one noticed: it used to mistake this for a newer
    start of itself, and ended."""
    driver, former = driver_of(feed, Fenced("epoch 0"))
    feed_place(feed=feed, job=Job.objects.create(name="quay"))
    job = Job.objects.get(name="main")
    feed_place(feed=feed, job=job)
    driver._check_feeds()
    assert driver.runs == {} and former.stopped

    monkeypatch.setattr(jobs_driver, "FeedRun", OpenedRun)
    former.working = True
    driver._open_new_feeds(job, None)
    assert driver.runs == {}, "a thread of it may still bring it queries"
    former.working = False
    batch: Future[None] = Future()
    driver._under_way = cast("dict[FeedRun, Future[None]]", {former: batch})
    driver._open_new_feeds(job, None)
    assert driver.runs == {}, "what it evaluated may still be stored"
    batch.set_result(None)
    driver._open_new_feeds(job, None)
    assert driver.runs.keys() == {feed.pk}


def test_a_feed_that_was_changed_ends_its_job(feed: Any) -> None:
    driver, _ = driver_of(feed, Fenced("epoch 0"))
    Job.objects.update(observed_state=ObservedState.RUNNING)
    feed_reopen(feed=feed, why=Message("another column"))
    with pytest.raises(Fenced):
        driver._check_feeds()


def test_a_start_waits_for_a_database_that_is_away_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counted as a failure, and after several within minutes the job waited for two minutes."""
    tries = iter([OperationalError("Connection refused"), OperationalError("the database system is starting up"), None])

    def claim(**process: Any) -> None:
        if (error := next(tries)) is not None:
            raise error

    monkeypatch.setattr("webapp.jobs.services.job_claim", claim)
    monkeypatch.setattr("signal.signal", lambda number, act: None)
    monkeypatch.setattr(connection, "close", lambda: None)
    assert JobDriver("main", 1).run() == DONE
    assert list(tries) == []


def test_a_job_that_does_not_exist_is_refused_by_hand(feed: Any) -> None:
    with pytest.raises(CommandError, match="did you mean 'main'"):
        call_command("run_job", "mian")
