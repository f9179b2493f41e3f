"""From samples to answers: the sample from which each course is made good, and
when an entity is arriving."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
NEVER = -(2**62)
OPEN = 2**62
"""The end of an answer that holds."""
SENT = -1
"""Place of a prediction that was asserted in an earlier step."""
HITS, FALSE_ALARMS, MISSES, LEAD_OF_HITS = range(4)


class Course(NamedTuple):
    """By entity code: since when it is arriving (NEVER: it is not), the time of its last sample
    (NEVER: none), whether that was inside."""

    start: Ints
    last: Ints
    inside: npt.NDArray[np.bool_]


@njit(cache=True, nogil=True)
def bases(entity: Any, t: Ints, over: int) -> Ints:
    """For samples in (entity, t) with distinct times, the index of the entity's first sample in [t
    - over, t); -1 if there is none."""
    base_of = np.full(len(t), -1, np.int64)
    first = 0
    for i in range(len(t)):
        if i > 0 and entity[i] != entity[i - 1]:
            first = i
        while t[first] < t[i] - over:
            first += 1
        if first < i:
            base_of[i] = first
    return base_of


@njit(cache=True, nogil=True)
def followed(entity: Any, t: Ints, inside: Any, predicts: Any, course: Course, gap: int, watermark: int, record: Ints) -> Any:
    """Signed facts (entity, start, end, prediction, entered, weight) after samples in (entity,
    t) and the passing of time.

    `prediction` is the place of the sample that makes it, or SENT; `entered` that of the sample
    inside with which the answer ends, or -1. All that is open when the step begins was asserted,
    and all that is open in the end is. `course` and `record` move on.
    """
    codes = len(course.last)
    room = 2 * len(t) + 3 * codes
    who, start, end = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    made, entered, weight = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int8)
    by = np.full(codes, SENT)
    asserted = course.start != NEVER
    n = 0
    for step in range(len(t) + codes):
        # After the samples every entity once, for its silence.
        is_sample = step < len(t)
        r = step if is_sample else -1
        e = entity[r] if is_sample else step - len(t)
        silent = course.last[e] + gap
        ends = OPEN
        if course.start[e] != NEVER:
            if silent < (t[r] if is_sample else watermark):
                ends = silent
            elif is_sample and not predicts[r]:
                ends = t[r]
        if ends != OPEN:
            if asserted[e]:
                who[n], start[n], end[n], made[n], entered[n], weight[n] = e, course.start[e], OPEN, SENT, -1, -1
                asserted[e] = False
                n += 1
            came = is_sample and inside[r] and ends == t[r]
            who[n], start[n], end[n], made[n], entered[n], weight[n] = e, course.start[e], ends, by[e], r if came else -1, 1
            n += 1
            record[HITS if came else FALSE_ALARMS] += 1
            record[LEAD_OF_HITS] += ends - course.start[e] if came else 0
            course.start[e] = NEVER
        if not is_sample:
            if course.start[e] != NEVER and by[e] != SENT:
                if asserted[e]:
                    who[n], start[n], end[n], made[n], entered[n], weight[n] = e, course.start[e], OPEN, SENT, -1, -1
                    n += 1
                who[n], start[n], end[n], made[n], entered[n], weight[n] = e, course.start[e], OPEN, by[e], -1, 1
                n += 1
            continue
        if inside[r] and course.last[e] != NEVER and not course.inside[e] and ends != t[r]:
            record[MISSES] += 1
        if predicts[r]:
            by[e] = r
            if course.start[e] == NEVER:
                course.start[e] = t[r]
        course.last[e], course.inside[e] = t[r], inside[r]
    return who[:n], start[:n], end[:n], made[:n], entered[:n], weight[:n], by
