"""One program of the event calculus over partitions: what each stage takes with its pairs in one
partition, and with its pairs distributed.

Vessels are in a roadstead, so close that each has several within a kilometre, and report every ten
seconds. Who meets whom there is asked by the demo's program at sea, from plain positions (with a
synopsis), and by a program of pairs alone. RTEC's own CAVIAR text runs over a crowd: many copies of
the recording at once (if it is available, `bench.calculus`). A partition counts as a separate core:
**the longest path** is the slowest partition of the first stage and then the slowest of the second,
in processor time; the sum is the cost on all cores.

References: [dRTEC] 3.3.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench import Layer, Row, Size
from bench.calculus import DATA, PROGRAMS, caviar_crowd
from engine.model.changes import ANSWERS
from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.broadcast import Broadcast, job_plan
from engine.runtime.evaluator import Evaluator
from engine.runtime.partitions import KeyedOutput, KeyedPartition, RelationalPartition
from engine.specification import check

PARTITIONS = (1, 2, 4)
EVERY = 10_000
ENCOUNTERS = "encounters, with a synopsis"
ROADSTEAD = 0.2
"""Degrees of longitude and latitude in which the vessels lie."""
PAIRS = """
spatial(near(A, B)=true, proximity(position, 1000, 10000)).
spatial(beside(A, B)=true, proximity(position, 200, 10000)).
initiatedAt(met(A, B)=true, T) :- happensAt(start(beside(A, B)=true), T).
terminatedAt(met(A, B)=true, T) :- happensAt(end(near(A, B)=true), T).
"""


def rows(size: Size) -> Iterator[Row]:
    """Longest paths and sums for each number of partitions; the answers are compared before."""
    for name, feed, document, stream in _workloads(size):
        query = RegisteredQuery("q", 1, check({**document, "distributed": True}, feed))
        taken = _taken(feed, query, stream, 1 if size is Size.QUICK else 5)
        for partitions, runs in taken.items():
            path, paid = (statistics.median(values) for values in zip(*runs, strict=True))
            yield Row(
                f"{name}, {partitions} partition{'s' * (partitions > 1)}: longest path", Layer.ENGINE, path, "s",
                facts={"all partitions, s": paid, "rows": len(stream)},
            )  # fmt: skip


def _workloads(size: Size) -> Iterator[tuple[str, Feed, dict[str, Any], pa.Table]]:
    vessels, minutes = (150, 6) if size is Size.QUICK else (600, 8)
    feed = Feed.from_json(json.loads((PROGRAMS / "strait" / "feed.json").read_text()))
    stream = roadstead(vessels, minutes, feed)
    for name, document in programs().items():
        yield f"{name}, {vessels} vessels, {minutes} min", feed, document, stream
    if (DATA / "caviar" / "sde.csv.gz").exists():
        for casts in (10,) if size is Size.QUICK else (20, 60):
            yield f"CAVIAR's text, {casts} casts, 60 s", *caviar_crowd(casts, 60_000)


def roadstead(vessels: int, minutes: int, feed: Feed) -> pa.Table:
    """Reports of slow vessels that move to and fro; seeded, in order of time."""
    chance = np.random.default_rng(19)
    reports = minutes * 60_000 // EVERY
    who = np.tile(np.arange(vessels), reports)
    t = np.repeat(np.arange(reports) * EVERY, vessels) + chance.integers(0, EVERY, vessels)[who]
    at = chance.uniform(0, ROADSTEAD, (2, vessels))[:, who] + np.cumsum(chance.normal(0, 2e-4, (2, reports, vessels)), axis=1).reshape(2, -1)
    made = {
        "event": np.full(len(t), "position"),
        "entity": np.char.add("v", who.astype(str)),
        "t": t,
        "x": at[0],
        "y": at[1] + 51,
        "sog": chance.uniform(0, 7, vessels)[who],
        "cog": chance.uniform(0, 360, len(t)),
    }
    order = np.argsort(t, kind="stable")
    good, dead = check_rows(pa.table({name: pa.array(column[order]) for name, column in made.items()}), feed)
    assert not dead
    return Stamper().stamp(good)


def programs() -> Mapping[str, dict[str, Any]]:
    encounters: dict[str, Any] = json.loads((PROGRAMS / "strait" / "query-encounters.json").read_text())
    port = {"type": "Polygon", "coordinates": [[[0, 51], [0.01, 51], [0.01, 51.01], [0, 51.01], [0, 51]]]}
    encounters["synopsis"]["areas"] = {"port": port}
    pairs = {"family": "calculus", "version": 1, "program": PAIRS, "outputs": ["met"], "window": "PT3M", "step": "PT10S"}
    return {ENCOUNTERS: encounters, "pairs alone": pairs | {"inputs": {"position": {"args": ["entity"]}}}}


class _Keyed(KeyedPartition):
    seconds = 0.0

    def take(self, stamped: pa.Table, watermark: int) -> KeyedOutput:
        began = time.thread_time()
        found = super().take(stamped, watermark)
        self.seconds += time.thread_time() - began
        return found


class _Relational(RelationalPartition):
    seconds = 0.0

    def take(self, emitted: Mapping[str, Any], watermark: int) -> dict[str, pa.RecordBatch]:
        began = time.thread_time()
        found = super().take(emitted, watermark)
        self.seconds += time.thread_time() - began
        return found


def _taken(feed: Feed, query: RegisteredQuery, stream: pa.Table, repeats: int) -> dict[int, list[tuple[float, float]]]:
    """By number of partitions the longest path and the sum of each run, in seconds; the numbers
    take turns, after a turn that compiles."""
    expected, found = None, dict[int, list[tuple[float, float]]]()
    for turn in range(repeats + 1):
        for partitions in PARTITIONS:
            plan = job_plan([query], feed, partitions)
            keyed = [_Keyed(feed, plan.partitioned) for _ in range(partitions)]
            relational = [_Relational(plan.partitioned) for _ in range(partitions)]
            evaluator = Evaluator(feed, plan, keyed, relational, Broadcast.start(feed, plan.broadcast))
            pieces = [stream.slice(first, len(stream) // 8) for first in range(0, len(stream), len(stream) // 8)]
            changes = [*(evaluator.process(piece).changes for piece in pieces), evaluator.finish().changes]
            total = _summed(changes)
            expected = total if expected is None else expected
            assert total == expected, f"{partitions} partitions give other answers than one"
            stages = [[one.seconds for one in stage] for stage in (keyed, relational)]
            if turn:
                found.setdefault(partitions, []).append((sum(map(max, stages)), sum(map(sum, stages))))
    return found


def _summed(changes: list[pa.Table]) -> Counter[str]:
    """Facts with their weights; having none is an error, because nothing would be compared."""
    total: Counter[str] = Counter()
    for row in pa.concat_tables([ANSWERS.empty_table(), *changes]).to_pylist():
        total[str({name: value for name, value in row.items() if name != "weight"})] += row["weight"]
    found = Counter({fact: weight for fact, weight in total.items() if weight})
    assert found
    return found
