"""Arrival documents: all faults at once, with pointers and the remedy."""

from __future__ import annotations

import pytest

from engine.families import family_of
from engine.model.faults import Refused
from engine.model.feed import Crs, Feed, TimeUnit
from engine.specification import check
from tests.engine.arrival.worlds import COLUMNS, SQUARE

FEED = Feed("ms", Crs.PLANAR, TimeUnit.MS, columns=COLUMNS)
GOOD = {"family": "arrival", "region": SQUARE, "within": "PT10M", "over": "PT1M", "gap": 90_000}


def test_documents_are_read():
    specification = check(GOOD, FEED)
    assert (specification.within, specification.over, specification.gap) == (600_000, 60_000, 90_000)
    assert family_of(specification).operator().families == ("arrival",)


@pytest.mark.parametrize(
    ("change", "pointer", "word"),
    [
        ({"within": 0}, "/within", "at least 1"),
        ({"over": "PT"}, "/over", "ISO 8601"),
        ({"gap": None}, "/gap", "span of time"),
        ({"withn": 3}, "/withn", "within"),
        ({"region": {"region": "harbor"}}, "/region/region", "region"),
        ({"ranges": {"v": [0, 1]}}, "/ranges", "region"),
        ({"where": [["vv", "=", 1]]}, "/where/0/0", "'v'"),
    ],
)
def test_faults_have_pointers(change, pointer, word):
    with pytest.raises(Refused) as refused:
        check(GOOD | change, FEED)
    faults = {fault.pointer: fault.message for fault in refused.value.faults}
    assert word in faults[pointer]
    with pytest.raises(Refused) as refused:
        check({"family": "arrival"}, FEED)
    assert len(refused.value.faults) == 4
