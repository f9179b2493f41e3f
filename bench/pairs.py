"""Encounters, occupancy, arrivals and accumulated time: each compared with a program that
recomputes it.

A plane of square kilometres on which objects move straight at up to 20 m/s and report once in ten
seconds, each at its own offset.
- `encounter`: pairs within 100 m every ten seconds, compared with a KD-tree (scipy) over all places
  at each instant, its pairs compared with those before. The target is ten times real time for
  150,000 objects, on a plane and on the earth.
- `occupancy`: how often and how long at least a number of entities are in a region, compared with
  one compiled pass that counts up and down.
- `arrival`: who will be in a region of forty corners within ten minutes, compared with a program
  that reads row by row and calls shapely.
- `total`: at least ten of the last thirty minutes inside, compared with adding up the window of
  each object again, compiled.

Times are processor times of all threads, and wall-clock times as facts: medians of alternating runs
of both methods; all answers are compared before. Every method begins with the same Arrow batches,
looks their names up in the same dictionary, puts the rows in order, and ends with a table of names
and times. Only ours judges lateness and duplicates, keeps evidence, and asserts an answer as soon
as it holds, to revise it later; the baselines may look at the whole input first.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely
from numba import njit
from scipy.spatial import cKDTree

from bench import Layer, Row, Size, Times, timed
from engine.model.batch import EntityDictionary
from engine.model.changes import ANSWERS
from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
EVERY = 10_000
DISTANCE = 100.0
PER_SQUARE_KM = 15.0
"""Objects: 150,000 are on a hundred by a hundred kilometres."""
TIMES_REAL = 10.0
PLANE = Feed("plane", Crs.PLANAR, TimeUnit.MS)
EARTH = Feed("earth", Crs.GEOGRAPHIC, TimeUnit.MS)
METRES_PER_DEGREE = 111_320.0
OPEN = np.iinfo(np.int64).max


@dataclass(frozen=True)
class World:
    """Rows in order of time; `tick[i]` is the number of the ten seconds of row i."""

    entity: Ints
    t: Ints
    x: Floats
    y: Floats
    objects: int
    side: float

    def batches(self, feed: Feed) -> list[pa.Table]:
        """One stamped table for each ten seconds; on the earth around the equator."""
        names = np.array([f"o{i:06d}" for i in range(self.objects)])
        scale = 1.0 if feed.crs is Crs.PLANAR else 1 / METRES_PER_DEGREE
        ends = np.searchsorted(self.t, np.arange(1, self.t[-1] // EVERY + 2) * EVERY)
        clock = np.concatenate([[0], np.maximum.accumulate(self.t)[:-1]])
        columns = {
            "event": pa.array(["position"] * len(self.t)),
            "entity": pa.array(names[self.entity]),
            "t": pa.array(self.t),
            "t_end": pa.nulls(len(self.t), pa.int64()),
            "x": pa.array(self.x * scale),
            "y": pa.array(self.y * scale),
            "seq": pa.array(np.arange(len(self.t))),
            "clock": pa.array(clock),
        }
        table = pa.table(columns)
        return [table.slice(begin, end - begin) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def world(objects: int, instants: int, seed: int = 1) -> World:
    """`instants` times ten seconds."""
    chance = np.random.default_rng(seed)
    side = 1000 * float(np.sqrt(objects / PER_SQUARE_KM))
    begin, offset = chance.uniform(0, side, (2, objects)), chance.integers(0, EVERY, objects)
    speed, course = chance.uniform(0, 20, objects), chance.uniform(0, 2 * np.pi, objects)
    t = (np.arange(instants)[:, None] * EVERY + offset).reshape(-1)
    entity = np.tile(np.arange(objects), instants)
    seconds = t / 1000
    x = np.abs(begin[0][entity] + np.cos(course)[entity] * speed[entity] * seconds)
    y = np.abs(begin[1][entity] + np.sin(course)[entity] * speed[entity] * seconds)
    order = np.argsort(t, kind="stable")
    return World(entity[order], t[order], x[order], y[order], objects, side)


def rows(size: Size) -> Iterator[Row]:
    full = size is Size.FULL
    for objects in [20_000, 150_000] if full else [2_000]:
        yield _encounter_beside_trees(world(objects, 12 if full else 6))
    for feed in (PLANE, EARTH):
        yield _encounter_pace(world(150_000 if full else 2_000, 12 if full else 6), feed)
    for objects in [2_000, 20_000] if full else [500]:
        yield _occupancy_beside_counting(world(objects, 12 if full else 6))
    for objects in [2_000, 20_000] if full else [500]:
        yield _arrival_beside_rows(world(objects, 12 if full else 6))
    for objects in [500, 5_000] if full else [200]:
        yield _total_beside_rescan(world(objects, 240 if full else 24), minutes=30 if full else 3)


@dataclass(frozen=True)
class Rows:
    """What a baseline reads of Arrow batches: codes of entities, times and places, in order of
    time; and the names of the codes."""

    entity: Ints
    t: Ints
    x: Floats
    y: Floats
    names: EntityDictionary


def read(batch: pa.Table, names: EntityDictionary) -> Rows:
    """One batch, its names looked up in `names`, which learns new ones."""
    rows = batch.combine_chunks()
    t = rows.column("t").to_numpy()
    codes = names.encode(rows.column("entity").chunk(0)).astype(np.int64)
    x, y = rows.column("x").to_numpy(), rows.column("y").to_numpy()
    if (t[1:] < t[:-1]).any():
        order = np.argsort(t, kind="stable")
        codes, t, x, y = codes[order], t[order], x[order], y[order]
    return Rows(codes, t, x, y, names)


def read_all(batches: list[pa.Table]) -> Rows:
    return read(pa.concat_tables(batches), EntityDictionary())


def named(found: Ints, entities: int, names: EntityDictionary) -> pa.Table:
    """A baseline's answers: rows (codes..., start, end) as a table with
    names, in the columns of ours."""
    who = names.decode(found[:, :entities].reshape(-1).astype(np.int32))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(len(found) + 1) * entities, pa.int32()), who)
    end = pa.array(found[:, entities + 1], mask=found[:, entities + 1] == OPEN)
    return pa.table({"entities": lists, "start": found[:, entities], "end": end, "weight": np.ones(len(found), np.int8)})


def row(workload: str, times: dict[str, Times], per: float, unit: str) -> Row:
    """Processor times of ours and of the baselines; wall-clock times are facts."""
    baselines = {name: one.processor / per for name, one in times.items() if name != "ours"}
    walls = {f"{name} by the wall": one.wall / per for name, one in times.items()}
    return Row(workload, Layer.ENGINE, times["ours"].processor / per, unit, baselines, facts=walls)


def answered(document: dict[str, Any], feed: Feed, batches: list[pa.Table]) -> pa.Table:
    """The changes of one query over all batches, and at the end."""
    evaluator = Evaluator.start(feed, [RegisteredQuery("q", 1, check(document, feed))])
    return pa.concat_tables([ANSWERS.empty_table(), *(evaluator.process(batch).changes for batch in batches), evaluator.finish().changes])


def intervals(changes: pa.Table, entities: int) -> Ints:
    """The sum of changes: (entities..., start, end), sorted; OPEN for an open end."""
    flat = changes.column("entities").combine_chunks().flatten()
    codes = np.array([int(name[1:]) for name in flat.to_pylist()], np.int64).reshape(changes.num_rows, entities)
    end = changes.column("end").fill_null(OPEN).to_numpy()
    found = np.column_stack([codes, changes.column("start").to_numpy(), end])
    left, where = np.unique(found, axis=0, return_inverse=True)
    weight = np.bincount(where.reshape(-1), changes.column("weight").to_numpy().astype(float), len(left))
    return left[weight > 0]


def _sorted(found: pa.Table, entities: int) -> Ints:
    plain = intervals(found, entities)
    if entities == 2:
        # Pairs are sorted by name, whatever codes a method gave them.
        plain[:, :2] = np.sort(plain[:, :2], axis=1)
    return plain[np.lexsort(plain.T)]


# -- encounter -------------------------------------------------------------------------------------

ENCOUNTER = {"family": "encounter", "distance": DISTANCE, "every": EVERY, "gap": 3 * EVERY}


def _encounter_beside_trees(of: World) -> Row:
    batches = of.batches(PLANE)
    methods = {"ours": lambda: answered(ENCOUNTER, PLANE, batches), "KD-tree": lambda: _by_trees(batches, of.objects)}
    times = timed(methods, lambda found: _sorted(found, 2))
    return row(f"encounter: {of.objects:,} objects, 100 m, every 10 s", times, len(batches) / 1000, "ms/instant")


def _by_trees(batches: list[pa.Table], objects: int) -> pa.Table:
    """Runs of instants at which two are close, by a tree over all places at each instant. Batch n
    holds the rows of the ten seconds n."""
    x, y = np.full(objects, np.nan), np.full(objects, np.nan)
    known = np.zeros(objects, np.bool_)
    code, start = np.empty(0, np.int64), np.empty(0, np.int64)
    found: list[Ints] = []
    names = EntityDictionary()
    late = read(batches[0].slice(0, 0), names) if batches[0].num_rows == 0 else None
    for instant, batch in enumerate(batches):
        now = instant * EVERY
        of = read(batch, names)
        # A row at the very instant counts there; the others of the batch at the next one.
        at = int(np.searchsorted(of.t, now, "right"))
        for rows in ([] if late is None else [late]) + [Rows(of.entity[:at], of.t[:at], of.x[:at], of.y[:at], names)]:
            x[rows.entity], y[rows.entity], known[rows.entity] = rows.x, rows.y, True
        late = Rows(of.entity[at:], of.t[at:], of.x[at:], of.y[at:], names)
        who = np.flatnonzero(known)
        pairs = cKDTree(np.column_stack([x[who], y[who]])).query_pairs(DISTANCE, output_type="ndarray") if len(who) else np.empty((0, 2), np.int64)
        present = np.sort(who[pairs[:, 0]] * objects + who[pairs[:, 1]])
        stays = np.isin(code, present, assume_unique=True)
        gone = code[~stays]
        found.append(np.column_stack([gone // objects, gone % objects, start[~stays], np.full(len(gone), now)]))
        fresh = present[~np.isin(present, code, assume_unique=True)]
        code, start = np.append(code[stays], fresh), np.append(start[stays], np.full(len(fresh), now))
    found.append(np.column_stack([code // objects, code % objects, start, np.full(len(code), OPEN)]))
    return named(np.concatenate(found), 2, names)


def _encounter_pace(of: World, feed: Feed) -> Row:
    """How many times faster than real time the answers come, in wall-clock time, without the first
    instants, which compile and fill."""
    batches = of.batches(feed)
    evaluator = Evaluator.start(feed, [RegisteredQuery("q", 1, check(ENCOUNTER, feed))])
    warm = min(3, len(batches) - 1)
    met = sum(evaluator.process(batch).changes.num_rows for batch in batches[:warm])
    began, worked = time.perf_counter(), time.process_time()
    met += sum(evaluator.process(batch).changes.num_rows for batch in batches[warm:])
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    span = (len(batches) - warm) * EVERY / 1000
    workload = f"encounter: {of.objects:,} objects, {feed.crs.value}"
    facts = {"by processor time": span / worked, "changes": met}
    return Row(workload, Layer.ENGINE, span / seconds, "times real", limit=TIMES_REAL, less_is_better=False, facts=facts)


# -- occupancy -------------------------------------------------------------------------------------


def _occupancy_beside_counting(of: World) -> Row:
    low, high, least = of.side * 0.4, of.side * 0.6, int(of.objects * 0.04)
    ring = [[low, low], [high, low], [high, high], [low, high], [low, low]]
    document = {"family": "occupancy", "region": {"type": "Polygon", "coordinates": [ring]}, "count": [">=", least]}
    batches = of.batches(PLANE)

    def one_pass() -> pa.Table:
        rows = read_all(batches)
        return named(_counted(rows.entity, rows.t, rows.x, rows.y, low, high, least), 0, rows.names)

    times = timed({"ours": lambda: answered(document, PLANE, batches), "one pass": one_pass}, lambda found: _sorted(found, 0))
    return row(f"occupancy: {of.objects:,} objects, one region", times, len(of.t) / 1e6, "s/M rows")


@njit(cache=True, nogil=True)
def _counted(entity: Ints, t: Ints, x: Floats, y: Floats, low: float, high: float, least: int) -> Ints:
    inside = np.zeros(entity.max() + 1, np.bool_)
    found = np.empty((len(t), 2), np.int64)
    n, start, i, count = 0, -1, 0, 0
    while i < len(t):
        now = t[i]
        while i < len(t) and t[i] == now:
            there = low <= x[i] <= high and low <= y[i] <= high
            count += int(there) - int(inside[entity[i]])
            inside[entity[i]] = there
            i += 1
        held = count >= least
        if held and start < 0:
            start = now
        elif not held and start >= 0:
            found[n] = start, now
            n, start = n + 1, -1
    if start >= 0:
        found[n] = start, OPEN
        n += 1
    return found[:n]


# -- arrival ---------------------------------------------------------------------------------------

WITHIN, OVER = 600_000, 30_000


def _arrival_beside_rows(of: World) -> Row:
    turn = np.linspace(0, 2 * np.pi, 41)[:-1]
    corners = of.side / 2 + of.side / 10 * np.column_stack([np.cos(turn), np.sin(turn)])
    region = {"type": "Polygon", "coordinates": [[*corners.tolist(), corners[0].tolist()]]}
    document = {"family": "arrival", "region": region, "within": WITHIN, "over": OVER, "gap": 3 * EVERY}
    batches = of.batches(PLANE)

    def row_by_row() -> pa.Table:
        rows = read_all(batches)
        return named(_arrivals_by_row(rows, shapely.Polygon(corners)), 1, rows.names)

    times = timed({"ours": lambda: answered(document, PLANE, batches), "row by row": row_by_row}, lambda found: _sorted(found, 1))
    return row(f"arrival: {of.objects:,} objects, one region, ten minutes ahead", times, len(of.t) / 1e6, "s/M rows")


def _arrivals_by_row(rows: Rows, region: shapely.Polygon) -> Ints:
    """Objects report more often than any gap, so no answer ends by silence."""
    shapely.prepare(region)
    recent: dict[int, deque[tuple[int, float, float]]] = defaultdict(deque)
    start: dict[int, int] = {}
    found = []
    for entity, t, x, y in zip(rows.entity.tolist(), rows.t.tolist(), rows.x.tolist(), rows.y.tolist(), strict=True):
        own = recent[entity]
        while own and own[0][0] < t - OVER:
            own.popleft()
        arriving = False
        if own and not shapely.intersects_xy(region, x, y):
            since, bx, by = own[0]
            times = WITHIN / (t - since)
            arriving = bool(shapely.intersects(region, shapely.LineString([(x, y), (x + (x - bx) * times, y + (y - by) * times)])))
        own.append((t, x, y))
        if arriving:
            start.setdefault(entity, t)
        elif entity in start:
            found.append((entity, start.pop(entity), t))
    found += [(entity, begun, OPEN) for entity, begun in start.items()]
    return np.array(found, np.int64).reshape(-1, 3)


# -- total -----------------------------------------------------------------------------------------


def _total_beside_rescan(of: World, minutes: int) -> Row:
    low, high = of.side * 0.3, of.side * 0.7
    window, least, every = minutes * 60_000, minutes * 20_000, EVERY
    ring = [[low, low], [high, low], [high, high], [low, high], [low, low]]
    predicate = {"inside": {"type": "Polygon", "coordinates": [ring]}, "window": [window, 0], "quantifier": "total", "at_least": least}
    document = {"family": "motion", "predicates": [predicate], "every": every}
    batches = of.batches(PLANE)
    last = int(of.t[-1])

    def rescan() -> pa.Table:
        rows = read_all(batches)
        order = np.argsort(rows.entity, kind="stable")
        ends = np.searchsorted(rows.entity[order], np.arange(len(rows.names.names) + 1))
        found = _rescanned(ends, rows.t[order], rows.x[order], rows.y[order], low, high, window, least, every, last)
        return named(found, 1, rows.names)

    times = timed({"ours": lambda: answered(document, PLANE, batches), "rescan": rescan}, lambda found: _sorted(found, 1))
    return row(f"total: {of.objects:,} objects, {minutes} min window", times, last // every / 1000, "ms/instant")


@njit(cache=True, nogil=True)
def _rescanned(ends: Ints, t: Ints, x: Floats, y: Floats, low: float, high: float, window: int, least: int, every: int, last: int) -> Ints:
    """Each object's window again at each time of evaluation."""
    found = np.empty((len(t) + len(ends), 3), np.int64)
    n = 0
    for entity in range(len(ends) - 1):
        start = -1
        for now in range(0, last + 1, every):
            total = 0
            first = ends[entity] + max(0, np.searchsorted(t[ends[entity] : ends[entity + 1]], now - window) - 1)
            for i in range(first, ends[entity + 1]):
                if t[i] >= now:
                    break
                until = t[i + 1] if i + 1 < ends[entity + 1] else now
                if low <= x[i] <= high and low <= y[i] <= high:
                    total += max(0, min(until, now) - max(t[i], now - window))
            if total >= least and start < 0:
                start = now
            elif total < least and start >= 0:
                found[n] = entity, start, now
                n, start = n + 1, -1
        if start >= 0:
            found[n] = entity, start, OPEN
            n += 1
    return found[:n]
