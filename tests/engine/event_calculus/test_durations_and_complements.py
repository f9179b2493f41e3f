"""What is taken away from intervals of a minimum duration, and what is united with them, in windows
that do not reach back to their start."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.feed import Feed
from tests.engine.runs import final_answers

FEED = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks"})
BASIC = (
    "initiatedAt(slow(X)=true, T) :- happensAt(slow_start(X), T). terminatedAt(slow(X)=true, T) :- happensAt(slow_end(X), T). "
    "initiatedAt(near(X)=true, T) :- happensAt(near_start(X), T). terminatedAt(near(X)=true, T) :- happensAt(near_end(X), T). "
)
BOTH = "holdsFor(odd(X)=true, I) :- holdsFor(slow(X)=true, S), holdsFor(near(X)=true, N)"
TAKEN_AWAY = f"{BOTH}, intDurGreater(S, 2, L), relative_complement_all(L, [N], I)."
UNITED = f"{BOTH}, intDurGreater(S, 20, L), union_all([L, N], I)."
SEPARATE = "holdsFor(odd(X)=true, I) :- holdsFor(near(X)=true, I). holdsFor(odd(X)=true, I) :- holdsFor(slow(X)=true, S), intDurGreater(S, 20, I)."
INPUTS = {name: {"args": ["entity"]} for name in ("slow_start", "slow_end", "near_start", "near_end")}


def odd(rules: str, window: int, happenings: dict[str, int]) -> list[tuple[Any, ...]]:
    """(start, end) of odd(x)=true; the last query time is 40."""
    document = {"family": "calculus", "program": BASIC + rules, "outputs": ["odd"], "window": window, "step": 5, "inputs": INPUTS}
    rows = sorted(({"event": name, "entity": "x", "t": t} for name, t in {**happenings, "end": 38}.items()), key=lambda row: row["t"])  # type: ignore[arg-type, return-value]
    return [(fact["start"], fact["end"]) for fact in final_answers(FEED, [document], rows)]


@pytest.mark.parametrize("window", [10, 15, 100])
@pytest.mark.parametrize(
    ("happenings", "expected"),
    [
        ({"slow_start": 2, "near_start": 2}, []),
        ({"slow_start": 2, "near_start": 2, "slow_end": 30, "near_end": 30}, []),
        ({"slow_start": 2, "near_start": 2, "near_end": 6}, [(7, None)]),
        ({"slow_start": 2, "near_start": 2, "near_end": 22, "slow_end": 31}, [(23, 32)]),
        ({"slow_start": 2, "near_start": 12, "near_end": 14}, [(3, 13), (15, None)]),
    ],
)
def test_nothing_is_asserted_where_the_other_list_held_before_the_window(
    window: int, happenings: dict[str, int], expected: list[tuple[int, int | None]]
) -> None:
    assert odd(TAKEN_AWAY, window, happenings) == expected


@pytest.mark.parametrize("window", [10, 15, 100])
@pytest.mark.parametrize("rules", [UNITED, SEPARATE])
@pytest.mark.parametrize(
    ("happenings", "expected"),
    [
        ({"slow_start": 2, "near_start": 4, "near_end": 6}, [(3, None)]),
        ({"near_start": 1, "slow_start": 6, "near_end": 6, "slow_end": 33}, [(2, 34)]),
        ({"near_start": 1, "near_end": 2, "slow_start": 3, "slow_end": 33}, [(2, 3), (4, 34)]),
        ({"slow_start": 2, "near_start": 4, "near_end": 6, "slow_end": 20}, [(5, 7)]),
    ],
)
def test_what_ended_while_a_long_interval_was_undecided_becomes_part_of_it(
    rules: str, window: int, happenings: dict[str, int], expected: list[tuple[int, int | None]]
) -> None:
    assert odd(rules, window, happenings) == expected
