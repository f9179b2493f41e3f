"""Conditions that exclude each other, against trying values."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.contradictions import contradictions
from engine.model.conditions import Condition
from engine.model.feed import Feed
from engine.specification import notices_of

NUMBERS = [number / 4 for number in range(-12, 28)]
TEXTS = ["".join(letters) for length in range(4) for letters in product("\0ab", repeat=length)]


def conditions(values: st.SearchStrategy[Any], operators: tuple[str, ...]) -> st.SearchStrategy[list[list[Any]]]:
    compared = st.tuples(st.just("c"), st.sampled_from(operators), values)
    listed = st.tuples(st.just("c"), st.just("in"), st.lists(values, max_size=3))
    return st.lists(st.one_of(compared, compared, compared, listed).map(list), min_size=1, max_size=4)


WHERE = st.one_of(
    conditions(st.integers(-2, 5), ("=", "!=", "<", "<=", ">", ">=")).map(lambda where: (where, NUMBERS)),
    conditions(st.sampled_from([-1.5, 0, 0.5, 2]), ("=", "!=", "<", "<=", ">", ">=")).map(lambda where: (where, NUMBERS)),
    conditions(st.sampled_from(["", "a", "b", "ab", "b\0"]), ("=", "!=", "<", "<=", ">", ">=")).map(lambda where: (where, TEXTS)),
    conditions(st.booleans(), ("=", "!=")).map(lambda where: (where, [False, True])),
)


@given(WHERE)
def test_conditions_are_reported_if_and_only_if_no_value_satisfies_them(world: tuple[list[list[Any]], list[Any]]) -> None:
    where, values = world
    read = [Condition(column, op, tuple(constant) if isinstance(constant, list) else constant) for column, op, constant in where]
    satisfied = any(all(condition.holds(value) for condition in read) for value in values)
    assert list(contradictions({"where": where})) == ([] if satisfied else [read])


def test_long_lists_are_not_searched_for_each_value() -> None:
    """Else this would take an hour, in the web server."""
    names = [f"a{n}" for n in range(200_000)]
    where = [["c", "in", names], ["c", "in", names[::-1]], ["c", "=", "b"]]
    assert [len(conditions) for conditions in contradictions({"where": where})] == [3]


FEED = Feed.from_json({"name": "f", "crs": "planar", "time": "ms", "columns": {"sog": "float", "kind": "string"}})
BORDER = {"family": "border", "region": {"center": [0, 0], "radius": 1}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (BORDER | {"where": [["sog", ">", 5], ["kind", "=", "a"], ["sog", "<", 3]]}, ["sog > 5, sog < 3"]),
        (BORDER | {"where": [["kind", "in", ["ä", "b"]], ["kind", "=", "c"]]}, ['kind in ["ä", "b"], kind = "c"']),
        (BORDER | {"where": [["sog", ">", 5], ["kind", "<", "3"]]}, []),
        (
            {"family": "composite", "pattern": "A", "where": [["sog", ">", 5]], "primitives": {"A": {"where": [["sog", "<", 5]]}}, "within": 9},
            ["sog > 5, sog < 5"],
        ),
        (
            {"family": "composite", "pattern": "A", "where": [["sog", ">", 5]], "primitives": {"A": {"where": [["kind", "<", "a"]]}}, "within": 9},
            [],
        ),
        (
            {"family": "constraint", "trigger": "CREATE TRIGGER n FOR E AS A, E AS B WHEN A.sog > 5 AND A.sog < 3 AND B.t - A.t IN [0, 5]"},
            ["sog > 5, sog < 3"],
        ),
    ],
)
def test_a_query_has_a_notice_that_names_them(document: dict[str, Any], expected: list[str]) -> None:
    assert notices_of(document, FEED) == [f"no row satisfies these conditions together: {conditions}" for conditions in expected]
