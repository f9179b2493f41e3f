"""Streams, queries and regions of the measurements of borders, drawn from seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from engine.border_monitoring.specification import BorderSpecification
from engine.model.conditions import Conditions
from engine.model.events import row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.sources.eventlog import EventLog
from engine.specification import check

ONE = 1e6
"""The domain of [BMQ] 7.1."""


@dataclass(frozen=True)
class Moves:
    """Moves of streams in the order of time: from `before` to `after`, arrays (m,
    d), of stream `stream` (m,)."""

    before: np.ndarray
    after: np.ndarray
    stream: np.ndarray

    def first(self, count: int) -> Moves:
        return Moves(self.before[:count], self.after[:count], self.stream[:count])


def skewed(rng: np.random.Generator, n: int, size: float) -> np.ndarray:
    """Values around the middle of [0, size]."""
    return np.clip(rng.normal(size / 2, size / 8, n), 0, size)


def moves(rng: np.random.Generator, streams: int, steps: int, size: float, step: np.ndarray, d: int, *, skew: bool = False) -> Moves:
    """Random walks reflected at the domain's ends, streams interleaved; `step` is each stream's
    mean step in each dimension."""
    places = np.empty((steps + 1, streams, d))
    places[0] = skewed(rng, streams * d, size).reshape(streams, d) if skew else rng.random((streams, d)) * size
    for k in range(steps):
        moved = np.abs(places[k] + rng.normal(0, 1, (streams, d)) * (step * np.sqrt(np.pi / 2))[:, None])
        places[k + 1] = size - np.abs(size - moved)
    return Moves(places[:-1].reshape(-1, d).copy(), places[1:].reshape(-1, d).copy(), np.tile(np.arange(streams), steps))


def squares(rng: np.random.Generator, n: int, size: float, width: float) -> np.ndarray:
    """South-west corners (n, 2) of squares around the middle, borders in generic position: closed
    and half-open ones have the same answers."""
    return np.clip(rng.normal(size / 2, size / 5, (n, 2)), 0, size) - width / 2


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


def mixed_queries(n: int, rng: np.random.Generator, feed: Feed) -> list[RegisteredQuery]:
    """Polygons of 12 vertices, squares and circles, half border and half
    transition queries, on 15 km."""
    queries: list[RegisteredQuery] = []
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
        queries.append(RegisteredQuery(str(len(queries)), 1, check({**own, "region": region}, feed)))
    return queries


def many_ranges(n: int, rng: np.random.Generator) -> list[RegisteredQuery]:
    """Border queries on 0.1 % of the values of `v`."""
    low = (rng.random(n) * ONE).tolist()
    return [RegisteredQuery(str(i), 1, BorderSpecification("", Conditions(), None, (("v", v, v + 1e-3 * ONE),))) for i, v in enumerate(low)]


def stream_batches(entities: int, m: int, rows_a_batch: int, rng: np.random.Generator) -> list[pa.RecordBatch]:
    """Cars that report every 30 s, stamped, in batches of whole rounds."""
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


# -- feeds in a separate log, for the engine as a whole --------------------------------------------

FEED = Feed("bench", Crs.PLANAR, TimeUnit.MS, lateness=0, dedupe=False)
FILE_ROWS = 100_000


@dataclass(frozen=True)
class World:
    """`entities` on a plane of `side` by `side` that report every `period` ms: of them `moving` (a
    part) continue by `step` in each dimension."""

    entities: int
    side: float
    step: float
    moving: float
    period: int
    queries: Callable[[], list[RegisteredQuery]]


def write_log(log: EventLog, rows: int, world: World) -> None:
    """The world's entities in turn, round after round."""
    random = np.random.default_rng(7)
    places = random.uniform(0, world.side, (world.entities, 2))
    names = pa.array([f"e{i}" for i in range(world.entities)])
    for first in range(0, rows, FILE_ROWS):
        number = np.arange(first, first + FILE_ROWS)
        found = []
        for begin in range(first, first + FILE_ROWS, world.entities):
            own = number[begin - first : begin - first + world.entities] % world.entities
            moved = random.normal(0, world.step, (len(own), 2)) * (random.random((len(own), 1)) < world.moving)
            places[own] = np.clip(places[own] + moved, 0, world.side)
            found.append(places[own])
        x, y = np.concatenate(found).T
        columns = {
            "event": pa.array(["position"]).take(pa.array(np.zeros(FILE_ROWS, np.int64))),
            "entity": names.take(pa.array(number % world.entities)),
            "t": pa.array(number // world.entities * world.period),
            "t_end": pa.nulls(FILE_ROWS, pa.int64()),
            "x": pa.array(x),
            "y": pa.array(y),
        }
        log.append(pa.table(columns, schema=row_schema(FEED)))


def _query(number: int, x: float, y: float, width: float, height: float, **more: Any) -> RegisteredQuery:
    ring = [[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]]
    document = {"family": "border", "version": 1, "region": {"type": "Polygon", "coordinates": [ring]}, **more}
    return RegisteredQuery(str(number), 1, check(document, FEED))


def rectangles() -> list[RegisteredQuery]:
    """1,000 border queries on rectangles spread over the plane."""
    random = np.random.default_rng(11)
    return [_query(i, *random.uniform(0, 970, 2), *random.uniform(5, 30, 2)) for i in range(1000)]


def garages() -> list[RegisteredQuery]:
    """1,000 garages of 30 m ([BMQ] 6.4): who enters or leaves, and returns within 3 minutes or
    not."""
    random = np.random.default_rng(6)
    return [_query(i, *random.uniform(0, 30_000, 2), 30.0, 30.0, family="transition", within="PT3M") for i in range(1000)]


WORLDS = {
    "rectangles": World(10_000, 1000.0, 1.0, 1.0, 1000, rectangles),
    "garages": World(1_000_000, 30_000.0, 100.0, 0.7, 30_000, garages),
}
