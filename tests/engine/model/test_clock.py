"""How far rows move a clock, and which are late, compared with a row-by-row implementation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.model.clock import late, too_far_ahead

TIMES = st.lists(st.integers(-20, 40), max_size=12)


@given(TIMES, st.none() | st.integers(-20, 40), st.integers(0, 20), st.integers(0, 10))
def test_a_row_is_refused_by_the_clock_it_meets_and_does_not_move_it(times: list[int], clock: int | None, ahead: int, silent: int) -> None:
    expected, reached = [], None if clock is None else clock + silent
    for t in times:
        refused = reached is not None and t > reached + ahead
        expected.append(refused)
        if not refused:
            reached = t if reached is None else max(reached, t)
    assert too_far_ahead(np.array(times, np.int64), clock, ahead, silent=silent).tolist() == expected


@given(TIMES, st.none() | st.integers(-20, 40), st.integers(0, 20))
def test_a_row_is_late_by_the_clock_it_meets(times: list[int], clock: int | None, lateness: int) -> None:
    expected, reached = [], clock
    for t in times:
        expected.append(reached is not None and t < reached - lateness)
        reached = t if reached is None else max(reached, t)
    assert late(np.array(times, np.int64), clock, lateness).tolist() == expected
