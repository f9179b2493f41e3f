"""What two events must satisfy together, compiled: times, order, distance and comparisons of a closed constraint graph.

Everything here is njit code over tuples of arrays: `Graph` for a query, `Rows` for events.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, objmode

from engine.index.geodesic import WGS84

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST = range(6)
OPS = {"=": EQUAL, "!=": UNEQUAL, "<": LESS, "<=": AT_MOST, ">": MORE, ">=": AT_LEAST}


class Graph(NamedTuple):
    """The closed graph of a query over m variables; all matrices are (m, m), row i and column j for V_i and V_j.

    `latest`: greatest V_j.t - V_i.t. `order`: 1 where V_i's event must come before V_j's (of interchangeable variables only the ordered assignment
    counts), -1 after, 0 either. `reach`: squared chord (plane: squared distance) beyond which the two are too far apart, by all constraints together.
    `near`, `far`, `greatest` and `least_near`, `least_far`, `least`: the given limits in metres (the plane's unit) with the squared chords that
    decide them (engine.index.geodesic); infinite and -1 where there is none. `open` and `least_open`: the limit itself is excluded.
    Comparisons of (i, j) are numbers `first[i * m + j]` to `first[i * m + j + 1]` in `op`, `left`, `right`: a slot of `ints` or, below 0, ~slot of
    `floats`.
    `arrangements` (p, m): which variable's event each variable takes instead; `blocked`: an event that completes a solution is never V_i.
    """

    latest: Ints
    order: npt.NDArray[np.int8]
    reach: Floats
    near: Floats
    far: Floats
    greatest: Floats
    open: npt.NDArray[np.bool_]
    least_near: Floats
    least_far: Floats
    least: Floats
    least_open: npt.NDArray[np.bool_]
    first: Ints
    op: Ints
    left: Ints
    right: Ints
    arrangements: Ints
    blocked: npt.NDArray[np.bool_]
    geodesic: bool


class Rows(NamedTuple):
    """Events. `unary`: bit i is set when the filters of V_i hold; `roles`: the variables as which the event is kept.

    `place` (n, 3) is earth-centred in metres, or the plane's x, y, 0. `ints` (n, k) and `floats` (n, l) hold the columns that are compared;
    texts as their ranks among the texts of the store.
    """

    t: Ints
    seq: Ints
    entity: npt.NDArray[np.int32]
    x: Floats
    y: Floats
    unary: Ints
    roles: Ints
    place: Floats
    ints: Ints
    floats: Floats


class Limits(NamedTuple):
    """What `verdict` needs of a pair of variables: bounds on V_j.t - V_i.t, the order, squared chords, and whether nothing else is asked."""

    latest: int
    earliest: int
    order: int
    reach: float
    near: float
    least_far: float
    plain: bool


NO, YES, ASK = -1, 1, 0


@njit(cache=True, nogil=True)
def limits_of(graph: Graph, i: int, j: int) -> Any:
    pair = i * len(graph.latest) + j
    near = graph.near[i, j] if graph.greatest[i, j] < np.inf else np.inf
    least_far = graph.least_far[i, j] if graph.least[i, j] >= 0.0 else -1.0
    plain = graph.first[pair] == graph.first[pair + 1]
    return Limits(graph.latest[i, j], -graph.latest[j, i], int(graph.order[i, j]), graph.reach[i, j], near, least_far, plain)


@njit(cache=True, nogil=True)
def verdict(limits: Limits, apart: int, arrived: int, chord: float) -> Any:
    """What `consistent` says of two events, as far as numbers alone decide it: NO, YES, else ASK.

    `apart`, `arrived`: how much later V_j's event is than V_i's, in t and seq; `chord`: their squared chord. A call with numbers costs a tenth of one
    that carries all columns.
    """
    if arrived == 0 or apart > limits.latest or apart < limits.earliest or chord > limits.reach:
        return NO
    if limits.order != 0 and (limits.order > 0) != (apart > 0 or (apart == 0 and arrived > 0)):
        return NO
    return YES if limits.plain and chord <= limits.near and chord > limits.least_far else ASK


def geodesic_distance(x0: float, y0: float, x1: float, y1: float) -> float:
    """Metres along the geodesic, as PROJ measures them."""
    return float(WGS84.inv(x0, y0, x1, y1)[2])


@njit(cache=True)
def _measured(geodesic: bool, x0: float, y0: float, x1: float, y1: float) -> Any:
    if not geodesic:
        return math.hypot(x1 - x0, y1 - y0)
    # Only pairs whose chord does not decide come here: a few in a million for limits of some kilometres.
    with objmode(metres="float64"):
        metres = geodesic_distance(x0, y0, x1, y1)
    return metres  # noqa: RET504 (numba returns nothing from inside the block)


@njit(cache=True, nogil=True)
def before(a: Rows, i: int, b: Rows, j: int) -> Any:
    """Whether event i of `a` comes before event j of `b` in (t, arrival)."""
    return a.t[i] < b.t[j] or (a.t[i] == b.t[j] and a.seq[i] < b.seq[j])


@njit(cache=True, nogil=True)
def consistent(graph: Graph, a: Rows, p: int, i: int, b: Rows, q: int, j: int) -> Any:
    """Whether V_i may be event p of `a` while V_j is event q of `b`; filters of single variables are not asked."""
    if a.seq[p] == b.seq[q]:
        return False
    apart = b.t[q] - a.t[p]
    if apart > graph.latest[i, j] or -apart > graph.latest[j, i]:
        return False
    if graph.order[i, j] != 0 and (graph.order[i, j] > 0) != before(a, p, b, q):
        return False
    return _close(graph, a, p, i, b, q, j) and _compared(graph, a, p, i, b, q, j)


@njit(cache=True, nogil=True)
def _close(graph: Graph, a: Rows, p: int, i: int, b: Rows, q: int, j: int) -> Any:
    limited, kept_apart = graph.greatest[i, j] < np.inf, graph.least[i, j] >= 0.0
    if graph.reach[i, j] == np.inf and not limited and not kept_apart:
        return True
    across, along, up = a.place[p, 0] - b.place[q, 0], a.place[p, 1] - b.place[q, 1], a.place[p, 2] - b.place[q, 2]
    chord = across * across + along * along + up * up
    if chord > graph.reach[i, j]:
        return False
    undecided_most = limited and not chord <= graph.near[i, j]
    undecided_least = kept_apart and not chord > graph.least_far[i, j]
    if limited and chord > graph.far[i, j]:
        return False
    if kept_apart and chord <= graph.least_near[i, j]:
        return False
    if not (undecided_most or undecided_least):
        return True
    # Measured from the variable named first, so that rounding cannot depend on the order of search.
    first_x, first_y, second_x, second_y = (a.x[p], a.y[p], b.x[q], b.y[q]) if i < j else (b.x[q], b.y[q], a.x[p], a.y[p])
    metres = _measured(graph.geodesic, first_x, first_y, second_x, second_y)
    if undecided_most and not (metres < graph.greatest[i, j] or (metres == graph.greatest[i, j] and not graph.open[i, j])):
        return False
    return not undecided_least or metres > graph.least[i, j] or (metres == graph.least[i, j] and not graph.least_open[i, j])


@njit(cache=True, nogil=True)
def _compared(graph: Graph, a: Rows, p: int, i: int, b: Rows, q: int, j: int) -> Any:
    pair = i * len(graph.latest) + j
    for c in range(graph.first[pair], graph.first[pair + 1]):
        left, right = graph.left[c], graph.right[c]
        if left >= 0 and right >= 0:
            sign = sign_of(a.ints[p, left], b.ints[q, right])
        elif left < 0 and right < 0:
            sign = sign_of(a.floats[p, ~left], b.floats[q, ~right])
        elif left >= 0:
            sign = sign_of_mixed(a.ints[p, left], b.floats[q, ~right])
        else:
            sign = -sign_of_mixed(b.ints[q, right], a.floats[p, ~left])
        if not holds(graph.op[c], sign):
            return False
    return True


@njit(cache=True, nogil=True)
def sign_of(left: Any, right: Any) -> Any:
    """-1, 0 or 1 as `left` is less than, equal to or greater than `right`."""
    return -1 if left < right else 1 if left > right else 0


@njit(cache=True, nogil=True)
def sign_of_mixed(whole: int, number: float) -> Any:
    """The same for an int64 and a double, by their exact values."""
    if number >= 9223372036854775808.0:
        return -1
    if number < -9223372036854775808.0:
        return 1
    floor = math.floor(number)
    below = np.int64(floor)
    if whole != below:
        return -1 if whole < below else 1
    return -1 if number > floor else 0


@njit(cache=True, nogil=True)
def holds(op: int, sign: int) -> Any:
    """Whether values that compare as `sign` satisfy the operator."""
    if op == EQUAL:
        return sign == 0
    if op == UNEQUAL:
        return sign != 0
    if op == LESS:
        return sign < 0
    if op == AT_MOST:
        return sign <= 0
    if op == MORE:
        return sign > 0
    return sign >= 0
