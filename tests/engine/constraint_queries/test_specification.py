"""Checking of constraint queries: faults with their places, the cycle that proves a query
unsatisfiable, text and JSON."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.constraint_queries.graph import TimeBound, closed_times, negative_cycle
from engine.constraint_queries.trigger import translate
from engine.constraint_queries.trigger_writer import trigger_text
from engine.model.faults import Refused
from engine.model.feed import Crs, Feed, TimeUnit
from engine.specification import check
from tests.engine.constraint_queries.worlds import GLOBE, PLANE, one_document
from tests.engine.constraint_queries.writing import document_of
from tests.examples import examples

FIGURE_1B = """CREATE TRIGGER collision
FOR E as V1, E as V2, E as V3
WHEN V1.s = 'A' AND V2.s = 'B' AND V3.s = 'C'
AND DISTANCE(V1.r, V2.r) < 1 AND V2.t - V1.t IN [0, 5]
AND DISTANCE(V2.r, V3.r) < 1 AND V3.t - V2.t IN [1, 5]"""
THREE: dict[str, Any] = {"V1": {}, "V2": {}, "V3": {}}
BOUND = {"between": ["V1", "V2", "V3"], "dt": [-5, 5]}


def faults(document: dict[str, Any], feed: Feed = PLANE) -> list[str]:
    with pytest.raises(Refused) as refused:
        check({"family": "constraint", **document}, feed)
    return [str(fault) for fault in refused.value.faults]


def constrained(**said: Any) -> dict[str, Any]:
    """Three variables with bounded times, and one more constraint (number 1)."""
    return {"variables": THREE, "constraints": [BOUND, {"between": ["V1", "V2"], **said}]}


@pytest.mark.parametrize(
    ("document", "pointer", "words"),
    [
        ({}, "/", "'variables' is missing"),
        ({"variables": {}}, "/variables", "must be an object"),
        ({"variables": {"1a": {}}}, "/variables/1a", "not the name of a variable"),
        ({"variables": {"V1": {"were": []}}}, "/variables/V1/were", "did you mean 'where'"),
        ({"variables": {"V1": {"where": [["w", "=", 1]]}}}, "/variables/V1/where/0/0", "unknown column 'w'"),
        ({"variables": THREE, "constraints": [{"between": ["V1", "V4"], "dt": [0, 1]}]}, "/constraints/0/between/1", "unknown variable 'V4'"),
        ({"variables": THREE, "constraints": [{"between": ["V1", "V1"], "dt": [0, 1]}]}, "/constraints/0/between/1", "named twice"),
        ({"variables": THREE, "constraints": [BOUND, {"between": ["V1"], "dt": [0, 1]}]}, "/constraints/1/dt", "at least two variables"),
        ({"variables": THREE, "constraints": [BOUND], "symmetric": [["V1", "V2"], ["V2", "V3"]]}, "/symmetric/1", "in two groups"),
        ({"variables": THREE, "constraints": [BOUND], "report": "some"}, "/report", "unknown value"),
        (constrained(), "/constraints/1", "constrains nothing"),
        (constrained(dt=[3, 2]), "/constraints/1/dt", "holds nothing"),
        (constrained(dt=["PT1S", None]), "/constraints/1/dt/0", "number of ticks"),
        (constrained(distance={}), "/constraints/1/distance", "'max' or 'min'"),
        (constrained(distance={"max": -1}), "/constraints/1/distance/max", "at least 0"),
        (constrained(distance={"max": 2, "min": 2, "open": True}), "/constraints/1/distance", "no distance is"),
        (constrained(distance={"max": 0, "open": True}), "/constraints/1/distance", "no distance is"),
        (constrained(compare=[["V1.v", "<", "V3.v"]]), "/constraints/1/compare/0/2", "not named in 'between'"),
        (constrained(compare=[["V1.v", "<", "V2.s"]]), "/constraints/1/compare/0", "cannot be compared"),
        (constrained(compare=[["V1.b", "<", "V2.b"]]), "/constraints/1/compare/0/1", "no order"),
        (constrained(compare=[["V1.v", "in", "V2.v"]]), "/constraints/1/compare/0/2", "list of constants"),
        (constrained(compare=[["V1.v", "in", [1, "x"]]]), "/constraints/1/compare/0/2/1", "must be a number"),
        (constrained(compare=[["V1.w", "<", 1]]), "/constraints/1/compare/0/0", "unknown column 'w'"),
        (constrained(compare=[["V7.v", "<", 1]]), "/constraints/1/compare/0/0", "unknown variable 'V7'"),
        (constrained(compare=[[1, "<", 2]]), "/constraints/1/compare/0", "compares no variable"),
        ({"variables": THREE, "constraints": [{"between": ["V1", "V2"], "dt": [0, None]}]}, "/constraints", "kept forever"),
    ],
)  # fmt: skip
def test_a_fault_is_reported_with_its_place(document: dict[str, Any], pointer: str, words: str) -> None:
    assert any(fault.startswith(f"{pointer}: ") and words in fault for fault in faults(document))


def test_what_no_events_can_satisfy_is_refused_with_the_cycle() -> None:
    document = {"variables": THREE, "constraints": [
        {"between": ["V1", "V2"], "dt": [0, 5]}, {"between": ["V2", "V3"], "dt": [1, 5]}, {"between": ["V1", "V3"], "dt": [0, 0]},
    ]}  # fmt: skip
    (fault,) = faults(document)
    for step in ("V1.t - V2.t <= 0 (constraint 1)", "V2.t - V3.t <= -1 (constraint 2)", "V3.t - V1.t <= 0 (constraint 3)", "0 <= -1, which is false"):
        assert step in fault


def test_distances_that_break_the_triangle_are_refused_with_the_path() -> None:
    def document(least: float, open_end: bool) -> dict[str, Any]:
        apart = {"between": ["V3", "V1"], "distance": {"min": least, "open": open_end}}
        near = [{"between": [f"V{i}", f"V{i + 1}"], "distance": {"max": 2 + i}} for i in (1, 2)]
        return {"family": "constraint", "variables": THREE, "constraints": [BOUND, *near, apart]}

    check(document(7, False), PLANE)
    (fault,) = faults(document(7, True))
    assert fault.startswith("/constraints/3: ") and "V1 and V3 must be more than 7 (constraint 4) apart, and are at most" in fault
    assert "3 (constraint 2) + 4 (constraint 3)" in fault


def test_no_distance_on_earth_is_more_than_half_round() -> None:
    assert "/constraints/1/distance/min" in faults(constrained(distance={"min": 20_100_000}), GLOBE)[0]


def test_durations_are_spans_of_time() -> None:
    feed = Feed("sea", Crs.GEOGRAPHIC, TimeUnit.MS)
    found = check({"family": "constraint", "variables": {"A": {}, "B": {}}, "constraints": [{"between": ["B", "A"], "dt": ["-PT1S", "PT2S"]}]}, feed)
    assert (found.pairs[0].earliest, found.pairs[0].latest) == (-2000, 1000)


bounds = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3)).filter(lambda one: one[0] != one[1]), max_size=5)


@given(bounds)
def test_there_is_a_cycle_or_there_are_times(drawn: list[tuple[int, int, int]]) -> None:
    times = [TimeBound(*one, source=i) for i, one in enumerate(drawn)]
    cycle = negative_cycle(3, times)
    solutions = [t for t in product(range(-12, 13), repeat=3) if t[0] == 0 and all(t[b.end] - t[b.start] <= b.upper for b in times)]
    assert (cycle is None) == bool(solutions)
    if cycle is None:
        for i, row in enumerate(closed_times(3, times)):
            for j, upper in enumerate(row):
                if upper is not None:
                    assert max(t[j] - t[i] for t in solutions) == upper
    else:
        assert sum(one.upper for one in cycle) < 0
        assert all(one.end == other.start for one, other in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


# -- text ------------------------------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(one_document(most=4))
def test_text_and_json_say_the_same(document: dict[str, Any]) -> None:
    found = check(document, PLANE)
    assert check({"family": "constraint", "trigger": trigger_text(found)}, PLANE) == found
    assert check(document_of(found), PLANE) == found


def test_the_papers_text_is_read() -> None:
    found = check({"family": "constraint", "trigger": FIGURE_1B}, PLANE)
    assert found.name == "collision"
    assert [[found.latest()[i][j] for j in range(3)] for i in range(3)] == [[0, 5, 10], [0, 0, 5], [-1, -1, 0]]
    assert [(pair.greatest.value, pair.greatest.open) for pair in found.pairs] == [(1.0, True), (1.0, True)]


def test_a_comment_ends_with_its_line_whatever_ends_lines() -> None:
    commented = FIGURE_1B.replace("V3\n", "V3 -- three\n", 1)
    assert translate(commented.replace("\n", "\r")).document == translate(commented).document == translate(FIGURE_1B).document
    assert "unexpected" in faults({"trigger": commented.replace("\n", "\u2028")})[0]


def test_every_clause_of_the_text_is_read() -> None:
    text = """create trigger 'a ''b''' for sea as A, sea as B -- a comment
        when sea.v <> 2.5 and A.n in (1, 2) and 3 > B.n and A.b = TRUE and A.v < A.n and A.entity != B.entity
        and inside(A.r, circle(1, 2, 3)) and inside(B.r, 'port') and B.t - A.t in [-3, 4] and distance(A.r, B.r) >= 1
        symmetric (A, B) report first expiration domains;"""
    port = {"center": [0, 0], "radius": 1}
    found = check({"family": "constraint", "trigger": text}, PLANE, {"port": port})
    written = {
        "family": "constraint", "name": "a 'b'", "where": [["v", "!=", 2.5]],
        "variables": {"A": {"where": [["n", "in", [1, 2]], ["b", "=", True]]}, "B": {"where": [["n", "<", 3]]}},
        "constraints": [
            {"between": ["A"], "compare": [["A.v", "<", "A.n"]], "inside": {"center": [1, 2], "radius": 3}}, {"between": ["B"], "inside": port},
            {"between": ["A", "B"], "compare": [["A.entity", "!=", "B.entity"]], "dt": [-3, 4], "distance": {"min": 1}},
        ],
        "symmetric": [["A", "B"]], "report": "first", "expiration": "domains",
    }  # fmt: skip
    assert found == check(written, PLANE)


def nested(depth: int, innermost: Any = 0) -> Any:
    """Lists in lists."""
    found = innermost
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("document", "pointer", "words"),
    [
        (constrained(dt=[0, 10**400]), "/constraints/1/dt/1", "beyond all that can be computed with"),
        (constrained(distance={"max": 10**400}), "/constraints/1/distance/max", "beyond"),
        (constrained(inside={"center": [0, 0], "radius": 10**400}), "/constraints/1/inside/radius", "beyond"),
        ({"variables": THREE, "where": [["v", "<", 10**400]]}, "/where/0/2", "beyond"),
        ({"variables": THREE, "where": [["s", "=", "\ud800"]]}, "/where/0/2", "half of a character"),
        ({"variables": {"\udfff": {}}}, "/variables", "half of a character"),
        ({"variables": THREE, "where": nested(900)}, "/where/0", "must be a list of exactly 3"),
        ({"variables": THREE, "where": nested(5_000, 10**400)}, "/", "nested too deeply"),
        ({"trigger": f"{FIGURE_1B} AND V1.s = '\ud800'"}, "/trigger", "half of a character"),
        ({"trigger": FIGURE_1B.replace("[0, 5]", f"[0, {'9' * 400}]")}, "/trigger", "line 4, column 53: must be a number"),
        ({"trigger": f"{FIGURE_1B}\nAND V1.v < {'9' * 400}"}, "/trigger", "line 6, column 12: column 'v' is of type float"),
        ({"trigger": f"{FIGURE_1B}\nAND INSIDE(V1.r, GEOJSON '{'[' * 5_000}')"}, "/trigger", "line 6, column 26: not GeoJSON"),
        ({"trigger": FIGURE_1B + "(" * 5_000}, "/trigger", "line 5, column 55: unexpected '('"),
        ({"trigger": ""}, "/trigger", "line 1, column 1: the text ends too early"),
        ({"trigger": " " * 200_001}, "/trigger", "at most 200,000"),
    ],
)
def test_nothing_that_can_be_written_breaks_the_check(document: dict[str, Any], pointer: str, words: str) -> None:
    (fault,) = faults(document)
    assert fault.startswith(f"{pointer}: ") and words in fault


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("V2.s", "V2.q", "line 3, column 24", "unknown column 'q'"),
        ("V3.t -", "V4.t -", "line 5, column 34", "unknown variable 'V4'"),
        ("< 1 AND V2.t", "AND V2.t", "line 4, column 26", "expected a comparison"),
        ("'C'", "5", "line 3, column 43", "must be a text"),
        ("[1, 5]", "[7, 5]", "line 5, column 50", "holds nothing"),
        ("E as V2", "F as V2", "line 2, column 14", "reads one stream"),
        ("[1, 5]", "[1, 5] AND", "line 5, column 59", "ends too early"),
        ("V2.r) < 1", "V2.s) < 1", "line 4, column 23", "positions are written V2.r"),
        ("[1, 5]", "[1, 99" + "9" * 5000 + "]", "line 5, column 53", "must be a number"),
    ],
)
def test_a_fault_of_the_text_is_reported_by_line_and_column(old: str, new: str, place: str, words: str) -> None:
    found = faults({"trigger": FIGURE_1B.replace(old, new, 1)})
    assert any(fault.startswith(f"/trigger: {place}: ") and words in fault for fault in found), found
