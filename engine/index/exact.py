"""Signs of geometric expressions of doubles, exact: a filtered evaluation,
then expansion arithmetic.

The points are the doubles as given; no tolerance. Valid while no product of two coordinates under-
or overflows (magnitudes from 1e-140 to 1e140, and zero).

References: J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust
Geometric Predicates", 1997.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_HALF_ULP = 2.0**-53
_ORIENTATION_BOUND = (3.0 + 16.0 * _HALF_ULP) * _HALF_ULP
_CIRCLE_BOUND = 16.0 * _HALF_ULP
_SPLITTER = 134217729.0  # 2**27 + 1


@njit(cache=True, nogil=True, inline="always")
def _two_sum(a, b):  # type: ignore[no-untyped-def]
    """(s, e) with s + e == a + b exactly and s the rounded sum."""
    s = a + b
    bv = s - a
    return s, (a - (s - bv)) + (b - bv)


@njit(cache=True, nogil=True)
def _two_product(a, b):  # type: ignore[no-untyped-def]
    """(p, e) with p + e == a * b exactly and p the rounded product."""
    p = a * b
    c = _SPLITTER * a
    ahi = c - (c - a)
    alo = a - ahi
    c = _SPLITTER * b
    bhi = c - (c - b)
    blo = b - bhi
    return p, alo * blo - (((p - ahi * bhi) - alo * bhi) - ahi * blo)


@njit(cache=True, nogil=True)
def _add(expansion, length, value):  # type: ignore[no-untyped-def]
    """Grow the nonoverlapping `expansion[:length]` by `value`; returns the new length."""
    q = value
    for i in range(length):
        q, expansion[i] = _two_sum(q, expansion[i])
    expansion[length] = q
    return length + 1


@njit(cache=True, nogil=True)
def _sign(expansion, length):  # type: ignore[no-untyped-def]
    """Sign of an expansion: that of its most significant component that is not zero."""
    for i in range(length - 1, -1, -1):
        if expansion[i] > 0.0:
            return 1
        if expansion[i] < 0.0:
            return -1
    return 0


@njit(cache=True, nogil=True)
def _orientation_exact(ax, ay, bx, by, px, py):  # type: ignore[no-untyped-def]
    expansion = np.empty(12)
    length = 0
    for u, v in ((ax, by), (-ax, py), (-px, by), (-ay, bx), (ay, px), (py, bx)):
        p, e = _two_product(u, v)
        length = _add(expansion, length, e)
        length = _add(expansion, length, p)
    return _sign(expansion, length)


@njit(cache=True, nogil=True)
def orientation(ax, ay, bx, by, px, py):  # type: ignore[no-untyped-def]
    """+1 if p is left of the line from a to b, -1 if right of it, 0 on it.

    >>> [orientation(0.0, 0.0, 1.0, 1.0, 0.5, y) for y in (0.5, 0.5000000000000001)]
    [0, 1]
    """
    left = (ax - px) * (by - py)
    right = (ay - py) * (bx - px)
    determinant = left - right
    bound = _ORIENTATION_BOUND * (abs(left) + abs(right))
    if determinant > bound:
        return 1
    if determinant < -bound:
        return -1
    return _orientation_exact(ax, ay, bx, by, px, py)


@njit(cache=True, nogil=True)
def in_circle(cx, cy, radius, x, y):  # type: ignore[no-untyped-def]
    """Whether `hypot(x - cx, y - cy) <= radius` in doubles: the rounding lets decimal
    coordinates behave as written.

    >>> in_circle(0.0, 0.0, 0.5, 0.3, 0.4)
    True
    >>> [in_circle(0.0, 0.0, 5.0, 3.0, y) for y in (4.0, 4.000000000000001)]
    [True, False]
    """
    dx = x - cx
    dy = y - cy
    square = dx * dx + dy * dy
    limit = radius * radius
    margin = _CIRCLE_BOUND * (square + limit)
    if square > limit + margin:
        return False
    if square < limit - margin:
        return True
    return math.hypot(dx, dy) <= radius


@njit(cache=True, nogil=True)
def on_edge(ax, ay, bx, by, px, py):  # type: ignore[no-untyped-def]
    """Whether p is on the closed straight edge from a to b."""
    if px < min(ax, bx) or px > max(ax, bx) or py < min(ay, by) or py > max(ay, by):
        return False
    return orientation(ax, ay, bx, by, px, py) == 0


@njit(cache=True, nogil=True)
def in_polygon(edges, first, last, px, py):  # type: ignore[no-untyped-def]
    """Whether p is in the closed region bounded by `edges[first:last]`: rows ax, ay, bx,
    by, whole rings, any order.

    Even-odd rule; a point on any edge is inside.
    """
    inside = False
    for k in range(first, last):
        ay = edges[k, 1]
        by = edges[k, 3]
        if py < min(ay, by) or py > max(ay, by):
            continue
        ax = edges[k, 0]
        bx = edges[k, 2]
        if px > max(ax, bx):
            continue
        straddles = (ay > py) != (by > py)
        if px < min(ax, bx):
            if straddles:
                inside = not inside
            continue
        side = orientation(ax, ay, bx, by, px, py)
        if side == 0:
            return True
        # The ray to the right of p meets the edge iff p lies on the edge's
        # left-hand side as seen upwards.
        if straddles and (side > 0) == (by > ay):
            inside = not inside
    return inside
