"""The newest rows of a feed's log: positions, tracks, entities, values. The work is bounded,
independent of the feed's size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.clock import in_time
from engine.model.columns import CLOCK
from engine.model.events import HEARTBEAT
from engine.model.feed import Feed as EngineFeed
from engine.sources.eventlog import EventLog
from webapp.config.openapi import Length
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed

POSITION_ROWS = 200_000
POSITION_ENTITIES = 20_000
TRACK_ENTITIES = 50
TRACK_POINTS = 100_000
VALUE_ROWS = 50_000
FREQUENT_VALUES = 50
FIRST_T = -(2**63)
DEFAULT_SPAN = {"ms": 600_000, "ticks": 10_000}
"""How far back a track goes by default, in the feed's unit."""

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Positions:
    """Last known places: rows of (entity, x, y, t); `t` is the newest time among them."""

    t: int | None
    entities: list[Annotated[list[str | float], Length(4)]]


def log_of(feed: Feed) -> EventLog:
    """The feed's event log."""
    return event_log(feed.name)


def oldest_clock(feed: Feed) -> int | None:
    """The clock at the log's oldest row; null while the log has every row that the feed ever
    had."""
    log = log_of(feed)
    if log.start == 0:
        return None
    return next((int(rows.column(CLOCK)[0].as_py()) for rows in log.read(log.start, log.start + 1, columns=[CLOCK])), None)


def newest_rows(feed: Feed, count: int, columns: Sequence[str]) -> pa.Table:
    """The last `count` accepted rows in order of arrival (fewer after late rows and
    heartbeats are left out)."""
    log = log_of(feed)
    next_seq, _ = log.end
    names = list(dict.fromkeys([*columns, "event", "t", "clock"]))
    tables = list(log.read(max(0, next_seq - count), next_seq, columns=names))
    if not tables:
        return pa.table({name: pa.array([], pa.null()) for name in columns})
    rows = pa.concat_tables(tables, promote_options="permissive")
    return accepted(feed, rows)


def accepted(feed: Feed | EngineFeed, rows: pa.Table) -> pa.Table:
    """`rows` without heartbeats and without late ones."""
    return rows.filter(acceptance(feed, rows))


def acceptance(feed: Feed | EngineFeed, rows: pa.Table) -> pa.ChunkedArray:
    """For each row whether it is neither a heartbeat nor late."""
    keep = pc.not_equal(rows.column("event"), HEARTBEAT)
    return pc.and_(keep, in_time(rows, feed.lateness))


def positions(feed: Feed, box: Box | None = None, limit: int = POSITION_ENTITIES) -> Positions:
    """Each entity's last position among the newest rows, within `box`; at most
    `limit`, the latest first."""
    rows = newest_rows(feed, POSITION_ROWS, ["entity", "t", "x", "y"])
    if not rows.num_rows:
        return Positions(None, [])
    rows = rows.filter(pc.is_valid(rows.column("x")))
    last = last_of_each(rows)
    if box is not None:
        x, y = last.column("x"), last.column("y")
        inside = pc.and_(_between(x, box[0], box[2]), _between(y, box[1], box[3]))
        last = last.filter(inside)
    last = last.slice(max(0, last.num_rows - limit))
    columns = [last.column(name).to_pylist() for name in ("entity", "x", "y", "t")]
    return Positions(max(columns[3], default=None), [list(row) for row in zip(*columns, strict=True)])


def _between(values: pa.ChunkedArray, low: float, high: float) -> pa.ChunkedArray:
    return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))


def last_of_each(rows: pa.Table) -> pa.Table:
    """The last row of each entity by (t, arrival), in order of time."""
    order = np.argsort(rows.column("t").to_numpy(), kind="stable")
    rows = rows.take(pa.array(order))
    codes = pc.dictionary_encode(rows.column("entity")).combine_chunks()
    codes = codes.indices.to_numpy() if not isinstance(codes, pa.ChunkedArray) else codes.chunk(0).indices.to_numpy()
    _, from_end = np.unique(codes[::-1], return_index=True)
    return rows.take(pa.array(np.sort(len(codes) - 1 - from_end)))


class Track(TypedDict):
    """`points`: [t, x, y] in order of time."""

    entity: str
    points: list[Annotated[list[float], Length(3)]]


@dataclass(frozen=True)
class Tracks:
    """Points (t, x, y) of each entity in order of time; `complete` false:
    the oldest were left out."""

    complete: bool
    tracks: list[Track]


def tracks(feed: Feed, entities: Sequence[str], from_t: int | None = None, to_t: int | None = None, limit: int = TRACK_POINTS) -> Tracks:
    """Where `entities` were in [from_t, to_t], both closed; from_t null: a while
    back from the newest row."""
    log = log_of(feed)
    _, newest = log.end
    if newest is None or not entities:
        return Tracks(True, [])
    until = newest if to_t is None else to_t
    since = max(min(until, newest) - DEFAULT_SPAN[feed.time], FIRST_T) if from_t is None else from_t
    chosen = list(entities)[:TRACK_ENTITIES]
    rows = log.tail(since, until + 1, lateness=feed.lateness, columns=["event", "entity", "t", "x", "y", "clock"], entities=chosen)
    if not rows.num_rows:
        return Tracks(True, [])
    rows = accepted(feed, rows)
    rows = rows.filter(pc.is_valid(rows.column("x")))
    order = np.argsort(rows.column("t").to_numpy(), kind="stable")
    rows = rows.take(pa.array(order[-limit:]))
    points: dict[str, list[list[float]]] = {}
    for entity, t, x, y in zip(*(rows.column(name).to_pylist() for name in ("entity", "t", "x", "y")), strict=True):
        points.setdefault(entity, []).append([t, x, y])
    return Tracks(len(order) <= limit, [{"entity": entity, "points": listed} for entity, listed in sorted(points.items())])


class LastRows(TypedDict):
    """An entity's newest row and the newest at an earlier time, each with the feed's columns;
    null: there is none in the period that is read."""

    last: dict[str, Any] | None
    before: dict[str, Any] | None


def entity_at(feed: Feed, entity: str, t: int | None) -> LastRows:
    """The entity's newest row at or before `t` (null: of all) and the one before.

    Of each instant the row that came last. Looks as far back as a track without a given beginning.
    """
    log = log_of(feed)
    _, newest = log.end
    if newest is None or not entity:
        return {"last": None, "before": None}
    until = newest if t is None else min(t, newest)
    since = max(until - DEFAULT_SPAN[feed.time], FIRST_T)
    columns = ["event", "entity", "t", "x", "y", *feed.columns, "clock"]
    rows = accepted(feed, log.tail(since, until + 1, lateness=feed.lateness, columns=columns, entities=[entity]))
    newest_of = {row["t"]: row for row in rows.drop_columns([CLOCK]).to_pylist()}
    last, before = ([newest_of[at] for at in sorted(newest_of, reverse=True)[:2]] + [None, None])[:2]
    return {"last": last, "before": before}


def entities(feed: Feed, search: str, limit: int = 50) -> list[str]:
    """Ids among the newest rows that contain `search`, those that begin with it first."""
    rows = newest_rows(feed, POSITION_ROWS, ["entity"])
    known = pc.unique(rows.column("entity")).to_pylist() if rows.num_rows else []
    text = search.casefold()
    names = [name for name in known if name is not None and text in name.casefold()]
    return sorted(names, key=lambda name: (not name.casefold().startswith(text), name))[:limit]


class _Counted(TypedDict):
    column: str
    rows: int
    nulls: int


class NumberHistogram(_Counted):
    """The distribution of a column's newest numbers: `counts` between `edges`."""

    min: float | None
    max: float | None
    edges: list[float]
    counts: list[int]


class ValueHistogram(_Counted):
    """The most frequent of the newest values of a column, [value, how many] each."""

    values: list[Annotated[list[Any], Length(2)]]


def histogram(feed: Feed, column: str, bins: int) -> NumberHistogram | ValueHistogram:
    """The distribution of an attribute's newest values: bins of equal width for numbers, the most
    frequent for others."""
    rows = newest_rows(feed, VALUE_ROWS, [column])
    values = rows.column(column).combine_chunks() if column in rows.column_names else pa.nulls(rows.num_rows)
    head: _Counted = {"column": column, "rows": len(values), "nulls": values.null_count}
    kept = values.drop_null()
    if pa.types.is_floating(kept.type) or pa.types.is_integer(kept.type):
        least, greatest, edges, counts = _bins(kept.to_numpy(zero_copy_only=False).astype(np.float64), bins)
        return {**head, "min": least, "max": greatest, "edges": edges, "counts": counts}
    counted = sorted(((item["values"], item["counts"]) for item in pc.value_counts(kept).to_pylist()), key=lambda pair: (-pair[1], str(pair[0])))
    return {**head, "values": [[value, count] for value, count in counted[:FREQUENT_VALUES]]}


def _bins(numbers: Any, bins: int) -> tuple[float | None, float | None, list[float], list[int]]:
    """Least and greatest value, edges, counts; without a finite number nulls and empty lists."""
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return None, None, [], []
    counts, edges = np.histogram(finite, bins=bins)
    return float(finite.min()), float(finite.max()), edges.tolist(), counts.tolist()
