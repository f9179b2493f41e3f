"""Queries added and removed: an index derived from the previous one equals a newly
compiled one, array by array."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.complex_events import fragments
from engine.complex_events.operator import CompositeOperator
from engine.operator import RegisteredQuery
from engine.specification import check
from tests.engine.complex_events.worlds import PLANE, documents
from tests.engine.runs import registered

OPERATOR = CompositeOperator()
MOST = 6
LISTS = st.lists(st.integers(0, MOST - 1), max_size=MOST, unique=True)
A_THEN_B = {"family": "composite", "pattern": "A : B", "primitives": {"A": {}, "B": {"where": [["reader", "=", "b"]]}}, "within": 9}


def assert_equal(one: Any, other: Any, at: str = "index") -> None:
    """Equal in every field, and in the arrays' types and layouts, for
    which kernels are compiled."""
    assert type(one) is type(other), at
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape, one.flags.c_contiguous) == (other.dtype, other.shape, other.flags.c_contiguous), at
        assert (one == other).all(), at
    elif is_dataclass(one) and type(one).__module__.startswith("engine.complex_events."):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name), f"{at}.{field.name}")
    elif hasattr(one, "_fields"):
        for name in one._fields:
            assert_equal(getattr(one, name), getattr(other, name), f"{at}.{name}")
    elif isinstance(one, tuple):
        assert len(one) == len(other), at
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_equal(*pair, f"{at}[{i}]")
    else:
        assert one == other, at


@settings(deadline=None)
@given(some=st.lists(documents(), min_size=MOST, max_size=MOST), changed=documents(), lists=st.lists(LISTS, min_size=2, max_size=4))
def test_what_is_recompiled_equals_what_is_compiled_anew(some, changed, lists):
    # Queries are added, removed and put in another order; the query 0 comes as a second
    # version with every other list.
    known, again = registered(some, PLANE), RegisteredQuery("0", 2, check(changed, PLANE))
    index = OPERATOR.compile([known[i] for i in lists[0]], PLANE)
    for number, chosen in enumerate(lists[1:]):
        queries = [again if i == 0 and number % 2 else known[i] for i in chosen]
        index = OPERATOR.recompile(index, queries, PLANE)
        assert_equal(index, OPERATOR.compile(queries, PLANE))


def test_only_new_queries_are_looked_at(monkeypatch):
    queries = registered([A_THEN_B] * 20, PLANE)
    index = OPERATOR.compile(queries[:19], PLANE)
    looked_at: list[Any] = []
    monkeypatch.setattr(fragments, "requirements", lambda pattern, within: looked_at.append(pattern) or _requirements(pattern, within))
    index = OPERATOR.recompile(index, queries, PLANE)
    assert looked_at == [queries[19].specification.pattern]
    assert_equal(OPERATOR.recompile(index, queries[1:], PLANE), OPERATOR.compile(queries[1:], PLANE))


_requirements = fragments.requirements
