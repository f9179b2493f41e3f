"""The workload of [RFID] 4: binary trees of level C over cells (reader, tag group), primitive
events spread over all cells.

`HOT` and `SPARSE` differ in how many cells there are: of a hot one some event has nearly always
come within the window. A tree's bounds are between one slot and SPAN slots. The paper's table of
parameters is lost, so how often its patterns are completed is not known. `MIXED` trees have all
binary operators; at 100,000 events a second nearly every event completes one of 30,000 patterns.
`ORDERED` trees have a bound at every operator: few are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from engine.complex_events.cells import Cells as ClassesOfCells
from engine.complex_events.operator import CompositeOperator, events_of
from engine.complex_events.plan import CompositeIndex
from engine.complex_events.query_search import InstanceEvents
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.specification import check

SLOT = 10
"""Milliseconds: the unit in which bounds are drawn."""
SLOTS = 64
"""`within` of all queries, in slots."""
SPAN = 2
TAGS = 10
"""Tags of a group."""
FEED = Feed("warehouse", Crs.PLANAR, TimeUnit.MS, 1, 0, False, {"reader": ColumnType.STRING})
OPERATOR = CompositeOperator()
BATCH = 100_000
"""Rows of a batch: a second at the paper's highest rate, and less than `backtest` takes at once."""


@dataclass(frozen=True)
class Cells:
    """`readers` times `groups` cells."""

    name: str
    readers: int
    groups: int


HOT, SPARSE = Cells("hot", 100, 100), Cells("sparse", 1000, 1000)


@dataclass(frozen=True)
class Shape:
    """The frequency of each operator in a tree, in eighths."""

    name: str
    sequence: int
    interval: int
    both: int
    either: int

    def operator(self, rng: np.random.Generator, parts: Sequence[Any]) -> Any:
        span, drawn = SLOT * int(rng.integers(1, SPAN + 1)), int(rng.integers(8))
        if drawn < self.sequence:
            return {"sequence": parts, "bounds": [0, span]}
        if drawn < self.sequence + self.interval:
            return {"interval": parts, "span": span}
        return {"and": parts} if drawn < self.sequence + self.interval + self.both else {"or": parts}


MIXED, ORDERED = Shape("mixed", 3, 2, 2, 1), Shape("ordered", 4, 4, 0, 0)


def trees(rng: np.random.Generator, count: int, level: int, cells: Cells, shape: Shape) -> list[RegisteredQuery]:
    """Queries whose patterns are binary trees with 2 ** level leaves, each in a different cell."""
    found = []
    for number in range(count):
        leaves = [(int(rng.integers(cells.readers)), int(rng.integers(cells.groups))) for _ in range(2**level)]
        names = [f"L{i}" for i in range(len(leaves))]
        primitives = {
            name: {"where": [["reader", "=", f"r{reader}"]], "prefix": {"entity": f"g{group}."}}
            for name, (reader, group) in zip(names, leaves, strict=True)
        }
        document = {"family": "composite", "pattern": _tree(rng, names, shape), "primitives": primitives, "within": SLOT * SLOTS}
        found.append(RegisteredQuery(f"q{number}", 1, check(document, FEED)))
    return found


def _tree(rng: np.random.Generator, names: Sequence[str], shape: Shape) -> Any:
    if len(names) == 1:
        return names[0]
    half = len(names) // 2
    return shape.operator(rng, [_tree(rng, names[:half], shape), _tree(rng, names[half:], shape)])


def events(rng: np.random.Generator, count: int, rate: int, cells: Cells) -> pa.RecordBatch:
    """`count` primitive events at `rate` a second, in order, as rows of the feed."""
    t = np.sort(rng.integers(0, max(1, count * 1000 // rate), count))
    tag = rng.integers(0, cells.groups * TAGS, count)
    names = pa.array([f"g{group}.{number}" for group in range(cells.groups) for number in range(TAGS)])
    readers = pa.array([f"r{i}" for i in range(cells.readers)])
    columns = {
        "entity": names.take(pa.array(tag)),
        "t": pa.array(t),
        "x": pa.nulls(count, pa.float64()),
        "y": pa.nulls(count, pa.float64()),
        "reader": readers.take(pa.array(rng.integers(0, cells.readers, count))),
        "seq": pa.array(np.arange(count)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


@dataclass
class Stream:
    """A compiled index and the events of its program over all entities, batch by batch: (events,
    the watermark after them)."""

    index: CompositeIndex
    batches: list[tuple[InstanceEvents, int]]


def prepared(index: CompositeIndex, rows: pa.RecordBatch, batch_rows: int) -> Stream:
    """Classes of all events found: what the program takes."""
    names, cells, batches = EntityDictionary(), ClassesOfCells(index.classes), []
    for begin in range(0, rows.num_rows, batch_rows):
        batch = Batch(rows.slice(begin, batch_rows), names)
        _, given = events_of(index, cells, batch)
        if len(given.t):
            batches.append((given, int(batch.t[-1])))
    return Stream(index, batches)


def stepped(index: Any, given: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Arrow rows through the operator in batches of BATCH: what each
    changes, and processor seconds."""
    names, state = EntityDictionary(), OPERATOR.keyed.initial(index)
    for first in range(0, given.num_rows, BATCH):
        batch = Batch(given.slice(first, BATCH), names)
        clock = time.thread_time()
        output = OPERATOR.keyed.step(index, state, batch, int(batch.t[-1]))
        state = output.state
        yield output.changes, time.thread_time() - clock
