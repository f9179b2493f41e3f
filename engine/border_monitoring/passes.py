"""Exact arithmetic for cases that the kernel leaves open: times of passes and circles that
floating point cannot decide.

A pass is a move between two outside samples that meets the region. It enters at the first and
leaves at the last point of the straight move that lies in the region; the two times are
interpolated and rounded to the nearest integer, half-way cases to the even one (Python's `round`).
The rounding is exact for the doubles given on polygons and plane circles: where the computed time
is within its error of a half, rational numbers decide. On geodesic circles the contacts are found
numerically, to 1e-9 of the move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt

from engine.border_monitoring.moves import IN, OUT, PASS, UNSURE
from engine.border_monitoring.shapes import Circle, Polygon, Shape
from engine.index.geodesic import distances

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]

# Samples along a move for the search of a geodesic circle's contacts; a move is cut into pieces of
# at most this many degrees first.
_PIECE, _SAMPLES, _HALVINGS = 2.0, 16, 40


@dataclass(frozen=True)
class Moves:
    """Straight moves, row by row: from `p` at `t0` to `q` at `t1`; arrays (m, 2) and (m,)."""

    p: Floats
    q: Floats
    t0: Int64s
    t1: Int64s

    def take(self, rows: npt.NDArray[np.intp]) -> Moves:
        return Moves(self.p[rows], self.q[rows], self.t0[rows], self.t1[rows])


def _pass_times(moves: Moves, shapes: Sequence[Shape], span: Floats) -> tuple[Int64s, Int64s]:
    """(in, out) times of passes through `shapes[i]` whose fractions `span[i]` = (first,
    last, error) the kernel found."""
    first, first_open = round_times(moves, span[:, 0], span[:, 2])
    last, last_open = round_times(moves, span[:, 1], span[:, 2])
    for i in np.flatnonzero(first_open | last_open).tolist():
        first[i], last[i] = exact_times(moves, i, shapes[i])
    return first, last


def round_times(moves: Moves, fraction: Floats, error: Floats) -> tuple[Int64s, Bools]:
    """Time at a fraction of each move, to the nearest integer, and where the
    fraction's error leaves that open."""
    length = (moves.t1 - moves.t0).astype(np.float64)
    after = np.minimum(np.maximum(fraction, 0.0), 1.0) * length
    whole = np.rint(after)
    open_ = (0.5 - np.abs(after - whole) <= length * (error + 4e-16)) & (length > 0)
    return moves.t0 + whole.astype(np.int64), open_


def round_time(moves: Moves, i: int, fraction: Fraction | float) -> int:
    """Time at a fraction of move i, to the nearest integer, half to even."""
    return round(int(moves.t0[i]) + Fraction(fraction) * int(moves.t1[i] - moves.t0[i]))


def exact_times(moves: Moves, i: int, shape: Shape) -> tuple[int, int]:
    """(in, out) times of move i, by rational arithmetic over all contacts with `shape`."""
    px, py, qx, qy = (Fraction(float(v)) for v in (*moves.p[i], *moves.q[i]))
    if isinstance(shape, Circle):
        roots = _circle_roots(shape, px, py, qx, qy)
        assert roots is not None
        return round_root(moves, i, -1, *roots), round_root(moves, i, 1, *roots)
    assert isinstance(shape, Polygon)
    contacts = [s for edge in _near(shape, moves, i) for s in edge_contacts(edge, px, py, qx, qy)]
    return round_time(moves, i, min(contacts)), round_time(moves, i, max(contacts))


def _near(shape: Polygon, moves: Moves, i: int) -> list[list[float]]:
    low, high = np.minimum(moves.p[i], moves.q[i]), np.maximum(moves.p[i], moves.q[i])
    a, b = shape.edges[:, :2], shape.edges[:, 2:]
    near = (np.minimum(a, b) <= high).all(axis=1) & (np.maximum(a, b) >= low).all(axis=1)
    rows: list[list[float]] = shape.edges[near].tolist()
    return rows


def edge_contacts(edge: list[float], px: Fraction, py: Fraction, qx: Fraction, qy: Fraction) -> list[Fraction]:
    """Fractions of the move from p to q at which it meets a closed edge: none, one, or the two ends
    of a common segment."""
    ax, ay, bx, by = (Fraction(value) for value in edge)
    dx, dy, ex, ey = qx - px, qy - py, bx - ax, by - ay
    across = dx * ey - dy * ex
    ux, uy = ax - px, ay - py
    if across:
        s = (ux * ey - uy * ex) / across
        u = (ux * dy - uy * dx) / across
        return [s] if 0 <= s <= 1 and 0 <= u <= 1 else []
    if ux * dy - uy * dx:
        return []
    square = dx * dx + dy * dy
    ends = sorted(((ux * dx + uy * dy) / square, ((bx - px) * dx + (by - py) * dy) / square))
    return [max(ends[0], Fraction(0)), min(ends[1], Fraction(1))] if ends[0] <= 1 and ends[1] >= 0 else []


def _circle_roots(circle: Circle, px: Fraction, py: Fraction, qx: Fraction, qy: Fraction) -> tuple[Fraction, Fraction, Fraction] | None:
    """(square, along, discriminant): the move meets the circle at (along -+ sqrt(discriminant)) /
    square; null when it does not."""
    dx, dy, ux, uy = qx - px, qy - py, Fraction(circle.x) - px, Fraction(circle.y) - py
    square, along, across = dx * dx + dy * dy, dx * ux + dy * uy, dx * uy - dy * ux
    discriminant = Fraction(circle.radius) ** 2 * square - across * across
    return (square, along, discriminant) if discriminant >= 0 and 0 <= along <= square else None


def round_root(moves: Moves, i: int, sign: int, square: Fraction, along: Fraction, discriminant: Fraction) -> int:
    """The time at the fraction (along + sign * sqrt(discriminant)) / square of move i,
    rounded exactly, half to even."""
    length = int(moves.t1[i] - moves.t0[i])
    shift = int(moves.t0[i]) + length * along / square
    radicand = discriminant * length * length / (square * square)
    above, below = isqrt(radicand.numerator), isqrt(radicand.denominator)
    if above * above == radicand.numerator and below * below == radicand.denominator:
        return round(shift + sign * Fraction(above, below))
    # An irrational root never falls on a half; 256 binary places are far more
    # than any half can be near.
    scale = 1 << 256
    return round(shift + sign * Fraction(isqrt(radicand.numerator * scale * scale // radicand.denominator), scale))


def decide(moves: Moves, shapes: Sequence[Shape], code: Codes, span: Floats, wanted: Bools) -> tuple[Codes, Int64s, Int64s]:
    """The results for the kernel's PASS and UNSURE codes: (code, in time, out
    time), code -1 for no meeting.

    `span[i]` = (first, last, error) for PASS; `wanted[i]`: a pass counts. Times of IN and OUT are
    those of the second sample.
    """
    code, first, last = code.copy(), moves.t1.copy(), moves.t1.copy()
    passed = np.flatnonzero(code == PASS)
    first[passed], last[passed] = _pass_times(moves.take(passed), [shapes[i] for i in passed.tolist()], span[passed])
    unsure = np.flatnonzero(code == UNSURE)
    geodesic = np.array([_circle(shapes[i]).geodesic for i in unsure.tolist()], np.bool_)
    for i in unsure[~geodesic].tolist():
        _decide_plane(moves, i, _circle(shapes[i]), code, first, last)
    if geodesic.any():
        _decide_geodesic(moves, unsure[geodesic], [_circle(shapes[i]) for i in unsure[geodesic].tolist()], wanted, code, first, last)
    return code, first, last


def _circle(shape: Shape) -> Circle:
    assert isinstance(shape, Circle), "only circles are left undecided"
    return shape


def _decide_plane(moves: Moves, i: int, circle: Circle, code: Codes, first: Int64s, last: Int64s) -> None:
    """The kernel has found both samples outside and a pass wanted: does the move touch the disc?"""
    px, py, qx, qy = (Fraction(float(v)) for v in (*moves.p[i], *moves.q[i]))
    code[i] = -1
    if _circle_roots(circle, px, py, qx, qy) is not None:
        code[i] = PASS
        first[i], last[i] = exact_times(moves, i, circle)


def _decide_geodesic(
    moves: Moves, rows: npt.NDArray[np.intp], circles: Sequence[Circle], wanted: Bools, code: Codes, first: Int64s, last: Int64s
) -> None:
    cx, cy = np.array([c.x for c in circles]), np.array([c.y for c in circles])
    radius = np.array([c.radius for c in circles])
    was = distances(cx, cy, moves.p[rows, 0], moves.p[rows, 1]) <= radius
    now = distances(cx, cy, moves.q[rows, 0], moves.q[rows, 1]) <= radius
    code[rows] = np.where(was == now, -1, np.where(now, IN, OUT))
    for k in np.flatnonzero(~was & ~now & wanted[rows]).tolist():
        i = int(rows[k])
        span = geodesic_contacts(moves.p[i], moves.q[i], circles[k])
        if span is not None:
            code[i] = PASS
            first[i], last[i] = round_time(moves, i, span[0]), round_time(moves, i, span[1])


def geodesic_contacts(p: Floats, q: Floats, circle: Circle) -> tuple[float, float] | None:
    """Fractions at which the move, straight in degrees, first and last lies in a geodesic
    circle; null when it never does."""

    def beyond(s: Floats) -> Floats:
        n = len(s)
        place = p + s[:, None] * (q - p)
        return distances(np.full(n, circle.x), np.full(n, circle.y), place[:, 0], place[:, 1]) - circle.radius

    pieces = max(1, int(np.ceil(np.abs(q - p).max() / _PIECE)))
    s = np.linspace(0.0, 1.0, pieces * _SAMPLES + 1)
    f = beyond(s)
    for k in (np.flatnonzero((f[1:-1] <= f[:-2]) & (f[1:-1] <= f[2:])) + 1).tolist():
        least = _least(beyond, s[k - 1], s[k + 1])
        s, f = np.append(s, least), np.append(f, beyond(np.array([least])))
    order = np.argsort(s)
    s, f = s[order], f[order]
    inside = np.flatnonzero(f <= 0.0)
    if not len(inside):
        return None
    return _edge(beyond, s[max(inside[0] - 1, 0)], s[inside[0]]), _edge(beyond, s[min(inside[-1] + 1, len(s) - 1)], s[inside[-1]])


def _least(f: Callable[[Floats], Floats], low: float, high: float) -> float:
    """Where f is least between two samples, by narrowing a grid of nine."""
    for _ in range(24):
        grid = np.linspace(low, high, 9)
        k = int(np.argmin(f(grid)))
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, 8)]
    return float(0.5 * (low + high))


def _edge(f: Callable[[Floats], Floats], outside: float, inside: float) -> float:
    """Where f changes sign between a place outside and one inside, by halving; the place inside."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (outside + inside)
        if f(np.array([middle]))[0] <= 0.0:
            inside = middle
        else:
            outside = middle
    return inside
