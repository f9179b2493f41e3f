"""Border and transition documents: all faults at once, with pointers and the remedy."""

from __future__ import annotations

import pytest

from engine.border_monitoring.specification import BorderSpecification, TransitionSpecification
from engine.families import family_of
from engine.model.faults import Refused
from engine.model.feed import Crs, Feed, TimeUnit
from engine.model.region import PolygonRegion
from engine.specification import check
from tests.engine.border_monitoring.worlds import PLANE

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
MS = Feed("ms", Crs.PLANAR, TimeUnit.MS)


def faults(document, feed=PLANE, regions=None):
    with pytest.raises(Refused) as refused:
        check(document, feed, regions)
    return {fault.pointer: fault.message for fault in refused.value.faults}


def test_a_border_query_is_read_with_its_defaults():
    specification = check({"family": "border", "version": 1, "name": "yard", "region": SQUARE}, PLANE)
    assert isinstance(specification, BorderSpecification)
    assert isinstance(specification.region, PolygonRegion)
    assert (specification.name, specification.segments, specification.ranges, bool(specification.where)) == ("yard", False, (), False)
    assert family_of(specification).operator().families == ("border", "transition")


def test_ranges_are_one_value_in_any_order_of_columns():
    one = check({"family": "border", "ranges": {"v": [None, 3], "a": [1, 2.5]}}, PLANE)
    other = check({"family": "border", "ranges": {"a": [1, 2.5], "v": [None, 3]}}, PLANE)
    assert one == other
    assert one.ranges == (("a", 1, 2.5), ("v", None, 3))


def test_a_transition_query_takes_durations_and_all_types_by_default():
    specification = check({"family": "transition", "region": SQUARE, "within": "PT3M"}, MS)
    assert isinstance(specification, TransitionSpecification)
    assert specification.within == 180_000
    assert specification.types == ("passed", "returned", "stayed_in", "stayed_out")


def test_types_are_kept_once_and_in_one_order():
    given = {"family": "transition", "region": SQUARE, "within": 3, "types": ["stayed_in", "passed", "stayed_in"]}
    assert check(given, PLANE).types == ("passed", "stayed_in")


def test_stored_regions_are_taken_by_name():
    by_name = check({"family": "border", "region": {"region": "yard"}}, PLANE, {"yard": SQUARE})
    assert by_name == check({"family": "border", "region": SQUARE}, PLANE)


@pytest.mark.parametrize(
    ("change", "pointer", "word"),
    [
        ({"region": None}, "/region", ""),
        ({"ranges": {"v": [0, 1]}}, "", "not both"),
        ({"segment": True}, "/segment", "segments"),
        ({"segments": 1}, "/segments", "true or false"),
        ({"within": 3}, "/within", "unknown key"),
        ({"where": [["vv", "=", 1]]}, "/where/0/0", "did you mean 'v'"),
        ({"where": [["v", "~", 1]]}, "/where/0/1", "~"),
        ({"region": {"region": "yrad"}}, "/region/region", "yrad"),
        ({"region": {"center": [0, 0], "radius": -1}}, "/region/radius", "greater than 0"),
        ({"version": 2}, "/version", "1"),
    ],
)
def test_faults_of_border_documents_have_pointers(change, pointer, word):
    found = faults({"family": "border", "region": SQUARE} | change)
    assert word in found[pointer]


@pytest.mark.parametrize(
    ("ranges", "pointer"),
    [
        ({}, "/ranges"),
        ({"v": [3, 3]}, "/ranges/v"),
        ({"v": [3]}, "/ranges/v"),
        ({"k": [0, 1]}, "/ranges/k"),
        ({"price": [0, 1]}, "/ranges/price"),
        ({"v": ["0", 1]}, "/ranges/v/0"),
        ({name: [0, 1] for name in "abcdefghi"} | {"v": [0, 1]}, "/ranges"),
    ],
)
def test_faults_of_ranges_have_pointers(ranges, pointer):
    assert pointer in faults({"family": "border", "ranges": ranges})


def test_an_empty_document_is_refused_with_the_keys_it_needs():
    # The front end finds its words for these (frontend/src/data/query_form_data.ts)
    # by the first key in quotes.
    assert faults({"family": "border"}) == {"": "must have either 'region' or 'ranges'"}
    assert faults({"family": "transition", "region": SQUARE}) == {"": "the key 'within' is missing"}


def test_segments_need_a_region():
    assert "needs a region" in faults({"family": "border", "ranges": {"v": [0, 1]}, "segments": True})["/segments"]


def test_all_faults_of_a_transition_are_reported_together():
    found = faults({"family": "transition", "types": ["pased", "passed"], "segments": True, "where": [["nope", "=", 1]]})
    assert set(found) == {"", "/types/0", "/segments", "/where/0/0"}
    assert "did you mean 'passed'" in found["/types/0"]


def test_bounds_of_time_are_checked():
    assert "/within" in faults({"family": "transition", "region": SQUARE, "within": -1})
    assert "/within" in faults({"family": "transition", "region": SQUARE, "within": "PT3M"})
    assert "/within" in faults({"family": "transition", "region": SQUARE, "within": 1.5})
    assert "/types" in faults({"family": "transition", "region": SQUARE, "within": 1, "types": []})


def test_a_key_is_named_once_among_the_known_ones():
    known = faults({"family": "border", "region": SQUARE, "foo": 1})["/foo"].partition("Known: ")[2].split(", ")
    assert len(known) == len(set(known)) > 0


def test_a_bound_that_no_double_holds_is_refused():
    assert "9007199254740992" in faults({"family": "border", "ranges": {"w": [2**53 + 1, None]}})["/ranges/w/0"]
