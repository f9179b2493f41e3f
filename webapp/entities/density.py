"""How many reports came from each part of the map: all of them, or those of entities that were in
an answer. For heat maps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import F, Q, QuerySet

from engine.model.messages import Message
from webapp.config.boxes import Box
from webapp.detections.models import Detection
from webapp.feeds.history import READS, reports
from webapp.feeds.models import Feed

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

MOST_CELLS = 40_000
MOST_ANSWERS = 200_000
MERCATOR_LATITUDE = 85.0511


class TooMany(ValueError):
    """The period has more answers than a heat map can have."""


@dataclass(frozen=True)
class Grid:
    """`columns` x `rows` cells over `box`, equal on the screen: on a
    geographic feed in Mercator's y."""

    box: Box
    columns: int
    rows: int
    is_geographic: bool

    def cells(self, x: Floats, y: Floats) -> Longs:
        """The cell of each place inside the box, row by row from the south;
        places outside are left out."""
        west, south, east, north = self.box
        inside = (x >= west) & (x <= east) & (y >= south) & (y <= north)
        across = _cell(x[inside], west, east, self.columns)
        low, high = self._screen(np.array([south, north]))
        up = _cell(self._screen(y[inside]), low, high, self.rows)
        return up * self.columns + across

    def _screen(self, y: Floats) -> Floats:
        if not self.is_geographic:
            return y
        latitude = np.radians(np.clip(y, -MERCATOR_LATITUDE, MERCATOR_LATITUDE))
        return np.asarray(np.log(np.tan(math.pi / 4 + latitude / 2)))


def _cell(values: Floats, low: float, high: float, count: int) -> Longs:
    share = (values - low) / max(high - low, np.finfo(float).tiny)
    return np.clip((share * count).astype(np.int64), 0, count - 1)


@dataclass(frozen=True)
class Density:
    """Reports in `[from_t, to_t)` by cell, row by row from the south. `to_t` is earlier than asked
    for where the reports were too many."""

    from_t: int
    to_t: int
    counts: Longs


def density(feed: Feed, from_t: int, to_t: int, grid: Grid, answers: QuerySet[Detection] | None = None) -> Density:
    """Counts the feed's accepted reports; with `answers`, those of entities within
    an answer. Raises TooMany."""
    with READS.slot():
        return _density(feed, from_t, to_t, grid, answers)


def _density(feed: Feed, from_t: int, to_t: int, grid: Grid, answers: QuerySet[Detection] | None) -> Density:
    rows, to_t = reports(feed, from_t, to_t)
    if answers is not None:
        rows = rows.filter(pa.array(_within(rows, _spans(answers, from_t, to_t))))
    cells = grid.cells(rows.column("x").to_numpy(), rows.column("y").to_numpy())
    return Density(from_t, to_t, np.bincount(cells, minlength=grid.columns * grid.rows))


def _spans(answers: QuerySet[Detection], from_t: int, to_t: int) -> list[tuple[list[str], int, int | None]]:
    """(entities, start, end) of the answers that touch the span; end null while they last."""
    touching = answers.filter(Q(end__isnull=True) | Q(end__gt=from_t) | Q(end=F("start"), start__gte=from_t), start__lt=to_t)
    spans = list(touching.order_by().values_list("entities", "start", "end")[: MOST_ANSWERS + 1])
    if len(spans) > MOST_ANSWERS:
        raise TooMany(Message("This window has more than {most:,} answers: choose a shorter one, or fewer queries.", most=MOST_ANSWERS))
    return spans


def _within(rows: pa.Table, spans: list[tuple[list[str], int, int | None]]) -> npt.NDArray[np.bool_]:
    """Which rows lie in `[start, end)` of a span that names their entity; a span of one
    instant holds that instant."""
    if not spans or not rows.num_rows:
        return np.zeros(rows.num_rows, np.bool_)
    t = rows.column("t").to_numpy()
    first, last = int(t.min()), int(t.max())
    width = last - first + 2
    encoded = pc.dictionary_encode(rows.column("entity").combine_chunks())
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    code_of = {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}
    keys = [
        (code_of[name] * width + max(start, first) - first, code_of[name] * width + min(_end(start, end, last), last + 1) - first)
        for entities, start, end in spans
        for name in entities
        if name in code_of and start <= last
    ]
    if not keys:
        return np.zeros(rows.num_rows, np.bool_)
    bounds = np.array(sorted(keys), np.int64)
    # An entity's keys lie before those of the next, so the greatest end so far is that of the same
    # entity or too small to matter.
    ends = np.maximum.accumulate(bounds[:, 1])
    key = encoded.indices.to_numpy().astype(np.int64) * width + (t - first)
    before = np.searchsorted(bounds[:, 0], key, side="right")
    return np.asarray((before > 0) & (ends[before - 1] > key))


def _end(start: int, end: int | None, last: int) -> int:
    return last + 1 if end is None else max(end, start + 1)
