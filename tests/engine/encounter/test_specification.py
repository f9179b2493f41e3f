"""Encounter documents: all faults at once, with pointers and the remedy."""

from __future__ import annotations

import pytest

from engine.families import FAMILIES, family_of
from engine.model.faults import Refused
from engine.model.feed import Crs, Feed, TimeUnit
from engine.specification import check
from tests.engine.encounter.worlds import COLUMNS

FEED = Feed("ms", Crs.PLANAR, TimeUnit.MS, columns=COLUMNS)
GOOD = {"family": "encounter", "distance": 100, "every": "PT10S", "gap": "PT2M"}


def test_a_document_is_read_with_its_defaults():
    specification = check(GOOD, FEED)
    assert (specification.every, specification.gap, specification.position, specification.lasting) == (10_000, 120_000, "last", 0)
    assert specification.symmetric
    assert not check(GOOD | {"b": {"where": [["s", "=", "p"]]}}, FEED).symmetric
    assert family_of(specification).operator().families == ("encounter",)


@pytest.mark.parametrize(
    ("change", "pointer", "word"),
    [
        ({"distance": -1}, "/distance", "at least 0"),
        ({"every": 0}, "/every", "at least 1"),
        ({"gap": None}, "/gap", "span of time"),
        ({"position": "interpolate"}, "/position", "interpolated"),
        ({"a": {"were": []}}, "/a/were", "where"),
        ({"b": {"where": [["w", "=", 1]]}}, "/b/where/0/0", "column"),
        ({"inside": {"center": [0, 0]}}, "/inside/radius", "number"),
        ({"lasting": -2}, "/lasting", "at least 0"),
        ({"distanse": 5}, "/distanse", "distance"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change, pointer, word):
    with pytest.raises(Refused) as refused:
        check(GOOD | change, FEED)
    faults = {fault.pointer: fault.message for fault in refused.value.faults}
    assert word in faults[pointer]


def test_missing_keys_are_named():
    with pytest.raises(Refused) as refused:
        check({"family": "encounter"}, FEED)
    assert {word for fault in refused.value.faults for word in ("distance", "every", "gap") if word in fault.message} == {"distance", "every", "gap"}


@pytest.mark.parametrize(("gap", "is_noticed"), [("PT2M", False), (1, False), (0, True), ("PT0S", True)])
def test_a_gap_of_nothing_is_noticed(gap, is_noticed):
    notices = FAMILIES["encounter"].notices_of(GOOD | {"gap": gap}, FEED)
    assert [notice.startswith("no answers: ") for notice in notices] == [True] * is_noticed
