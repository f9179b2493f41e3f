"""Positions during a span of the past, thinned out for the screen: the
live page plays them back."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.clock import watermark_at
from engine.sources.eventlog import EventLog, Span
from webapp.cage.slots import Slots
from webapp.feeds.models import Feed
from webapp.feeds.recent import acceptance, accepted, log_of

GONE_PERIODS = 48
"""After this many usual intervals without a report an entity is stale and not on the map, as in the
front end (data/silence.ts)."""
BEFORE_ROWS = 200_000
"""Rows before the span that are searched for earlier samples of entities on
the map at its beginning."""
BEFORE_STEP = 65_536
"""At least this many are always read: they show how often entities report, and have several
positions of those that report rarely."""
BEFORE_SAMPLES = 4
"""At most this many samples per entity before the span: its position, its course,
and how often it reports."""
SPAN_ROWS = 2_000_000
"""A span with more rows is answered only as far as these reach."""
READS = Slots()
"""A span may have hundreds of megabytes: at most this many are read at once. Raises Busy."""
COLUMNS = ["event", "entity", "t", "x", "y", "clock"]
NO_REPORTS = pa.schema([("entity", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64())]).empty_table()


@dataclass(frozen=True)
class Movements:
    """Samples in order of time: entity (a position in `entities`), t, x and y.

    They hold for `[from_t, to_t)`: at any instant in it an entity's place is that of
    its last sample, also of one before `from_t`. `begin` is the oldest time in the
    log, null in an empty one.
    """

    from_t: int
    to_t: int
    begin: int | None
    entities: list[str]
    entity: np.ndarray
    t: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def to_bytes(self) -> bytes:
        """A little-endian length, a JSON header of that length padded to eights, then t, x, y as
        float64 and entity as int32."""
        header = {"from": self.from_t, "to": self.to_t, "begin": self.begin, "entities": self.entities, "count": len(self.t)}
        text = json.dumps(header).encode()
        text += b" " * (-(4 + len(text)) % 8)
        columns = [self.t.astype("<f8"), self.x.astype("<f8"), self.y.astype("<f8"), self.entity.astype("<i4")]
        return struct.pack("<I", len(text)) + text + b"".join(column.tobytes() for column in columns)


def movements(feed: Feed, from_t: int, to_t: int, step: int) -> Movements:
    """Each entity's last sample of every `step` (in the feed's unit) in `[from_t, to_t)`, and of
    those before it that are near.

    The feed's rows may be more than one answer takes: then the answer's `to_t` is
    less than what was asked for.
    """
    with READS.slot():
        return _movements(feed, from_t, to_t, step)


def _movements(feed: Feed, from_t: int, to_t: int, step: int) -> Movements:
    log = log_of(feed)
    span = log.numbers_of(from_t, to_t, feed.lateness)
    tables = _with_those_before(log, feed, span, from_t, from_t - BEFORE_SAMPLES * max(1, step))
    begin = log.first_t
    if not tables:
        return _nothing(from_t, to_t, begin)
    rows = pa.concat_tables(tables, promote_options="permissive")
    whole = span.rows <= SPAN_ROWS
    return _sampled(feed, rows, from_t, to_t if whole else min(to_t, _reached(rows, from_t, feed.lateness)), max(1, step), begin)


def _with_those_before(log: EventLog, feed: Feed, span: Span, from_t: int, reaching: int) -> list[pa.Table]:
    """The rows of the span, and earlier rows of all entities that are not stale at `from_t`, so
    that the map is complete.

    Also those back to the time `reaching`, as far as BEFORE_ROWS hold that.
    """
    end = max(log.start, span.first - BEFORE_STEP)
    # In one go: where the span begins within a row group, that is decoded once.
    tables = list(log.read(end, min(span.stop, span.first + SPAN_ROWS), columns=COLUMNS))
    period = _usual_period(pa.concat_tables(tables, promote_options="permissive").slice(0, span.first - end)) if tables else 0
    stale, reached = (log.numbers_of(since, from_t, feed.lateness).first for since in (from_t - GONE_PERIODS * period, min(reaching, from_t)))
    first = max(log.start, span.first - SPAN_ROWS, min(stale, max(reached, span.first - BEFORE_ROWS)))
    return tables if first >= end else [*log.read(first, end, columns=COLUMNS), *tables]


def _usual_period(rows: pa.Table) -> int:
    """The median time between two reports of the same entity, in the feed's unit; 0
    if no entity reports twice."""
    rows = rows.filter(pc.and_(pc.is_valid(rows.column("x")), pc.is_valid(rows.column("entity"))))
    if not rows.num_rows:
        return 0
    entity, t = _numbered(rows.column("entity")).indices.to_numpy(), rows.column("t").to_numpy()
    order = _by_entity_and_time(entity, t)
    gaps = np.diff(t[order])[np.diff(entity[order]) == 0]
    gaps = gaps[gaps > 0]
    return int(np.sort(gaps)[len(gaps) // 2]) if len(gaps) else 0


def _numbered(names: pa.ChunkedArray) -> pa.DictionaryArray:
    numbered = names.combine_chunks().dictionary_encode()
    return numbered.combine_chunks() if isinstance(numbered, pa.ChunkedArray) else numbered


def reports(feed: Feed, from_t: int, to_t: int) -> tuple[pa.Table, int]:
    """Accepted rows with `entity`, `t`, `x` and `y` in `[from_t, to_t)`, and how far they reach:
    less than `to_t` where they are too many."""
    log = log_of(feed)
    span = log.numbers_of(from_t, to_t, feed.lateness)
    tables = list(log.read(span.first, min(span.stop, span.first + SPAN_ROWS), columns=COLUMNS))
    if not tables:
        return NO_REPORTS, to_t
    rows = accepted(feed, pa.concat_tables(tables, promote_options="permissive"))
    if span.rows > SPAN_ROWS and rows.num_rows:
        to_t = min(to_t, _reached(rows, from_t, feed.lateness))
    t = rows.column("t")
    placed = pc.and_(pc.is_valid(rows.column("x")), pc.is_valid(rows.column("entity")))
    return rows.filter(pc.and_(placed, pc.and_(pc.greater_equal(t, from_t), pc.less(t, to_t)))), to_t


def _reached(rows: pa.Table, from_t: int, lateness: int) -> int:
    """Up to when the rows are complete: later ones may still include rows of up to `lateness`
    before."""
    return max(from_t + 1, watermark_at(int(pc.max(rows.column("t")).as_py()), lateness))


def _nothing(from_t: int, to_t: int, begin: int | None) -> Movements:
    none = np.empty(0)
    return Movements(from_t, to_t, begin, [], none, none, none, none)


def _sampled(feed: Feed, rows: pa.Table, from_t: int, to_t: int, step: int, begin: int | None) -> Movements:
    """Only numbers are filtered and sorted: names of 300,000 rows cost as much
    again as everything else."""
    names = _numbered(rows.column("entity"))
    placed = pc.and_(pc.is_valid(rows.column("x")), pc.is_valid(rows.column("entity")))
    kept = np.flatnonzero(pc.and_(pc.and_(acceptance(feed, rows), placed), pc.less(rows.column("t"), to_t)).to_numpy())
    if not len(kept):
        return _nothing(from_t, to_t, begin)
    entity, t = pc.fill_null(names.indices, 0).to_numpy()[kept], rows.column("t").to_numpy()[kept]
    order = _last_of_each_slot(entity, t, (t - from_t) // step)
    order = order[_is_near(entity[order], t[order] < from_t)]
    order = order[np.argsort(t[order], kind="stable")]
    known, entity = np.unique(entity[order], return_inverse=True)
    x, y = (rows.column(name).to_numpy()[kept[order]] for name in ("x", "y"))
    return Movements(from_t, to_t, begin, names.dictionary.take(pa.array(known)).to_pylist(), entity, t[order], x, y)


def _last_of_each_slot(entity: np.ndarray, t: np.ndarray, slot: np.ndarray) -> np.ndarray:
    """Positions by (entity, t) of the last row of each entity in each slot; of equal
    times the row that came last."""
    order = _by_entity_and_time(entity, t)
    entity, slot = entity[order], slot[order]
    last = np.ones(len(order), bool)
    last[:-1] = (entity[1:] != entity[:-1]) | (slot[1:] != slot[:-1])
    return order[last]


def _by_entity_and_time(entity: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Positions by (entity, t), of equals in their order. At least one."""
    by_time = np.argsort(t, kind="stable")
    # Numbers of 16 bits are sorted by counting: 300,000 in 2 ms instead of 20.
    narrow = entity.astype(np.uint16) if entity.max() < 2**16 else entity
    order: np.ndarray = by_time[np.argsort(narrow[by_time], kind="stable")]
    return order


def _is_near(entity: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Of samples by (entity, t): those in the span, and of each entity the last
    BEFORE_SAMPLES before it."""
    counts = np.bincount(entity, weights=before).astype(np.int64)
    begins = np.concatenate(([0], np.cumsum(np.bincount(entity))[:-1]))
    rank = np.arange(len(entity)) - begins[entity]
    near: np.ndarray = ~before | (rank >= counts[entity] - BEFORE_SAMPLES)
    return near
