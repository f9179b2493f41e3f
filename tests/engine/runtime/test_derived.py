"""Answers as events: graphs of queries in one process against the oracle, and what is refused."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.derive import graph_faults, sources_of
from engine.model.changes import ANSWERS
from engine.model.faults import Refused
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.runtime.derived import GraphEvaluator
from engine.runtime.evaluator import Evaluator
from engine.sources.delivery import Shuffle
from engine.specification import check
from tests.examples import examples
from tests.oracles.derived import facts
from tests.strategies import stamped

FEED = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, lateness=3, dedupe=False, columns={"v": ColumnType.INT})
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
UPSTREAM = {
    "in and out": {"family": "border", "region": SQUARE},
    "stays": {"family": "transition", "region": SQUARE, "within": 2},
    "track": {"family": "motion", "predicates": [{"inside": SQUARE, "window": [3, 0]}], "every": 2},
    "crowd": {"family": "occupancy", "region": SQUARE, "count": [">=", 2]},
    "pair": {"family": "encounter", "distance": 1, "every": 2, "gap": 3},
    "on the way": {"family": "arrival", "region": SQUARE, "within": 8, "over": 9, "gap": 4},
}
SOURCES = [
    {"query": "in and out", "kind": "in", "at": "start"},
    {"query": "in and out", "kind": "out", "at": "end"},
    {"query": "stays", "kind": "stayed_in", "at": "end"},
    {"query": "stays", "kind": "passed", "at": "end"},
    {"query": "track", "kind": "match", "at": "start"},
    {"query": "track", "kind": "match", "at": "end"},
    {"query": "crowd", "kind": "occupied", "at": "start"},
    {"query": "crowd", "kind": "occupied", "at": "end"},
    {"query": "pair", "kind": "met", "at": "start"},
    {"query": "pair", "kind": "met", "at": "end"},
    {"query": "on the way", "kind": "arriving", "at": "start"},
    {"query": "on the way", "kind": "arriving", "at": "end"},
]
LATE_SOURCES = [
    {"query": "stays", "kind": "returned", "at": "start"},
    {"query": "stays", "kind": "stayed_in", "at": "start"},
    {"query": "full", "kind": "occupied", "at": "start"},
    {"query": "convoy", "kind": "met", "at": "start"},
    {"query": "slow", "kind": "met", "at": "start"},
    {"query": "slow", "kind": "met", "at": "end"},
    {"query": "passing", "kind": "in", "at": "start"},
    {"query": "passing", "kind": "out", "at": "end"},
    {"query": "first", "kind": "detection", "at": "start"},
    {"query": "second", "kind": "match", "at": "start"},
]
"""Those that only calculus takes: known later than they happen."""
UPSTREAM |= {
    "full": UPSTREAM["crowd"] | {"lasting": 2, "stale": 6},
    "convoy": UPSTREAM["pair"] | {"lasting": 3},
    "slow": UPSTREAM["pair"] | {"position": "interpolated"},
    "passing": {"family": "border", "region": SQUARE, "segments": True},
}
BY_EVENT = {name.upper(): {"where": [["event", "=", name]]} for name in ("a", "b", "position")}
PATTERNS = ["A : B", "A AND POSITION", "A : !B[2]", "POSITION : !A : B", "!B[3] : A", "A AND !B[1]", "A OR B"]
PROGRAM = """
initiatedAt(busy(X)=true, T) :- happensAt(a(X), T).
terminatedAt(busy(X)=true, T) :- happensAt(b(X), T).
initiatedAt(rich(X)=true, T) :- happensAt(c(X, V), T), V >= 1.
terminatedAt(rich(X)=true, T) :- happensAt(position(X), T), \\+ happensAt(a(X), T).
initiatedAt(together(X, Y)=true, T) :- happensAt(d(X, Y), T).
terminatedAt(together(X, Y)=true, T) :- happensAt(b(X), T).
"""
INPUTS = {
    "a": {"args": ["entity"]},
    "b": {"args": ["entity"]},
    "c": {"args": ["entity", "value"]},
    "d": {"args": ["entity", "entity2"]},
    "position": {"args": ["entity"]},
}
CALCULUS = {"family": "calculus", "program": PROGRAM, "outputs": ["busy", "rich", "together"], "window": 300, "step": 4, "inputs": INPUTS}


@st.composite
def graphs(draw):
    """One query of each upstream family, and queries that derive from them, from one another and,
    with rules, from answers known late."""
    found = dict(UPSTREAM)
    derive = {"a": draw(st.sampled_from(SOURCES)), "b": draw(st.sampled_from(SOURCES))}
    composite = {
        "family": "composite",
        "pattern": draw(st.sampled_from(PATTERNS)),
        "primitives": BY_EVENT,
        "within": draw(st.sampled_from([0, 4, 9])),
    }
    found["first"] = composite | {"per": draw(st.sampled_from([None, "entity"])), "derive": derive}
    other = draw(st.sampled_from(SOURCES))
    found["second"] = {
        "family": "constraint",
        "variables": {"V1": BY_EVENT["A"], "V2": BY_EVENT["B"]},
        "constraints": [{"between": ["V1", "V2"], "dt": [-4, 4]}],
        "derive": {"a": {"query": "first", "kind": "detection", "at": "end"}, "b": other},
    }
    if draw(st.booleans()):
        found["second"]["constraints"].append({"between": ["V1", "V2"], "compare": [["V2.value", ">=", 1]]})
    found["rules"] = CALCULUS | {"derive": {event: draw(st.sampled_from(SOURCES + LATE_SOURCES)) for event in "abcd"}}
    return found


@st.composite
def streams(draw):
    rows, t = [], 0
    for _ in range(draw(st.integers(0, 22))):
        t += draw(st.sampled_from([0, 0, 1, 1, 2]))
        x, y = draw(st.sampled_from([(0, 0), (1, 1), (3, 3), (4, 4), (None, None)]))
        rows.append({"event": "position", "entity": draw(st.sampled_from("pqr")), "t": t, "x": x, "y": y, "v": draw(st.sampled_from([None, 1]))})
    return rows


def registered(documents, version=1):
    return [RegisteredQuery(name, version, check(document, FEED), sources_of(document)) for name, document in documents.items()]


def begin(partitions):
    return lambda queries: Evaluator.start(FEED, queries, partitions)


def cut(table, chance):
    at = 0
    while at < table.num_rows:
        size = chance.randint(1, 6)
        yield table.slice(at, size)
        at += size


def answered(documents, table, chance):
    """The answers with batches of any size, restarts, and queries that join, or
    are edited, in mid-stream."""
    queries = registered(documents)
    edited = {query.id for query in queries if chance.random() < 0.2}
    while more := {query.id for query in queries if any(source.query in edited for source in query.sources)} - edited:
        edited |= more
    # What is edited ran before under another version, or never; queries that derive from it start
    # again.
    before = [query for query in queries if query.id not in edited]
    old = [] if chance.random() < 0.5 else [query for query in registered(documents, 0) if query.id in edited]
    evaluator = GraphEvaluator.start(FEED, [*before, *old], begin(chance.randint(1, 3)))
    middle = chance.randint(0, table.num_rows) if edited else 0
    asserted = [ANSWERS.empty_table()]
    for batch in cut(table.slice(0, middle), chance):
        asserted.append(evaluator.process(batch).changes)
        evaluator = restarted(evaluator, chance)
    if edited:
        evaluator.register(before)
        side = evaluator.side_evaluator([query for query in queries if query.id in edited])
        for batch in cut(table.slice(0, middle), chance):
            side_changes = side.process(batch).changes
            assert set(side_changes["query"].to_pylist()) <= edited
            asserted.append(side_changes)
        evaluator.register(queries, side)
    for batch in cut(table.slice(middle), chance):
        asserted.append(evaluator.process(batch).changes)
        evaluator.check()
        evaluator = restarted(evaluator, chance)
    asserted.append(evaluator.finish().changes)
    return final(asserted)


def final(asserted):
    """The sum of all changes."""
    total = Counter()
    for row in pa.concat_tables(asserted).to_pylist():
        value = None if row["score"] is None and row["value"] == "true" else row["score"]
        fact = row["query"], row["kind"], tuple(row["entities"]), value, row["start"], row["end"]
        total[fact] += row["weight"] * row["version"]
    assert min(total.values(), default=0) >= 0
    return Counter({fact: count for fact, count in total.items() if count})


def restarted(evaluator, chance):
    if chance.random() < 0.75:
        return evaluator
    return GraphEvaluator.load(FEED, evaluator.queries, evaluator.dump(), lambda queries, data: Evaluator.load(FEED, queries, data))


def expected(documents, rows):
    found = facts([row | {"value": None} for row in rows], documents).items()
    return Counter((name, kind, tuple(entities), value, start, end) for name, answers in found for kind, entities, value, start, end in answers)


@settings(max_examples=examples(75))
@given(documents=graphs(), rows=streams(), seed=st.integers(0, 2**16), shuffled=st.booleans())
def test_graphs_of_queries_answer_as_the_definition_says(documents, rows, seed, shuffled):
    assert not graph_faults(documents)
    chance = random.Random(seed)
    table = stamped(rows, FEED)
    if shuffled and rows:
        moved = Shuffle(FEED, FEED.lateness, seed).shuffled([table.select(table.column_names[:-2])])
        table = stamped(pa.concat_tables(moved).to_pylist(), FEED)
    numbered = [row | {"seq": seq} for seq, row in enumerate(rows)]
    assert answered(documents, table, chance) == expected(documents, numbered)


DERIVING = {"family": "composite", "pattern": "A", "primitives": {"A": BY_EVENT["A"]}, "within": 5}


@pytest.mark.parametrize(
    ("source", "pointer", "word"),
    [
        ({"query": "crwd", "kind": "occupied", "at": "end"}, "/derive/a/query", "'crowd'"),
        ({"query": "crowd", "kind": "occupid", "at": "end"}, "/derive/a/kind", "'occupied'"),
        ({"query": "stays", "kind": "passed", "at": "start"}, "/derive/a/at", '"end"'),
        ({"query": "slow", "kind": "met", "at": "end"}, "/derive/a/query", "interpolated"),
        ({"query": "me", "kind": "detection", "at": "end"}, "/derive/a/query", "me from me"),
    ],
)
def test_what_is_wrong_between_queries_is_said_with_its_place(source, pointer, word):
    documents = {**UPSTREAM, "slow": UPSTREAM["pair"] | {"position": "interpolated"}, "me": DERIVING | {"derive": {"a": source}}}
    (fault,) = graph_faults(documents)["me"]
    assert fault.pointer == pointer
    assert word in fault.message


def test_a_chain_of_queries_has_an_end():
    chain = {f"q{n}": DERIVING | {"derive": {"a": {"query": f"q{n - 1}", "kind": "detection", "at": "end"}}} for n in range(1, 60)}
    found = graph_faults({"q0": DERIVING, **chain})
    assert "q20" not in found
    assert [(fault.pointer, fault.message) for fault in found["q21"]] == [("/derive", "the derivation would be more than 20 queries deep")]


def test_families_without_a_use_for_events_refuse_them():
    with pytest.raises(Refused) as refused:
        check(UPSTREAM["crowd"] | {"derive": {"a": SOURCES[0]}}, FEED)
    assert [fault.pointer for fault in refused.value.faults] == ["/derive"]


def test_one_query_derives_so_many_events_and_no_more():
    check(DERIVING | {"derive": {f"e{n}": SOURCES[0] for n in range(50)}}, FEED)
    with pytest.raises(Refused, match="at most 50"):
        check(DERIVING | {"derive": {f"e{n}": SOURCES[0] for n in range(51)}}, FEED)


def test_columns_of_answers_are_known_to_queries_that_derive_only():
    document = DERIVING | {"where": [["entity2", "=", "p"], ["value", ">", 1]]}
    check(document | {"derive": {"a": SOURCES[0]}}, FEED)
    with pytest.raises(Refused):
        check(document, FEED)


def test_counters_say_how_many_events_were_derived():
    documents = {"in and out": UPSTREAM["in and out"], "here": DERIVING | {"derive": {"a": SOURCES[0], "b": SOURCES[1]}}}
    queries = [RegisteredQuery(name, 1, check(document, FEED), sources_of(document)) for name, document in documents.items()]
    graph = GraphEvaluator.start(FEED, queries, lambda given: Evaluator.start(FEED, given))
    graph.process(stamped([{"entity": "e", "t": t, "x": x, "y": 0.0} for t, x in [(0, 9.0), (10, 0.0), (20, 9.0)]], FEED))
    family = documents["here"]["family"]
    assert graph.counters()[family]["events_derived"] == 1
    graph.finish()
    assert (graph.counters()[family]["events_derived"], graph.counters()[family]["events_derived_waiting"]) == (2, 0)


def test_a_feeds_own_whole_numbers_called_value_stand_beside_those_of_answers():
    """A distance that is no whole number has a place in the feed's column `value`."""
    feed = replace(FEED, columns={"value": ColumnType.INT})
    meet = {"family": "encounter", "distance": 1, "every": 2, "gap": 3}
    near = DERIVING | {
        "primitives": {"A": {"where": [["value", ">", 0.4], ["value", "<", 7.5]]}},
        "derive": {"a": {"query": "meet", "kind": "met", "at": "end"}},
    }
    documents = {"meet": meet, "near": near | {"per": None}}
    queries = [RegisteredQuery(name, 1, check(document, feed), sources_of(document)) for name, document in documents.items()]
    graph = GraphEvaluator.local(feed, queries)
    rows = [{"entity": e, "t": t, "x": x, "y": 0.0, "value": value} for e, t, x, value in [("p", 0, 0.0, 7), ("q", 0, 0.5, 8), ("q", 4, 9.0, 0)]]
    asserted = pa.concat_tables([graph.process(stamped(rows, feed)).changes, graph.finish().changes]).to_pylist()
    found = sorted((row["entities"], row["start"]) for row in asserted if row["query"] == "near")
    assert found == [([], 0), ([], 4)], "the row with 7 and the meeting at 0.5"


def test_an_answer_about_no_one_is_no_event_of_a_query_for_each_entity():
    """Also two queries further down: a pair of two counts has two
    entities, and neither is known."""
    crowd = UPSTREAM["crowd"]
    by = {"where": [["event", "=", "a"]]}
    pair = {
        "family": "constraint",
        "variables": {"V1": by, "V2": by},
        "constraints": [{"between": ["V1", "V2"], "dt": [1, 9]}],
        "derive": {"a": {"query": "crowd", "kind": "occupied", "at": "start"}},
    }
    each = DERIVING | {"per": "entity", "derive": {"a": {"query": "pair", "kind": "match", "at": "end"}}}
    documents = {"crowd": crowd, "pair": pair, "each": each, "any": each | {"per": None}}
    graph = GraphEvaluator.start(FEED, registered(documents), begin(1))
    places = [("p", 0, 1), ("q", 0, 1), ("p", 2, 9), ("p", 4, 1), ("q", 6, 1)]
    rows = [{"entity": e, "t": t, "x": float(x), "y": float(x)} for e, t, x in places]
    asserted = pa.concat_tables([graph.process(stamped(rows, FEED)).changes, graph.finish().changes]).to_pylist()
    counted = Counter(row["query"] for row in asserted)
    assert (counted["pair"], counted["any"], counted["each"]) == (1, 1, 0)


def test_an_answer_about_no_one_satisfies_no_condition_on_its_entity():
    """A missing value does not even satisfy `!=`."""
    conditions = {"all": [], "other": [["entity", "!=", "q"]], "one": [["entity", "=", "p"]]}
    documents = {"crowd": UPSTREAM["crowd"]}
    primitives = {"A": {"where": [["event", "=", "a"]]}, "B": {"where": [["entity", "=", "nobody"]]}}
    whole = {"per": None, "pattern": "A OR B", "primitives": primitives, "derive": {"a": {"query": "crowd", "kind": "occupied", "at": "start"}}}
    documents |= {name: DERIVING | whole | {"where": where} for name, where in conditions.items()}
    graph = GraphEvaluator.start(FEED, registered(documents), begin(1))
    rows = [{"entity": e, "t": t, "x": 1.0, "y": 1.0} for e, t in [("q", 0), ("p", 1)]]
    asserted = pa.concat_tables([graph.process(stamped(rows, FEED)).changes, graph.finish().changes]).to_pylist()
    counted = Counter(row["query"] for row in asserted if row["query"] in conditions)
    assert counted == {"all": 1}
