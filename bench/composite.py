"""Composite events against a compiled engine that evaluates at every leaf: figures 9 to 12 of
[RFID], and more queries than there.

Binary trees of level C (2 ** C leaves), N queries, P primitive events a second over hot and
sparse cells (`composite_worlds.py`). Kernel rows take events whose classes are known, engine rows
Arrow rows through both stages to answer rows. Rates are events a second of processor time of one
thread. Facts, each an event: detections; queries accessed (asked by a trigger; by the baseline at
every leaf), as in figure 10, of these the evaluated ones (words), those with lists (once a batch)
and the searched ones (exact times); operations: guards looked at, steps on words, entries of
lists and nodes searched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench import Figure, Layer, Row, Size, compared, composite_flink
from bench.composite_baseline import EVALUATED_LEAVES, advance_every_leaf, every_leaf
from bench.composite_worlds import BATCH, FEED, HOT, MIXED, OPERATOR, ORDERED, SPARSE, Cells, Shape, Stream, events, prepared, stepped, trees
from engine.complex_events import history as store
from engine.complex_events.detection import DONE, advance
from engine.complex_events.operator import recent
from engine.complex_events.plan import CompositeIndex
from engine.complex_events.query_search import (
    ACCESSED,
    CONDITIONS,
    COUNTERS,
    DETECTED,
    ENTRIES,
    LISTED,
    SEARCHED,
    WORK,
    found,
    reset,
    scratch,
)
from engine.complex_events.search import NONE, Ints
from engine.complex_events.timers import timers
from engine.model.events import row_schema
from engine.operator import RegisteredQuery
from engine.sources.eventlog import EventLog

if TYPE_CHECKING:
    from bench.spark_overhead import Memory

_ROOM = 1_000_000
SPARK_SECONDS, SPARK_CORES = 60, 2
FEW, MANY, FAST = 500, 30_000, 100_000
"""Queries, and events a second: of [RFID] 4, and the greatest that it mentions."""
PROMISED = {3: 10.0, 5: 40.0}
"""By the level of the trees, for MANY queries and FAST events."""


def _figures() -> Iterator[tuple[str, Figure]]:
    """Those of [RFID] 4, whose pictures are lost, with the axes that its text names; accessed
    queries and operations for each of its parameters."""
    complexity, many = f"N = {FEW}, P = {FAST // 1000}K", f"N = {MANY:,}, C = 3"
    for number, fixed, label in (("9", complexity, "tree level C"), ("11", "C = 3, P = 100K", "queries N"), ("12", many, "events a second P")):
        log = number != "9"
        yield number, Figure(f"[RFID] fig. {number}: time for a second's events ({fixed})", label, log)
        yield _accessed(number), Figure(f"{'' if log else '[RFID] fig. 10: '}queries accessed an event ({fixed})", label, log)
        yield f"{number}-operations", Figure(f"operations an event ({fixed})", label, log)


def _accessed(figure: str) -> str:
    """The figure of accessed queries next to that of times."""
    return "10" if figure == "9" else f"{figure}-accessed"


FIGURES = dict(_figures())


@dataclass(frozen=True)
class Case:
    queries: int
    level: int
    rate: int
    cells: Cells
    shape: Shape = MIXED
    promised: float | None = None

    @property
    def title(self) -> str:
        return f"N={self.queries} C={self.level} P={self.rate // 1000}K {self.cells.name} {self.shape.name}"

    def points(self) -> Iterator[tuple[str, int]]:
        """The axes of [RFID]'s figures on which this case lies: (figure, x)."""
        if self.shape is not MIXED:
            return
        if (self.queries, self.rate) == (FEW, FAST):
            yield "9", self.level
        if (self.level, self.rate) == (3, FAST):
            yield "11", self.queries
        if (self.queries, self.level) == (MANY, 3):
            yield "12", self.rate


def cases(quick: bool) -> Iterator[Case]:
    if quick:
        yield from (Case(FEW, level, FAST, HOT) for level in (1, 3))
        return
    for cells in (HOT, SPARSE):
        hot = cells is HOT
        yield from (Case(FEW, level, FAST, cells, promised=0.9 if hot and level == 1 else None) for level in range(1, 6))
        yield from (Case(n, 3, FAST, cells) for n in (1_000, 10_000))
        yield Case(MANY, 1, FAST, cells, promised=0.9 if hot else None)
        yield from (Case(MANY, 3, rate, cells, promised=PROMISED[3] if hot and rate == FAST else None) for rate in (10_000, 20_000, 40_000, FAST))
        yield Case(MANY, 5, FAST, cells, promised=PROMISED[5] if hot else None)
    yield from (Case(MANY, level, FAST, HOT, ORDERED, PROMISED[level]) for level in (3, 5))


def rows(size: Size) -> Iterator[Row]:
    for case in cases(size is Size.QUICK):
        yield from measured(case, 20_000 if size is Size.QUICK else _ROOM // 5)
    yield from composite_flink.rows(size is Size.QUICK)


@lru_cache(maxsize=1)
def _compiled(queries: int, level: int, cells: Cells, shape: Shape) -> CompositeIndex:
    """The same for each rate of events: compiling takes longer than the measurement."""
    return OPERATOR.compile(trees(np.random.default_rng(1), queries, level, cells, shape), FEED)


def measured(case: Case, count: int) -> Iterator[Row]:
    """The kernel's row of a case, its points in the figures, and the engine's row."""
    given = events(np.random.default_rng(2), count, case.rate, case.cells)
    stream = prepared(_compiled(case.queries, case.level, case.cells, case.shape), given, BATCH)
    ours, theirs = Ours(stream), EveryLeaves(stream)
    times = compared({"ours": ours.run, "every leaf": theirs.run}, in_form)
    rates = {name: count / seconds for name, seconds in times.items()}
    leaves_operations = theirs.counters[EVALUATED_LEAVES] * (2 ** (case.level + 1) - 1) + theirs.counters[WORK]
    ours_operations = ours.counters[[CONDITIONS, ACCESSED, ENTRIES, WORK]].sum()
    facts = {
        "detections": ours.counters[DETECTED] / count,
        "accessed": ours.counters[ACCESSED] / count,
        "listed": ours.counters[LISTED] / count,
        "searched": ours.counters[SEARCHED] / count,
        "operations": ours_operations / count,
        "every leaf accesses": theirs.counters[EVALUATED_LEAVES] / count,
        "searches": theirs.counters[SEARCHED] / count,
        "does operations": leaves_operations / count,
    }
    at_least = {} if case.promised is None else {"every leaf": case.promised}
    baseline = {"every leaf": rates["every leaf"]}
    yield Row(case.title, Layer.KERNEL, rates["ours"], "events/s", baseline, at_least, None, False, facts)
    for figure, x in case.points():
        plotted = (
            (figure, "ms", 1000.0 * case.rate / rates["ours"], 1000 * case.rate / rates["every leaf"]),
            (_accessed(figure), "queries", facts["accessed"], facts["every leaf accesses"]),
            (f"{figure}-operations", "operations", facts["operations"], facts["does operations"]),
        )
        for name, unit, value, other in plotted:
            baselines, series = {"every leaf": other}, f"{case.cells.name} cells"
            yield Row(f"fig. {name}: {case.title}", Layer.KERNEL, value, unit, baselines, figure=name, x=x, series=series)
    yield Row(case.title, Layer.ENGINE, count / engine_seconds(stream, given), "events/s", less_is_better=False)


def spark_rows(size: Size) -> Iterator[Row]:
    """Whether a job keeps up with 40,000 events a second: the log is read as fast as possible, so
    its rate has to be above that of the events."""
    quick = size is Size.QUICK
    queries, rate = (FEW, 4_000) if quick else (MANY, 40_000)
    less = SPARK_SECONDS // 3
    for shape, placement, seconds in ((MIXED, "driver", SPARK_SECONDS), (MIXED, "executors", less), (ORDERED, "driver", less)):
        wanted = trees(np.random.default_rng(1), queries, 3, HOT, shape)
        store = _streamed(wanted, placement, rate, 15 if quick else seconds)
        rows, (longest, most) = store.head.last_seq + 1, _longest_batch(store.batches)
        facts: dict[str, float | str] = {"detections": store.answers / rows, "batches": len(store.batches), "longest s": longest, "with events": most}
        title = f"Spark, {placement}, N={queries} C=3 P={rate // 1000}K hot {shape.name}, {rows // rate} s"
        yield Row(title, Layer.SPARK, store.rows_per_s(), "events/s", limit=float(rate), less_is_better=False, facts=facts)


def _streamed(queries: Sequence[RegisteredQuery], placement: str, rate: int, seconds: int) -> Memory:
    """This many seconds of events through a job: one segment of the log a second, five a batch, as
    for a job that is slightly behind."""
    from bench.spark_overhead import run, shared_session
    from engine.runtime.executors import ExecutorsProcessor
    from engine.runtime.processor import FeedProcessor

    given = events(np.random.default_rng(2), seconds * rate, rate, HOT)
    kind, partitions = (FeedProcessor, 1) if placement == "driver" else (ExecutorsProcessor, SPARK_CORES)
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder), FEED.name)
        for first in range(0, given.num_rows, rate):
            log.append(pa.Table.from_batches([logged(given.slice(first, rate))]))
        spark = shared_session(SPARK_CORES, separate=placement != "driver")
        return run(spark, kind, log, queries, partitions, feed=FEED, batch_rows=5 * rate)


def _longest_batch(batches: Sequence[tuple[float, int]]) -> tuple[float, int]:
    """Seconds and rows of the batch that took longest, the first one left out."""
    took = [(end - start, last - first) for (start, first), (end, last) in pairwise(batches)]
    return max(took, default=(0.0, 0))


def logged(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as the log takes them."""
    n = rows.num_rows
    columns = {"event": pa.array(["read"]).take(pa.array(np.zeros(n, np.int64))), "t_end": pa.nulls(n, pa.int64())}
    schema = row_schema(FEED)
    return pa.RecordBatch.from_arrays([columns[name] if name in columns else rows.column(name) for name in schema.names], schema=schema)


def in_form(asserted: Ints) -> Ints:
    """Detections (query, s, e) in one order."""
    return asserted[np.lexsort(asserted.T[::-1])]


def engine_seconds(stream: Stream, given: pa.RecordBatch) -> float:
    """Arrow rows through the operator; the first batch, in which kernels and cells are warmed up,
    is left out and replaced."""
    took = [seconds for _, seconds in stepped(stream.index, given)]
    return sum(took) if len(took) == 1 else sum(took[1:]) * len(took) / (len(took) - 1)


class _Run:
    """A kernel over all events, from an empty history each time."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.index, self.program = stream.index, stream.index.programs[1]
        self.batches = stream.batches
        tables = self.program.tables
        self.leaves = int(np.diff(tables.leaf_ends).max(initial=1))
        most = int(sum(len(one.t) for one, _ in self.batches))
        self.room = most // 3 + len(self.program.tables.horizon)
        self.counters = np.zeros(COUNTERS, np.int64)
        self.out = found(_ROOM, _ROOM * self.leaves)

    def start(self) -> tuple[Any, Any]:
        n = len(self.program.keys)
        history = store.build_history(store.no_events(), len(self.program.tables.horizon), 0, self.room)
        work = scratch(self.program.tables, np.full(n, NONE, np.int64), np.full(n, -1, np.int64), recent(self.program, store.no_events()))
        self.counters[:] = 0
        self.out.size[:] = 0
        return history, work

    def asserted(self) -> Ints:
        return self.out.rows[: self.out.size[0]][:, [0, 2, 3]].copy()


class Ours(_Run):
    def run(self) -> Ints:
        history, work = self.start()
        heap = timers(np.zeros(0, np.int64), np.zeros(0, np.int64), 1_000)
        for given, watermark in self.batches:
            reset(work)
            reason = advance(self.program.tables, history, heap, given, work, self.out, watermark, self.leaves, self.counters)
            assert reason == DONE, reason
        return self.asserted()


class EveryLeaves(_Run):
    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self.tables = every_leaf(stream.index)

    def run(self) -> Ints:
        history, work = self.start()
        self.tables.bits[:, 0], self.tables.bits[:, 1] = 0, NONE
        for given, _ in self.batches:
            reset(work)
            done = advance_every_leaf(self.program.tables, history, given, work, self.tables, self.out, self.counters)
            assert done >= 0, done
        return self.asserted()
