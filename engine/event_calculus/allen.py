"""Allen's relations between lists of intervals, list by list.

A source interval i and a target interval j are in relation as RTEC defines it for half-open intervals: before s_j >= e_i; meets the
last tick of i is the first of j (and i has more than one tick); starts s_i = s_j, e_i < e_j; finishes s_i > s_j, e_i = e_j; during
s_i > s_j, e_i < e_j; overlaps s_i < s_j < e_i < e_j; equal. Each interval that is in relation with some partner is taken; the mode
says what is made of the taken ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from engine.event_calculus.builtins import ALLEN
from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import INF, Bools, Intervals, Ints, intersect, keep, subtract, union


@jit
def _related(relation: int, s1: int, e1: int, s2: int, e2: int, tick: int) -> bool:
    if relation == 1:
        return e1 != INF and e1 - tick == s2 and s1 != s2
    if relation == 2:
        return s1 == s2 and e1 < e2
    if relation == 3:
        return s1 > s2 and e1 == e2
    if relation == 4:
        return s1 > s2 and e1 < e2
    if relation == 5:
        return s1 < s2 and s2 < e1 and e1 < e2
    return s1 == s2 and e1 == e2


@jit
def _taken(relation: int, pa: Ints, sa: Ints, ea: Ints, pb: Ints, sb: Ints, eb: Ints, tick: int) -> tuple[Bools, Bools]:
    source, target = np.zeros(len(sa), np.bool_), np.zeros(len(sb), np.bool_)
    for i in range(len(pa) - 1):
        if relation == 0:
            # An interval is before some target exactly when it is before the last; after some source when after the first.
            if pb[i + 1] > pb[i] and pa[i + 1] > pa[i]:
                for a in range(pa[i], pa[i + 1]):
                    source[a] = ea[a] <= sb[pb[i + 1] - 1]
                for b in range(pb[i], pb[i + 1]):
                    target[b] = ea[pa[i]] <= sb[b]
            continue
        b = pb[i]
        for a in range(pa[i], pa[i + 1]):
            # All other relations need a common tick, so only overlapping pairs are tried.
            while b < pb[i + 1] and eb[b] <= sa[a]:
                b += 1
            j = b
            while j < pb[i + 1] and sb[j] < ea[a]:
                if _related(relation, sa[a], ea[a], sb[j], eb[j], tick):
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


def allen(relation: str, mode: str, source: Intervals, target: Intervals, tick: int) -> tuple[Intervals, Bools]:
    """What `mode` makes of the intervals that are in `relation` with a partner of the other list, and for each list whether there are any."""
    taken = _taken(ALLEN.index(relation), *source, *target, tick)
    related = keep(source, taken[0])
    return _MODES[mode](related, keep(target, taken[1])), related.counts > 0
