"""A feed's stream through Spark: what the driver takes is the log, once, whatever the files of a batch are."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from tests.engine.runtime.test_processor import FEED, QUERIES, Memory, rows_of, the_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.runtime.spark import FeedStream

pytestmark = pytest.mark.spark


def until_taken(stream: FeedStream, processor: FeedProcessor, log: EventLog) -> None:
    stop = time.monotonic() + 120
    while processor.head.last_seq < log.end[0] - 1:
        assert stream.alive, stream.failure()
        assert time.monotonic() < stop
        time.sleep(0.05)


def test_stored_answers_are_those_of_the_log_also_after_a_new_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    from engine.runtime.spark import FeedStream

    chance, log, store = random.Random(3), EventLog(tmp_path / "log", FEED.name), Memory(wanted=list(QUERIES), number=1)
    processor = FeedProcessor(FEED, log, store, Snapshots(tmp_path / "state"))
    processor.follow()
    for k in range(5):
        log.append(rows_of(chance, 40, 20 * k))
    stream = FeedStream(spark, processor, tmp_path)
    stream.start()
    until_taken(stream, processor, log)
    stream.stop()
    log.append(rows_of(chance, 40, 100))
    # An empty checkpoint lists all files again: rows that are stored are not taken twice.
    stream.start(new_generation=True)
    until_taken(stream, processor, log)
    stream.stop()
    assert sum(store.facts.values()) > 20
    assert +store.facts == the_oracle(log, QUERIES)
