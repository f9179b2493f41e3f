"""Occupancy documents: all faults at once, with pointers and the remedy."""

from __future__ import annotations

import pytest

from engine.families import FAMILIES, family_of
from engine.model.faults import Refused
from engine.model.feed import Crs, Feed, TimeUnit
from engine.specification import check
from tests.engine.occupancy.worlds import COLUMNS, SQUARE

FEED = Feed("ms", Crs.PLANAR, TimeUnit.MS, columns=COLUMNS)
GOOD = {"family": "occupancy", "region": SQUARE, "count": [">=", 5]}


def test_a_document_is_read_with_its_defaults():
    specification = check(GOOD, FEED)
    assert (specification.op, specification.n, specification.stale, specification.lasting) == (">=", 5, None, 0)
    assert check(GOOD | {"stale": "PT10M", "lasting": None}, FEED).stale == 600_000
    assert family_of(specification).operator().families == ("occupancy",)


@pytest.mark.parametrize(
    ("change", "pointer", "word"),
    [
        ({"count": [">", 5]}, "/count/0", ">="),
        ({"count": [">=", 0]}, "/count/1", "at least 1"),
        ({"count": ["<=", -1]}, "/count/1", "at least 0"),
        ({"count": [">=", 1.5]}, "/count/1", "whole"),
        ({"count": 5}, "/count", "parts"),
        ({"ranges": {"v": [0, 1]}}, "", "not both"),
        ({"stale": -1}, "/stale", "at least 0"),
        ({"lastng": 3}, "/lastng", "lasting"),
        ({"lasting": "PT"}, "/lasting", "ISO 8601"),
        ({"where": [["vv", "=", 1]]}, "/where/0/0", "'v'"),
    ],
)
def test_faults_have_pointers(change, pointer, word):
    with pytest.raises(Refused) as refused:
        check(GOOD | change, FEED)
    faults = {fault.pointer: fault.message for fault in refused.value.faults}
    assert word in faults[pointer]


@pytest.mark.parametrize(("stale", "is_noticed"), [(None, False), ("PT10M", False), (1, False), (0, True), ("PT0S", True)])
def test_a_stale_time_of_nothing_is_noticed(stale, is_noticed):
    notices = FAMILIES["occupancy"].notices_of(GOOD | {"stale": stale}, FEED)
    assert [notice.startswith("the count is always 0") for notice in notices] == [True] * is_noticed
