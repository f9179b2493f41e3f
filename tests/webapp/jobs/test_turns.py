"""A feed is evaluated as soon as its log has grown, independent of the other feeds."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.sources.eventlog import EventLog
from webapp.supervisor import driver as jobs_driver
from webapp.supervisor.driver import FeedRun, JobDriver


class Run:
    """A feed with `batches` left; a batch ends when `may_end` is set."""

    def __init__(self, batches: int, may_end: threading.Event) -> None:
        self.batches, self.may_end = batches, may_end

    def is_due(self) -> bool:
        return self.batches > 0

    def take(self) -> None:
        assert self.may_end.wait(60)
        self.batches -= 1


def test_feeds_do_not_wait_for_batches_of_others() -> None:
    never_mind, later = threading.Event(), threading.Event()
    never_mind.set()
    slow, quick = Run(1, later), Run(3, never_mind)
    driver = JobDriver("test", None)
    driver.runs = {1: slow, 2: quick}  # type: ignore[dict-item]
    micro_batch = threading.Thread(target=driver._take, args=(60.0,))
    micro_batch.start()
    stop = time.monotonic() + 60
    while quick.batches and time.monotonic() < stop:
        time.sleep(0.01)
    assert (slow.batches, quick.batches) == (1, 0)
    driver.stopping.set()
    assert micro_batch.is_alive(), "a micro-batch ends when all that it began is stored"
    later.set()
    micro_batch.join(60)
    assert slow.batches == 0


def test_a_feed_is_due_as_soon_as_its_log_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only at the regular check of the log, once a second."""
    monkeypatch.setattr(jobs_driver, "SURE_S", 1e9)
    log = EventLog(tmp_path, "plane")
    log.live.mkdir(parents=True, exist_ok=True)
    run = FeedRun.__new__(FeedRun)
    run.error, run._may_begin = None, 0.0
    run.processor = SimpleNamespace(stopping=threading.Event(), log=log)  # type: ignore[assignment]
    looked = run._looked_ns = time.time_ns() + 10**9
    assert not run.is_due()
    os.utime(log.live, ns=(looked, looked))
    assert run.is_due()
    run._may_begin = time.monotonic() + 60
    assert not run.is_due(), "the batch before began just now"
