"""How long an event is useful, and how many are stored at most.

An event e as V_i can matter to an event that comes at e.t + after[i][j] for some V_j that may come after it (`after[i][j] >= 0`: equal times count,
because arrival decides between them). `loose` and `domains` keep it until the greatest of these; `tight` until the least one over those
variables for which no consistent event is stored, and renews it when one comes. Keeping less or more never changes an answer. The expiration time is
known for each variable separately: the event itself expires when it has expired for all its variables.

References: [CCQ] Algorithm 1 and 2, corrected (docs/papers/ccq.md); 3.3, Expiration Time Array: here the domains are in order of time, so what is
over by its own variable's span stands at their front.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.constraint_queries.compiled import inlined

Ints = npt.NDArray[np.int64]
FORMS = {"loose": 0, "tight": 1, "domains": 2}
LOOSE, TIGHT, DOMAINS = range(3)
NEVER = np.int64(-(2**63))


def arrivals(latest: Ints, order: npt.NDArray[np.int8]) -> Ints:
    """`after[i][j]`: how long after V_i's event V_j's can come at most; below 0 where it must have come before.

    Of interchangeable variables only the assignment in (t, arrival) is a solution (`order`): so the first of them waits for the others and each other
    one is past for those that follow it. An event with no consistent one stored before it is none but the first's, and nothing waits for the last.
    """
    return np.where(order < 0, -1, latest).astype(np.int64)


def spans(after: Ints) -> Ints:
    """For each variable how long after its event another variable's can come at most; NEVER if none can."""
    m = len(after)
    return np.array([max([int(after[i, j]) for j in range(m) if j != i and after[i, j] >= 0], default=int(NEVER)) for i in range(m)], np.int64)


def renewed(after: Ints) -> npt.NDArray[np.bool_]:
    """The variables whose events may be let go before their span is over: some other variable must come earlier than the last one."""
    m, span = len(after), spans(after)
    return np.array([any(j != i and 0 <= after[i, j] < span[i] for j in range(m)) for i in range(m)], np.bool_)


def idle(after: Ints, tight: bool) -> Ints:
    """For each variable 1 if nothing that is stored matters to its event, and how long that is kept then.

    So it is when some other variable's event can only come later, as nothing is complete yet, and no variable must have come before; where others'
    events could be renewed, or its own time depends on what is there, all others must come later.
    """
    found, span, renewable = [], spans(after), renewed(after)
    for i in range(len(after)):
        others = [j for j in range(len(after)) if j != i]
        later = [j for j in others if after[j, i] < 0]
        asked = tight and (bool(renewable[i]) or any(renewable[j] for j in others))
        still = bool(later) and all(after[i, j] >= 0 for j in others) and (not asked or len(later) == len(others))
        found.append((still, min(int(after[i, j]) for j in others) if still and tight else int(span[i])))
    return np.array(found, np.int64).reshape(-1, 2)


def surely_kept(after: Ints, *, tight: bool) -> Ints:
    """For each variable how long its event is kept at least, whatever else is stored; 0 where another variable must have come before."""
    found = []
    for i in range(len(after)):
        others = [int(after[i, j]) for j in range(len(after)) if j != i]
        found.append(0 if min(others, default=-1) < 0 else min(others) if tight else max(others))
    return np.array(found, np.int64)


@inlined
def awaited(after: Ints, m: int, empty: Any, i: int, span: int) -> Any:
    """How long an event as V_i is useful at least: until what is missing can no more come. `after[j]`: for each of m variables how long after V_i
    it can come; bit j of `empty`: whether nothing is stored for it."""
    found = NEVER
    for j in range(m):
        if j != i and (empty >> j) & 1 and after[j] >= 0 and (found == NEVER or after[j] < found):
            found = after[j]
    return span if found == NEVER else found


@njit(cache=True, nogil=True)
def most_alive(times: Ints, begun: Ints, ends: Ints) -> Any:
    """The greatest number of intervals at the begin of one: `begun[k]` begin with event k of `times`; `ends` are sorted, each the last time of
    one."""
    alive, over, most = 0, 0, 0
    for k in range(len(times)):
        alive += begun[k]
        while over < len(ends) and ends[over] < times[k]:
            over += 1
        if begun[k]:
            most = max(most, alive - over)
    return most
