"""Which regions a straight move enters, leaves or passes: the walk over the
cells of `borders.Borders`.

A polygon's answer changes iff the move crosses its border an odd number of times; edges have the
region on their left, so the sum of the signs of the crossings is the answer's change and no
polygon is ever tested whole. A vertex exactly on the line of the move counts as lying on its left,
which is a consistent infinitely small shift. The shift is harmless unless a sample lies exactly on
the border; then the sample is inside (regions are closed) and the other one is located separately,
with exact signs throughout.

References: research notes, crossing parity on the segment; [BMQ] 4.3 for the idea of visiting only
what lies between two samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.border_monitoring.borders import CIRCLE, EDGE, Borders, place, row_span
from engine.border_monitoring.bounds import MoveColumns
from engine.index.exact import in_circle, in_polygon, on_edge, orientation
from engine.index.geodesic import earth_centred
from engine.index.lanes import box_holds

OUT, IN, PASS, UNSURE = 0, 1, 2, 3
"""Codes of a meeting: left, entered, touched between two outside samples, to be
decided by exact geodesics."""

_FROM_ON, _TO_ON = 1, 2
_EPSILON = 2.0**-52


@njit(cache=True, nogil=True)
def contact(ax, ay, bx, by, px, py, qx, qy):  # type: ignore[no-untyped-def]
    """How the closed edge a-b meets the closed move p-q: (met, sign, on, first, last, error).

    `sign`: +1 entering, -1 leaving, 0 not a crossing; `on`: which samples lie on the edge; `first`
    and `last`: least and greatest fraction of the move on the edge, each within `error`.
    """
    a = orientation(px, py, qx, qy, ax, ay)
    b = orientation(px, py, qx, qy, bx, by)
    if a * b > 0:
        return False, 0, 0, 0.0, 0.0, 0.0
    p = orientation(ax, ay, bx, by, px, py)
    q = orientation(ax, ay, bx, by, qx, qy)
    if p * q > 0:
        return False, 0, 0, 0.0, 0.0, 0.0
    on = 0
    if p == 0 and on_edge(ax, ay, bx, by, px, py):
        on |= _FROM_ON
    if q == 0 and on_edge(ax, ay, bx, by, qx, qy):
        on |= _TO_ON
    sign = 0
    if (a >= 0) != (b >= 0):
        sign = 1 if p < 0 or q > 0 else -1
    dx = qx - px
    dy = qy - py
    if a != 0 and b != 0:
        ex = bx - ax
        ey = by - ay
        u = (ax - px) * ey
        v = (ay - py) * ex
        f = dx * ey
        g = dy * ex
        across = f - g
        s = (u - v) / across
        error = 4.0 * _EPSILON * (abs(u) + abs(v) + abs(s) * (abs(f) + abs(g))) / abs(across)
        return True, sign, on, s, s, error
    # A vertex on the line of the move: its place on the longer axis is
    # exact up to one rounding each.
    if abs(dx) >= abs(dy):
        sa = (ax - px) / dx
        sb = (bx - px) / dx
    else:
        sa = (ay - py) / dy
        sb = (by - py) / dy
    if a != 0:
        sa = sb
    elif b != 0:
        sb = sa
    return True, sign, on, min(sa, sb), max(sa, sb), 4.0 * _EPSILON


@njit(cache=True, nogil=True)
def _circle_meeting(row, circles, geodesic, wanted, px, py, qx, qy):  # type: ignore[no-untyped-def]
    """Code of a move and a circle, or -1 for nothing; UNSURE leaves the decision to exact
    arithmetic outside the kernel."""
    if geodesic:
        x, y, z = earth_centred(px, py)
        before = (x - circles[row, 3]) ** 2 + (y - circles[row, 4]) ** 2 + (z - circles[row, 5]) ** 2
        x, y, z = earth_centred(qx, qy)
        after = (x - circles[row, 3]) ** 2 + (y - circles[row, 4]) ** 2 + (z - circles[row, 5]) ** 2
        near, far = circles[row, 6], circles[row, 7]
        if before <= near:
            if after <= near:
                return -1
            return OUT if after > far else UNSURE
        if before > far:
            if after <= near:
                return IN
            return UNSURE if after <= far or wanted else -1
        return UNSURE
    cx, cy, radius = circles[row, 0], circles[row, 1], circles[row, 2]
    was = in_circle(cx, cy, radius, px, py)
    now = in_circle(cx, cy, radius, qx, qy)
    if was != now:
        return IN if now else OUT
    if was or not wanted:
        return -1
    dx, dy = qx - px, qy - py
    ux, uy = cx - px, cy - py
    along = dx * ux + dy * uy
    square = dx * dx + dy * dy
    across = dx * uy - dy * ux
    if along < 0.0 or along > square * (1.0 + 1e-9) or across * across > radius * radius * square * (1.0 + 1e-9):
        return -1
    return UNSURE


@njit(cache=True, nogil=True)
def _sort_by(keys, count, order):  # type: ignore[no-untyped-def]
    """Fill `order[:count]` with the positions of `keys[:count]` by key. A move has few contacts:
    insertion, but not beyond."""
    if count > 48:
        order[:count] = np.argsort(keys[:count])
        return
    for i in range(count):
        k = i
        while k > 0 and keys[order[k - 1]] > keys[i]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i


class BorderMeetings(NamedTuple):
    """Columns that meetings are written to: row of the move, region, code, and (first, last, error)
    as fractions of the move for a PASS."""

    row: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    code: npt.NDArray[np.int8]
    span: npt.NDArray[np.float64]


class Contacts(NamedTuple):
    """The contacts of one move with polygons' edges: see `contact`."""

    region: npt.NDArray[np.int32]
    sign: npt.NDArray[np.int32]
    on: npt.NDArray[np.int32]
    first: npt.NDArray[np.float64]
    last: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]


@njit(cache=True, nogil=True)
def meetings(begin, n, moves, borders, out, work):  # type: ignore[no-untyped-def]  # noqa: C901, PLR0915 -- in parts it takes 1.3 times as long
    """Meetings of the `moves` from row `begin` on with regions, appended after the first n of
    `out`; (next row, meetings).

    Rows ascend, a row and a region have at most one meeting. When the output is full it stops
    before the row that did not fit (arrays that grow in here would cost 200 ns a move: measured).
    Adds to `work`: cells walked, border items looked at.
    """
    # The walk is one body: an array that is passed on, or taken out of a tuple, within the loop has
    # its references counted each time (in parts it took 17 times as long: measured).
    before, after, known = moves
    kinds, coordinates, regions, _, circles, passes_wanted, grid_boxes, grid_sizes, cell_first, cell_items, cell_grid, pad = borders
    out_row, out_region, out_code, _ = out
    cells_walked = 0
    items_read = 0
    # A move meets an item at most once; untouched pages of these cost nothing.
    capacity = len(kinds)
    seen = np.zeros(capacity, np.int32)
    c_region, c_sign, c_on = np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    c_first, c_last, c_error = np.empty(capacity, np.float64), np.empty(capacity, np.float64), np.empty(capacity, np.float64)
    contacts = Contacts(c_region, c_sign, c_on, c_first, c_last, c_error)
    order = np.empty(capacity, np.int64)
    stack = np.empty(len(grid_sizes) + 1, np.int32)
    for i in range(begin, len(after)):
        if not known[i]:
            continue
        at_row = n
        px, py, qx, qy = before[i, 0], before[i, 1], after[i, 0], after[i, 1]
        if px == qx and py == qy:
            continue
        west, east = min(px, qx), max(px, qx)
        south, north = min(py, qy), max(py, qy)
        spread = max(pad, 1e-12 * max(max(abs(west), abs(east)), max(abs(south), abs(north))))
        stamp = np.int32(i + 1)
        touched = 0
        depth = 1
        stack[0] = 0
        while depth > 0:
            depth -= 1
            grid = stack[depth]
            box = grid_boxes[grid, 0], grid_boxes[grid, 1], grid_boxes[grid, 2], grid_boxes[grid, 3], grid_boxes[grid, 4], grid_boxes[grid, 5]
            x0, y0, width, height, across, upwards = box
            columns, rows, base, descents = grid_sizes[grid, 0], grid_sizes[grid, 1], grid_sizes[grid, 2], grid_sizes[grid, 3]
            if east < x0 - spread or west > x0 + columns * width + spread or north < y0 - spread or south > y0 + rows * height + spread:
                continue
            low = place(south - spread, y0, upwards, rows)
            high = place(north + spread, y0, upwards, rows)
            left = place(west - spread, x0, across, columns)
            right = place(east + spread, x0, across, columns)
            for row in range(low, high + 1):
                first, last = left, right
                if low != high and left != right:
                    first, last = row_span((px, py, qx, qy), box, columns, row, spread)
                from_cell, to_cell = base + row * columns + first, base + row * columns + last + 1
                cells_walked += to_cell - from_cell
                if descents > 0:
                    for cell in range(from_cell, to_cell):
                        if cell_grid[cell] >= 0:
                            stack[depth] = cell_grid[cell]
                            depth += 1
                start, stop = cell_first[from_cell], cell_first[to_cell]
                items_read += stop - start
                if n + stop - start > len(out_row):
                    work[0] += cells_walked
                    work[1] += items_read
                    return i, at_row
                for k in range(start, stop):
                    listed = np.int64(cell_items[k])
                    if listed < 0:
                        # Written always, counted when it changes and is
                        # new: no branch to mispredict.
                        item = ~listed
                        now = box_holds(coordinates, item, qx, qy)
                        out_row[n] = i
                        out_region[n] = regions[item]
                        out_code[n] = IN if now else OUT
                        n += (box_holds(coordinates, item, px, py) != now) & (seen[item] != stamp)
                        seen[item] = stamp
                        continue
                    item = listed
                    kind = kinds[item]
                    if kind == EDGE:
                        ax, ay = coordinates[item, 0], coordinates[item, 1]
                        bx, by = coordinates[item, 2], coordinates[item, 3]
                        if max(ax, bx) < west or min(ax, bx) > east or max(ay, by) < south or min(ay, by) > north:
                            continue
                        met, sign, on, s0, s1, error = contact(ax, ay, bx, by, px, py, qx, qy)
                        if met and seen[item] != stamp:
                            seen[item] = stamp
                            c_region[touched], c_sign[touched], c_on[touched] = regions[item], sign, on
                            c_first[touched], c_last[touched], c_error[touched] = s0, s1, error
                            touched += 1
                    elif seen[item] != stamp:
                        region = regions[item]
                        code = _circle_meeting(int(coordinates[item, 3]), circles, kind != CIRCLE, passes_wanted[region], px, py, qx, qy)
                        if code >= 0:
                            seen[item] = stamp
                            out_row[n], out_region[n], out_code[n] = i, region, code
                            n += 1
        if touched > 0:
            _sort_by(c_region, touched, order)
            n = _polygon_meetings(i, n, (px, py, qx, qy), borders, contacts, order, touched, out)
            if n < 0:
                work[0] += cells_walked
                work[1] += items_read
                return i, at_row
    work[0] += cells_walked
    work[1] += items_read
    return len(after), n


@njit(cache=True, nogil=True)
def _polygon_meetings(i, n, move, borders, contacts, order, touched, out):  # type: ignore[no-untyped-def]
    """The meetings of move i with polygons, appended after the first n of `out`; returns their
    number, -1 if there is no room.

    `order[:touched]`: its contacts by region.
    """
    px, py, qx, qy = move
    c_region, c_sign, c_on, c_first, c_last, c_error = contacts
    coordinates, region_items, passes_wanted = borders.coordinates, borders.region_items, borders.passes_wanted
    out_row, out_region, out_code, out_span = out
    start = 0
    while start < touched:
        region = c_region[order[start]]
        edge_first, edge_last = region_items[region], region_items[region + 1]
        stop = start
        on = 0
        change = 0
        while stop < touched and c_region[order[stop]] == region:
            on |= c_on[order[stop]]
            change += c_sign[order[stop]]
            stop += 1
        code = -1
        least, greatest, error = 0.0, 0.0, 0.0
        if on != 0:
            was = (on & _FROM_ON) != 0 or in_polygon(coordinates, edge_first, edge_last, px, py)
            now = (on & _TO_ON) != 0 or in_polygon(coordinates, edge_first, edge_last, qx, qy)
            if was != now:
                code = IN if now else OUT
        elif change != 0:
            code = IN if change > 0 else OUT
        elif passes_wanted[region]:
            best = order[start]
            for k in range(start + 1, stop):
                if c_first[order[k]] < c_first[best]:
                    best = order[k]
            is_clear = c_sign[best] != 0
            least = c_first[best]
            for k in range(start, stop):
                c = order[k]
                greatest = max(greatest, c_last[c])
                error = max(error, c_error[c])
                if c != best and c_first[c] - c_error[c] <= least + c_error[best]:
                    is_clear = False
            # The first crossing shows where the move came from, if it is certainly the first.
            if c_sign[best] > 0 if is_clear else not in_polygon(coordinates, edge_first, edge_last, px, py):
                code = PASS
        start = stop
        if code < 0:
            continue
        if n == len(out_row):
            return -1
        out_row[n], out_region[n], out_code[n] = i, region, code
        out_span[n, 0], out_span[n, 1], out_span[n, 2] = least, greatest, error
        n += 1
    return n


@dataclass
class MeetingBuffers:
    """Output buffers of `border_meetings`: the same memory for every call, because touching new
    memory costs as much as part of the search."""

    row: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    region: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    code: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    span: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 3)))

    def reserve(self, capacity: int, used: int = 0) -> None:
        """Space for this many meetings, of which the first `used` are kept."""
        if capacity <= len(self.row):
            return
        for name, column in vars(self).items():
            grown = np.empty((capacity, *column.shape[1:]), column.dtype)
            grown[:used] = column[:used]
            setattr(self, name, grown)


def border_meetings(index: Borders, moves: MoveColumns, work: npt.NDArray[np.int64], met: MeetingBuffers) -> BorderMeetings:
    """All meetings of the moves, views of `met`; see `meetings`."""
    met.reserve(1024 + 8 * len(moves.after))
    row, n = 0, 0
    while True:
        out = BorderMeetings(met.row, met.region, met.code, met.span)
        row, n = meetings(row, n, moves, index, out, work)
        if row == len(moves.after):
            return BorderMeetings(met.row[:n], met.region[:n], met.code[:n], met.span[:n])
        met.reserve(2 * len(met.row), n)
