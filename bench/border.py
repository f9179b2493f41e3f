"""BMQ-Processor and RTMQ against what they are compared with: figures 10 to 19 of [BMQ] with its parameters, and our own targets.

    python -m bench.border [--only 1d,2d,polygons,dimensions,timers,transitions,operator,evaluator] [--share 1.0] [--json FILE]

Every method is compiled (or is a bulk call into GEOS), warmed up, and its answers are compared with ours before any time is printed.
Times are processor times of one thread, medians of interleaved runs, in nanoseconds a tuple. `--share` scales the number of tuples.
Kernel rows measure the index alone; `operator` and `evaluator` rows the whole way from Arrow rows to answer rows, without Spark.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from bench.border_baselines import CellLists, RegionSegments, heap_timers, naive, tree_bulk
from engine.border_monitoring.borders import build_borders
from engine.border_monitoring.bounds import bound_crossings, build_bounds
from engine.border_monitoring.moves import PASS, border_meetings
from engine.border_monitoring.operator import BorderOperator
from engine.border_monitoring.shapes import Polygon, Rectangle, edges_of
from engine.border_monitoring.transitions import Waiting, decide
from engine.border_monitoring.tuples import LastTuples, advance
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.specification import check

REPEATS = 3
BATCH = 20_000
Rows = list[dict[str, Any]]


Answers = np.ndarray | list[tuple[int, tuple[np.ndarray, ...]]]
"""Rows (row, query, code), or for each batch its first row and such columns: as the method gives them, put in form outside the clock."""


def in_form(found: Answers) -> np.ndarray:
    """Answers in one order, (n, 3)."""
    if isinstance(found, list):
        found = np.concatenate([np.stack([row + begin, query, code], axis=1) for begin, (row, query, code, *_) in found])
    table = found.astype(np.int64)
    return table[np.lexsort(table.T[::-1])]


def compared(methods: dict[str, Callable[[], Answers]]) -> dict[str, float]:
    """Seconds of processor time of each method, median of interleaved runs; raises when one gives other answers than the first."""
    expected = None
    for name, method in methods.items():
        found = in_form(method())
        if expected is None:
            expected = found
        assert np.array_equal(found, expected), f"{name} gives {len(found)} answers that differ from {len(expected)}"
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(REPEATS):
        for name, method in methods.items():
            begin = time.thread_time()
            method()
            times[name].append(time.thread_time() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def ours_bounds(index: Any, before: np.ndarray, after: np.ndarray) -> Answers:
    known, work = np.ones(len(before), np.bool_), np.zeros(4, np.int64)
    batches = [slice(begin, begin + BATCH) for begin in range(0, len(before), BATCH)]
    return [(s.start, bound_crossings(index, before[s], after[s], known[s], work)) for s in batches]


def ours_borders(index: Any, before: np.ndarray, after: np.ndarray) -> Answers:
    known, work = np.ones(len(before), np.bool_), np.zeros(4, np.int64)
    batches = [slice(begin, begin + BATCH) for begin in range(0, len(before), BATCH)]
    return [(s.start, border_meetings(index, before[s], after[s], known[s], work)) for s in batches]


def walks(rng: np.random.Generator, streams: int, steps: int, size: float, step: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(before, after, stream) of random walks reflected at the domain's ends, streams interleaved; `step` is the mean step in each dimension."""
    places = np.empty((steps + 1, streams, d))
    places[0] = rng.random((streams, d)) * size
    for k in range(steps):
        moved = np.abs(places[k] + rng.normal(0, 1, (streams, d)) * (step * np.sqrt(np.pi / 2))[:, None])
        places[k + 1] = size - np.abs(size - moved)
    stream = np.tile(np.arange(streams), steps)
    return places[:-1].reshape(-1, d).copy(), places[1:].reshape(-1, d).copy(), stream


def row(title: str, m: int, times: dict[str, float], **more: Any) -> dict[str, Any]:
    """One line of the table: nanoseconds a tuple and ratios to ours."""
    ours = times["ours"]
    line = {"workload": title, **{f"{name} ns": round(seconds / m * 1e9, 1) for name, seconds in times.items()}}
    line |= {f"{name} / ours": round(seconds / ours, 2) for name, seconds in times.items() if name != "ours"} | more
    print(f"{title:44s} " + "  ".join(f"{key} {value}" for key, value in line.items() if key != "workload"), flush=True)
    return line


def one_dimension(share: float) -> Rows:
    """[BMQ] figures 10, 11, 12, 14: D = 1e6, 2,000 streams, N, W and FL varied."""
    cases = [
        (10_000, 1e-3, 1e-4), (30_000, 1e-3, 1e-4), (100_000, 1e-3, 1e-4), (100_000, 1e-4, 1e-4), (100_000, 3e-4, 1e-4),
        (100_000, 1e-3, 3e-4), (100_000, 1e-3, 1e-3), (100_000, 1e-3, 1e-5),
    ]  # fmt: skip
    return [_ranges_case(n, width, level, share) for n, width, level in cases]


def _ranges_case(n: int, width: float, level: float, share: float) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    size, streams = 1e6, 2000
    before, after, stream = walks(rng, streams, max(2, int(100 * share)), size, np.full(streams, size * level), 1)
    low = rng.random((n, 1)) * size
    high = low + width * size
    index, cells, segments = build_bounds(low, high), CellLists(low, high, size, int(2 / width)), RegionSegments(low, high)
    methods = {
        "ours": lambda: ours_bounds(index, before, after),
        "RS walk": segments.prepared(before, after, stream),
        "DiffRMQ": lambda: cells.run(before, after),
    }
    times = compared(methods)
    some, then = before[: max(10, int(2000 * share))], after[: max(10, int(2000 * share))]
    plain = compared({"ours": lambda: ours_bounds(index, some, then), "naive": lambda: naive(some, then, low, high)})
    events = round(len(in_form(ours_bounds(index, before, after))) / len(before), 2)
    sizes = {"bytes_a_query": round(index.nbytes / n, 1), "diff_bytes_a_query": round(cells.nbytes / n, 1)}
    title = f"1-D N={n} W={width:.2%} FL={level:.3%}"
    return row(title, len(before), times, naive_ns=round(plain["naive"] / len(some) * 1e9), events=events, **sizes)


def two_dimensions(share: float) -> Rows:
    """[BMQ] figures 16, 17, 18: 15 km, 1,000 objects every 30 s, half at 20 km/h and half at 4.3; queries around the middle."""
    return [_squares_case(n, width, share) for n, width in [(500, 5000.0), (5000, 5000.0), (5000, 500.0), (50_000, 500.0)]]


def _squares_case(n: int, width: float, share: float) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    size, objects = 15_000.0, 1000
    speed = np.where(np.arange(objects) % 2 == 0, 20 / 3.6 * 30, 4.3 / 3.6 * 30)
    before, after, stream = walks(rng, objects, max(2, int(100 * share)), size, speed / np.sqrt(2), 2)
    # Borders in generic position: closed and half-open squares have the same answers.
    low = np.clip(rng.normal(size / 2, size / 5, (n, 2)), 0, size) - width / 2
    high = low + width
    index = build_borders([Rectangle(*box) for box in np.hstack([low, high]).tolist()], [False] * n)
    sorted_, cells, segments = build_bounds(low, high), CellLists(low, high, size, 60), RegionSegments(low, high)
    run = {"bounds": lambda: ours_bounds(sorted_, before, after), "cells": lambda: ours_borders(index, before, after)}
    chosen, other = ("bounds", "cells") if width > 0.12 * (size + width) else ("cells", "bounds")
    methods = {
        "ours": run[chosen],
        f"ours by {other}": run[other],
        "RS walk": segments.prepared(before, after, stream),
        "DiffRMQ": lambda: cells.run(before, after),
    }
    times = compared(methods)
    some, then = before[: max(100, int(3000 * share))], after[: max(100, int(3000 * share))]
    tree = shapely.STRtree(shapely.box(low[:, 0], low[:, 1], high[:, 0], high[:, 1]))
    bulk = compared({"ours": lambda: ours_borders(index, some, then), "STRtree": lambda: tree_bulk(tree, some, then)})
    times["STRtree bulk"] = bulk["STRtree"] / len(some) * len(before)
    events = round(len(in_form(run[chosen]())) / len(before), 2)
    used = sorted_ if chosen == "bounds" else index
    sizes = {"bytes_a_query": round(used.nbytes / n, 1), "diff_bytes_a_query": round(cells.nbytes / n, 1)}
    return row(f"2-D N={n} W={width / 1000:g} km ({chosen})", len(before), times, events=events, **sizes)


def polygons(share: float) -> Rows:
    """Star polygons: ins, outs and pass-throughs; STRtree answers from the move's line and both points."""
    cases = [(1000, 12, (250, 1000)), (1000, 100, (250, 1000)), (5000, 50, (100, 500)), (1000, 1000, (500, 2500))]
    return [_polygons_case(n, vertices, reach, share) for n, vertices, reach in cases]


def _polygons_case(n: int, vertices: int, reach: tuple[float, float], share: float) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    size, m = 15_000.0, max(500, int(100_000 * share))
    geometries = stars(rng, n, vertices, reach, size)
    before = rng.random((m, 2)) * size
    after = before + rng.normal(0, 85, (m, 2))
    index = build_borders([Polygon(edges) for edges in edges_of(geometries)], [True] * n)
    tree = shapely.STRtree(geometries)
    some, then = before[: max(200, m // 50)], after[: max(200, m // 50)]
    tree_time = compared({"ours": lambda: ours_borders(index, some, then), "STRtree": lambda: tree_passes(tree, some, then)})["STRtree"]
    times = compared({"ours": lambda: ours_borders(index, before, after)}) | {"STRtree bulk": tree_time / len(some) * m}
    found = in_form(ours_borders(index, before, after))
    passes = round(float((found[:, 2] == PASS).sum() / m), 3)
    title = f"polygons N={n} x {vertices} vertices"
    return row(title, m, times, events=round(len(found) / m, 2), passes=passes, bytes_a_polygon=round(index.nbytes / n))


def stars(rng: np.random.Generator, n: int, vertices: int, reach: tuple[float, float], size: float) -> list[shapely.Polygon]:
    """Spiky polygons around random places."""
    found: list[shapely.Polygon] = []
    while len(found) < n:
        angle = np.sort(rng.random(vertices)) * 2 * np.pi
        radius = rng.uniform(*reach) * rng.uniform(0.6, 1.0, vertices)
        polygon = shapely.Polygon(rng.random(2) * size + np.c_[np.cos(angle), np.sin(angle)] * radius[:, None])
        if polygon.is_valid:
            found.append(polygon)
    return found


def tree_passes(tree: shapely.STRtree, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """As `tree_bulk`, and the regions that a move's line touches with neither end inside."""
    n = len(tree.geometries)
    touched = tree.query(shapely.linestrings(np.stack([before, after], axis=1)), predicate="intersects")
    ends = [tree.query(shapely.points(place), predicate="intersects") for place in (before, after)]
    through = np.setdiff1d(touched[0] * n + touched[1], np.concatenate([end[0] * n + end[1] for end in ends]))
    passes = np.stack([through // n, through % n, np.full(len(through), PASS)], axis=1)
    return np.concatenate([tree_bulk(tree, before, after), passes])


def dimensions(share: float) -> Rows:
    """[BMQ] figure 19: 1 to 9 dimensions, N = 10K, W = 0.1 %, FL = 0.1 %, and boxes of 30 % that are hit more often."""
    return [_dimensions_case(d, width, share) for width in (1e-3, 0.3) for d in range(1, 10)]


def _dimensions_case(d: int, width: float, share: float) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    n, size, streams = 10_000, 1e5, 2000
    before, after, stream = walks(rng, streams, max(2, int(20 * share)), size, np.full(streams, size * 1e-3), d)
    low = rng.random((n, d)) * size
    high = low + size * width
    index, segments = build_bounds(low, high), RegionSegments(low, high)
    times = compared({"ours": lambda: ours_bounds(index, before, after), "RS walk": segments.prepared(before, after, stream)})
    some, then = before[: max(10, int(1000 * share))], after[: max(10, int(1000 * share))]
    compared({"ours": lambda: ours_bounds(index, some, then), "naive": lambda: naive(some, then, low, high)})
    events = round(len(in_form(ours_bounds(index, before, after))) / len(before), 4)
    return row(f"{d} dimensions W={width:.1%}", len(before), times, events=events, megabytes=round(index.nbytes / 1e6, 2))


def timers(share: float) -> Rows:
    """A million in events that nobody follows, 50 distinct bounds: rings against a compiled binary heap."""
    m = max(1000, int(1_000_000 * share))
    rng = np.random.default_rng(5)
    group = rng.integers(0, 50, m).astype(np.int32)
    within = (np.arange(50) + 1) * 6000
    t = np.sort(rng.integers(0, 3_600_000, m))
    entity = np.arange(m, dtype=np.int32)
    inward, places = np.ones(m, np.int8), np.zeros(m)

    def rings() -> np.ndarray:
        waiting, fired = Waiting.empty(50, m), []
        for begin in range(0, m, BATCH):
            s = slice(begin, begin + BATCH)
            waiting.reserve(len(t[s]))
            fired.append(_decided(waiting, (group[s], entity[s], inward[s], t[s], t[s], places[s], places[s]), int(t[s][-1]), within))
        fired.append(_decided(waiting, tuple(column[:0] for column in (group, entity, inward, t, t, places, places)), 2**60, within))
        found = np.concatenate(fired)
        return np.stack([found, found, found], axis=1)

    def heap() -> np.ndarray:
        found = heap_timers(t, within[group], np.arange(m), BATCH)
        return np.stack([found, found, found], axis=1)

    return [row("timers: 1 M, 50 bounds", m, compared({"ours": rings, "binary heap": heap}))]


def _decided(waiting: Waiting, events: tuple[np.ndarray, ...], watermark: int, within: np.ndarray) -> np.ndarray:
    found = decide(
        *events, watermark, within, np.arange(len(within), dtype=np.int32), within, np.full(len(within), 4, np.int8),
        waiting.key, waiting.inward, waiting.t, waiting.seq, waiting.x, waiting.y, waiting.next,
        waiting.table_key, waiting.table_slot, waiting.ring_head, waiting.ring_tail, waiting.meta,
    )  # fmt: skip
    return found[2]


def transitions(share: float) -> Rows:
    """[BMQ] 6.4: a million vehicles that report every 30 s, garages of 30 m, 3 minutes; kernels only (last tuples, borders, Tran-Seq)."""
    rows = []
    rng = np.random.default_rng(6)
    vehicles = max(10_000, int(1_000_000 * share))
    size, rounds = 30_000.0, 4
    for garages in (1, 1000, 10_000):
        corners = rng.random((garages, 2)) * size
        index = build_borders([Rectangle(x, y, x + 30, y + 30) for x, y in corners.tolist()], [False] * garages)
        within = np.full(garages, 180_000)
        places = [rng.random((vehicles, 2)) * size]
        for _ in range(rounds):
            places.append(places[-1] + rng.normal(0, 100, (vehicles, 2)) * (rng.random((vehicles, 1)) < 0.7))
        entity = np.arange(vehicles, dtype=np.int32)

        def run(garages=garages, index=index, within=within, places=places, entity=entity) -> tuple[float, int, int]:
            last, waiting = LastTuples.empty(2), Waiting.empty(1)
            last.reserve(vehicles)
            work, events, told = np.zeros(4, np.int64), 0, 0
            begin = time.thread_time()
            for k, place in enumerate(places):
                t, seq = np.full(vehicles, 30_000 * k), np.arange(vehicles) + k * vehicles
                before, _, _, known = advance(entity, place, t, seq, last.values, last.t, last.seq)
                moved, region, code, _ = border_meetings(index, before, place, known, work)
                waiting.reserve(len(moved))
                found = decide(
                    region, entity[moved], code, t[moved], seq[moved], place[moved, 0], place[moved, 1], 30_000 * k, within,
                    np.zeros(garages, np.int32), within[:1], np.full(garages, 15, np.int8),
                    waiting.key, waiting.inward, waiting.t, waiting.seq, waiting.x, waiting.y, waiting.next,
                    waiting.table_key, waiting.table_slot, waiting.ring_head, waiting.ring_tail, waiting.meta,
                )  # fmt: skip
                events += len(moved)
                told += len(found[0])
            return time.thread_time() - begin, events, told

        run()
        seconds, events, told = sorted(run() for _ in range(REPEATS))[REPEATS // 2]
        tuples = vehicles * len(places)
        line = {
            "workload": f"RTMQ {vehicles} vehicles, {garages} garages",
            "ours ns": round(seconds / tuples * 1e9, 1),
            "events": events,
            "told": told,
            "times real time": round(tuples / seconds / (vehicles / 30)),
        }
        print("  ".join(f"{key} {value}" for key, value in line.items()), flush=True)
        rows.append(line)
    return rows


PLANE = Feed("plane", Crs.PLANAR, TimeUnit.MS)


def mixed_queries(n: int, rng: np.random.Generator) -> list[RegisteredQuery]:
    """Polygons of 12 vertices, squares and circles, half border and half transition queries, on 15 km."""
    queries = []
    while len(queries) < n:
        centre = rng.random(2) * 15_000
        kind = len(queries) % 3
        angle = np.sort(rng.random(12)) * 2 * np.pi
        ring = (centre + np.c_[np.cos(angle), np.sin(angle)] * rng.uniform(100, 300)).tolist()
        if kind == 1:
            (x, y), w = centre.tolist(), float(rng.uniform(50, 500))
            ring = [[x, y], [x + w, y], [x + w, y + w], [x, y + w]]
        region: dict[str, Any] = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
        if kind == 2:
            region = {"center": centre.tolist(), "radius": float(rng.uniform(30, 300))}
        own = {"family": "border"} if len(queries) % 2 else {"family": "transition", "within": "PT3M"}
        queries.append(RegisteredQuery(str(len(queries)), 1, check({**own, "region": region}, PLANE)))
    return queries


def stream_batches(entities: int, m: int, rows_a_batch: int, rng: np.random.Generator) -> list[pa.RecordBatch]:
    """Cars that report every 30 s."""
    names = pa.array([f"car-{i}" for i in range(entities)])
    place = rng.random((entities, 2)) * 15_000
    batches, seq = [], 0
    rounds = rows_a_batch // entities
    for k in range(m // rows_a_batch):
        places = []
        for _ in range(rounds):
            place = np.clip(place + rng.normal(0, 60, (entities, 2)), 0, 15_000)
            places.append(place)
        x, y = np.concatenate(places).T
        t = np.repeat((np.arange(rounds) + k * rounds) * 30_000, entities)
        columns = {
            "event": pa.array(["position"]).take(pa.array(np.zeros(rows_a_batch, np.int32))), "entity": pa.concat_arrays([names] * rounds),
            "t": pa.array(t), "t_end": pa.nulls(rows_a_batch, pa.int64()), "x": pa.array(x), "y": pa.array(y),
            "seq": pa.array(np.arange(seq, seq + rows_a_batch)), "clock": pa.array(np.concatenate([[max(int(t[0]) - 30_000, 0)], t[:-1]])),
        }  # fmt: skip
        batches.append(pa.RecordBatch.from_pydict(columns))
        seq += rows_a_batch
    return batches


def operator(share: float) -> Rows:
    """The whole operator: 5 M rows, 10,000 entities, 1,000 regions, from Arrow rows to answer rows."""
    rng = np.random.default_rng(7)
    rows = []
    batches = stream_batches(10_000, max(200_000, int(5_000_000 * share)), 100_000, rng)
    for n in (1000, 0):
        stage, index = BorderOperator.keyed, BorderOperator().compile(mixed_queries(n, rng), PLANE)
        state, dictionary, told = stage.initial(index), EntityDictionary(), 0
        begin = time.thread_time()
        for batch in batches:
            output = stage.step(index, state, Batch(batch, dictionary), batch.column("t")[-1].as_py())
            state, told = output.state, told + output.changes.num_rows
        seconds = time.thread_time() - begin
        m = sum(batch.num_rows for batch in batches)
        line = {"workload": f"operator, {n} regions", "rows": m, "M rows/s": round(m / seconds / 1e6, 2), "answers": told}
        print("  ".join(f"{key} {value}" for key, value in line.items()), flush=True)
        rows.append(line)
    return rows


def evaluator(share: float) -> Rows:
    """The same rows through the Evaluator: gate (lateness, duplicates), reordering, operators, answers."""
    from engine.runtime.evaluator import Evaluator

    rng = np.random.default_rng(7)
    rows = []
    batches = stream_batches(10_000, max(200_000, int(5_000_000 * share)), 100_000, rng)
    for n in (1000, 0):
        running = Evaluator.start(PLANE, mixed_queries(n, rng))
        told, begin = 0, time.thread_time()
        for batch in batches:
            told += running.process(pa.Table.from_batches([batch])).changes.num_rows
        told += running.finish().changes.num_rows
        seconds = time.thread_time() - begin
        m = sum(batch.num_rows for batch in batches)
        line = {"workload": f"evaluator, {n} regions", "rows": m, "M rows/s": round(m / seconds / 1e6, 2), "answers": told}
        print("  ".join(f"{key} {value}" for key, value in line.items()), flush=True)
        rows.append(line)
    return rows


PARTS = {
    "1d": one_dimension,
    "2d": two_dimensions,
    "polygons": polygons,
    "dimensions": dimensions,
    "timers": timers,
    "transitions": transitions,
    "operator": operator,
    "evaluator": evaluator,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--share", type=float, default=1.0, help="share of the tuples")
    parser.add_argument("--json", type=Path, help="write all rows here")
    options = parser.parse_args()
    results = {part: PARTS[part](options.share) for part in options.only.split(",")}
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
