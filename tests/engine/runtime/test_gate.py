"""The gate against the rule row by row, in any batches, through snapshots."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import SEQ
from engine.model.events import HEARTBEAT, Stamper, row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.runtime.evaluator import reached
from engine.runtime.fingerprints import SeenRows
from engine.runtime.gate import Gate, Reorderer
from tests.oracles.gate import judged
from tests.strategies import arrivals, feeds, stamped

FEED = Feed("f", Crs.PLANAR, TimeUnit.TICKS)


def through(feed: Feed, rows: pa.Table, chance: random.Random) -> tuple[list[int], list[int], int]:
    """(seqs handed over, seqs of late rows, number of duplicates) of the gate in random batches
    with snapshots in between."""
    gate, clock = Gate(feed), None
    ready: list[int] = []
    late: list[int] = []
    duplicates = start = 0
    while start < rows.num_rows:
        batch = rows.slice(start, chance.randint(1, 5))
        start += batch.num_rows
        clock = reached(batch, clock)
        admitted = gate.take(batch, clock - feed.lateness)
        gate.check()
        assert all(t <= clock - feed.lateness for t in admitted.ready.column("t").to_pylist())
        ready += admitted.ready.column(SEQ).to_pylist()
        late += admitted.late.column(SEQ).to_pylist()
        duplicates += admitted.duplicates
        if chance.random() < 0.3:
            gate = Gate.load(feed, gate.dump())
    if clock is not None:
        ready += gate.take(rows.slice(0, 0), clock).ready.column(SEQ).to_pylist()
    return ready, late, duplicates


@given(st.data(), st.integers(0, 999))
def test_the_gate_follows_the_rule(data: st.DataObject, seed: int) -> None:
    feed = data.draw(feeds())
    rows = data.draw(arrivals(feed, most=40))
    table = stamped(rows, feed)
    plain = table.select(row_schema(feed).names).to_pylist()
    accepted, late, duplicates = judged(plain, feed.lateness, feed.dedupe, row_schema(feed).names)
    assert through(feed, table, random.Random(seed)) == (accepted, late, len(duplicates))


def test_a_heartbeat_moves_the_clock_and_is_no_event() -> None:
    feed = replace(FEED, lateness=1)
    schema = row_schema(feed)
    rows = [{"event": "position", "entity": "a", "t": 1}, {"event": HEARTBEAT, "entity": "", "t": 9}, {"event": "position", "entity": "a", "t": 7}]
    admitted = Gate(feed).take(Stamper().stamp(pa.Table.from_pylist(rows, schema=schema)), 8)
    assert admitted.ready.column("t").to_pylist() == [1]
    assert admitted.late.column("t").to_pylist() == [7]


def test_minus_zero_and_null_are_distinguished_as_values_are() -> None:
    rows = [{"entity": "a", "t": 1, "x": 0.0, "y": 0.0}, {"entity": "a", "t": 1, "x": -0.0, "y": 0.0}, {"entity": "a", "t": 1}]
    admitted = Gate(FEED).take(stamped(rows, FEED), 1)
    assert (admitted.duplicates, admitted.ready.num_rows) == (1, 2)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 50)), max_size=200), st.integers(1, 7))
def test_seen_rows_are_a_set(rows: list[tuple[int, int, int]], size: int) -> None:
    seen, known = SeenRows(), set()
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        first, second, t = (np.array([row[i] for row in part]) for i in range(3))
        fresh = seen.add(first.astype(np.uint64), second.astype(np.uint64), t.astype(np.int64))
        seen.check()
        for row, is_fresh in zip(part, fresh.tolist(), strict=True):
            assert is_fresh == (row[:2] not in known)
            known.add(row[:2])


def test_memory_of_rows_seen_is_bounded_by_the_lateness() -> None:
    seen = SeenRows()
    rng = np.random.default_rng(1)
    for start in range(0, 200_000, 1000):
        words = rng.integers(0, 2**63, 1000).astype(np.uint64)
        seen.add(words, words, np.arange(start, start + 1000))
        seen.forget_before(start)
        seen.check()
    assert len(seen) < 5000
    assert len(SeenRows.load(seen.dump())) == len(seen)


def test_many_small_runs_are_merged() -> None:
    waiting = Reorderer(FEED)
    rows = stamped([{"entity": "a", "t": 100 - i % 50} for i in range(400)], FEED).drop_columns(["clock"]).combine_chunks().to_batches()[0]
    for i in range(400):
        waiting.add(rows.slice(i, 1))
        waiting.check()
    assert len(waiting.runs) <= Reorderer.MAX_RUNS
    released = waiting.release(100)
    order = list(zip(released.column("t").to_pylist(), released.column(SEQ).to_pylist(), strict=True))
    assert order == sorted(order)
    assert len(order) == 400
