"""What is taken away from intervals of a minimum duration, in windows that do not reach back to
their start."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.feed import Feed
from tests.engine.runs import final_answers

FEED = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks"})
RULES = (
    "initiatedAt(slow(X)=true, T) :- happensAt(slow_start(X), T). terminatedAt(slow(X)=true, T) :- happensAt(slow_end(X), T). "
    "initiatedAt(near(X)=true, T) :- happensAt(near_start(X), T). terminatedAt(near(X)=true, T) :- happensAt(near_end(X), T). "
    "holdsFor(odd(X)=true, I) :- holdsFor(slow(X)=true, S), holdsFor(near(X)=true, N), intDurGreater(S, 2, L), relative_complement_all(L, [N], I)."
)
INPUTS = {name: {"args": ["entity"]} for name in ("slow_start", "slow_end", "near_start", "near_end")}


def odd(window: int, happenings: dict[str, int]) -> list[tuple[Any, ...]]:
    """(start, end) of odd(x)=true; the last query time is 40."""
    document = {"family": "calculus", "program": RULES, "outputs": ["odd"], "window": window, "step": 5, "inputs": INPUTS}
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
    assert odd(window, happenings) == expected
