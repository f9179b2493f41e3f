"""Index structures over the monitors of one tuple class: built once each, merged in larger steps as
monitors are added and removed.

A class holds a few structures, each at least `_STEP` times as large as the next. New monitors make
a small one; those that have become too similar in size are rebuilt as one, and there the choice
between sorted bounds and cells is made again. So a monitor takes part in a logarithmic number of
rebuilds, and a registration costs what is new and small. Removed monitors stay where they are,
ignored, until they are half of a structure.

References: [BMQ] 4.2 (insertion and deletion of queries). Departure: the paper changes its list in
place; ours are immutable, sorted arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.border_monitoring.borders import Borders, build_borders
from engine.border_monitoring.bounds import Bounds, build_bounds
from engine.border_monitoring.shapes import Rectangle, Shape

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_STEP = 8
_SMALL = 512
"""Structures of fewer monitors are always one: building it takes milliseconds."""


@dataclass(frozen=True)
class Members:
    """The input of a structure: monitor numbers, their shapes and whether passes are wanted
    (regions), or boxes `[low, high)` (ranges)."""

    monitors: Ints
    shapes: tuple[Shape, ...]
    wanted: Bools
    low: Floats
    high: Floats

    def __len__(self) -> int:
        return len(self.monitors)

    def select(self, chosen: Bools) -> Members:
        if chosen.all():
            return self
        shapes = tuple(shape for shape, stays in zip(self.shapes, chosen.tolist(), strict=True) if stays) if self.shapes else ()
        ranges = len(self.low) > 0
        return Members(
            self.monitors[chosen],
            shapes,
            self.wanted[chosen],
            self.low[chosen] if ranges else self.low,
            self.high[chosen] if ranges else self.high,
        )


def concat_members(parts: Sequence[Members]) -> Members:
    """All members of the parts, in order."""
    return Members(
        np.concatenate([part.monitors for part in parts]),
        tuple(shape for part in parts for shape in part.shapes),
        np.concatenate([part.wanted for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
    )


@dataclass(frozen=True)
class Structure:
    """Borders in cells and bounds in order of the monitors of `members`; `*_monitors` name the
    monitor of each region and box in them."""

    members: Members
    borders: Borders | None
    borders_monitors: Ints
    shapes: tuple[Shape, ...]
    bounds: Bounds | None
    bounds_monitors: Ints

    @property
    def nbytes(self) -> int:
        return (self.borders.nbytes if self.borders else 0) + (self.bounds.nbytes if self.bounds else 0)


def wide_from(rectangles: int) -> float:
    """The share of the extent of this many rectangles from which on one of them is wide: sorted
    bounds take it, cells the narrower ones.

    A border crosses the more cells the wider it is, and cells are the finer the more there are.
    Measured with cars of 15 km ([BMQ] 7.2): both take equally long at 0.092 of the extent for 500
    rectangles, 0.057 for 5,000 and 0.042 for 20,000.
    """
    return float(min(0.057 * (5000 / max(rectangles, 1)) ** 0.21, 0.15))


def build(members: Members) -> Structure:
    """The structure over at least one member."""
    if len(members.low):
        return Structure(members, None, np.empty(0, np.int32), (), build_bounds(members.low, members.high), members.monitors)
    shapes, wanted = members.shapes, members.wanted
    wide = _wide(shapes)
    cells = np.flatnonzero(~wide).tolist()
    boxes = [shape for shape, is_wide in zip(shapes, wide.tolist(), strict=True) if is_wide and isinstance(shape, Rectangle)]
    in_cells = shapes if len(cells) == len(shapes) else tuple(shapes[i] for i in cells)
    bounds = None
    if boxes:
        low = np.array([[box.west, box.south] for box in boxes])
        high = np.array([[box.east, box.north] for box in boxes])
        bounds = build_bounds(low, np.nextafter(high, np.inf))
    return Structure(
        members,
        build_borders(in_cells, wanted[cells].tolist()) if cells else None,
        members.monitors[cells],
        in_cells,
        bounds,
        members.monitors[wide],
    )


def _wide(shapes: Sequence[Shape]) -> Bools:
    """Which shapes the sorted bounds take: rectangles that are wide against the
    extent of all rectangles."""
    boxes = np.array([(s.west, s.south, s.east, s.north) if isinstance(s, Rectangle) else (np.nan,) * 4 for s in shapes])
    if np.isnan(boxes[:, 0]).all():
        return np.zeros(len(shapes), np.bool_)
    extent = (np.nanmax(boxes[:, 2]) - np.nanmin(boxes[:, 0])) + (np.nanmax(boxes[:, 3]) - np.nanmin(boxes[:, 1]))
    sides = (boxes[:, 2] - boxes[:, 0]) + (boxes[:, 3] - boxes[:, 1])
    wide: Bools = sides > wide_from(int(np.count_nonzero(~np.isnan(boxes[:, 0])))) * extent
    # A handful of rectangles is as cheap in the cells that exist anyway.
    return wide if wide.sum() >= 16 else np.zeros(len(shapes), np.bool_)


def update(parts: Sequence[Structure], fresh: Members | None, alive: Bools) -> tuple[Structure, ...]:
    """The structures, largest first, with `fresh` members and without those that are not
    `alive` (by monitor number)."""
    kept: list[Members] = []
    built: list[Structure | None] = []
    for part in parts:
        stays = alive[part.members.monitors]
        count = int(stays.sum())
        if count:
            whole = 2 * count >= len(stays)
            kept.append(part.members if whole else part.members.select(stays))
            built.append(part if whole else None)
    if fresh is not None and len(fresh):
        kept.append(fresh)
        built.append(None)
    while len(kept) > 1 and len(kept[-2]) <= max(_STEP * len(kept[-1]), _SMALL):
        joined = concat_members(kept[-2:])
        kept[-2:] = [joined.select(alive[joined.monitors])]
        built[-2:] = [None]
    return tuple(build(members) if part is None else part for members, part in zip(kept, built, strict=True))
