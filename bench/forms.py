"""Sums in conditions, negated events, and answers as events: each compared with a compiled program
written for the one question.

Each object reports at its own times, no two at the same time. All methods begin with the same Arrow
rows and end with sorted answers, which are compared before a time is printed. Times are processor
times of all threads, medians of alternating runs. Only ours judges lateness and duplicates, keeps
evidence, and takes any query; the programs look at the whole input at once.
- sums: an alarm and an inspection within two seconds whose loads satisfy a sum, compared with a
  loop over each event's window.
- non-occurrence: an alarm without an inspection of the same object around it, compared with binary
  searches in each object's inspections.
- answers as events: visits to a region shorter than a minute, from the entries and exits that
  another query asserts, compared with one pass over the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from bench import Layer, Row, Size, Times, timed
from engine.derive import sources_of
from engine.model.changes import ANSWERS
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.runtime.derived import GraphEvaluator
from engine.specification import check

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FEED = Feed("plant", Crs.PLANAR, TimeUnit.MS, columns={"load": ColumnType.FLOAT, "kind": ColumnType.STRING})
BATCH = 50_000
SIDE = 1_000.0
REPORT, ALARM, INSPECTION = 0, 1, 2
KINDS = pa.array(["report", "alarm", "inspection"])


@dataclass(frozen=True)
class World:
    """Rows in order of time; `kind` is a position in KINDS."""

    entity: Ints
    t: Ints
    x: Floats
    y: Floats
    load: Floats
    kind: Ints

    def batches(self) -> list[pa.Table]:
        """The rows as a feed's stamped ones."""
        names = pa.array([f"o{i:05d}" for i in range(int(self.entity.max()) + 1)])
        columns = {
            "event": pa.array(["position"] * len(self.t)),
            "entity": names.take(pa.array(self.entity)),
            "t": pa.array(self.t),
            "t_end": pa.nulls(len(self.t), pa.int64()),
            "x": pa.array(self.x),
            "y": pa.array(self.y),
            "load": pa.array(self.load),
            "kind": KINDS.take(pa.array(self.kind)),
            "seq": pa.array(np.arange(len(self.t))),
            "clock": pa.array(np.concatenate([[0], self.t[:-1]])),
        }
        table = pa.table(columns)
        return [table.slice(begin, BATCH) for begin in range(0, table.num_rows, BATCH)]


def world(count: int, objects: int, seed: int = 5) -> World:
    """`count` rows, 500 a second."""
    chance = np.random.default_rng(seed)
    entity = chance.integers(0, objects, count)
    t = np.arange(count, dtype=np.int64) * 2
    x, y = chance.uniform(0, SIDE, (2, count))
    kind = chance.choice(3, count, p=(0.94, 0.02, 0.04))
    return World(entity, t, x, y, chance.normal(0, 1, count), kind.astype(np.int64))


def rows(size: Size) -> Iterator[Row]:
    count, objects = (500_000, 2_000) if size is Size.FULL else (6_000, 50)
    of = world(count, objects)
    yield _beside("sums: pairs within 2 s whose loads satisfy a sum", SUM, of, _sums)
    yield _beside("non-occurrence: alarms without an inspection within 10 s", NOT, of, _alone)
    yield _beside("answers as events: visits of less than a minute", VISIT, of, _visits)


def _beside(workload: str, documents: dict[str, Any], of: World, program: Any) -> Row:
    batches = of.batches()
    times = timed({"ours": lambda: _answered(documents, batches), "program": lambda: program(of)}, lambda found: found[np.lexsort(found.T)])
    return _row(f"{workload}, {len(of.t):,} rows", times, len(of.t))


def _row(workload: str, times: dict[str, Times], count: int) -> Row:
    per = count / 1e6
    facts = {f"{name} by the wall": one.wall / per for name, one in times.items()}
    return Row(workload, Layer.ENGINE, times["ours"].processor / per, "s/M rows", {"program": times["program"].processor / per}, facts=facts)


def _answered(documents: dict[str, Any], batches: list[pa.Table]) -> Ints:
    """(entities..., start, end) of the last query's answers."""
    queries = [RegisteredQuery(name, 1, check(document, FEED), sources_of(document)) for name, document in documents.items()]
    evaluator = GraphEvaluator.local(FEED, queries)
    changes = pa.concat_tables([ANSWERS.empty_table(), *(evaluator.process(batch).changes for batch in batches), evaluator.finish().changes])
    own = changes.filter(pa.compute.equal(changes.column("query"), list(documents)[-1]))
    assert (own.column("weight").to_numpy() == 1).all()
    entities = own.column("entities").combine_chunks()
    codes = np.array([int(name[1:]) for name in entities.flatten().to_pylist()], np.int64).reshape(own.num_rows, -1)
    return np.column_stack([codes, own.column("start").to_numpy(), own.column("end").to_numpy()])


# -- sums ------------------------------------------------------------------------------------------

WINDOW, LEAST = 2_000, 5.0
SUM = {
    "q": {
        "family": "constraint",
        "variables": {"A": {"where": [["kind", "=", "alarm"]]}, "B": {"where": [["kind", "=", "inspection"]]}},
        "constraints": [
            {"between": ["A", "B"], "dt": [1, WINDOW]},
            {"between": ["A", "B"], "compare": [["2 * A.load - B.load", ">=", f"{LEAST}"]]},
        ],
    }
}


def _sums(of: World) -> Ints:
    kept = of.kind != REPORT
    return _pairs(of.kind[kept], of.entity[kept], of.t[kept], of.load[kept], WINDOW, LEAST)


@njit(cache=True, nogil=True)
def _pairs(kind: Ints, entity: Ints, t: Ints, load: Floats, window: int, least: float) -> Ints:
    found = np.empty((len(t) * 4 + 1_000, 4), np.int64)
    n, first = 0, 0
    for now in range(len(t)):
        while t[first] < t[now] - window:
            first += 1
        for then in range(first, now):
            if kind[then] == ALARM and kind[now] == INSPECTION and 2 * load[then] - load[now] >= least:
                found[n] = entity[then], entity[now], t[then], t[now]
                n += 1
    return found[:n]


# -- non-occurrence --------------------------------------------------------------------------------

AROUND = 10_000
NOT = {
    "q": {
        "family": "composite",
        "pattern": "alarm AND !inspection[PT10S]",
        "primitives": {"alarm": {"where": [["kind", "=", "alarm"]]}, "inspection": {"where": [["kind", "=", "inspection"]]}},
        "per": "entity",
        "within": "PT1M",
    }
}


def _alone(of: World) -> Ints:
    """One key for object and time, so that one search serves all objects."""
    far = int(of.t[-1]) + 4 * AROUND
    inspected = np.sort((of.entity * far + of.t)[of.kind == INSPECTION])
    alarms = (of.kind == ALARM) & (of.t + AROUND <= of.t[-1])
    entity, t = of.entity[alarms], of.t[alarms]
    key = entity * far + t
    alone = np.searchsorted(inspected, key - np.minimum(t, AROUND), "left") == np.searchsorted(inspected, key + AROUND, "right")
    return np.column_stack([entity, t, t + AROUND])[alone]


# -- answers as events -----------------------------------------------------------------------------

LOW, HIGH, SHORT = SIDE * 0.3, SIDE * 0.7, 60_000
RING = [[LOW, LOW], [HIGH, LOW], [HIGH, HIGH], [LOW, HIGH], [LOW, LOW]]
VISIT = {
    "border": {"family": "border", "region": {"type": "Polygon", "coordinates": [RING]}},
    "q": {
        "family": "composite",
        "derive": {"came": {"query": "border", "kind": "in", "at": "start"}, "went": {"query": "border", "kind": "out", "at": "start"}},
        "pattern": "came :[0,PT1M] went",
        "primitives": {"came": {"where": [["event", "=", "came"]]}, "went": {"where": [["event", "=", "went"]]}},
        "per": "entity",
        "within": "PT2M",
    },
}


UNSEEN, OUTSIDE, INSIDE = -3, -2, -1


def _visits(of: World) -> Ints:
    return _short(of.entity, of.t, of.x, of.y, LOW, HIGH, SHORT)


@njit(cache=True, nogil=True)
def _short(entity: Ints, t: Ints, x: Floats, y: Floats, low: float, high: float, short: int) -> Ints:
    since = np.full(entity.max() + 1, UNSEEN)
    found = np.empty((len(t), 3), np.int64)
    n = 0
    for i in range(len(t)):
        there = low <= x[i] <= high and low <= y[i] <= high
        who = entity[i]
        if there and since[who] == OUTSIDE:
            since[who] = t[i]
        elif there and since[who] == UNSEEN:
            # Entities inside from the first did not enter.
            since[who] = INSIDE
        elif not there:
            if since[who] >= 0 and t[i] - since[who] <= short:
                found[n] = who, since[who], t[i]
                n += 1
            since[who] = OUTSIDE
    return found[:n]
