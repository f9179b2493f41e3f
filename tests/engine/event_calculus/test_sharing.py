"""Pairs of a program distributed over partitions: which relations can be distributed, and that
every number of partitions gives the same answers as one and as the oracle."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.event_calculus.operator import CalculusOperator
from engine.event_calculus.partitioning import Relation, partitioning_of
from engine.event_calculus.sharing import Key, sharing_of
from engine.event_calculus.specification import CalculusSpecification
from engine.model.events import HEARTBEAT, Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.engine.event_calculus.recordings import query_of
from tests.engine.event_calculus.test_partitioning import ENTITIES, FEED, answer, changed, query, table
from tests.engine.event_calculus.worlds import FACTS, LAST, Row, by_oracle, rows
from tests.examples import examples
from webapp.demo.simulation.scenarios import read_scenario

LATENESS = 6
YARD = Feed.from_json(
    {
        "name": "yard",
        "crs": "planar",
        "time": "ticks",
        "tick": 1,
        "lateness": LATENESS,
        "columns": {"entity2": "string", "speed": "float", "came": "int"},
    }
)
BASE = """
initiatedAt(slow(X)=true, T) :- happensAt(ev(X), T).
terminatedAt(slow(X)=true, T) :- happensAt(go(X), T).
holdsFor(both(X, Y)=true, I) :- holdsFor(near(X, Y)=true, A), holdsFor(slow(X)=true, B), holdsFor(slow(Y)=true, C), intersect_all([A, B, C], I).
"""
PIECES = [
    "initiatedAt(met(X, Y)=true, T) :- happensAt(start(near(X, Y)=true), T), \\+ holdsAt(slow(Y)=true, T). "
    "terminatedAt(met(X, _)=true, T) :- happensAt(go(X), T).",
    "initiatedAt(met(X, Y)=false, T) :- happensAt(end(both(X, Y)=true), T). terminatedAt(met(_, Y)=true, T) :- happensAt(ev(Y), T).",
    "initially(met(a, b)=true). fi(met(X, Y)=true, met(X, Y)=false, 5). initiatedAt(met(X, Y)=true, T) :- happensAt(start(near(Y, X)=true), T).",
    "holdsFor(sym(X, Y)=true, I) :- holdsFor(both(X, Y)=true, A), holdsFor(both(Y, X)=true, B), union_all([A, B], I).",
    "happensAt(greet(X, Y), T) :- happensAt(start(both(X, Y)=true), T), \\+ happensAt(go(X), T), X \\= Y.",
    # About the facts that all partitions know.
    "happensAt(nod(X, Y), T) :- happensAt(tie(X, Y), T), \\+ holdsAt(slow(Y)=true, T).",
    "initiatedAt(hot(X, Y)=true, T) :- happensAt(start(near(X, Y)=true), T), \\+ holdsAt(both(Y, X)=true, T), kind(X, K), K > 1.",
    "terminatedAt(hot(X, Y)=true, T) :- happensAt(end(near(X, Y)=true), T). initiatedAt(hot(X, Y)=true, T) :- happensAt(tie(Y, X), T).",
    "grounding(far(X, Y)=true) :- kind(X, _), kind(Y, _). holdsFor(far(X, Y)=true, I) :- holdsFor(near(X, Y)=true, A), complement_all([A], I).",
    "holdsFor(long(X, Y)=true, I) :- holdsFor(both(X, Y)=true, A), intDurGreater(A, 2, I).",
    "initiatedAt(seen(X)=V, T) :- happensAt(ev(X), T), kind(X, V). holdsFor(alike(X, Y)=true, I) :- "
    "holdsFor(seen(X)=V, A), holdsFor(near(X, Y)=true, B), holdsFor(seen(Y)=V, C), intersect_all([A, B, C], I).",
]
BY_ENTITY = [
    "initiatedAt(crowd(X)=true, T) :- happensAt(start(near(X, _)=true), T), findall(Y, holdsAt(near(X, Y)=true, T), L), length(L, N), N > 1.",
    "holdsFor(company(X)=true, I) :- holdsFor(near(X, Y)=true, A), holdsFor(slow(X)=true, B), intersect_all([A, B], I), kind(Y, _).",
]
TOGETHER = [
    "holdsFor(three(X, Z)=true, I) :- holdsFor(near(X, Y)=true, A), holdsFor(both(Y, Z)=true, B), intersect_all([A, B], I), kind(Y, _).",
    "initiatedAt(any=true, T) :- happensAt(start(near(_, _)=true), T). terminatedAt(any=true, T) :- happensAt(go(_), T).",
    "initiatedAt(leader(b)=true, T) :- happensAt(start(near(a, b)=true), T).",
]
DOMAIN = """
dynamicDomain(id(_)). grounding(ev(X)) :- id(X). grounding(lone(X, Y)=true) :- id(X), id(Y), X @< Y. grounding(lone(X, Y)=false) :- id(X), id(Y).
initiatedAt(lone(X, _)=true, T) :- happensAt(ev(X), T). initiatedAt(lone(_, Y)=false, T) :- happensAt(go(Y), T).
"""
TESTS = st.sampled_from(["", ", X @< Y", ", Y @< X", ", X \\= Y"])


@st.composite
def lasting(draw: st.DrawFn) -> str:
    """Pairs of members, each of which is near or apart, in the manner of RTEC's CAVIAR; not all of
    them make members that stay."""
    named = draw(st.lists(st.sampled_from(["ev(X)", "go(X)", "place(X)", "slow(X)=true"]), unique=True))
    pairs = [("apart(X, Y)=true", draw(TESTS)), ("near(X, Y)=true", draw(TESTS)), ("parted(X, Y)=true", draw(TESTS))]
    others = draw(st.lists(st.sampled_from(["both(X, Y)=true", "parted(X, Y)=false", "met(X, Y)=false"]), unique=True))
    pairs += [(pair, draw(TESTS)) for pair in others]
    return (
        "\ndynamicDomain(id(_))."
        + "".join(f" grounding({one}) :- id(X)." for one in named)
        + "".join(f" grounding({pair}) :- id(X), id(Y){test}." for pair, test in pairs)
        + """
holdsFor(apart(X, Y)=true, I) :- holdsFor(near(X, Y)=true, A), complement_all([A], I).
initiatedAt(parted(X, Y)=true, T) :- happensAt(start(apart(X, Y)=true), T), \\+ happensAt(go(X), T).
initiatedAt(parted(X, _)=true, T) :- happensAt(ev(X), T).
initiatedAt(parted(_, Y)=false, T) :- happensAt(go(Y), T).
"""
    )


@st.composite
def pair_programs(draw: st.DrawFn, *, domains: bool = True) -> str:
    pieces = draw(st.lists(st.sampled_from(PIECES), max_size=4, unique=True))
    pieces += draw(st.one_of(st.just([]), st.lists(st.sampled_from(BY_ENTITY), max_size=1), st.lists(st.sampled_from(TOGETHER), max_size=1)))
    if domains and not draw(st.integers(0, 2)):
        pieces.append(draw(lasting()) if draw(st.integers(0, 3)) else DOMAIN)
    return BASE + "\n".join(pieces)


def windows(draw: st.DrawFn) -> dict[str, Any]:
    step = draw(st.sampled_from([1, 3, 5, 12]))
    return {"step": step, "window": step + draw(st.integers(0, 12)), "edge": draw(st.sampled_from(["exact", "rtec"]))}


@settings(max_examples=examples(25), deadline=None)
@given(pair_programs(domains=False), rows(), st.integers(1, 9), st.sampled_from([1, 2, 4]), st.sampled_from(["rtec", "rtec1"]))
def test_any_number_of_partitions_is_the_oracle(text: str, stream: list[Row], batch_rows: int, partitions: int, dialect: str) -> None:
    """One window over everything; `near` comes as intervals of pairs. (The
    oracle knows no domains.)"""
    program = query(text).specification.program
    outputs = sorted({name for name, _ in program.fluents | program.events})
    asked = query(text, outputs=outputs, window=LAST + 30, step=LAST + 30, origin=LAST, dialect=dialect)
    # The oracle knows what is true at LAST, where the input has to end.
    stream = [*sorted(stream, key=lambda row: row[2]), ("go", ("nobody",), LAST, LAST + 1)]
    total = sum(answer(asked, table(stream), batch_rows, partitions), Counter())
    facts = {(name, arguments, value or "", start, end) for name, arguments, value, start, end in total}
    assert facts == by_oracle(FACTS + text, stream, dialect), text


# -- positions, critical points, recorded arrivals -------------------------------------------------

NEAR = [
    "spatial(near(X, Y)=true, proximity(place, 4, 3)).\n",
    "spatial(near(X, Y)=true, distance(place, 3)). grounding(near(X, Y)=true) :- X @< Y.\n",
]
KINDS = ["place", "place", "place", "ping", "ping", "ev", "ev", "go", "tie"]
POINTS = {"synopsis": {"speed": "speed", "gap": 5, "keep": 2, "event": "ping"}}


@st.composite
def questions(draw: st.DrawFn) -> RegisteredQuery:
    """A program over pairs that are near by their positions; its events are rows, or critical
    points of a synopsis; rows may have their time of arrival."""
    text = draw(st.sampled_from(NEAR)) + draw(pair_programs())
    inputs = {name: entry for name, entry in ENTITIES.items() if name in ("ev", "go", "tie")} | {"place": {"args": ["entity"]}}
    more: dict[str, Any] = {"arrival": "came"} if not draw(st.integers(0, 4)) else {}
    if draw(st.booleans()):
        text = text.replace("ev(X)", "stop_start(X)").replace("ev(Y)", "stop_start(Y)").replace("go(X)", "gap_end(X)")
        inputs = {name: inputs[name] for name in ("tie", "place", "go")}
        more |= POINTS
    document = {"family": "calculus", "version": 1, "program": FACTS + text, "inputs": inputs, "distributed": True, **windows(draw), **more}
    return RegisteredQuery("q", 1, check(document, YARD))


@st.composite
def positions(draw: st.DrawFn) -> pa.Table:
    """Rows up to the lateness late, and heartbeats."""
    names, moments = st.sampled_from(["a", "b", "c", "d"]), st.integers(0, LAST)
    coordinates = st.integers(0, 5).map(float)
    row = st.tuples(st.sampled_from(KINDS), names, moments, coordinates, coordinates, names,
                    st.sampled_from([0.0, 1.0, 9.0]), st.integers(0, 5))  # fmt: skip
    found = draw(st.lists(row, min_size=draw(st.sampled_from([0, 25])), max_size=35))
    found += [("beat", "a", t, 0.0, 0.0, "a", 0.0, 0) for t in draw(st.lists(st.integers(0, LAST + 20), max_size=2))]
    delays = [draw(st.integers(0, LATENESS)) for _ in found]
    found = [one for _, one in sorted(zip(delays, found, strict=True), key=lambda pair: pair[0] + pair[1][2])]
    columns = dict(zip(("event", "entity", "t", "x", "y", "entity2", "speed", "came"), zip(*found, strict=True), strict=True)) if found else {}
    types = {"event": pa.string(), "entity": pa.string(), "t": pa.int64(), "x": pa.float64(), "y": pa.float64(), "entity2": pa.string()}
    types |= {"speed": pa.float64(), "came": pa.int64()}
    made = pa.table({name: pa.array(list(columns.get(name, ())), kind) for name, kind in types.items()})
    made = made.set_column(made.schema.get_field_index("came"), "came", pc.add(made["came"], made["t"]))
    good, dead = check_rows(made, YARD)
    assert not dead
    events = pc.if_else(pc.equal(good["event"], "beat"), HEARTBEAT, good["event"])
    return Stamper().stamp(good.set_column(good.schema.get_field_index("event"), "event", events))


def by_batches(
    asked: RegisteredQuery, stream: pa.Table, batch_rows: int, partitions: int, *, restart: bool = False
) -> list[Counter[tuple[Any, ...]]]:
    evaluator = Evaluator.start(YARD, [asked], partitions)
    found = []
    for first in range(0, len(stream), batch_rows):
        found.append(changed(evaluator.process(stream.slice(first, batch_rows))))
        if restart:
            evaluator = Evaluator.load(YARD, [asked], evaluator.dump())
    return [*found, changed(evaluator.finish())]


@settings(max_examples=examples(25), deadline=None)
@given(questions(), positions(), st.integers(1, 9), st.sampled_from([2, 3, 4]), st.booleans())
def test_any_number_of_partitions_answers_as_one(asked: RegisteredQuery, stream: pa.Table, batch_rows: int, partitions: int, restart: bool) -> None:
    """Batch by batch: late rows revise, pairs continue over windows' edges and restarts, critical
    points are made by entity first."""
    assert by_batches(asked, stream, batch_rows, partitions, restart=restart) == by_batches(asked, stream, batch_rows, 1)


# -- what is distributed
# --------------------------------------------------------------------------------


def spread(specification: CalculusSpecification) -> tuple[dict[str, Key], dict[str, str]]:
    one = specification
    parts = partitioning_of(one.plan, one.inputs, one.outputs, one.settings.dialect)
    found = sharing_of(one.plan, parts, one.outputs, computed=one.arrival is None and one.synopsis is None)
    return {relation.name: key for relation, key in found.keys.items()}, {relation.name: reason for relation, reason in found.undistributed.items()}


def demo(feed: str, name: str) -> CalculusSpecification:
    found: CalculusSpecification = next(query.specification for query in read_scenario(feed).registered() if query.id == name)
    return found


PAIR = (0, 1)


def test_what_two_do_is_spread_by_pair() -> None:
    assert spread(query_of("maritime", "rtec_2025", distributed=True).specification) == (
        dict.fromkeys(["pilotOps", "rendezVous", "tugging", "proximity"], PAIR), {},
    )  # fmt: skip
    names = ["closeSymmetric_30", "close_24", "close_25", "close_30", "close_34", "fighting", "greeting1", "greeting2", "leaving_object", "meeting"]
    # `close_34=false` is the complement over all pairs of members: all
    # partitions know who they are.
    assert spread(query_of("caviar", "rtec_2025", distributed=True).specification) == (dict.fromkeys([*names, "moving"], PAIR), {})
    names = ["close", "fighting", "greeting", "leaving_object", "meeting", "moving"]
    assert spread(demo("plaza", "What people do")) == (dict.fromkeys(names, PAIR), {})
    # Critical points are derived first; all partitions know the facts about one vessel
    # (`withinArea(Vessel, Area)` too).
    assert spread(query_of("maritime", "plain_positions").specification)[0] == dict.fromkeys(["pilotOps", "proximity", "rendezVous", "tugging"], PAIR)
    assert spread(demo("strait", "Pursuits and meetings at sea")) == (dict.fromkeys(["near", "pursuit", "rendezVous"], PAIR), {})


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (BASE, {"both": PAIR, "near": PAIR}),
        (BASE + PIECES[3], {"both": PAIR, "sym": PAIR, "near": PAIR}),
        # Counts of an entity's partners need all of them: by entity, not by pair.
        (NEAR[0] + BY_ENTITY[0], {"near": (0,), "crowd": (0,)}),
        # A join of two pairs by their common entity is in no share as a whole.
        (NEAR[0] + BASE + TOGETHER[0], {}),
        (NEAR[0] + BASE + TOGETHER[1], {}),
        (NEAR[0] + BASE + TOGETHER[2], {}),
        # Two relations that do not read each other.
        (BASE + "holdsFor(x(X, Y)=true, I) :- holdsFor(iv(X)=true, A), holdsFor(iv(Y)=true, B), intersect_all([A, B], I).",
         {"both": PAIR, "near": PAIR, "x": PAIR}),
    ],
)  # fmt: skip
def test_what_is_spread(text: str, keys: dict[str, Key]) -> None:
    inputs = dict(ENTITIES) | {"place": {"args": ["entity"]}}
    if "spatial" in text:
        del inputs["near"]
    assert spread(query(text, inputs=inputs).specification)[0] == keys


def test_what_is_not_spread_says_why() -> None:
    """An answer about one pair may make an entity a member for all other
    pairs, which are in other partitions."""
    keys, together = spread(query(BASE + DOMAIN).specification)
    assert keys == {"both": PAIR}
    assert together == {"lone": "lone: it asks for all members of id, and any pair's answer may make one"}
    # Long after its last row b is a member because lone(a, b) holds, so lone(aa, b) begins, which
    # is another partition's pair.
    stream: list[Row] = [("ev", ("a",), 1, 2), ("ev", ("b",), 1, 2), ("ev", ("aa",), 20, 21)]
    total = sum(answer(query(BASE + DOMAIN, outputs=["lone"]), table(stream), 9, 4), Counter())
    assert ("lone", ("aa", "b"), "true", 21, None) in total


APART = """
dynamicDomain(id(_)). grounding(ev(X)) :- id(X). grounding(near(X, Y)=true) :- id(X), id(Y), X @< Y.
grounding(apart(X, Y)=true) :- id(X), id(Y), X @< Y.
holdsFor(apart(X, Y)=true, I) :- holdsFor(near(X, Y)=true, A), complement_all([A], I).
"""


@pytest.mark.parametrize(
    ("changed", "outputs", "members"),
    [
        ({}, ["near", "apart"], {("id", 1): 2}),
        ({"apart(X, Y)=true) :- id(X), id(Y), X @< Y": "apart(X, Y)=true) :- id(X), id(Y)"}, ["near", "apart"], {("id", 1): 1}),
        ({"(apart(X, Y)=true) :- id(X), id(Y), X @< Y": "(apart(X, Y)=true) :- id(Y), id(X), Y \\= X"}, ["near", "apart"], {("id", 1): 2}),
        # While a pair is near it has no asserted answer, and its members are forgotten.
        ({}, ["apart"], {}),
        ({}, ["near"], {}),
        # Not all pairs are apart or near.
        ({"I) :- holdsFor(near": "I) :- X \\= a, holdsFor(near"}, ["near", "apart"], {}),
        ({"X @< Y.\nholdsFor": "X @< Y, kind(X, _).\nholdsFor"}, ["near", "apart"], {}),
        # An entity in an answer about itself is known to its partition alone.
        ({"grounding(near(X, Y)=true) :- id(X), id(Y), X @< Y": "grounding(near(X, Y)=true) :- id(X), id(Y)"}, ["near", "apart"], {}),
        ({"grounding(near(X, Y)=true) :- id(X), id(Y), X @< Y": "grounding(near(X, Y)=true) :- id(X), kind(Y, _), X @< Y"}, ["near", "apart"], {}),
    ],
)  # fmt: skip
def test_members_that_all_partitions_know(changed: dict[str, str], outputs: list[str], members: dict[Any, int]) -> None:
    text = APART
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    inputs = {name: ENTITIES[name] for name in ("ev", "go")} | {"place": {"args": ["entity"]}}
    one = query(NEAR[0] + text, inputs=inputs, outputs=outputs).specification
    found = sharing_of(one.plan, partitioning_of(one.plan, one.inputs, one.outputs, one.settings.dialect), one.outputs, computed=True)
    assert found.lasting == members
    assert found.keys.keys() == ({Relation(True, "near", 2), Relation(True, "apart", 2)} if members else set())


@pytest.mark.parametrize("partitions", [2, 3, 4])
def test_an_entity_in_another_partitions_answer_is_a_member(partitions: int) -> None:
    """The rows of a and b are long past when c comes; that both are members nevertheless follows
    from their answer, which one partition has."""
    made = [("place", name, t, 0.0) for name, t in [("a", 1), ("b", 1), ("c", 40), ("d", 80)]]
    columns = dict(zip(("event", "entity", "t", "x"), map(list, zip(*made, strict=True)), strict=True))
    good, _ = check_rows(pa.table({**columns, "y": [0.0] * 4, "speed": [0.0] * 4}), YARD)
    inputs = {name: ENTITIES[name] for name in ("ev", "go")} | {"place": {"args": ["entity"]}}
    text = NEAR[0] + APART.replace("grounding(ev(X))", "grounding(place(X))")
    asked = query(text, inputs=inputs, outputs=["near", "apart"], window=2, step=2)
    stream = Stamper().stamp(good)
    expected = by_batches(asked, stream, 1, 1)
    assert {entities for kind, entities, *_ in sum(expected, Counter()) if kind == "apart"} == set(itertools.combinations("abcd", 2))
    assert by_batches(asked, stream, 1, partitions, restart=True) == expected


def test_each_partition_has_a_share() -> None:
    """No two shares of a query are in one partition, so all cores have the same work."""
    asked = query(BASE)
    for partitions in (2, 3, 4, 7):
        evaluator = Evaluator.start(FEED, [asked], partitions)
        evaluator.process(table([("ev", (name,), 1, 2) for name in "abcdef"]))
        shares = [part.relational.states["calculus"][0].share for part in evaluator._relational]
        assert sorted(shares) == list(range(partitions))


CROWD = pa.table(
    {
        "event": ["place", "ping"] * 60,
        "entity": [f"n{i // 2 % 12}" for i in range(120)],
        "t": [i // 24 for i in range(120)],
        "x": [float(i // 2 % 12 % 4) for i in range(120)],
        "y": [float(i // 2 % 12 // 4) for i in range(120)],
        "speed": [0.0] * 120,
    }
)


@pytest.mark.parametrize("made", [{}, POINTS])
@pytest.mark.parametrize(("near", "more"), [(NEAR[0], ""), (NEAR[1], ""), (NEAR[0], BY_ENTITY[0])])
def test_each_partition_measures_its_own_pairs_alone(near: str, more: str, made: dict[str, Any]) -> None:
    """The distances that all partitions measure are those of one; of pairs known by one entity,
    those between two partitions twice."""
    inputs = {name: {"args": ["entity"]} for name in ("place", "ev", "go")}
    document = {
        "family": "calculus",
        "version": 1,
        "program": near + (more or BASE),
        "inputs": inputs,
        "distributed": True,
        "window": 9,
        "step": 3,
        **made,
    }
    asked = RegisteredQuery("q", 1, check(document, YARD))
    good, dead = check_rows(CROWD, YARD)
    assert not dead
    measured, stages = {}, {}
    for partitions in (1, 2, 4):
        evaluator = Evaluator.start(YARD, [asked], partitions)
        stages[partitions] = changed(evaluator.process(Stamper().stamp(good))) + changed(evaluator.finish())
        measured[partitions] = [part.relational.states["calculus"][0].pairs_examined for part in evaluator._relational]
        assert min(measured[partitions]) > 0
    assert stages[1] and stages[1] == stages[2] == stages[4]
    if more:
        assert measured[1][0] < sum(measured[2]) < 2 * measured[1][0]
    else:
        assert measured[1][0] == sum(measured[2]) == sum(measured[4])
        assert max(measured[2]) < 0.8 * measured[1][0]


def test_what_stays_together_is_computed_once() -> None:
    """Other partitions neither measure nor evaluate the facts that only the first asserts."""
    text = NEAR[0] + TOGETHER[1] + "\nholdsFor(x(X, Y)=true, I) :- holdsFor(iv(X)=true, A), holdsFor(iv(Y)=true, B), intersect_all([A, B], I)."
    inputs = {name: ENTITIES[name] for name in ("iv", "go")} | {"place": {"args": ["entity"]}}
    document = {"family": "calculus", "version": 1, "program": text, "inputs": inputs, "distributed": True, "window": 9, "step": 3}
    asked = RegisteredQuery("q", 1, check(document, YARD))
    assert spread(asked.specification)[0] == {"x": PAIR}
    evaluator = Evaluator.start(YARD, [asked], 3)
    evaluator.process(Stamper().stamp(check_rows(CROWD, YARD)[0]))
    states = [part.relational.states["calculus"][0] for part in evaluator._relational]
    assert [state.share for state in states if state.pairs_examined] == [0]


def test_what_runs_where_is_reported() -> None:
    """`--stats` lists the parts of a program."""
    stages = CalculusOperator().parts(query_of("maritime", "rtec_2025", distributed=True))
    assert (stages["by_pair"], stages["in_each_partition"], stages["in_one_partition"]) == (["pilotOps", "rendezVous", "tugging"], [], {})
    assert "withinArea" in stages["by_entity"]
    stages = CalculusOperator().parts(query_of("caviar", "rtec_2025", distributed=True))
    assert stages["by_entity"] == ["activeOrInactivePerson", "person"] and stages["in_one_partition"] == {}
    assert {"close_34", "meeting", "moving"} <= set(stages["by_pair"])
    stages = CalculusOperator().parts(query(BASE + DOMAIN))
    assert "it asks for all members of id" in stages["in_one_partition"]["lone"]
