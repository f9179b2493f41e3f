"""Continuous motion patterns against a compiled rescan, after [CMP] 6: binary and numerical queries over objects on a road network.

    python bench/motion.py [--only binary,numerical,growth,evaluator] [--share 1.0] [--json FILE]

1,000 x 1,000 miles, an own position of every object at every instant, re-evaluation every two instants, predicates over windows of ten instants,
60 instants of history. Times are processor times of one thread, medians over re-evaluations; all answers are compared before any time is printed.
`rescan` walks the ring buffer of all positions, object by object, and stops at the first predicate that fails; it is given its positions already
in columns. `operator` is the whole way: Arrow rows in, changes out, upkeep of both instants included. "initial" is the first evaluation over all
60 instants, "continuous" the ones after it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Crs, Feed, TimeUnit
from engine.motion_patterns.operator import MotionOperator
from engine.operator import RegisteredQuery
from engine.specification import check

SIDE = 1000.0
HISTORY = 60
EVERY = 2
LENGTH = 10
ROUNDS = 7
FEED = Feed("roads", Crs.PLANAR, TimeUnit.TICKS)
OPERATOR = MotionOperator()


class Roads:
    """Objects on a network of freeways 20 miles apart: straight on, and a random way at each crossing; about a mile an instant."""

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


def batches(objects: int, instants: int) -> Iterator[tuple[np.ndarray, np.ndarray, Batch]]:
    """(x, y, rows) of each re-evaluation: EVERY instants of all objects."""
    roads, dictionary = Roads(objects), EntityDictionary()
    names = pa.array([f"o{i:06}" for i in range(objects)])
    dictionary.encode(names)
    codes = pa.DictionaryArray.from_arrays(pa.array(np.tile(np.arange(objects, dtype=np.int32), EVERY)), names)
    for first in range(1, instants + 1, EVERY):
        places = [roads.instant() for _ in range(EVERY)]
        x, y = (np.stack([place[i] for place in places]) for i in range(2))
        rows = pa.RecordBatch.from_arrays(
            [
                codes,
                pa.array(np.repeat(np.arange(first, first + EVERY), objects)),
                pa.array(x.reshape(-1)),
                pa.array(y.reshape(-1)),
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


# -- what it is compared with ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def rescan(x, y, newest, boxes, spans, matches):  # type: ignore[no-untyped-def]
    """Binary query over the ring x[instant % HISTORY, object]: for each object and predicate the window's instants until one is inside."""
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
        self.spans = [np.array([p["window"] for p in d["predicates"]]) for d in documents]
        self.binary = "theta" not in documents[0]
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
                rescan(self.x, self.y, self.newest, shapes, spans, matches)
                found.append(set(np.flatnonzero(matches).tolist()))
            else:
                scores = np.empty(self.x.shape[1])
                rescan_scores(self.x, self.y, self.newest, shapes, spans, scores)
                known = np.flatnonzero(~np.isnan(scores) & np.isfinite(scores))
                found.append(set(known[np.lexsort((known, scores[known]))[:10]].tolist()))
        return found


# -- measuring ------------------------------------------------------------------------------------------------------------------------


class Ours:
    def __init__(self, documents: list[dict[str, Any]]) -> None:
        queries = [RegisteredQuery(str(i), 1, check(document, FEED)) for i, document in enumerate(documents)]
        self.index = OPERATOR.compile(queries, FEED)
        self.state = OPERATOR.keyed.initial(self.index)
        self.ranking = OPERATOR.relational.initial(self.index)
        self.names = EntityDictionary()

    def take(self, batch: Batch, newest: int) -> int:
        output = OPERATOR.keyed.step(self.index, self.state, batch, newest + 1)
        self.state = output.state
        rows = output.changes.num_rows
        if output.emitted is not None:
            output = OPERATOR.relational.step(self.index, self.ranking, Batch(output.emitted, self.names), newest + 1)
            self.ranking, rows = output.state, rows + output.changes.num_rows
        return rows

    def answer(self, queries: int) -> list[set[int]]:
        """The matches that are stated and not ended."""
        found: list[set[int]] = [set() for _ in range(queries)]
        for began, number in ((self.state.open.began, int), (self.ranking.open.began, lambda e: int(self.names.names[e][1:]))):
            for q, e in zip(began.query.tolist(), began.entity.tolist(), strict=True):
                found[q].add(number(e))
        return found


def measured(objects: int, documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Milliseconds of a re-evaluation of all queries, ours with upkeep, and of one rescan of all."""
    ours, ring = Ours(documents), Ring(objects, documents)
    times, rescans, moves = [], [], []
    initial_ms = 0.0
    for round_, (x, y, batch) in enumerate(batches(objects, HISTORY + EVERY * ROUNDS)):
        newest = (round_ + 1) * EVERY
        batch.t, batch.seq, batch.x, batch.y, batch.entity  # noqa: B018 - the columns are there before the clock runs, for both
        before = ours.state.work.index_points
        begin = time.thread_time()
        ours.take(batch, newest)
        passed = 1000 * (time.thread_time() - begin)
        ring.take(x, y)
        if newest <= HISTORY:
            initial_ms += passed
            continue
        begin = time.thread_time()
        expected = ring.answer()
        rescans.append(1000 * (time.thread_time() - begin))
        times.append(passed)
        moves.append(ours.state.work.index_points - before)
        assert ours.answer(len(documents)) == expected, "the answers differ"
    counters = OPERATOR.keyed.counters(ours.index, ours.state)
    mine, theirs = statistics.median(times[1:]), statistics.median(rescans[1:])
    return {
        "objects": objects,
        "queries": len(documents),
        "predicates": len(documents[0]["predicates"]),
        "matches": sum(len(one) for one in expected),
        "operator_ms": round(mine, 2),
        "rescan_ms": round(theirs, 2),
        "times_faster": round(theirs / mine, 1),
        "mega_object_queries_per_s": round(objects * len(documents) / mine / 1000, 1),
        "initial_ms": round(initial_ms, 1),
        "index_points_per_evaluation": int(statistics.median(moves)),
        "index_points_kept": counters["index_points_kept"],
        "positions_rescanned": objects * len(documents) * len(documents[0]["predicates"]) * LENGTH,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="binary,numerical,growth")
    parser.add_argument("--share", type=float, default=1.0, help="part of the objects")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    objects = int(150_000 * arguments.share)
    runs: list[tuple[str, int, list[dict[str, Any]]]] = []
    for name in arguments.only.split(","):
        if name == "binary":
            runs += [(name, objects, binary_queries(queries, 5)) for queries in (1, 10, 100)]
        elif name == "numerical":
            runs += [(name, objects, numerical_queries(queries, 5)) for queries in (1, 3)]
        elif name == "growth":
            runs += [(name, objects * part // 6, binary_queries(10, 5)) for part in (1, 2, 4, 6)]
            runs += [(name, objects, binary_queries(10, predicates)) for predicates in (1, 2, 3, 4)]
    measured(1000, binary_queries(2, 2))
    measured(1000, numerical_queries(2, 2))
    found = []
    for name, count, documents in runs:
        row = {"what": name, **measured(count, documents)}
        found.append(row)
        print(json.dumps(row), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
