"""BMQ-Processor and RTMQ compared with baselines: figures 10 to 19 of [BMQ], and our own targets.

Processor times of one thread in nanoseconds a tuple. Kernel rows measure the index alone,
engine rows everything from Arrow rows to answer rows. Baselines (`border_baselines.py`): DiffRMQ
over cells (CEI, CES), the paper's own walk, a compiled loop over all queries, and shapely's STRtree
in bulk. Those that are too slow for all the moves run on a sample of them, compared with ours on
the same sample.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import shapely

from bench import Figure, Layer, Row, Size, compared
from bench.border_baselines import CellLists, RegionSegments, heap_timers, naive, tree_bulk, tree_passes
from bench.border_operator import PLANE, operators
from bench.border_worlds import FEED, ONE, WORLDS, Moves, many_ranges, moves, skewed, squares, stars, write_log
from engine.border_monitoring.borders import Borders, build_borders
from engine.border_monitoring.bounds import Bounds, CrossingBuffers, MoveColumns, bound_crossings, build_bounds, rows_of
from engine.border_monitoring.moves import PASS, MeetingBuffers, border_meetings
from engine.border_monitoring.shapes import Polygon, Rectangle, edges_of
from engine.border_monitoring.structures import wide_from
from engine.border_monitoring.transitions import BorderEvents, Groups, WaitingEvents
from engine.border_monitoring.tuples import LastTuples, advance
from engine.model.feed import ColumnType
from engine.sources.eventlog import EventLog

BATCH = 20_000
Answers = np.ndarray | list[tuple[int, tuple[np.ndarray, ...]]]
"""Rows (row, query, code), or for each batch its first row and either such columns or how many
answers there are up to each row and the answers, query k as k when it is entered and ~k when it is
left: as the method gives them, put converted outside the measured time."""

FIGURES = {
    "10": Figure("[BMQ] fig. 10: number of queries (1-D, W = 0.1 %, FL = 0.01 %)", "queries", log_x=True),
    "11": Figure("[BMQ] fig. 11: width of queries (1-D, N = 100K, FL = 0.01 %)", "width, % of the domain", log_x=True),
    "12": Figure("[BMQ] fig. 12: fluctuation level (1-D, N = 100K, W = 0.1 %)", "fluctuation level, % of the domain", log_x=True),
    "13": Figure("[BMQ] fig. 13: 1 uniform, 2 queries skewed, 3 data skewed, 4 both (1-D, N = 100K)", "distributions"),
    "14a": Figure("[BMQ] fig. 14a: storage (1-D, W = 0.1 %)", "queries", log_x=True),
    "14b": Figure("[BMQ] fig. 14b: storage (1-D, N = 100K)", "width, % of the domain", log_x=True),
    "15": Figure("[BMQ] fig. 15: data streams (1-D, N = 100K)", "streams", log_x=True),
    "16": Figure("[BMQ] fig. 16: number of queries (2-D, W = 5 km)", "queries", log_x=True),
    "17": Figure("[BMQ] fig. 17: width of queries (2-D, N = 5K)", "width, km"),
    "18a": Figure("[BMQ] fig. 18a: storage (2-D, W = 5 km)", "queries", log_x=True),
    "18b": Figure("[BMQ] fig. 18b: storage (2-D, N = 5K)", "width, km"),
    "19a": Figure("[BMQ] fig. 19a: dimensions (N = 10K, W = FL = 0.1 %)", "dimensions"),
    "19b": Figure("[BMQ] fig. 19b: storage (N = 10K)", "dimensions", log_y=False),
}


def rows(size: Size) -> Iterator[Row]:
    quick = size is Size.QUICK
    yield from one_dimension(quick)
    yield from two_dimensions(quick)
    yield from polygons(quick)
    yield from dimensions(quick)
    yield from timers(quick)
    yield from transitions(quick)
    yield from operators(quick)
    yield from streams(quick)
    yield from registration(quick)


def spark_rows(size: Size) -> Iterator[Row]:
    """The same in a Spark job without a store, compared with an operator that does nothing."""
    from bench.spark_overhead import BATCH_ROWS
    from bench.spark_overhead import measured as delivered

    quick = size is Size.QUICK
    rows, batch_rows = (300_000, 100_000) if quick else (5_000_000, BATCH_ROWS)
    promises = {"rectangles": {"operator that does nothing": 0.75}, "garages": {"real time": 20.0}}
    titles = {"rectangles": "border, 10,000 entities, 1,000 rectangles", "garages": "RTMQ 1000000 vehicles, 1000 garages"}
    for name, world in WORLDS.items():
        nothing, evaluated, answers = delivered(world, rows, "driver", 1, 2, 1 if quick else 3, batch_rows=batch_rows)
        baselines = {"operator that does nothing": float(np.median(nothing))} | ({"real time": REAL_TIME} if name == "garages" else {})
        ours = float(np.median(evaluated))
        yield Row(titles[name], Layer.SPARK, ours, "rows/s", baselines, promises[name], None, False, {"answers": answers})


def in_form(found: Answers) -> np.ndarray:
    """Answers as sorted numbers: row << 33 | query << 2 | code."""
    if not isinstance(found, list):
        return np.sort(_numbers(0, tuple(found.T)))
    return np.sort(np.concatenate([_numbers(begin, columns) for begin, columns in found]))


def _numbers(begin: int, columns: tuple[np.ndarray, ...]) -> np.ndarray:
    if len(columns) == 2:
        last, query = columns
        columns = rows_of(last), np.where(query < 0, ~query, query), query >= 0
    row, query, code = (column.astype(np.int64) for column in columns[:3])
    return row + begin << 33 | query << 2 | code


def by_bounds(index: Bounds, given: Moves) -> Callable[[], Answers]:
    """Methods that find many answers a tuple write them to used memory, as the product does."""
    known, work, batches = np.ones(BATCH, np.bool_), np.zeros(4, np.int64), _batches(given)
    places = [CrossingBuffers() for _ in batches]
    return lambda: [
        (s.start, bound_crossings(index, MoveColumns(given.before[s], given.after[s], known[: s.stop - s.start]), work, crossed))
        for s, crossed in zip(batches, places, strict=True)
    ]


def by_borders(index: Borders, given: Moves) -> Callable[[], Answers]:
    known, work, batches = np.ones(BATCH, np.bool_), np.zeros(4, np.int64), _batches(given)
    places = [MeetingBuffers() for _ in batches]
    return lambda: [
        (s.start, border_meetings(index, MoveColumns(given.before[s], given.after[s], known[: s.stop - s.start]), work, met))
        for s, met in zip(batches, places, strict=True)
    ]


def _batches(given: Moves) -> list[slice]:
    return [slice(begin, min(begin + BATCH, len(given.before))) for begin in range(0, len(given.before), BATCH)]


def measured(workload: str, given: Moves, ours: Callable[[], Answers], baselines: dict[str, Callable[[], Answers]], **more: Any) -> Row:
    """A kernel's row in ns a tuple, with baselines over the same moves; a fact: events a tuple."""
    times = compared({"ours": ours, **baselines}, in_form)
    each = {name: seconds / len(given.before) * 1e9 for name, seconds in times.items()}
    facts = {"events": round(len(in_form(ours())) / len(given.before), 3)}
    return Row(workload, Layer.KERNEL, each.pop("ours"), "ns/tuple", each, facts=facts, **more)


def sampled(
    row: Row, given: Moves, ours: Callable[[Moves], Callable[[], Answers]], baselines: dict[str, Callable[[Moves], Answers]], count: int
) -> Row:
    """The row with baselines timed on the first `count` moves, scaled by ours on these."""
    sample = given.first(count)
    times = compared({"ours": ours(sample), **{name: lambda run=run: run(sample) for name, run in baselines.items()}}, in_form)
    scale = row.ours / times.pop("ours")
    return replace(row, baselines={**row.baselines, **{name: seconds * scale for name, seconds in times.items()}})


# -- one dimension ---------------------------------------------------------------------------------


def one_dimension(quick: bool) -> Iterator[Row]:
    n = 5000 if quick else 100_000
    yield from (_ranges(count, 1e-3, 1e-4, quick, "10", count, promised=count == 100_000) for count in ([n] if quick else [10_000, 30_000, n]))
    widths = [_ranges(n, width, 1e-4, quick, "11", width * 100) for width in (1e-4, 3e-4, 1e-3)]
    yield from widths
    flat = widths[-1].ours / widths[0].ours
    yield Row("1-D flat in W: 0.1 % over 0.01 %", Layer.KERNEL, flat, "times", limit=1.15)
    yield from (_ranges(n, 1e-3, level, quick, "12", level * 100) for level in (1e-5, 1e-4, 3e-4, 1e-3))
    yield from (_ranges(n, 1e-3, 1e-4, quick, "13", 1 + k, skew=(k % 2 == 1, k >= 2)) for k in range(4))
    yield from (_storage(count, 1e-3, "14a", count) for count in ([n] if quick else [10_000, 30_000, n]))
    yield from (_storage(n, width, "14b", width * 100) for width in (1e-4, 3e-4, 1e-3))
    yield from (_streams(n, count) for count in ([1000] if quick else [1000, 8000, 32_000, 128_000]))


def _ranges(
    n: int, width: float, level: float, quick: bool, figure: str, x: float, *, skew: tuple[bool, bool] = (False, False), promised: bool = False
) -> Row:
    """2,000 streams of 100 tuples (200 of 10 in a smoke run); `skew` of queries and of data."""
    rng = np.random.default_rng(1)
    streams = 200 if quick else 2000
    given = moves(rng, streams, 10 if quick else 100, ONE, np.full(streams, ONE * level), 1, skew=skew[1])
    low = (skewed(rng, n, ONE) if skew[0] else rng.random(n) * ONE)[:, None]
    high = low + width * ONE
    index, cells, segments = build_bounds(low, high), CellLists(low, high, ONE, int(2 / width)), RegionSegments(low, high)
    title = f"1-D N={n} W={width:.2%} FL={level:.3%}" + f"{' queries skewed' * skew[0]}{' data skewed' * skew[1]}"
    methods = {"DiffRMQ": lambda: cells.run(given.before, given.after), "RS walk": segments.prepared(given.before, given.after, given.stream)}
    row = measured(title, given, by_bounds(index, given), methods, figure=figure, x=x)
    work = np.zeros(4, np.int64)
    columns = MoveColumns(given.before, given.after, np.ones(len(given.before), np.bool_))
    _, found = bound_crossings(index, columns, work, CrossingBuffers())
    row = replace(row, facts={**row.facts, "processing efficiency %": round(100 * len(found) / max(int(work[1]), 1), 1)})
    if promised:
        row = sampled(row, given, lambda some: by_bounds(index, some), {"all queries": lambda some: naive(some.before, some.after, low, high)}, 2000)
        row = replace(row, at_least={"DiffRMQ": 25.0, "RS walk": 2.5})
    return row


def _storage(n: int, width: float, figure: str, x: float) -> Row:
    low = np.random.default_rng(1).random((n, 1)) * ONE
    high = low + width * ONE
    cells = CellLists(low, high, ONE, int(2 / width))
    ours = build_bounds(low, high).nbytes / n
    return Row(f"1-D storage N={n} W={width:.2%}", Layer.KERNEL, ours, "bytes/query", {"CEI": cells.nbytes / n}, figure=figure, x=x)


def _streams(n: int, streams: int) -> Row:
    """A tuple from each of S streams, their last tuples looked up: time and memory of the state."""
    rng = np.random.default_rng(1)
    low = rng.random((n, 1)) * ONE
    high = low + 1e-3 * ONE
    index, cells = build_bounds(low, high), CellLists(low, high, ONE, 2000)
    given = moves(rng, streams, 4, ONE, np.full(streams, ONE * 1e-4), 1)
    last, entity, seq, crossed = LastTuples.empty(1), given.stream.astype(np.int32), np.arange(len(given.before)), CrossingBuffers()

    def ours() -> Answers:
        last.reserve(streams)
        known, work = np.ones(len(given.before), np.bool_), np.zeros(4, np.int64)
        advance(entity, given.after, seq, seq, last.values, last.t, last.seq)
        return [(0, bound_crossings(index, MoveColumns(given.before, given.after, known), work, crossed))]

    row = measured(f"1-D S={streams} streams", given, ours, {"DiffRMQ": lambda: cells.run(given.before, given.after)}, figure="15", x=streams)
    state = last.values.nbytes + last.t.nbytes + last.seq.nbytes
    return replace(row, facts={**row.facts, "state bytes a stream": round(state / streams, 1)})


# -- two dimensions --------------------------------------------------------------------------------

TWO = 15_000.0
"""Metres: the city's side in [BMQ] 7.2; 1,000 objects, a report every 30 s, 20 or 4.3 km/h."""
PROMISED = {(5000, 5000.0): {"DiffRMQ": 12.0, "STRtree bulk": 300.0}, (5000, 500.0): {"STRtree bulk": 12.0}}


def two_dimensions(quick: bool) -> Iterator[Row]:
    if quick:
        yield from _squares(300, 5000.0, quick, "16", 300)
        yield from _squares(300, 500.0, quick, "17", 0.5)
        return
    for n in (500, 1500, 5000):
        yield from _squares(n, 5000.0, quick, "16", n)
    for width in (500.0, 1500.0, 5000.0):
        yield from _squares(5000, width, quick, "17", width / 1000)
    yield from _squares(50_000, 500.0, quick, None, None)


def _squares(n: int, width: float, quick: bool, figure: str | None, x: float | None) -> Iterator[Row]:
    rng = np.random.default_rng(2)
    objects = 100 if quick else 1000
    speed = np.where(np.arange(objects) % 2 == 0, 20 / 3.6 * 30, 4.3 / 3.6 * 30)
    given = moves(rng, objects, 10 if quick else 100, TWO, speed / np.sqrt(2), 2)
    low = squares(rng, n, TWO, width)
    high = low + width
    grid = build_borders([Rectangle(*box) for box in np.hstack([low, high]).tolist()], [False] * n)
    bounds, cells, segments = build_bounds(low, high), CellLists(low, high, TWO, 60), RegionSegments(low, high)
    run = {"bounds": lambda some: by_bounds(bounds, some), "cells": lambda some: by_borders(grid, some)}
    chosen, other = ("bounds", "cells") if width > wide_from(n) * (TWO + width) else ("cells", "bounds")
    methods = {
        f"ours by {other}": run[other](given),
        "DiffRMQ": lambda: cells.run(given.before, given.after),
        "RS walk": segments.prepared(given.before, given.after, given.stream),
    }
    title = f"2-D N={n} W={width / 1000:g} km ({chosen})"
    row = measured(title, given, run[chosen](given), methods, figure=figure, x=x)
    tree = shapely.STRtree(shapely.box(low[:, 0], low[:, 1], high[:, 0], high[:, 1]))
    row = sampled(row, given, run[chosen], {"STRtree bulk": lambda some: tree_bulk(tree, some.before, some.after)}, 200 if quick else 3000)
    yield replace(row, at_least={} if quick else PROMISED.get((n, width), {}))
    used = (bounds if chosen == "bounds" else grid).nbytes / n
    name = {"16": "18a", "17": "18b"}.get(figure or "")
    yield Row(f"{title} storage", Layer.KERNEL, used, "bytes/query", {"CES": cells.nbytes / n}, limit=None if quick else 160.0, figure=name, x=x)


# -- polygons --------------------------------------------------------------------------------------


def polygons(quick: bool) -> Iterator[Row]:
    """Star polygons: ins, outs and pass-throughs; STRtree takes the move's line and both points."""
    cases = [(1000, 12, (250, 1000)), (1000, 100, (250, 1000)), (5000, 50, (100, 500)), (1000, 1000, (500, 2500))]
    for n, vertices, reach in [(100, 12, (250, 1000))] if quick else cases:
        yield _polygons(n, vertices, reach, quick)


def _polygons(n: int, vertices: int, reach: tuple[float, float], quick: bool) -> Row:
    rng = np.random.default_rng(3)
    m = 2000 if quick else 100_000
    geometries = stars(rng, n, vertices, reach, TWO)
    before = rng.random((m, 2)) * TWO
    given = Moves(before, before + rng.normal(0, 85, (m, 2)), np.arange(m))
    index = build_borders([Polygon(edges) for edges in edges_of(geometries)], [True] * n)
    tree = shapely.STRtree(geometries)
    row = measured(f"polygons N={n} x {vertices} vertices", given, by_borders(index, given), {})
    baseline = {"STRtree": lambda some: tree_passes(tree, some.before, some.after)}
    row = sampled(row, given, lambda some: by_borders(index, some), baseline, 200 if quick else 2000)
    passes = float((in_form(by_borders(index, given)()) & 3 == PASS).sum() / m)
    facts = {**row.facts, "passes": round(passes, 3), "bytes a polygon": round(index.nbytes / n)}
    return replace(row, facts=facts, at_least={"STRtree": 20.0} if (n, vertices) == (1000, 100) else {})


# -- dimensions ------------------------------------------------------------------------------------


def dimensions(quick: bool) -> Iterator[Row]:
    """As [BMQ] figure 19, and boxes of 30 %, which are hit more often."""
    first = 0.0
    for width in (1e-3, 0.3):
        for d in (1, 3) if quick else range(1, 10):
            row = _dimensions(d, width, quick, "19a" if width == 1e-3 else None)
            first = row.ours if d == 1 else first
            # [BMQ] 5.4 estimates (d - 1) sqrt(d) times the time of one dimension.
            yield replace(row, facts={**row.facts, "estimate of 5.4": round((d - 1) * d**0.5 * first, 1)} if d > 1 else row.facts)
            if width == 1e-3:
                megabytes = float(row.facts["megabytes"])
                yield Row(f"{d} dimensions storage", Layer.KERNEL, megabytes, "MB", limit=7.0, figure="19b", x=d)


def _dimensions(d: int, width: float, quick: bool, figure: str | None) -> Row:
    rng = np.random.default_rng(4)
    n, size, streams = (500, 1e5, 100) if quick else (10_000, 1e5, 2000)
    given = moves(rng, streams, 10 if quick else 20, size, np.full(streams, size * 1e-3), d)
    low = rng.random((n, d)) * size
    high = low + size * width
    index, segments = build_bounds(low, high), RegionSegments(low, high)
    walk = {"RS walk": segments.prepared(given.before, given.after, given.stream)}
    row = measured(f"{d} dimensions W={width:.1%}", given, by_bounds(index, given), walk, figure=figure, x=d)
    plain = {"all queries": lambda some: naive(some.before, some.after, low, high)}
    row = sampled(row, given, lambda some: by_bounds(index, some), plain, 1000)
    return replace(row, facts={**row.facts, "megabytes": round(index.nbytes / 1e6, 2)})


# -- transitions -----------------------------------------------------------------------------------


def timers(quick: bool) -> Iterator[Row]:
    """Unwatched events with 50 distinct bounds: rings against a compiled binary heap. A million
    over an hour, a million before the first is due, and a stream where a million wait."""
    m = 20_000 if quick else 1_000_000
    yield _timers(m, 3_600_000, "over an hour", promised=not quick)
    yield _timers(m, 6000, "all waiting at once", promised=not quick)
    yield _timers(3 * m, 459_000, f"{m:,} waiting", promised=not quick)


def _timers(m: int, span: int, words: str, *, promised: bool) -> Row:
    rng = np.random.default_rng(5)
    group = rng.integers(0, 50, m).astype(np.int32)
    within = (np.arange(50) + 1) * 6000
    t = np.sort(rng.integers(0, span, m))
    entity = np.arange(m, dtype=np.int32)
    inward, places = np.ones(m, np.int8), np.zeros(m)
    columns = (group, entity, inward, t, t, places, places)

    def rings() -> list[np.ndarray]:
        waiting, fired = WaitingEvents.empty(50), []
        for begin in range(0, m, BATCH):
            batch = tuple(column[begin : begin + BATCH] for column in columns)
            waiting.reserve(len(batch[0]))
            fired.append(_decided(waiting, batch, int(batch[3][-1]), within))
        waiting.reserve(0)
        fired.append(_decided(waiting, tuple(column[:0] for column in columns), 2**60, within))
        return fired

    bound, key = within[group], group.astype(np.int64) << 32 | entity
    times = compared({"ours": rings, "heap": lambda: [heap_timers(t, bound, key, BATCH)]}, lambda found: np.sort(np.concatenate(found)))
    each = {name: seconds / m * 1e9 for name, seconds in times.items()}
    promise = {"heap": 1.5} if promised else {}
    limit = 200.0 if promised else None
    return Row(f"timers: {m:,}, 50 bounds, {words}", Layer.KERNEL, each["ours"], "ns/timer", {"heap": each["heap"]}, promise, limit=limit)


def _decided(waiting: WaitingEvents, events: tuple[np.ndarray, ...], watermark: int, within: np.ndarray) -> np.ndarray:
    """The keys (group << 32 | entity) of the stays that are over."""
    groups = Groups(within, np.arange(len(within), dtype=np.int32), np.full(len(within), 4, np.int8), within)
    found = waiting.decide(BorderEvents(*events), watermark, groups)  # type: ignore[call-arg]
    return found[0].copy()  # type: ignore[no-any-return]


REAL_TIME = 1_000_000 / 30
"""Tuples a second of [BMQ] 6.4: a million vehicles that report every 30 s."""


def transitions(quick: bool) -> Iterator[Row]:
    """[BMQ] 6.4: garages of 30 m, 3 minutes; last tuples, borders and Tran-Seq."""
    for garages in (100,) if quick else (1, 1000, 10_000):
        yield _garages(20_000 if quick else 1_000_000, garages, promised=not quick and garages == 1000)


def _garages(vehicles: int, garages: int, *, promised: bool) -> Row:
    rng = np.random.default_rng(6)
    size, within = 30_000.0, np.full(garages, 180_000)
    corners = rng.random((garages, 2)) * size
    index = build_borders([Rectangle(x, y, x + 30, y + 30) for x, y in corners.tolist()], [False] * garages)
    places = [rng.random((vehicles, 2)) * size]
    for _ in range(4):
        places.append(places[-1] + rng.normal(0, 100, (vehicles, 2)) * (rng.random((vehicles, 1)) < 0.7))
    entity = np.arange(vehicles, dtype=np.int32)

    groups = Groups(within, np.zeros(garages, np.int32), np.full(garages, 15, np.int8), within[:1])

    def run() -> tuple[float, int, int]:
        last, waiting, met = LastTuples.empty(2), WaitingEvents.empty(1), MeetingBuffers()
        last.reserve(vehicles)
        work, events, answer_count = np.zeros(4, np.int64), 0, 0
        begin = time.thread_time()
        for k, place in enumerate(places):
            t, seq = np.full(vehicles, 30_000 * k), np.arange(vehicles) + k * vehicles
            before, _, _, known = advance(entity, place, t, seq, last.values, last.t, last.seq)
            moved, region, code, _ = border_meetings(index, MoveColumns(before, place, known), work, met)
            waiting.reserve(len(moved))
            crossed = BorderEvents(region, entity[moved], code, t[moved], seq[moved], place[moved, 0], place[moved, 1])
            found = waiting.decide(crossed, 30_000 * k, groups)
            events, answer_count = events + len(moved), answer_count + len(found[0])
        return time.thread_time() - begin, events, answer_count

    run()
    seconds, events, answer_count = sorted(run() for _ in range(3))[1]
    rate = vehicles * len(places) / seconds
    promise = {"real time": 300.0} if promised else {}
    facts: dict[str, float | str] = {"in and out events": events, "transitions": answer_count}
    title = f"RTMQ {vehicles} vehicles, {garages} garages"
    return Row(title, Layer.KERNEL, rate, "tuples/s", {"real time": REAL_TIME}, promise, less_is_better=False, facts=facts)


# -- engine ----------------------------------------------------------------------------------------


def streams(quick: bool) -> Iterator[Row]:
    """RTMQ from Arrow rows to answers, with vehicles' ids, last tuples and what the gate keeps."""
    from engine.runtime.evaluator import Evaluator

    world = replace(WORLDS["garages"], entities=20_000) if quick else WORLDS["garages"]
    with TemporaryDirectory() as folder:
        log = EventLog(Path(folder), FEED.name)
        write_log(log, max(5 * world.entities, 200_000), world)
        Evaluator.start(FEED, world.queries()).process(next(log.read(0, 1000)))
        running, seconds, rows, answer_count = Evaluator.start(FEED, world.queries()), 0.0, 0, 0
        for table in log.read():
            begin = time.thread_time()
            answer_count += running.process(table).changes.num_rows
            # The first round creates dictionary and state; later ones measure the feed.
            seconds, rows = (seconds + time.thread_time() - begin, rows + table.num_rows) if running.position >= world.entities else (0.0, 0)
    facts: dict[str, float | str] = {"answers": answer_count, "state bytes a stream": round(_state_bytes(running) / world.entities, 1)}
    title = f"RTMQ {world.entities} vehicles, 1000 garages (evaluator)"
    yield Row(title, Layer.ENGINE, rows / seconds, "rows/s", {"real time": REAL_TIME}, less_is_better=False, facts=facts)


def _state_bytes(running: Any) -> int:
    """The memory of an evaluator's dictionary and stream state, including spare capacity."""
    (part,) = running._keyed
    state = part.keyed.states["border"]
    kept = [part.dictionary, *(own.last for own in state.classes), state.waiting]
    arrays = sum(value.nbytes for one in kept for value in vars(one).values() if isinstance(value, np.ndarray))
    return arrays + sum(sys.getsizeof(name) + 8 for name in part.dictionary.names)


def registration(quick: bool) -> Iterator[Row]:
    """Queries registered and removed in a running evaluator: the baseline compiles the whole list
    again; answers are checked as in the tests."""
    from engine.runtime.evaluator import Evaluator

    n = 2000 if quick else 100_000
    queries = many_ranges(n + 202, np.random.default_rng(9))
    feed = replace(PLANE, columns={"v": ColumnType.FLOAT})
    begin = time.thread_time()
    running = Evaluator.start(feed, queries[:n])
    again = 1000 * (time.thread_time() - begin)
    running.register(queries[: n + 1], running.side_evaluator(queries[n : n + 1]))
    lists = {"1 added": queries[: n + 2], "100 added": queries[: n + 102], "1 removed": queries[1 : n + 102], "100 removed": queries[101 : n + 102]}
    have = n + 1
    for words, wanted in lists.items():
        side = running.side_evaluator(wanted[have:]) if len(wanted) > have else None
        begin = time.thread_time()
        running.register(wanted, side)
        spent = 1000 * (time.thread_time() - begin)
        have = len(wanted)
        yield Row(f"registration, {words} at N={n}", Layer.ENGINE, spent, "ms", {"compiled anew": again}, limit=None if quick else 200.0)
