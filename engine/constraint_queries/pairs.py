"""The constraints on a pair of events, compiled: times, order, distance and comparisons of
closed constraint graphs.

`Graphs` holds all queries, `ConstraintEvents` the stored events.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, objmode

from engine.index.compiled import kernel
from engine.index.geodesic import WGS84

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST = range(6)
OPS = {"=": EQUAL, "!=": UNEQUAL, "<": LESS, "<=": AT_MOST, ">": MORE, ">=": AT_LEAST}


LATEST, EARLIEST, ORDER, AFTER = range(4)
REACH, NEAR, APART = range(3)
SURELY_NEAR, SURELY_FAR, GREATEST, OPEN, LEAST_NEAR, LEAST_FAR, LEAST, LEAST_OPEN = range(8)
OP, LEFT, RIGHT = range(3)
SPAN, RENEWED, RENEWING, IDLE, KEPT = range(5)


class Graphs(NamedTuple):
    """The closed graphs of all queries, concatenated. Few wide arrays: each array that a compiled
    function takes costs time at every call.

    Query q has the variables `variables[q]` to `variables[q + 1]` and for m of them m * m pairs
    from `pairs[q]` on, V_i and V_j at i * m + j.

    By pair. `times[:, LATEST]`: greatest V_j.t - V_i.t. `EARLIEST`: the least. `ORDER`: 1 if V_i's
    event must come before V_j's (interchangeable variables have only the ordered assignment), -1
    after, 0 either. `AFTER`: how long after V_i's event V_j's can come at most, below 0 if it must
    have come before. `limits[:, REACH]`: the squared chord (plane: squared distance) beyond which
    the two are too far apart, by all constraints together. Squared chords of at most `NEAR` and
    more than `APART` satisfy all other constraints of the pair. `exact`: the query's limits
    `GREATEST` and `LEAST` in metres (the plane's unit; infinite and -1 if there is none) with the
    squared chords that decide them (engine.index.geodesic); `OPEN` and `LEAST_OPEN`: 1 if the limit
    itself is excluded. Comparisons `compared[pair]` to `compared[pair + 1]` of `comparisons`: `OP`,
    and `LEFT`, `RIGHT`: a row of `Events.ints` or, below 0, ~row of `floats`.

    By variable. `roles[:, SPAN]`: how long after its event another variable's can come at
    most, NEVER if none can. `RENEWED`: 1 if its events may expire before the span and be
    renewed; `RENEWING`: 1 if they may renew others (expiration.py). `IDLE`: 1 if its event is
    just stored, for the time `KEPT`, without a lookup. `side`: the side of the cells in which
    its events are looked up.

    By query. `form`, `only_first`; `arrangements[arranged[q] : arranged[q + 1]]`, m numbers each:
    the variable whose event each variable takes instead. Comparisons of sums `summed[q]` to
    `summed[q + 1]`: `sum_ops`, and `factors` (how it is joined, variable or -1, slot) with
    `constants` from `sides[2 c]` for the left, from `sides[2 c + 1]` for the right side.
    """

    variables: Ints
    pairs: Ints
    times: Ints
    limits: Floats
    exact: Floats
    compared: Ints
    comparisons: Ints
    roles: Ints
    side: Floats
    form: Ints
    only_first: npt.NDArray[np.bool_]
    arrangements: Ints
    arranged: Ints
    summed: Ints
    sum_ops: Ints
    sides: Ints
    factors: Ints
    constants: Floats
    geodesic: bool


class ConstraintEvents(NamedTuple):
    """Events in (t, arrival), so the lower number comes first. `place` (3, n): earth-centred in
    metres, or the plane's x, y, 0.

    `ints` (k, n) and `floats` (l, n) hold the compared columns; a text is its rank
    among the texts of the store.
    """

    t: Ints
    seq: Ints
    entity: npt.NDArray[np.int32]
    x: Floats
    y: Floats
    place: Floats
    ints: Ints
    floats: Floats


class PairBounds(NamedTuple):
    """The constraints of the `pair` V_i, V_j as numbers: the bounds on V_j.t - V_i.t, the order,
    and squared chords (see Graphs)."""

    pair: int
    named_first: bool
    earliest: int
    latest: int
    order: int
    reach: float
    near: float
    apart: float


@kernel(inline=True)
def pair_bounds(graphs: Graphs, pair: int, named_first: bool) -> Any:
    """The bounds of a pair; `named_first`: its first variable is named before the second."""
    earliest, latest, order = graphs.times[pair, EARLIEST], graphs.times[pair, LATEST], graphs.times[pair, ORDER]
    reach, near, apart = graphs.limits[pair, REACH], graphs.limits[pair, NEAR], graphs.limits[pair, APART]
    return PairBounds(pair, named_first, earliest, latest, order, reach, near, apart)


def geodesic_distance(x0: float, y0: float, x1: float, y1: float) -> float:
    """Metres along the geodesic, as PROJ measures them."""
    return float(WGS84.inv(x0, y0, x1, y1)[2])


@njit(cache=True)
def _distance(geodesic: bool, x0: float, y0: float, x1: float, y1: float) -> Any:
    if not geodesic:
        return math.hypot(x1 - x0, y1 - y0)
    # Only for pairs whose chord does not decide: a few in a million for limits of some kilometres.
    with objmode(metres="float64"):
        metres = geodesic_distance(x0, y0, x1, y1)
    return metres  # noqa: RET504 (numba returns nothing from inside the block)


@kernel()
def is_consistent(graphs: Graphs, events: ConstraintEvents, pair: int, named_first: bool, one: int, other: int) -> Any:
    """Whether events `one` and `other` satisfy the pair's distances and comparisons; times
    and order are not checked.

    `named_first`: the pair's first variable is named before the second.
    """
    if not _is_close(graphs, events, pair, named_first, one, other):
        return False
    comparisons, ints, floats = graphs.comparisons, events.ints, events.floats
    for c in range(graphs.compared[pair], graphs.compared[pair + 1]):
        left, right = comparisons[c, LEFT], comparisons[c, RIGHT]
        if left >= 0 and right >= 0:
            sign = sign_of(ints[left, one], ints[right, other])
        elif left < 0 and right < 0:
            sign = sign_of(floats[~left, one], floats[~right, other])
        elif left >= 0:
            sign = sign_of_mixed(ints[left, one], floats[~right, other])
        else:
            sign = -sign_of_mixed(ints[right, other], floats[~left, one])
        if not holds(comparisons[c, OP], sign):
            return False
    return True


@kernel(inline=True)
def _is_close(graphs: Graphs, events: ConstraintEvents, pair: int, named_first: bool, one: int, other: int) -> Any:
    exact, place, reach = graphs.exact, events.place, graphs.limits[pair, REACH]
    greatest, least = exact[pair, GREATEST], exact[pair, LEAST]
    limited, kept_apart = greatest < np.inf, least >= 0.0
    if reach == np.inf and not limited and not kept_apart:
        return True
    across, along, up = place[0, one] - place[0, other], place[1, one] - place[1, other], place[2, one] - place[2, other]
    chord = across * across + along * along + up * up
    if chord > reach:
        return False
    undecided_most = limited and not chord <= exact[pair, SURELY_NEAR]
    undecided_least = kept_apart and not chord > exact[pair, LEAST_FAR]
    if limited and chord > exact[pair, SURELY_FAR]:
        return False
    if kept_apart and chord <= exact[pair, LEAST_NEAR]:
        return False
    if not (undecided_most or undecided_least):
        return True
    # Measured from the variable named first, so that rounding does not
    # depend on the order of search.
    begin, end = (one, other) if named_first else (other, one)
    metres = _distance(graphs.geodesic, events.x[begin], events.y[begin], events.x[end], events.y[end])
    if undecided_most and not (metres < greatest or (metres == greatest and exact[pair, OPEN] == 0.0)):
        return False
    return not undecided_least or metres > least or (metres == least and exact[pair, LEAST_OPEN] == 0.0)


@kernel()
def sign_of(left: Any, right: Any) -> Any:
    """-1, 0 or 1 as `left` is less than, equal to or greater than `right`."""
    return -1 if left < right else 1 if left > right else 0


@kernel()
def sign_of_mixed(integer: int, number: float) -> Any:
    """Like `sign_of`, for an int64 and a double, by their exact values."""
    if number >= 9223372036854775808.0:
        return -1
    if number < -9223372036854775808.0:
        return 1
    floor = math.floor(number)
    below = np.int64(floor)
    if integer != below:
        return -1 if integer < below else 1
    return -1 if number > floor else 0


@kernel()
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
