"""Sentences that describe queries."""

from typing import Any

import pytest
from django.utils import translation

from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.specification import check
from webapp.queries.families import kinds_of
from webapp.queries.sentences import sentence_of

MS = Feed("f", Crs.PLANAR, TimeUnit.MS)
TICKS = Feed("f", Crs.PLANAR, TimeUnit.TICKS)
EARTH = Feed("f", Crs.GEOGRAPHIC, TimeUnit.MS)
EARTH_WITH_COLUMNS = Feed(
    "f", Crs.GEOGRAPHIC, TimeUnit.MS, columns={"kind": ColumnType.STRING, "pressure": ColumnType.FLOAT, "air": ColumnType.FLOAT}
)
REGIONS = {name: {"center": [11.5, 48.1], "radius": 100} for name in ("A", "B", "bank 1", "bank 2", "cameras", "yard", "gate", "town")}
PORT = {"region": {"region": "port A"}}


@pytest.mark.parametrize(
    ("specification", "feed", "sentence"),
    [
        ({"family": "border", **PORT}, MS, "Reports when something enters port A or leaves port A."),
        (
            {"family": "occupancy", **PORT, "count": [">=", 5], "lasting": "PT10M", "stale": "PT6M"},
            MS,
            "Reports while at least 5 are in port A for 10 minutes or longer. A report counts for 6 minutes.",
        ),
        ({"family": "occupancy", **PORT, "count": ["<=", 0]}, MS, "Reports while nothing is in port A."),
        (
            {"family": "encounter", "a": {"where": [["kind", "=", "tug"]]}, "distance": 300, "every": "PT10S", "gap": "PT3M", "lasting": "PT5M"},
            EARTH_WITH_COLUMNS,
            "Reports while something whose kind is tug and something are within 300 m of each other for 5 minutes or longer. It looks every "
            "10 seconds; a report counts for 3 minutes.",
        ),
        (
            {"family": "arrival", **PORT, "where": [["kind", "=", "bus"]], "within": "PT10M", "over": "PT1M", "gap": "PT2M"},
            EARTH_WITH_COLUMNS,
            "Reports while something whose kind is bus is on its way into port A: it would be inside within 10 minutes, if it went straight on as it "
            "did over the last 1 minute. A report counts for 2 minutes.",
        ),
        ({"family": "border", **PORT, "segments": True}, MS, "Reports when something enters port A or leaves port A, also between two reports."),
        (
            {"family": "border", **PORT, "where": [["speed", ">", 3], ["kind", "in", ["bus", "car"]]]},
            MS,
            "Reports when something whose speed is above 3 and kind is one of bus or car enters port A or leaves port A.",
        ),
        (
            {"family": "border", "ranges": {"price": [10, 20.5]}},
            MS,
            "Reports when something comes to have price from 10 to below 20.5 or no longer has price from 10 to below 20.5.",
        ),
        (
            {"family": "border", "region": {"center": [1, 2], "radius": 30}},
            MS,
            "Reports when something enters the circle of radius 30 around (1, 2) or leaves the circle of radius 30 around (1, 2).",
        ),
        (
            {"family": "border", "region": {"center": [10, 54], "radius": 5752.6}},
            EARTH,
            "Reports when something enters the circle of radius 5.7526 km around (10, 54) or leaves the circle of radius 5.7526 km around (10, 54).",
        ),
        (
            {"family": "transition", **PORT, "within": "PT3M", "types": ["stayed_in"]},
            MS,
            "Reports when something enters port A and stays for more than 3 minutes.",
        ),
        (
            {"family": "transition", **PORT, "within": 50, "types": ["passed", "returned", "stayed_out"]},
            TICKS,
            "Reports when something enters port A and leaves again within 50 ticks, leaves port A and comes back within 50 ticks "
            "or leaves port A and stays away for more than 50 ticks.",
        ),
        (
            {"family": "transition", **PORT, "within": 90061000, "types": ["stayed_in"]},
            MS,
            "Reports when something enters port A and stays for more than 1 day 1 hour 1 minute 1 second.",
        ),
        (
            {"family": "transition", **PORT, "within": 1500, "types": ["stayed_in"]},
            MS,
            "Reports when something enters port A and stays for more than 1500 ms.",
        ),
        (
            {
                "family": "border",
                **PORT,
                "hysteresis": 25,
                "accuracy": "accuracy_m",
                "first": "enter",
                "dwell": "PT30S",
                "while": [["speed", "<", 2]],
            },
            EARTH,
            "Reports when something enters port A or leaves port A. It has left only when it is more than 25 m away. Positions are trusted "
            "to within accuracy_m. An entity that is inside at its first report has entered. A visit counts only when it lasts for more than "
            "30 seconds. "
            "It is inside only while speed is below 2.",
        ),
        ({"family": "unheard-of"}, MS, None),
        ("nothing", MS, None),
    ],
)
def test_a_border_query_has_a_sentence(specification: Any, feed: Feed, sentence: str | None) -> None:
    assert sentence_of(specification, feed=feed) == sentence


def bank(name: str) -> dict[str, Any]:
    return {"inside": {"region": name}}


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        (
            {
                "predicates": [bank("bank 1"), bank("bank 2"), {"outside": {"region": "cameras"}, "window": ["PT1H", 0], "quantifier": "forall"}],
                "horizon": "PT1H",
            },
            "Every 10 seconds, finds each entity that was in bank 1, then was in bank 2, then kept out of cameras throughout the "
            "last hour, all in the last hour.",
        ),
        (
            {
                "predicates": [
                    {**bank("yard"), "window": ["PT10M", "PT5M"], "quantifier": "exists"},
                    {**bank("gate"), "window": ["PT5M", 0], "quantifier": "exists"},
                ]
            },
            "Every 10 seconds, finds each entity that was in yard between 10 minutes and 5 minutes ago and was in gate in the last 5 minutes.",
        ),
        (
            {
                "predicates": [
                    bank("yard"),
                    {**bank("town"), "window": ["PT30M", 0], "quantifier": "total", "at_least": "PT20M", "gap": "PT1M"},
                    bank("gate"),
                    {"outside": {"region": "A"}, "window": ["PT5M", 0], "quantifier": "total", "at_most": 0},
                ],
                "horizon": "PT1H",
            },
            # Accumulated time has no place in the order.
            "Every 10 seconds, finds each entity that was in yard, then was in gate, all in the last hour, and was in town for at least 20 minutes "
            "in all in the last 30 minutes (a report counts for 1 minute), and was outside A for no time at all in the last 5 minutes.",
        ),
        (
            {
                "predicates": [{"distance": {"type": "Point", "coordinates": [11.5, 48.1]}, "window": ["PT5M", 0], "quantifier": "exists"}],
                "theta": {"op": "top", "k": 3, "order": "min"},
                "where": [["kind", "=", "taxi"]],
            },
            "Every 10 seconds, finds everything for which its least distance from the point (11.5, 48.1) in the last 5 "
            "minutes is among the 3 smallest. "
            "Only events count whose kind is taxi.",
        ),
        (
            {
                "predicates": [
                    {**bank("town"), "window": ["PT5M", 0], "quantifier": "forall"},
                    {"distance": {"region": "A"}, "window": ["PT5M", 0], "quantifier": "exists"},
                    {"distance": {"region": "B"}, "window": ["PT5M", 0], "quantifier": "forall"},
                ],
                "theta": {"op": "<=", "value": 2500},
            },
            "Every 10 seconds, finds each entity that stayed in town throughout the last 5 minutes, and for which the sum of its "
            "least distance from A in the last "
            "5 minutes and its greatest distance from B in the last 5 minutes is at most 2.5 km.",
        ),
    ],
)
def test_a_motion_pattern_has_a_sentence(rest: dict[str, Any], sentence: str) -> None:
    specification = {"family": "motion", "version": 1, "every": "PT10S", **rest}
    check(specification, EARTH_WITH_COLUMNS, REGIONS)
    assert sentence_of(specification, feed=EARTH_WITH_COLUMNS) == sentence


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        (
            {
                "variables": {"low": {"where": [["pressure", "<", 1006]]}, "warm": {}},
                "constraints": [
                    {"between": ["low", "warm"], "dt": [0, "PT12H"], "distance": {"max": 500_000}},
                    {"between": ["low", "warm"], "compare": [["warm.air", ">", "low.air"]]},
                    {"between": ["low"], "inside": {"region": "A"}},
                ],
                "report": "first",
            },
            "Finds 2 different events: low (pressure is below 1006) and warm (any), such that warm comes at most 12 hours "
            "after low, low and warm are at "
            "most 500 km apart, warm.air is above low.air and low lies in A. Each event that completes a match is reported once.",
        ),
        (
            {
                "variables": {name: {"where": [["air", ">", 28]]} for name in ("R1", "R2", "R3")},
                "constraints": [{"between": ["R1", "R2", "R3"], "dt": ["-P5D", "P5D"], "distance": {"max": 900, "min": 5, "open": True}}],
                "symmetric": [["R1", "R2", "R3"]],
            },
            "Finds 3 different events: R1, R2 and R3 (each: air is above 28), such that any two of them are at most 5 days "
            "apart in time and any two of "
            "them are more than 5 m and less than 900 m apart.",
        ),
        (
            {"trigger": "CREATE TRIGGER near FOR E AS V1, E AS V2 WHEN V1.air > 28 AND DISTANCE(V1.r, V2.r) < 1 AND V2.t - V1.t IN [0, 5000]"},
            "Finds 2 different events: V1 (air is above 28) and V2 (any), such that V1 and V2 are less than 1 m apart and "
            "V2 comes at most 5 seconds after V1.",
        ),
    ],
)
def test_a_constraint_query_has_a_sentence(rest: dict[str, Any], sentence: str) -> None:
    specification = {"family": "constraint", "version": 1, **rest}
    check(specification, EARTH_WITH_COLUMNS, REGIONS)
    assert sentence_of(specification, feed=EARTH_WITH_COLUMNS) == sentence


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([1000, 5000], "V2 comes 1 second to 5 seconds after V1"),
        ([-5000, 1000], "V2 comes from 5 seconds before to 1 second after V1"),
        ([-5000, -1000], "V2 comes 1 second to 5 seconds before V1"),
        ([-5000, 0], "V2 comes at most 5 seconds before V1"),
        ([0, 0], "V1 and V2 are at most 0 seconds apart in time"),
        ([2000, 2000], "V2 comes 2 seconds after V1"),
        ([None, 2000], "V2 comes at most 2 seconds after V1"),
        ([2000, None], "V2 comes at least 2 seconds after V1"),
    ],
)
def test_bounds_of_time_have_sentences(bounds: list[int | None], expected: str) -> None:
    specification = {"family": "constraint", "variables": {"V1": {}, "V2": {}}, "constraints": [{"between": ["V1", "V2"], "dt": bounds}]}
    assert sentence_of(specification, feed=MS) == f"Finds 2 different events: V1 and V2 (any), such that {expected}."


PRIMITIVES = {"A": {"where": [["reader", "=", "dock-1"]]}, "B": {}, "C": {"prefix": {"kind": "3034"}, "outside": {"region": "A"}}}
MEANT = "A means reader is dock-1, B means any event and C means kind begins with 3034 and outside A."


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A : !B : C", "A, then C with no B in between"),
        ("A : !B[PT15S]", "A, then no B for 15 seconds"),
        ("A :[0,PT1M] B", "A, then within 1 minute B"),
        ("A :[1000,60000] B", "A, then 1 second to 1 minute later B"),
        ("(A AND B) OR C", "(A and B in any order) or C"),
        ("A ;[PT5S] B", "A and B within 5 seconds of each other"),
        ({"sequence": ["A", "B"], "bounds": [5000, None]}, "A, then at least 5 seconds later B"),
        ("B", "B"),
        ("A : B : A", "A, then B, then A"),
        ({"sequence": ["A", "B", "C"]}, "A, then B, then C"),
        ({"and": [{"and": ["A", "B"]}, "C", "A"]}, "A, B, C and A in any order"),
        ("A : (B : !C : A) OR B", "(A, then (B, then A with no C in between)) or B"),
        ("A : !B : C : !B[5000]", "A, then C with no B in between, then no B for 5 seconds"),
    ],
)
def test_a_composite_event_has_a_sentence(pattern: Any, expected: str) -> None:
    specification = {"family": "composite", "version": 1, "pattern": pattern, "primitives": PRIMITIVES, "per": "entity", "within": "PT10M"}
    assert sentence_of(specification, feed=MS) == f"Reports {expected}, all of one entity and within 10 minutes. {MEANT}"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("!B[PT1M] : A", "A with no B in the 1 minute before"),
        ("A AND !B[PT10S]", "A with no B from 10 seconds before until 10 seconds after"),
        ("!(B OR C)[PT1M] : A : C", "(A with no (B or C) in the 1 minute before), then C"),
        ("A AND B AND !C[5000]", "(A and B in any order) with no C from 5 seconds before until 5 seconds after"),
    ],
)
def test_negated_events_have_sentences(pattern: str, expected: str) -> None:
    specification = {"family": "composite", "version": 1, "pattern": pattern, "primitives": PRIMITIVES, "per": "entity", "within": "PT10M"}
    assert sentence_of(specification, feed=MS) == f"Reports {expected}, all of one entity and within 10 minutes. {MEANT}"


def test_sums_have_sentences() -> None:
    compare = [["V1.air - V2.air", ">", 2], ["2 * V1.air + 3", "<=", "V2.air"]]
    specification = {
        "family": "constraint",
        "variables": {"V1": {}, "V2": {}},
        "constraints": [{"between": ["V1", "V2"], "dt": [0, 5], "compare": compare}],
    }
    sentence = sentence_of(specification, feed=EARTH_WITH_COLUMNS)
    assert sentence is not None and sentence.endswith("V1.air - V2.air is above 2 and 2 * V1.air + 3 is at most V2.air.")


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        (
            {"family": "occupancy", "region": {"region": "A"}, "count": [">=", 5], "lasting": "PT10M", "stale": "PT1M"},
            "Reports while at least 5 are in A for 10 minutes or longer. A report counts for 1 minute.",
        ),
        ({"family": "occupancy", "ranges": {"air": [None, 0]}, "count": ["<=", 0]}, "Reports while nothing is at air below 0."),
        (
            {"family": "encounter", "a": {"where": [["air", "<", 2]]}, "distance": 1500, "every": "PT10S", "gap": "PT1M", "position": "interpolated"},
            "Reports while something whose air is below 2 and something are within 1.5 km of each other. It looks every 10 seconds, also on the way "
            "between two reports; a report counts for 1 minute.",
        ),
    ],
)
def test_occupancy_and_encounter_have_sentences(rest: dict[str, Any], sentence: str) -> None:
    check({"version": 1, **rest}, EARTH_WITH_COLUMNS, REGIONS)
    assert sentence_of(rest, feed=EARTH_WITH_COLUMNS) == sentence


def test_answers_of_other_queries_are_named() -> None:
    derive = {"arrival": {"query": "Port: arrivals", "kind": "in", "at": "end"}, "stay": {"query": "Port: stays", "kind": "stayed_in", "at": "start"}}
    specification = {
        "family": "composite",
        "pattern": "A",
        "primitives": {"A": {"where": [["event", "=", "arrival"]]}},
        "within": 5,
        "derive": derive,
    }
    sentence = sentence_of(specification, feed=MS)
    assert sentence is not None
    assert sentence.endswith(
        "An event arrival is each answer “Entered” of Port: arrivals, at its end and stay is each answer “Stayed in” of Port: stays, at its start."
    )
    with translation.override("de"):
        assert "arrival ist jede Antwort „Hineingekommen“ von Port: arrivals" in (sentence_of(specification, feed=MS) or "")


def test_a_rule_program_has_a_sentence() -> None:
    specification = {"family": "calculus", "program": "", "outputs": ["greeting", "leaving_object", "meeting"], "window": "PT100S", "step": "PT10S"}
    expected = "Runs a program of rules: recognises greeting, leaving object and meeting over the last 1 minute 40 seconds, every 10 seconds."
    assert sentence_of(specification, feed=MS) == expected
    many = {**specification, "outputs": [f"f{n}" for n in range(20)]}
    assert "f0, f1, f10, f11, f12 and 15 more" in (sentence_of(many, feed=MS) or "")


def test_a_program_that_names_no_outputs_gives_all_that_it_defines() -> None:
    rules = "initiatedAt(busy(X)=true, T) :- happensAt(begin(X), T). terminatedAt(busy(X)=true, T) :- happensAt(finish(X), T)."
    inputs = {"begin": {"args": ["entity"]}, "finish": {"args": ["entity"]}}
    specification = {"family": "calculus", "program": rules, "inputs": inputs, "window": 10, "step": 5}
    assert kinds_of(specification) == ["busy"]
    assert sentence_of(specification, feed=TICKS) == "Runs a program of rules: recognises busy over the last 10 ticks, every 5 ticks."
    assert kinds_of({**specification, "program": "no rules :-"}) == []


GERMAN: list[tuple[dict[str, Any], Feed, str]] = [
    ({"family": "border", **PORT, "segments": True}, MS, "Meldet, wenn etwas port A betritt oder port A verlässt, auch zwischen zwei Meldungen."),
    (
        {"family": "transition", **PORT, "within": "P3D", "types": ["passed", "stayed_in"], "where": [["speed", ">", 3]]},
        MS,
        "Meldet, wenn etwas mit speed über 3 port A betritt und innerhalb von 3 Tagen wieder herauskommt oder port A betritt und länger als 3 Tage "
        "bleibt.",
    ),
    (
        {"family": "occupancy", **PORT, "count": [">=", 5], "where": [["kind", "in", ["tug", "tanker"]]], "lasting": "PT10M", "stale": "PT6M"},
        MS,
        "Meldet, solange mindestens 5 mit kind gleich tug oder tanker in port A sind, mindestens 10 Minuten lang. Eine Meldung gilt für 6 Minuten.",
    ),
    ({"family": "occupancy", **PORT, "count": ["<=", 0]}, MS, "Meldet, solange nichts in port A ist."),
    (
        {"family": "encounter", "a": {"where": [["kind", "=", "tug"]]}, "distance": 300, "every": "PT10S", "gap": "PT3M", "lasting": "PT5M"},
        EARTH_WITH_COLUMNS,
        "Meldet, solange etwas mit kind gleich tug und etwas höchstens 300 m voneinander entfernt sind, mindestens 5 Minuten lang. Geprüft wird im "
        "Abstand von 10 Sekunden; eine Meldung gilt für 3 Minuten.",
    ),
    (
        {"family": "arrival", **PORT, "within": "PT10M", "over": "PT1M", "gap": "PT2M"},
        EARTH,
        "Meldet, solange etwas auf dem Weg nach port A ist: Es wäre innerhalb von 10 Minuten darin, wenn es geradeaus weiterginge wie zuletzt "
        "1 Minute lang. Eine Meldung gilt für 2 Minuten.",
    ),
    (
        {
            "family": "motion",
            "every": "PT10S",
            "horizon": "PT1H",
            "predicates": [bank("bank 1"), bank("bank 2"), {"outside": {"region": "cameras"}, "window": ["PT1H", 0], "quantifier": "forall"}],
        },
        EARTH,
        "Findet im Abstand von 10 Sekunden jedes Objekt, das in bank 1 war, dann in bank 2 war, dann cameras ununterbrochen seit 1 Stunde fernblieb, "
        "alles vor höchstens 1 Stunde.",
    ),
    (
        {
            "family": "constraint",
            "variables": {"low": {"where": [["pressure", "<", 1006]]}, "warm": {}},
            "constraints": [{"between": ["low", "warm"], "dt": [0, "PT12H"], "distance": {"max": 500_000}}],
        },
        EARTH_WITH_COLUMNS,
        "Findet 2 verschiedene Ereignisse: low (pressure unter 1006) und warm (beliebig); dabei gilt: warm kommt höchstens 12 Stunden nach low und "
        "low und warm liegen höchstens 500 km auseinander.",
    ),
    (
        {
            "family": "composite",
            "primitives": {"SHELF": {"where": [["kind", "=", "shelf"]]}, "EXIT": {"inside": {"region": "gate"}}},
            "pattern": {"sequence": ["SHELF", "EXIT"], "bounds": [None, "PT5M"]},
            "per": "entity",
            "within": "PT10M",
        },
        MS,
        "Meldet SHELF, dann innerhalb von 5 Minuten EXIT, alles von einem Objekt und innerhalb von 10 Minuten. SHELF bedeutet kind gleich shelf und "
        "EXIT bedeutet in gate.",
    ),
]


@pytest.mark.parametrize(("specification", "feed", "sentence"), GERMAN)
def test_sentences_are_in_the_readers_language(specification: dict[str, Any], feed: Feed, sentence: str) -> None:
    with translation.override("de"):
        assert sentence_of(specification, feed=feed) == sentence
