"""The stream through Spark: the job evaluates each feed's log once, however its micro-batches
begin."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from engine.sources.store import files_of
from tests.engine.runtime.test_processor import FEED, QUERIES, Memory, rows_of, the_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_one_stream_takes_all_feeds_and_may_begin_anew(spark: SparkSession, tmp_path: Path) -> None:
    from engine.runtime.spark import LogStream

    chance = random.Random(3)
    logs = [EventLog(tmp_path / "log", name) for name in ("yard", "quay", "lane")]
    stores = [Memory(wanted=list(QUERIES), number=1) for _ in logs]
    processors = [FeedProcessor(FEED, log, store, Snapshots(files_of(tmp_path / log.folder.name))) for log, store in zip(logs, stores, strict=True)]
    for processor in processors:
        processor.follow()
    taken = []

    def take(seconds: float) -> None:
        taken.append([processor.process() for processor in processors])

    def until_taken(stream: LogStream) -> None:
        stop = time.monotonic() + 120
        while any(processor.head.last_seq < log.end[0] - 1 for processor, log in zip(processors, logs, strict=True)):
            assert stream.alive, stream.failure()
            assert time.monotonic() < stop
            time.sleep(0.05)

    stream = LogStream(spark, tmp_path / "stream", take)
    logs[0].append(rows_of(chance, 40, 0))
    stream.start()
    until_taken(stream)
    for k in range(4):
        for log in logs:
            log.append(rows_of(chance, 40, 20 * k))
        until_taken(stream)
    stream.stop()
    assert not (tmp_path / "stream").exists()
    before = [processor.head.last_batch for processor in processors]
    # Another stream begins with a micro-batch at once; the rows in the logs are processed.
    stream.start()
    time.sleep(1)
    assert [processor.head.last_batch for processor in processors] == before
    logs[2].append(rows_of(chance, 40, 100))
    until_taken(stream)
    stream.stop()
    assert any(sum(one) > 1 for one in taken), "several feeds in one micro-batch"
    assert taken[0][0], "the first micro-batch waits for nothing"
    for log, store in zip(logs, stores, strict=True):
        assert sum(store.facts.values()) > 10
        assert +store.facts == the_oracle(log, QUERIES)


def test_what_breaks_off_a_micro_batch_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    from engine.runtime.spark import LogStream

    def take(seconds: float) -> None:
        raise RuntimeError("no more paper")

    stream = LogStream(spark, tmp_path / "stream", take)
    stream.start()
    stop = time.monotonic() + 60
    while stream.alive:
        assert time.monotonic() < stop
        time.sleep(0.05)
    assert stream.failure() == "RuntimeError: no more paper"
    stream.stop()
