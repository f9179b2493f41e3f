"""How long an event is useful, and how many are stored at most.

An event e as V_i is useful for events of V_j up to e.t + after[i][j], for each V_j that may come
after it (`after[i][j] >= 0`: equal times count, because arrival decides between them). `loose` and
`domains` keep it until the greatest of these times. `tight` keeps it until the least one over the
variables for which no consistent event is stored, and renews it when such an event arrives. The
form never changes an answer. The expiration time is kept for each variable separately: the event
itself expires when it has expired for all its variables.

References: [CCQ] Algorithm 1 and 2, corrected (docs/papers/ccq.md); 3.3, Expiration Time
Array: here the domains are in order of time, so the events that are older than their
variable's span are at the front.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.compiled import kernel

Ints = npt.NDArray[np.int64]
FORMS = {"loose": 0, "tight": 1, "domains": 2}
LOOSE, TIGHT, DOMAINS = range(3)
NEVER = np.int64(-(2**63))


def latest_arrivals(latest: Ints, order: npt.NDArray[np.int8]) -> Ints:
    """`after[i][j]`: how long after V_i's event V_j's event can come at most; below 0 if
    it must have come before.

    Interchangeable variables must be assigned in (t, arrival) (`order`). So the event of an earlier
    one must have come before that of a later one: an event without a consistent stored one can only
    be the first variable's, and an event of the last variable waits for none of the others.
    """
    return np.where(order < 0, -1, latest).astype(np.int64)


def spans(after: Ints) -> Ints:
    """For each variable how long after its event another variable's event can come
    at most; NEVER if none can."""
    m = len(after)
    return np.array([max([int(after[i, j]) for j in range(m) if j != i and after[i, j] >= 0], default=int(NEVER)) for i in range(m)], np.int64)


def renewable_variables(after: Ints) -> npt.NDArray[np.bool_]:
    """The variables whose events may expire before their span has passed: some other variable's
    event must come before the end of the span."""
    m, span = len(after), spans(after)
    return np.array([any(j != i and 0 <= after[i, j] < span[i] for j in range(m)) for i in range(m)], np.bool_)


def store_only_spans(after: Ints, tight: bool) -> Ints:
    """For each variable 1 if its event is just stored, without a lookup in the other domains, and
    how long the event is then kept.

    This holds if some other variable's event can only come later, so that nothing is complete yet,
    and no other variable's event must have come before. If the event may renew others, or its own
    expiration depends on stored events, all other variables' events must come later.
    """
    found, span, renewable = [], spans(after), renewable_variables(after)
    for i in range(len(after)):
        others = [j for j in range(len(after)) if j != i]
        later = [j for j in others if after[j, i] < 0]
        renews = tight and (bool(renewable[i]) or any(renewable[j] for j in others))
        is_idle = bool(later) and all(after[i, j] >= 0 for j in others) and (not renews or len(later) == len(others))
        found.append((is_idle, min(int(after[i, j]) for j in others) if is_idle and tight else int(span[i])))
    return np.array(found, np.int64).reshape(-1, 2)


def minimal_kept_spans(after: Ints, *, tight: bool) -> Ints:
    """For each variable the shortest time for which its event is kept with any other stored events;
    0 if another event must come before."""
    found = []
    for i in range(len(after)):
        others = [int(after[i, j]) for j in range(len(after)) if j != i]
        found.append(0 if min(others, default=-1) < 0 else min(others) if tight else max(others))
    return np.array(found, np.int64)


@kernel(inline=True)
def minimal_useful_span(after: Ints, m: int, empty: Any, i: int, span: int) -> Any:
    """How long an event as V_i is useful at least: until the first missing event can no longer
    come. `after[j]`: for each of m variables how long after V_i's event its event can come; bit j
    of `empty`: whether none is stored for it."""
    found = NEVER
    for j in range(m):
        if j != i and (empty >> j) & 1 and after[j] >= 0 and (found == NEVER or after[j] < found):
            found = after[j]
    return span if found == NEVER else found


@njit(cache=True, nogil=True)
def most_alive(times: Ints, begun: Ints, ends: Ints) -> Any:
    """The greatest number of intervals that hold at one time: `begun[k]` begin with event k of
    `times`; `ends` (sorted) are their last times."""
    alive, over, most = 0, 0, 0
    for k in range(len(times)):
        alive += begun[k]
        while over < len(ends) and ends[over] < times[k]:
            over += 1
        if begun[k]:
            most = max(most, alive - over)
    return most
