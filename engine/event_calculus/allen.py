"""Allen's relations between lists of intervals, list by list.

A source interval i and a target interval j are in relation as RTEC defines it for half-open
intervals: before s_j >= e_i; meets the last tick of i is the first of j (and i has more than one
tick); starts s_i = s_j, e_i < e_j; finishes s_i > s_j, e_i = e_j; during s_i > s_j, e_i < e_j;
overlaps s_i < s_j, e_i < e_j and a second common tick (with one they meet); equal. The intervals
that are in relation with some partner are selected; the mode determines how they are combined.

A pair counts in a window if its target extends into it; its source may have ended before. A target
needs only one partner, so one such source is kept for each list: for `before` the first that ended,
for the other relations the one in relation with the target that crosses the window's edge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from engine.event_calculus.builtins import ALLEN
from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import INF, Bools, Intervals, Ints, gather, intersect, keep, subtract, union


@jit
def is_related(relation: int, s1: int, e1: int, s2: int, e2: int, tick: int) -> bool:
    if relation == 1:
        return e1 != INF and e1 - tick == s2 and s1 != s2
    if relation == 2:
        return s1 == s2 and e1 < e2
    if relation == 3:
        return s1 > s2 and e1 == e2
    if relation == 4:
        return s1 > s2 and e1 < e2
    if relation == 5:
        return s1 < s2 and s2 < e1 - tick and e1 < e2
    return s1 == s2 and e1 == e2


@jit
def _select(relation: int, pa: Ints, sa: Ints, ea: Ints, pb: Ints, sb: Ints, eb: Ints, tick: int) -> tuple[Bools, Bools]:
    source, target = np.zeros(len(sa), np.bool_), np.zeros(len(sb), np.bool_)
    for i in range(len(pa) - 1):
        if relation == 0:
            # An interval is before some target if and only if it is before the last one, and after
            # some source if it is after the first one.
            if pb[i + 1] > pb[i] and pa[i + 1] > pa[i]:
                for a in range(pa[i], pa[i + 1]):
                    source[a] = ea[a] <= sb[pb[i + 1] - 1]
                for b in range(pb[i], pb[i + 1]):
                    target[b] = ea[pa[i]] <= sb[b]
            continue
        b = pb[i]
        for a in range(pa[i], pa[i + 1]):
            # All other relations need a common tick, so only overlapping pairs are tested.
            while b < pb[i + 1] and eb[b] <= sa[a]:
                b += 1
            j = b
            while j < pb[i + 1] and sb[j] < ea[a]:
                if is_related(relation, sa[a], ea[a], sb[j], eb[j], tick):
                    source[a] = True
                    target[j] = True
                j += 1
    return source, target


_MODES: Mapping[str, Callable[[Intervals, Intervals], Intervals]] = {
    "source": lambda source, target: source,
    "target": lambda source, target: target,
    "union": union,
    "intersection": intersect,
    "relative_complement": subtract,
    "relative_complement_inverse": lambda source, target: subtract(target, source),
}


def allen(relation: str, mode: str, source: Intervals, target: Intervals, tick: int, first: int, over: Bools) -> tuple[Intervals, Bools]:
    """The intervals in `relation` with a partner of the other list, combined by `mode`; and for
    each list whether there are any.

    `over` marks sources that ended before the window's `first` tick: they are partners
    but not part of the result.
    """
    taken = _select(ALLEN.index(relation), *source, *target, tick)
    result = _MODES[mode](keep(source, taken[0] & ~over), keep(target, taken[1]))
    if mode.startswith("relative_complement"):
        # Intervals before the window are not known any more, so only the result inside it is right.
        result = gather(result, np.arange(len(result.ptr) - 1), first)
    return result, keep(source, taken[0]).counts > 0


@jit
def prepend_ended(pb: Ints, sb: Ints, eb: Ints, pa: Ints, sa: Ints, ea: Ints) -> tuple[Ints, Ints, Ints, Bools]:
    """Lists of sources (a), each preceded by its ended source (b), and a mark of the ended ones. A
    source that continues has not ended."""
    ptr, s, e = np.zeros(len(pa), np.int64), np.empty(len(sa) + len(sb), np.int64), np.empty(len(sa) + len(sb), np.int64)
    over = np.zeros(len(s), np.bool_)
    n = 0
    for i in range(len(pa) - 1):
        for k in range(pb[i], pb[i + 1]):
            if pa[i] == pa[i + 1] or sa[pa[i]] > eb[k]:
                s[n], e[n], over[n] = sb[k], eb[k], True
                n += 1
        for k in range(pa[i], pa[i + 1]):
            s[n], e[n] = sa[k], ea[k]
            n += 1
        ptr[i + 1] = n
    return ptr, s[:n].copy(), e[:n].copy(), over[:n].copy()


def ended_sources(relation: str, source: Intervals, target: Intervals, edge: int, tick: int) -> tuple[Ints, Ints, Ints]:
    """The sources to remember among those that do not hold after `edge`:
    their lists, starts and ends."""
    return _ended_sources(ALLEN.index(relation), *source, *target, edge, tick)


@jit
def _ended_sources(relation: int, pa: Ints, sa: Ints, ea: Ints, pb: Ints, sb: Ints, eb: Ints, edge: int, tick: int) -> tuple[Ints, Ints, Ints]:
    owner, start, end = np.empty(len(pa), np.int64), np.empty(len(pa), np.int64), np.empty(len(pa), np.int64)
    n = 0
    for i in range(len(pa) - 1):
        for a in range(pa[i], pa[i + 1]):
            if ea[a] > edge + tick:
                break
            found = relation == 0
            for b in range(pb[i], pb[i + 1]):
                # A target that crosses the edge ends later than a source that does not.
                found = found or (sb[b] <= edge and eb[b] > edge and is_related(relation, sa[a], ea[a], sb[b], INF, tick))
            if found:
                owner[n], start[n], end[n] = i, sa[a], ea[a]
                n += 1
                break
    return owner[:n], start[:n], end[:n]
