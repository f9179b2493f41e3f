"""Continuous motion patterns against a compiled rescan, after [CMP] 6: binary and numerical queries
over objects on a road network.

1,000 x 1,000 miles, one position of every object at every instant, re-evaluation every two
instants, 60 instants of history; predicates over windows of ten instants, or in order at any time
of the history. Times are processor times of one thread, medians over re-evaluations in which all
methods alternate; the answers of every re-evaluation are compared. `rescan` walks the ring buffer
of all positions, object by object, and stops at the first predicate that fails; in order it takes
the earliest instant in each region, and stops when too few are left.

Layers: "kernel" is upkeep of both instants and re-evaluation, from the rows' columns to the
entities that begin and cease to match, with witnesses, by the structure that the operator uses.
"engine" is the operator's whole step, changes out. "initial" is the whole of the first 60 instants,
"continuous" one re-evaluation after them. The paper counts pages of a disk index and of
trajectories; we have neither and count index points that enter or leave a window, and stored
samples read for scores and witnesses, compared with the positions that a rescan may read.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numba import njit

from bench import Figure, Layer, Row, Size
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Crs, Feed, TimeUnit
from engine.motion_patterns.batch_cache import BatchCache
from engine.motion_patterns.operator import MotionOperator
from engine.motion_patterns.structure import WorkCounters
from engine.operator import RegisteredQuery
from engine.specification import check

T = TypeVar("T")
SIDE = 1000.0
HISTORY = 60
EVERY = 2
LENGTH = 10
ROUNDS = 7
MINUTE_MS = 60_000
FEED = Feed("roads", Crs.PLANAR, TimeUnit.TICKS)
OPERATOR = MotionOperator()
FIGURES = {
    "8": Figure("[CMP] fig. 8: ours and the rescan, binary", "predicates"),
    "8b": Figure("[CMP] fig. 8: ours and the rescan, numerical", "predicates"),
    "9": Figure("[CMP] fig. 9: index points and predicates, binary", "predicates"),
    "9b": Figure("[CMP] fig. 9: trajectory samples read and predicates, binary", "predicates"),
    "10": Figure("[CMP] fig. 10: index points and objects, binary", "objects", log_x=True),
    "10b": Figure("[CMP] fig. 10: trajectory samples read and objects, binary", "objects", log_x=True),
    "11": Figure("[CMP] fig. 11: index points and predicates, numerical", "predicates"),
    "11b": Figure("[CMP] fig. 11: trajectory samples read and predicates, numerical", "predicates"),
    "12": Figure("[CMP] fig. 12: index points and objects, numerical", "objects", log_x=True),
    "12b": Figure("[CMP] fig. 12: trajectory samples read and objects, numerical", "objects", log_x=True),
    "objects": Figure("Time of a re-evaluation and objects, 10 binary queries", "objects", log_x=True),
    "queries": Figure("Time of a re-evaluation and queries, binary", "queries", log_x=True),
}


def rows(size: Size) -> Iterator[Row]:
    quick = size is Size.QUICK
    most = 1_000 if quick else 150_000
    numerical = 500 if quick else 50_000
    measured(500, binary_queries(2, 2))
    measured(500, numerical_queries(2, 2))
    for queries in (1, 10) if quick else (1, 10, 100):
        found = measured(most, binary_queries(queries, 5))
        yield from _times(f"binary, {most:,} objects, {queries} queries", found, "queries", queries, 50.0 if queries == 10 else None)
    found = measured(most, binary_queries(10, 5), shuffled=True)
    yield from _times(f"binary, {most:,} objects in no order, 10 queries", found, None, 10)
    measured(500, ordered_queries(2, 2))
    for objects in (most // 6, most):
        found = measured(objects, ordered_queries(10, 5))
        yield from _times(f"ordered, {objects:,} objects, 10 queries, 5 predicates", found, None, 10)
    found = measured(numerical, numerical_queries(3, 5))
    yield from _times(f"numerical, {numerical:,} objects, 3 queries", found, None, 3, 5.0)
    for predicates in (1, 5) if quick else (1, 2, 3, 4, 5):
        found = measured(most * 2 // 3, binary_queries(10, predicates))
        yield from _times(f"binary, {predicates} predicates", found, "8", predicates)
        yield from _counts(f"binary, {predicates} predicates", found, "9", predicates)
        found = measured(numerical // 2, numerical_queries(2, predicates))
        yield from _times(f"numerical, {predicates} predicates", found, "8b", predicates)
        yield from _counts(f"numerical, {predicates} predicates", found, "11", predicates)
    for objects in (most // 6, most // 3, most * 2 // 3, most):
        found = measured(objects, binary_queries(10, 5))
        yield from _times(f"binary, {objects:,} objects", found, "objects", objects)
        yield from _counts(f"binary, {objects:,} objects", found, "10", objects)
        found = measured(objects // 3, numerical_queries(2, 5))
        yield from _counts(f"numerical, {objects // 3:,} objects", found, "12", objects // 3)


def spark_rows(size: Size) -> Iterator[Row]:
    """Ten binary queries in a Spark streaming job without its store, compared with an
    operator that does nothing."""
    from bench.border_worlds import World
    from bench.spark_overhead import BATCH_ROWS
    from bench.spark_overhead import measured as delivered

    quick = size is Size.QUICK
    for entities in (20_000,) if quick else (20_000, 150_000):
        # More instants than the history has, so that patterns are met.
        rows, batch_rows = (300_000, 100_000) if quick else (max(5_000_000, 80 * entities), BATCH_ROWS)
        world = World(entities, SIDE, 1.0, 1.0, MINUTE_MS, _spark_queries)
        nothing, evaluated, answers = delivered(world, rows, "driver", 1, 2, 1 if quick else 3, batch_rows=batch_rows)
        baselines = {"operator that does nothing": float(np.median(nothing))}
        facts = {"answers": answers}
        yield Row(f"binary, {entities:,} objects, 10 queries", Layer.SPARK, float(np.median(evaluated)), "rows/s", baselines, {}, None, False, facts)


def _spark_queries() -> list[RegisteredQuery]:
    """The ten binary queries with minutes for instants."""
    found = []
    for number, document in enumerate(binary_queries(10, 5)):
        steps = [step | {"window": [MINUTE_MS * span for span in step["window"]]} for step in document["predicates"]]
        minutes = document | {"predicates": steps, "every": MINUTE_MS * EVERY}
        found.append(RegisteredQuery(str(number), 1, check(minutes, Feed("bench", Crs.PLANAR, TimeUnit.MS))))
    return found


def _times(workload: str, found: dict[str, Any], figure: str | None, x: float, promised: float | None = None) -> Iterator[Row]:
    """A re-evaluation of all queries with its upkeep: in the kernel, which is a figure's
    point, and in the engine."""
    facts = {name: found[name] for name in ("matches", "initial_ms", "index_points_kept")}
    rescan = {"compiled rescan": found["rescan_ms"]}
    least = {} if promised is None else {"compiled rescan": promised}
    yield Row(workload, Layer.KERNEL, found["kernel_ms"], "ms", rescan, least, figure=figure, x=x)
    yield Row(workload, Layer.ENGINE, found["operator_ms"], "ms", rescan, facts=facts)


def _counts(workload: str, found: dict[str, Any], figure: str, x: float) -> Iterator[Row]:
    """Index points and samples read of one re-evaluation, compared with those of the initial phase
    and the positions of a rescan."""
    rescanned = {"positions of a rescan": found["positions_rescanned"]}
    points = rescanned | {"initial phase": found["index_points_initially"]}
    yield Row(f"{workload}: index points", Layer.ENGINE, found["index_points"], "points", points, figure=figure, x=x)
    reads = rescanned | {"initial phase": found["samples_read_initially"]}
    yield Row(f"{workload}: samples read", Layer.ENGINE, found["samples_read"], "samples", reads, figure=f"{figure}b", x=x)


class Roads:
    """Objects on a network of freeways 20 miles apart: straight on, and a random way at each
    crossing; about a mile an instant."""

    def __init__(self, objects: int, seed: int = 7) -> None:
        self.chance = np.random.default_rng(seed)
        self.gap, self.n = 20.0, objects
        self.crossings = int(SIDE / self.gap)
        self.at = self.chance.integers(0, self.crossings + 1, (objects, 2))
        self.way = np.zeros((objects, 2), np.int64)
        self.done = self.chance.uniform(0, self.gap, objects)
        self.speed = self.chance.uniform(0.5, 1.5, objects)
        self.turn(np.arange(objects))

    def turn(self, who: np.ndarray) -> None:
        ways = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[self.chance.integers(0, 4, len(who))]
        out = (self.at[who] + ways < 0) | (self.at[who] + ways > self.crossings)
        self.way[who] = np.where(out.any(axis=1, keepdims=True), -ways, ways)

    def instant(self) -> tuple[np.ndarray, np.ndarray]:
        self.done += self.speed
        there = np.flatnonzero(self.done >= self.gap)
        self.at[there] += self.way[there]
        self.done[there] -= self.gap
        self.turn(there)
        place = self.at * self.gap + self.way * self.done[:, None]
        return np.ascontiguousarray(place[:, 0]), np.ascontiguousarray(place[:, 1])


def batches(objects: int, instants: int, shuffled: bool) -> Iterator[tuple[np.ndarray, np.ndarray, Batch]]:
    """(x, y, rows) of each re-evaluation: EVERY instants of all objects, which report in the order
    of x and y or at each instant in another."""
    roads, dictionary, chance = Roads(objects), EntityDictionary(), np.random.default_rng(11)
    names = pa.array([f"o{i:06}" for i in range(objects)])
    dictionary.encode(names)
    who = np.tile(np.arange(objects, dtype=np.int32), (EVERY, 1))
    for first in range(1, instants + 1, EVERY):
        places = [roads.instant() for _ in range(EVERY)]
        x, y = (np.stack([place[i] for place in places]) for i in range(2))
        own_x, own_y = x, y
        if shuffled:
            who = chance.permuted(who, axis=1)
            own_x, own_y = (np.take_along_axis(column, who, axis=1) for column in (x, y))
        rows = pa.RecordBatch.from_arrays(
            [
                pa.DictionaryArray.from_arrays(pa.array(who.reshape(-1)), names),
                pa.array(np.repeat(np.arange(first, first + EVERY), objects)),
                pa.array(own_x.reshape(-1)),
                pa.array(own_y.reshape(-1)),
                pa.array(np.arange(EVERY * objects) + (first - 1) * objects),
            ],
            names=["entity", "t", "x", "y", "seq"],
        )
        yield x, y, Batch(rows, dictionary)


def windows(predicates: int) -> list[list[int]]:
    return [[HISTORY - 10 - 10 * j, HISTORY - 10 - 10 * j - LENGTH] for j in range(5)][-predicates:]


def binary_queries(queries: int, predicates: int, seed: int = 3) -> list[dict[str, Any]]:
    """Squares of 100 miles, at places that objects can reach one after the other."""
    chance, found = np.random.default_rng(seed), []
    for _ in range(queries):
        x, y = chance.uniform(0, SIDE - 150, 2)
        steps = []
        for window in windows(predicates):
            a, b = x + chance.uniform(0, 50), y + chance.uniform(0, 50)
            ring = [[a, b], [a + 100, b], [a + 100, b + 100], [a, b + 100], [a, b]]
            steps.append({"inside": {"type": "Polygon", "coordinates": [ring]}, "window": window, "quantifier": "exists"})
        found.append({"family": "motion", "predicates": steps, "every": EVERY})
    return found


def ordered_queries(queries: int, predicates: int, seed: int = 3) -> list[dict[str, Any]]:
    """The regions of the binary queries, one after the other at any time of the history."""
    found = []
    for document in binary_queries(queries, predicates, seed):
        steps = [{"inside": step["inside"], "quantifier": "exists"} for step in document["predicates"]]
        found.append(document | {"predicates": steps, "horizon": HISTORY})
    return found


def numerical_queries(queries: int, predicates: int, seed: int = 3) -> list[dict[str, Any]]:
    chance = np.random.default_rng(seed)
    return [
        {
            "family": "motion",
            "predicates": [
                {"distance": chance.uniform(0, SIDE, 2).tolist(), "window": window, "quantifier": "exists"} for window in windows(predicates)
            ],
            "theta": {"op": "top", "k": 10, "order": "min"},
            "every": EVERY,
        }
        for _ in range(queries)
    ]


# -- baselines ----------------------------------------------------------------------


@njit(cache=True, nogil=True)
def rescan(x, y, newest, boxes, spans, matches):  # type: ignore[no-untyped-def]
    """Binary query over the ring x[instant % HISTORY, object]: for each object and predicate the
    window's instants until one is inside."""
    for e in range(x.shape[1]):
        holds = True
        for p in range(len(boxes)):
            found = False
            for back in range(spans[p, 1], spans[p, 0]):
                slot = (newest - back) % x.shape[0]
                if boxes[p, 0] <= x[slot, e] <= boxes[p, 2] and boxes[p, 1] <= y[slot, e] <= boxes[p, 3]:
                    found = True
                    break
            if not found:
                holds = False
                break
        matches[e] = holds


@njit(cache=True, nogil=True)
def rescan_in_order(x, y, newest, boxes, matches):  # type: ignore[no-untyped-def]
    """Query in order over the whole ring: for each object the earliest instant in the
    first box, the earliest after it in the second, ... until the last is reached or
    too few instants are left."""
    for e in range(x.shape[1]):
        done = 0
        back = x.shape[0] - 1
        while done < len(boxes) and back >= len(boxes) - done - 1:
            slot = (newest - back) % x.shape[0]
            if boxes[done, 0] <= x[slot, e] <= boxes[done, 2] and boxes[done, 1] <= y[slot, e] <= boxes[done, 3]:
                done += 1
            back -= 1
        matches[e] = done == len(boxes)


@njit(cache=True, nogil=True)
def rescan_scores(x, y, newest, points, spans, scores):  # type: ignore[no-untyped-def]
    """Numerical query: for each object the sum of its least distances, object by object."""
    for e in range(x.shape[1]):
        total = 0.0
        for p in range(len(points)):
            least = np.inf
            for back in range(spans[p, 1], spans[p, 0]):
                slot = (newest - back) % x.shape[0]
                least = min(least, np.hypot(x[slot, e] - points[p, 0], y[slot, e] - points[p, 1]))
            total += least
        scores[e] = total


def box_of(square: dict[str, Any]) -> list[float]:
    ring = square["coordinates"][0]
    return [*ring[0], *ring[2]]


class Ring:
    """The last HISTORY instants, and the queries rescanned over them."""

    def __init__(self, objects: int, documents: list[dict[str, Any]]) -> None:
        self.x, self.y = np.full((HISTORY, objects), np.nan), np.full((HISTORY, objects), np.nan)
        self.newest = 0
        self.binary, self.in_order = "theta" not in documents[0], "horizon" in documents[0]
        self.spans = [np.array([p.get("window", [HISTORY, 0]) for p in d["predicates"]]) for d in documents]
        self.shapes = [np.array([box_of(p["inside"]) if self.binary else p["distance"] for p in d["predicates"]]) for d in documents]

    def take(self, x: np.ndarray, y: np.ndarray) -> None:
        for i in range(len(x)):
            self.newest += 1
            self.x[self.newest % HISTORY], self.y[self.newest % HISTORY] = x[i], y[i]

    def answer(self) -> list[set[int]]:
        found = []
        for shapes, spans in zip(self.shapes, self.spans, strict=True):
            if self.binary:
                matches = np.empty(self.x.shape[1], np.bool_)
                if self.in_order:
                    rescan_in_order(self.x, self.y, self.newest, shapes, matches)
                else:
                    rescan(self.x, self.y, self.newest, shapes, spans, matches)
                found.append(set(np.flatnonzero(matches).tolist()))
            else:
                scores = np.empty(self.x.shape[1])
                rescan_scores(self.x, self.y, self.newest, shapes, spans, scores)
                known = np.flatnonzero(~np.isnan(scores) & np.isfinite(scores))
                found.append(set(known[np.lexsort((known, scores[known]))[:10]].tolist()))
        return found


# -- measuring -------------------------------------------------------------------------------------


class Ours:
    def __init__(self, documents: list[dict[str, Any]]) -> None:
        queries = [RegisteredQuery(str(i), 1, check(document, FEED)) for i, document in enumerate(documents)]
        self.index = OPERATOR.compile(queries, FEED)
        self.state = OPERATOR.keyed.initial(self.index)
        self.ranking = OPERATOR.relational.initial(self.index)
        self.names = EntityDictionary()

    def take(self, batch: Batch, newest: int) -> None:
        found = OPERATOR.keyed.step(self.index, self.state, batch, newest + 1)
        self.state = found.state
        if found.emitted is not None:
            self.ranking = OPERATOR.relational.step(self.index, self.ranking, Batch(found.emitted, self.names), newest + 1).state

    def answer(self, queries: int) -> list[set[int]]:
        """The matches that are asserted and not ended."""
        found: list[set[int]] = [set() for _ in range(queries)]
        for began, number in ((self.state.open.began, int), (self.ranking.open.began, lambda e: int(self.names.names[e][1:]))):
            for q, e in zip(began.query.tolist(), began.entity.tolist(), strict=True):
                found[q].add(number(e))
        return found


class Kernel:
    """The operator's structures for these queries, without rows of Arrow around them."""

    def __init__(self, documents: list[dict[str, Any]], objects: int) -> None:
        self.structures = Ours(documents).state.structures
        self.rank = np.arange(objects)

    def take(self, batch: Batch, newest: int) -> None:
        cache = BatchCache(batch)
        for structure in self.structures:
            structure.take(cache)
            structure.advance(newest, len(self.rank), self.rank)

    def answer(self, queries: int) -> list[set[int]]:
        """Current matches; of a ranked query, the only partition's candidates are the matches."""
        query, entity = (np.concatenate(columns) for columns in zip(*(one.held() for one in self.structures), strict=True))
        return [set(entity[query == q].tolist()) for q in range(queries)]


def measured(objects: int, documents: list[dict[str, Any]], shuffled: bool = False) -> dict[str, Any]:
    """Milliseconds of a re-evaluation of all queries with its upkeep, by kernel and operator, and
    of one rescan of all; what was counted.

    `shuffled`: rows of an instant come in no order.
    """
    kernel, ours, ring = Kernel(documents, objects), Ours(documents), Ring(objects, documents)
    times: dict[str, list[float]] = {"kernel": [], "operator": [], "rescan": []}
    initial_ms, initially, counts = 0.0, WorkCounters(), []
    for round_, (x, y, batch) in enumerate(batches(objects, HISTORY + EVERY * ROUNDS, shuffled)):
        newest = (round_ + 1) * EVERY
        batch.t, batch.seq, batch.x, batch.y, batch.entity  # noqa: B018 - the columns are there before the clock runs, for all
        before = WorkCounters(**vars(ours.state.work))
        ring.take(x, y)
        kernel_ms, _ = passed(partial(kernel.take, batch, newest))
        operator_ms, _ = passed(partial(ours.take, batch, newest))
        if newest <= HISTORY:
            initial_ms += operator_ms
            initially = WorkCounters(**vars(ours.state.work))
            continue
        rescan_ms, expected = passed(ring.answer)
        times["rescan"].append(rescan_ms)
        times["kernel"].append(kernel_ms)
        times["operator"].append(operator_ms)
        counts.append((moved(ours.state.work) - moved(before), ours.state.work.samples_read - before.samples_read))
        assert ours.answer(len(documents)) == expected, "the operator's answers differ"
        assert kernel.answer(len(documents)) == expected, "the kernel's answers differ"
    counters = OPERATOR.keyed.counters(ours.index, ours.state)
    points, reads = (int(statistics.median(column)) for column in zip(*counts, strict=True))
    return {
        **{f"{name}_ms": round(statistics.median(values[1:]), 3) for name, values in times.items()},
        "matches": sum(len(one) for one in expected),
        "initial_ms": round(initial_ms, 1),
        "index_points": points,
        "index_points_initially": moved(initially),
        "samples_read": reads,
        "samples_read_initially": initially.samples_read,
        "index_points_kept": counters["index_points_kept"],
        "positions_rescanned": objects * len(documents) * (HISTORY if ring.in_order else len(documents[0]["predicates"]) * LENGTH),
    }


def passed(run: Callable[[], T]) -> tuple[float, T]:
    """Milliseconds of processor time, and the result."""
    begin = time.thread_time()
    found = run()
    return 1000 * (time.thread_time() - begin), found


def moved(work: WorkCounters) -> int:
    """Index points that entered or left a window."""
    return work.positive_updates + work.negative_updates
