"""Programs divided in two stages: which fluents are non-relational, and that both stages together
answer like the whole plan."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.event_calculus.partitioning import Partitioning, partitioning_of
from engine.event_calculus.shapes import base_name
from engine.event_calculus.specification import CalculusSpecification
from engine.model.events import HEARTBEAT, Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import QueryStopped, RegisteredQuery
from engine.runtime.evaluator import Evaluator, Outcome
from engine.specification import check
from tests.engine.event_calculus.recordings import add, query_of
from tests.engine.event_calculus.worlds import FACTS, INPUTS, LAST, Row, by_oracle, compiled, divided, programs, rows, with_terms
from tests.engine.runtime.test_executors import started, through
from tests.examples import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATENESS = 6
FEED = Feed.from_json(
    {"name": "yard", "crs": "planar", "time": "ticks", "tick": 1, "lateness": LATENESS, "columns": {"entity2": "string", "value": "string"}}
)
KNOWN = """
dynamicDomain(id(_)).
grounding(ev(X)) :- id(X).
grounding(pt(X)=true) :- id(X).
grounding(near(X, Y)=true) :- id(X), id(Y).
"""


ENTITIES = {name: {"args": ["entity", "entity2"][:arity]} | ({} if kind == "event" else {"fluent": kind}) for name, (kind, arity) in INPUTS.items()}
"""The inputs of the random programs: the first argument is the entity."""


def query(text: str, **changed: Any) -> RegisteredQuery:
    document = {
        "family": "calculus",
        "version": 1,
        "program": FACTS + text,
        "inputs": ENTITIES,
        "window": 9,
        "step": 3,
        "distributed": True,
        **changed,
    }
    return RegisteredQuery("q", 1, check(document, FEED))


def table(stream: list[Row]) -> pa.Table:
    """Rows in order of arrival; an interval arrives when it has ended."""
    found = pa.table(
        {
            "event": pa.array([row[0] for row in stream], pa.string()),
            "entity": pa.array([row[1][0] for row in stream], pa.string()),
            "entity2": pa.array([row[1][1] if len(row[1]) > 1 else None for row in stream], pa.string()),
            "t": pa.array([row[2] for row in stream], pa.int64()),
            "t_end": pa.array([row[3] if row[0] in ("iv", "near") else None for row in stream], pa.int64()),
        }
    )
    good, dead = check_rows(found, FEED)
    assert not dead
    # Rows from outside are never heartbeats; only ingest creates these.
    events = pc.if_else(pc.equal(good["event"], "beat"), HEARTBEAT, good["event"])
    return Stamper().stamp(good.set_column(good.schema.get_field_index("event"), "event", events))


@st.composite
def questions(draw: st.DrawFn) -> RegisteredQuery:
    """A random program, with groundings over a domain for some of its fluents, some fluents as
    outputs, and perhaps compound terms."""
    text = draw(st.one_of(programs(), programs(), divided()))
    made = query(text).specification.program
    if draw(st.booleans()):
        text += KNOWN
        for name, arity in sorted(made.fluents):
            if arity == 1 and draw(st.booleans()):
                text += f"grounding({name}(X)={draw(st.sampled_from(['on', 'true', 'V']))}) :- id(X)" + draw(st.sampled_from([".", ", kind(X, _)."]))
                text = text.replace("=V) :- id(X)", "=V) :- id(X), kind(_, V)") + "\n"
    if draw(st.integers(0, 3)) == 0:
        text = with_terms(text)
        made = query(text).specification.program
    named = sorted({base_name(name) for name, _ in made.fluents | made.events})
    outputs = draw(st.lists(st.sampled_from(named), min_size=1, unique=True))
    step = draw(st.sampled_from([1, 2, 3, 5, 12, 30]))
    return query(
        text, outputs=outputs, step=step, window=step + draw(st.integers(0, 12)), edge=draw(st.sampled_from(["exact", "rtec"])),
        dialect=draw(st.sampled_from(["rtec", "rtec", "rtec1"])),
    )  # fmt: skip


@st.composite
def streams(draw: st.DrawFn) -> list[Row]:
    """Rows up to the feed's lateness late, and heartbeats, which only advance the clock."""
    stream = [*draw(rows()), *(("beat", ("a",), t, t + 1) for t in draw(st.lists(st.integers(0, LAST + 20), max_size=3)))]
    delays = [draw(st.integers(0, LATENESS)) for _ in stream]
    return [row for _, row in sorted(zip(delays, stream, strict=True), key=lambda pair: pair[0] + pair[1][2])]


Changes = Counter[tuple[Any, ...]]


def changed(outcome: Outcome) -> Changes:
    total: Changes = Counter()
    add(total, outcome.changes)
    return total


def answer(asked: RegisteredQuery, stream: pa.Table, batch_rows: int, partitions: int, *, restart: bool = False) -> list[Changes]:
    """The changes of each batch, and of the end of the input."""
    evaluator = Evaluator.start(FEED, [asked], partitions)
    found = []
    for first in range(0, len(stream), batch_rows):
        found.append(changed(evaluator.process(stream.slice(first, batch_rows))))
        if restart:
            evaluator = Evaluator.load(FEED, [asked], evaluator.dump())
    return [*found, changed(evaluator.finish())]


@settings(max_examples=examples(100), deadline=None)
@given(questions(), streams(), st.integers(1, 9), st.integers(1, 3))
def test_what_holds_before_the_end_does_not_depend_on_batches(asked: RegisteredQuery, stream: list[Row], batch_rows: int, partitions: int) -> None:
    """A heartbeat after rows counts in their batch as in the next one, and decides nothing that a
    later row could change."""
    rows_ = table(stream)
    whole, parts = answer(asked, rows_, max(len(rows_), 1), 1), answer(asked, rows_, batch_rows, partitions)
    assert total_of(parts[:-1]) == total_of(whole[:-1])
    assert total_of(parts) == total_of(whole)


def total_of(changes: list[Changes]) -> Changes:
    """What holds after all of them."""
    total: Changes = Counter()
    for one in changes:
        total.update(one)
    return Counter({fact: weight for fact, weight in total.items() if weight})


@settings(max_examples=examples(100), deadline=None)
@given(questions(), streams(), st.integers(1, 9), st.integers(2, 4), st.booleans())
def test_two_stages_answer_as_one(asked: RegisteredQuery, stream: list[Row], batch_rows: int, partitions: int, restart: bool) -> None:
    """The changes are equal batch by batch, for all edges, outputs and groundings, with late rows,
    and restarts after every batch."""
    given_rows = table(stream)
    assert answer(asked, given_rows, batch_rows, partitions, restart=restart) == answer(asked, given_rows, batch_rows, 1)


@settings(max_examples=examples(40), deadline=None)
@given(programs(), rows(), st.integers(1, 9), st.integers(2, 4), st.sampled_from(["rtec", "rtec1"]))
def test_two_stages_are_the_oracle(text: str, stream: list[Row], batch_rows: int, partitions: int, dialect: str) -> None:
    """One window over everything, from sets of ticks."""
    program = compiled(text)
    outputs = sorted({name for name, _ in program.fluents | program.events})
    asked = query(text, outputs=outputs, window=LAST + 30, step=LAST + 30, origin=LAST, dialect=dialect)
    # The oracle's answer is as of LAST, so the input must end there.
    stream = [*sorted(stream, key=lambda row: row[2]), ("go", ("nobody",), LAST, LAST + 1)]
    total = sum(answer(asked, table(stream), batch_rows, partitions), Counter())
    facts = {(name, arguments, value or "", start, end) for name, arguments, value, start, end in total}
    assert facts == by_oracle(FACTS + text, stream, dialect), text


@settings(max_examples=examples(20), deadline=None)
@given(questions(), questions(), streams(), st.data())
def test_queries_come_and_go(asked: RegisteredQuery, other: RegisteredQuery, stream: list[Row], data: st.DataObject) -> None:
    """A query that caught up answers as if it had always run, divided or not."""
    given_rows = table(stream)
    half = data.draw(st.integers(0, len(stream)))
    other = replace(other, id="other")
    running = Evaluator.start(FEED, [asked], 3)
    side = running.side_evaluator([other])
    found = [running.process(given_rows.slice(0, half)), side.process(given_rows.slice(0, half))]
    running.register([other, asked], side)
    found += [running.process(given_rows.slice(half)), running.finish()]
    whole = Evaluator.start(FEED, [other, asked], 1)
    expected = [whole.process(given_rows.slice(0, half)), whole.process(given_rows.slice(half)), whole.finish()]
    assert _by_query(found) == _by_query(expected)


def test_what_is_over_leaves_the_lists_that_are_reported() -> None:
    """A silent partition skips no query time until its facts have left the window (otherwise they
    are asserted repeatedly)."""
    asked = query("initiatedAt(f(X)=on, T) :- happensAt(ev(X), T). fi(f(X)=on, f(X)=off, 4).", outputs=["f"], step=1, window=2)
    stream: list[Row] = [("ev", ("c",), 0, 1), ("near", ("b", "b"), 16, 20), ("beat", ("a",), 27, 28)]
    assert answer(asked, table(stream), 9, 3) == answer(asked, table(stream), 9, 1)


def _by_query(outcomes: list[Outcome]) -> Counter[str]:
    return Counter(str(row) for outcome in outcomes for row in outcome.changes.to_pylist())


def test_work_is_bounded_in_both_stages_together() -> None:
    """A window that exceeds the limit as a whole also does when divided: the relational stage
    counts the rows that the keyed stage has read for it."""
    lists = "holdsFor(f(X)=true, I1), holdsFor(iv(Y)=true, I2), holdsFor(near(X, Y)=true, I3)"
    text = f"{RULE}. holdsFor(g(X, Y)=true, I) :- {lists}, intersect_all([I1, I2, I3], I)."
    stream: list[Row] = [("ev", (f"n{i}",), t, t + 1) for t in range(20) for i in range(40)]
    for partitions in (1, 3):
        # Each of the two fluents counts as 5,000 rows at least.
        asked = limited(query(text, window=LAST + 30, step=LAST + 30, origin=LAST), 8_000)
        with pytest.raises(QueryStopped, match="8,000 rows"):
            answer(asked, table(stream), 1_000, partitions)


def limited(asked: RegisteredQuery, most: int) -> RegisteredQuery:
    specification: CalculusSpecification = asked.specification
    return replace(asked, specification=replace(specification, settings=replace(specification.settings, max_work=most)))


@pytest.mark.spark
@pytest.mark.slow
def test_on_executors(spark: SparkSession, tmp_path: Path) -> None:
    """Both stages as Spark tasks, with their states in files, have the same results as one
    evaluator, batch by batch."""
    chance = random.Random(7)
    names = [f"n{i}" for i in range(9)]
    stream: list[Row] = []
    for t in range(90):
        for _ in range(4):
            name = chance.choice(sorted(INPUTS))
            kind, arity = INPUTS[name]
            stream.append((name, tuple(chance.sample(names, arity)), t, t + (chance.randint(1, 4) if kind == "intervals" else 1)))
    text = """
    initiatedAt(f(X)=on, T) :- happensAt(ev(X), T).
    terminatedAt(f(X)=on, T) :- happensAt(go(X), T), holdsAt(pt(X)=true, T).
    holdsFor(g(X)=true, I) :- holdsFor(f(X)=on, I1), holdsFor(iv(X)=true, I2), union_all([I1, I2], I).
    holdsFor(h(X, Y)=true, I) :- holdsFor(g(X)=true, I1), holdsFor(g(Y)=true, I2), holdsFor(near(X, Y)=true, I3), intersect_all([I1, I2, I3], I).
    """
    asked, given_rows = query(text), table(stream)
    whole, spread = Evaluator.start(FEED, [asked]), started(spark, tmp_path, [asked], 2, FEED)
    for first in range(0, len(stream), 120):
        piece = given_rows.slice(first, 120)
        assert changed(through(spread, piece)) == changed(whole.process(piece))
    assert changed(spread.local().finish()) == changed(whole.finish())


# -- the partitioning ------------------------------------------------------------------------------


def cut_of(specification: CalculusSpecification) -> Partitioning | None:
    return partitioning_of(specification.plan, specification.inputs, specification.outputs, specification.settings.dialect)


def own(text: str, **changed: Any) -> set[str]:
    """The non-relational relations of a program."""
    found = cut_of(query(text, **changed).specification)
    return set() if found is None else {node.name for node in found.keyed.nodes}


def test_caviar_is_cut_as_the_paper_cuts_it() -> None:
    """`person` is evaluated separately for each entity; `close` and everything
    that depends on it, together."""
    found = cut_of(query_of("caviar", "rtec_2025").specification)
    assert found is not None
    assert {node.name for node in found.keyed.nodes} == {"person", "activeOrInactivePerson"}
    assert {name for name, _ in found.lists} == {"walking", "running", "inactive", "abrupt"}
    assert {name for name, _ in found.relational.inputs} == {"coord", "appear", "disappear"}


def test_maritime_is_all_but_its_pairs() -> None:
    found = cut_of(query_of("maritime", "rtec_2025").specification)
    assert found is not None
    assert {node.name for node in found.relational.nodes} == {"tugging", "rendezVous", "pilotOps"}
    assert found.lists == (("proximity", 2),)
    assert found.relational.inputs == frozenset()
    assert {node.name for node in found.sent} >= {"withinArea", "slow", "tuggingSpeed", "loitering"}


def test_speeds_are_looked_up_where_the_answers_are() -> None:
    found = cut_of(query_of("maritime", "aminess_rtec_2025").specification)
    assert found is not None
    assert {node.name for node in found.relational.nodes} == {"suspiciousDelay"}


SECOND = "initiatedAt(f(Y, X)=true, T) :- happensAt(tie(X, Y), T)."
RULE = "initiatedAt(f(X)=true, T) :- happensAt(ev(X), T)"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"{RULE}.", {"f"}),
        (f"{RULE}, kind(X, Z), Z > 1.", {"f"}),
        (f"{RULE}, \\+ happensAt(tie(X, _), T).", {"f"}),
        # An event of another entity, a fluent of another, a negated one, no condition at all.
        (f"{RULE}, happensAt(go(Y), T).", set()),
        ("initiatedAt(f(X)=true, T) :- happensAt(tie(Y, X), T).", set()),
        (f"{RULE}, \\+ happensAt(tie(_, X), T).", set()),
        ("initiatedAt(f(a)=true, T) :- happensAt(ev(a), T).", set()),
        (f"{RULE}. terminatedAt(f(_)=true, T) :- happensAt(go(_), T).", set()),
        (f"{RULE}. initially(f(b)=true).", set()),
        # Two arguments: the first is the entity.
        ("initiatedAt(f(X, Y)=true, T) :- happensAt(tie(X, Y), T), \\+ holdsAt(f(X, Y)=true, T).", {"f"}),
        ("initiatedAt(f(X, Y)=true, T) :- happensAt(tie(X, Y), T), \\+ holdsAt(f(Y, X)=true, T).", set()),
        (f"{SECOND} holdsFor(g(A)=true, I) :- holdsFor(f(B, A)=true, I1), union_all([I1], I).", {"f", "g"}),
        (f"{SECOND} holdsFor(g(A)=true, I) :- holdsFor(f(A, B)=true, I1), union_all([I1], I).", {"f"}),
        # Initiations are not sent: a fluent is in one stage with the rules that read its
        # initiations for another entity.
        (f"{RULE}. initiatedAt(g(X)=true, T) :- initiatedAt(f(X)=true, _, T, _).", {"f", "g"}),
        (f"{RULE}. initiatedAt(g(X)=true, T) :- initiatedAt(f(Y)=true, _, T, _), happensAt(tie(X, Y), T).", set()),
        (f"{RULE}. initiatedAt(g(X)=true, T) :- happensAt(tie(Y, X), T), \\+ initiatedAt(f(Y)=true, _, T, _).", set()),
        # A complement holds for all declared entities, with or without rows.
        ("grounding(f(X)=true) :- kind(X, _). holdsFor(f(X)=true, I) :- holdsFor(iv(X)=true, J), complement_all([J], I).", set()),
        ("holdsFor(f(X)=true, I) :- holdsFor(iv(X)=true, J), holdsFor(pt(X)=true, K), complement_all([J], C), intersect_all([C, K], I).", {"f"}),
        # A domain: a fluent that begins by a row of its entity, continues as an answer of
        # its own, and ends by rows.
        (f"{KNOWN} grounding(f(X)=true) :- id(X). {RULE}.", {"f"}),
        (f"{KNOWN} grounding(f(X)=true) :- id(X). initiatedAt(f(X)=true, T) :- happensAt(go(X), T).", set()),
        (f"{KNOWN} grounding(f(X)=true) :- id(X). {RULE}. fi(f(X)=true, f(X)=false, 5).", set()),
        (f"{KNOWN} grounding(f(X)=true) :- id(X). holdsFor(f(X)=true, I) :- holdsFor(iv(X)=true, J), union_all([J], I).", set()),
        (f"{KNOWN} grounding(f(X)=true) :- id(X). holdsFor(f(X)=true, I) :- holdsFor(pt(X)=true, J), union_all([J], I).", {"f"}),
        (f"{KNOWN} {RULE}, id(X).", set()),
    ],
)  # fmt: skip
def test_what_is_non_relational(text: str, names: set[str]) -> None:
    assert own(text) == names


def test_what_no_answer_carries_is_left_to_the_whole_domain() -> None:
    """An entity without rows may still be a member as another's partner; only the relational
    stage has this information."""
    text = f"{KNOWN} grounding(f(X)=true) :- id(X). {RULE}. holdsFor(g(X)=true, I) :- holdsFor(f(X)=true, J), union_all([J], I)."
    assert own(text, outputs=["f", "g"]) == {"f", "g"}
    assert own(text, outputs=["g"]) == set()
    assert own(text, outputs=["f", "g"], dialect="rtec1") == set()


OPEN_HEADS = {
    "a declared grounding": """
    known(a). known(b).
    grounding(f(X)=off) :- known(X).
    initiatedAt(f(X)=on, T) :- happensAt(ev(X), T).
    initiatedAt(f(X)=off, T) :- happensAt(go(_), T), \\+ happensAt(ev(X), T).
    """,
    "whether another begins": """
    known(a). known(b).
    grounding(g(X)=true) :- known(X).
    initiatedAt(f(X)=on, T) :- happensAt(ev(X), T).
    terminatedAt(f(X)=on, T) :- happensAt(go(_), T).
    initiatedAt(g(X)=true, T) :- happensAt(go(_), T), \\+ initiatedAt(f(X)=on, T).
    terminatedAt(g(X)=true, T) :- initiatedAt(f(X)=on, T).
    """,
}


@pytest.mark.parametrize("text", OPEN_HEADS.values(), ids=OPEN_HEADS)
def test_what_a_head_leaves_open_is_no_grounding_that_begins_later(text: str) -> None:
    """A window with a grounding's beginning, and earlier events, has the same results as small
    windows; batches of any size too."""
    stream = [
        ("go", ("go",), 5, 6),
        ("ev", ("a",), 10, 11),
        ("go", ("go",), 14, 15),
        ("ev", ("b",), 20, 21),
        ("ev", ("c",), 26, 27),
        ("go", ("go",), 28, 29),
    ]
    outputs = ["f", "g"] if "g(X)=true, T)" in text else ["f"]
    found = [
        sum(answer(query(text, outputs=outputs, window=window, step=step), table(stream), batch_rows, 1), Counter())
        for window, step in [(3, 3), (40, 3), (30, 30)]
        for batch_rows in (1, 6)
    ]
    facts = {(name, arguments, start, end) for name, arguments, _, start, end in +found[0]}
    assert {(outputs[-1], ("a",), 6, 11), (outputs[-1], ("b",), 6, 21), (outputs[-1], ("b",), 29, None)} <= facts
    assert all(+one == +found[0] for one in found)
