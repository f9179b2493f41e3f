"""All faults of a document are found when it is checked, with their places."""

from __future__ import annotations

import pytest

from engine.model.faults import Refused
from engine.model.feed import Crs, Feed, TimeUnit
from engine.motion_patterns.specification import MotionSpecification, TargetPoint, Theta, notices_of
from engine.specification import check
from tests.engine.motion_patterns.worlds import PLANE, box

CITY = Feed("city", Crs.GEOGRAPHIC, TimeUnit.MS)
BANK = {"center": [0, 0], "radius": 1}
NEAR = {"distance": [1, 2], "window": [5, 0]}


def tour(**changes):
    return {"family": "motion", "predicates": [{"inside": BANK, "window": [5, 0], "quantifier": "exists"}], "every": 1, **changes}


def pointers(document, feed=PLANE):
    with pytest.raises(Refused) as refused:
        check(document, feed)
    return [fault.pointer for fault in refused.value.faults]


def test_the_papers_example():
    document = {
        "family": "motion",
        "name": "Q",
        "predicates": [
            {"inside": box(0, 0, 1, 1), "window": ["PT30M", "PT20M"], "quantifier": "forall"},
            {"inside": box(2, 0, 1, 1)},
            {"inside": box(4, 0, 1, 1)},
            {"inside": {"region": "gate"}, "window": ["PT10M", "PT5M"], "quantifier": "exists"},
        ],
        "every": "PT2M",
        "horizon": "PT1H",
    }
    read = check(document, CITY, {"gate": BANK})
    assert isinstance(read, MotionSpecification)
    assert [predicate.window for predicate in read.predicates] == [(1_800_000, 1_200_000), None, None, (600_000, 300_000)]
    assert [predicate.forall for predicate in read.predicates] == [True, False, False, False]
    assert (read.every, read.horizon, read.theta) == (120_000, 3_600_000, None)


@pytest.mark.parametrize(
    ("theta", "read"),
    [
        ({"op": "<=", "value": 3}, Theta("<=", 3.0)),
        ({"op": ">=", "value": -1.5}, Theta(">=", -1.5)),
        ({"op": "min"}, Theta("min")),
        ({"op": "top", "k": 2, "order": "max"}, Theta("top", k=2, descending=True)),
    ],
)
def test_theta_in_all_forms(theta, read):
    assert check(tour(predicates=[NEAR], theta=theta), PLANE).theta == read


def test_points_are_brought_into_the_world():
    target = {"type": "Point", "coordinates": [190, 10]}
    read = check(tour(predicates=[{"distance": target, "window": [5, 0]}], theta={"op": "min"}), CITY)
    assert read.predicates[0].target == TargetPoint(-170, 10, True)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"family": "motion"}, ["", ""]),
        (tour(predicates=[]), ["/predicates"]),
        (tour(predicates=[{"inside": BANK, "outside": BANK, "window": [5, 0]}]), ["/predicates/0"]),
        (tour(predicates=[{"window": [5, 0]}]), ["/predicates/0"]),
        (tour(predicates=["bank"]), ["/predicates/0"]),
        (tour(predicates=[{"inside": BANK, "window": [5, 0], "quantifer": "exists"}]), ["/predicates/0/quantifer"]),
        (tour(predicates=[{"inside": BANK, "window": [5, 5]}]), ["/predicates/0/window"]),
        (tour(predicates=[{"inside": BANK, "window": [5, -1]}]), ["/predicates/0/window/1"]),
        (tour(predicates=[{"inside": BANK, "window": [5]}]), ["/predicates/0/window"]),
        (tour(predicates=[{"inside": BANK, "window": [5, 0], "quantifier": "most"}]), ["/predicates/0/quantifier"]),
        (tour(predicates=[{"inside": BANK}]), ["/horizon"]),
        (tour(predicates=[{"inside": BANK, "quantifier": "forall"}], horizon=9), ["/predicates/0/quantifier"]),
        (tour(predicates=[{"distance": [1, 2]}], theta={"op": "min"}), ["/predicates/0/window"]),
        (tour(predicates=[{"distance": [1], "window": [5, 0]}], theta={"op": "min"}), ["/predicates/0/distance"]),
        (tour(predicates=[{"distance": [1, "2"], "window": [5, 0]}], theta={"op": "min"}), ["/predicates/0/distance"]),
        (tour(predicates=[NEAR]), ["/theta"]),
        (tour(theta={"op": "min"}), ["/theta"]),
        (tour(predicates=[NEAR], theta={"op": "least"}), ["/theta/op"]),
        (tour(predicates=[NEAR], theta={"op": "<="}), ["/theta"]),
        (tour(predicates=[NEAR], theta={"op": "min", "value": 3}), ["/theta/value"]),
        (tour(predicates=[NEAR], theta={"op": "top", "k": 0, "order": "up"}), ["/theta/k", "/theta/order"]),
        (tour(predicates=[NEAR], theta="min"), ["/theta"]),
        (tour(every=0), ["/every"]),
        (tour(every="PT1M"), ["/every"]),
        (tour(every=1.5, horizon=0), ["/every", "/horizon"]),
        (tour(window=[5, 0]), ["/window"]),
        (tour(where=[["speed", "=", 1]]), ["/where/0/0"]),
        (tour(predicates=[{"inside": {"region": "bank"}, "window": [5, 0]}]), ["/predicates/0/inside/region"]),
    ],
)
def test_every_fault_has_its_place(document, expected):
    assert sorted(pointers(document)) == sorted(expected)


def test_a_point_off_the_globe_is_named_by_its_part():
    assert pointers(tour(predicates=[{"distance": [10, 91], "window": [5, 0]}], theta={"op": "min"}), CITY) == ["/predicates/0/distance/1"]


@pytest.mark.parametrize(("total", "is_noticed"), [({"at_least": 6}, True), ({"at_least": 5}, False), ({"at_most": 6}, False)])
def test_a_total_that_its_window_cannot_hold_is_noticed(total, is_noticed):
    document = tour(predicates=[{"inside": {"region": "bank"}, "window": [7, 2], "quantifier": "total", **total}])
    said = ["no answers: the window of predicate 1 is 5 long and cannot hold a total of 6"]
    assert notices_of(document, PLANE) == (said if is_noticed else [])


@pytest.mark.parametrize(("total", "is_noticed"), [({"at_least": 1}, True), ({"at_most": 0}, False)])
def test_a_total_of_positions_that_are_never_held_is_noticed(total, is_noticed):
    document = tour(predicates=[{"inside": {"region": "bank"}, "window": [7, 2], "quantifier": "total", "gap": 0, **total}])
    said = ["no answers: predicate 1 holds a position for the gap after its sample, which is 0"]
    assert notices_of(document, PLANE) == (said if is_noticed else [])
