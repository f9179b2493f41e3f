"""Which events are kept and for how long: the paper's example, the forms compared, limits."""

from __future__ import annotations

import io
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.constraint_queries import operator
from engine.constraint_queries.operator import ConstraintOperator
from engine.model.batch import Batch, EntityDictionary
from engine.model.events import Stamper
from engine.operator import QueryStopped
from engine.runtime.evaluator import Evaluator
from tests.engine.constraint_queries.worlds import PLANE, one_document, rows, run, table_of
from tests.engine.runs import registered
from tests.examples import examples
from tests.oracles.constraint_queries import Row, answers, satisfies

FIGURE_1B: dict[str, Any] = {
    "family": "constraint",
    "variables": {f"V{i + 1}": {"where": [["s", "=", letter]]} for i, letter in enumerate("ABC")},
    "constraints": [
        {"between": ["V1", "V2"], "distance": {"max": 1, "open": True}, "dt": [0, 5]},
        {"between": ["V2", "V3"], "distance": {"max": 1, "open": True}, "dt": [1, 5]},
    ],
}
FIGURE_2 = [("a1", 1, 0.0), ("b1", 2, 7.0), ("b2", 3, 0.5), ("c1", 3, 0.6), ("c2", 6, 1.2)]
# The paper drops b1 at once. Here a V1 of the same time may still arrive after it (`dt` may be 0),
# so tight keeps b1 through its own instant. loose does not check for missing events and keeps b1
# until a V3 could come. All other times are the paper's.
KEPT = {
    "loose": [{"a1": 11}, {"a1": 11, "b1": 7}, *[{"a1": 11, "b1": 7, "b2": 8}] * 3],
    "tight": [{"a1": 6}, {"a1": 6, "b1": 2}, *[{"a1": 8, "b2": 8}] * 3],
}
KEPT["domains"] = KEPT["loose"]


def kept_events(document: Any, world: list[Row]) -> dict[int, dict[int, int]]:
    """For each variable the events (seq) that it keeps after all rows of `world`, and the last
    time at which each is useful."""
    stages, dictionary = ConstraintOperator(), EntityDictionary()
    index = stages.compile(registered([document], PLANE), PLANE)
    state = stages.keyed.initial(index)
    for seq, row in enumerate(world):
        table = table_of([row]).append_column("seq", pa.array([seq]))
        state = stages.keyed.step(index, state, Batch(table.to_batches()[0], dictionary), row["t"]).state
    domains = state.domains()
    variable = np.repeat(np.arange(len(domains["lengths"])), domains["lengths"]).tolist()
    found: dict[int, dict[int, int]] = {v: {} for v in range(len(domains["lengths"]))}
    for v, seq, until in zip(variable, state.events.seq[domains["member"]].tolist(), domains["until"].tolist(), strict=True):
        if until >= world[-1]["t"]:
            found[v][seq] = until
    return found


@pytest.mark.parametrize("form", KEPT)
def test_the_papers_example_event_by_event(form: str) -> None:
    stages, dictionary = ConstraintOperator(), EntityDictionary()
    index = stages.compile(registered([{**FIGURE_1B, "expiration": form}], PLANE), PLANE)
    state = stages.keyed.initial(index)
    alerts = []
    for seq, (name, t, x) in enumerate(FIGURE_2):
        row = table_of([{"entity": name, "t": t, "x": x, "y": 0.0, "s": name[0].upper()}]).append_column("seq", pa.array([seq]))
        output = stages.keyed.step(index, state, Batch(row.to_batches()[0], dictionary), t)
        alerts += [(name, change["entities"], change["start"], change["end"]) for change in output.changes.to_pylist()]
        store = output.state
        domains = store.domains()
        names = [dictionary.names[code] for code in store.events.entity[domains["member"]]]
        kept = {event: until for event, until in zip(names, domains["until"].tolist(), strict=True) if until >= t}
        assert kept == KEPT[form][seq]
        assert store.kept == len(kept)
    assert alerts == [("c2", ["a1", "b2", "c2"], 1, 6)]


def test_a_bound_of_zero_loses_nothing() -> None:
    """[CCQ] Algorithm 2 as printed takes the least bound over all future variables, which is 0
    here, and drops the first event at once."""
    document = {
        "family": "constraint",
        "variables": {"V1": {"where": [["s", "=", "p"]]}, "V2": {"where": [["s", "=", "q"]]}, "V3": {"where": [["s", "=", ""]]}},
        "constraints": [{"between": ["V1", "V2"], "dt": [-5, 0]}, {"between": ["V1", "V3"], "dt": [1, 9]}],
    }  # fmt: skip
    world: list[Row] = [{"seq": i, "entity": "a", "t": t, "x": 0.0, "y": 0.0, "s": s} for i, (t, s) in enumerate([(0, "q"), (1, "p"), (8, "")])]
    assert sum(run([document], world, PLANE).values()) == 1


@settings(max_examples=examples(60))
@given(rows(most=20), one_document())
def test_tight_never_keeps_more_and_batches_do_not_count(world: list[Row], document: Any) -> None:
    peaks = {form: peak({**document, "expiration": form}, world, len(world)) for form in KEPT}
    assert peaks["tight"] <= peaks["loose"] <= peaks["domains"]
    assert peaks == {form: peak({**document, "expiration": form}, world, 2) for form in KEPT}


@st.composite
def plain_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Three variables within a distance of each other: one after the other,
    or mutually close in time."""
    names = ["V1", "V2", "V3"]
    constraints: list[dict[str, Any]] = [{"between": names, "distance": {"max": draw(st.sampled_from([0, 1, 2]))}}]
    if draw(st.booleans()):
        width = draw(st.integers(0, 4))
        variables: dict[str, Any] = {name: {"where": [["s", "!=", "q"]]} for name in names}
        return {"variables": variables, "constraints": [*constraints, {"between": names, "dt": [-width, width]}], "symmetric": [names]}
    variables = {name: {"where": [["s", "=", draw(st.sampled_from("pqr"))]]} for name in names}
    for pair in (names[:2], names[1:]):
        least = draw(st.integers(1, 2))
        constraints.append({"between": pair, "dt": [least, least + draw(st.integers(0, 3))]})
    return {"variables": variables, "constraints": constraints}


@st.composite
def plain_worlds(draw: st.DrawFn) -> list[Row]:
    found: list[Row] = []
    for seq in range(draw(st.integers(1, 7))):
        t = (found[-1]["t"] if found else 0) + draw(st.integers(0, 2))
        found.append({"seq": seq, "entity": "e", "t": t, "x": float(draw(st.integers(0, 2))), "y": 0.0, "s": draw(st.sampled_from("pqr"))})
    return found


@settings(max_examples=examples(80))
@given(plain_documents(), plain_worlds())
def test_tight_keeps_nothing_that_could_be_spared(document: Any, world: list[Row]) -> None:
    """An event that is kept until some time can still be part of a solution with events that come
    at that time or later. So no algorithm that loses no answer may drop it earlier."""
    document = {"family": "constraint", "expiration": "tight", **document}
    events: dict[int, int] = {}
    for own in kept_events(document, world).values():
        for seq, until in own.items():
            events[seq] = max(events.get(seq, until), until)
    for seq, until in events.items():
        assert completed(world[seq], [row for row in world if row["seq"] != seq], until, document), (seq, until)


def completed(event: Row, others: list[Row], since: int, document: Any) -> bool:
    """Whether events from `since` on, at the position of `event`, can complete a
    solution that contains `event`."""
    names = list(document["variables"])
    coming: list[Row] = [{**event, "seq": -1, "t": t, "s": s} for t in range(since, since + 8) for s in "pqr"]
    one_more = [(one, other) for one in coming for other in others]
    two_more = [*combinations(coming, 2), *((one, {**one, "seq": -2}) for one in coming)]
    tuples = (chosen for rest in (*one_more, *two_more) for chosen in permutations((event, *rest)))
    return any(satisfies(dict(zip(names, chosen, strict=True)), document, False) for chosen in tuples)


def test_interchangeable_variables_keep_what_others_can_follow() -> None:
    names = ["V1", "V2", "V3"]
    constraint = {"between": names, "dt": [-5, 5], "distance": {"max": 1}}
    document = {"family": "constraint", "variables": {name: {} for name in names}, "constraints": [constraint], "symmetric": [names]}
    world: list[Row] = [{"seq": k, "entity": "e", "t": t, "x": x, "y": 0.0} for k, (t, x) in enumerate([(0, 0.0), (1, 9.0), (2, 0.5), (2, 4.0)])]
    for form in KEPT:
        # Only the third has an event before it that it may follow; nothing follows the last.
        assert kept_events({**document, "expiration": form}, world) == {0: {0: 5, 1: 6, 2: 7, 3: 7}, 1: {2: 7}, 2: {}}


def peak(document: Any, world: list[Row], size: int) -> int:
    evaluator, stamper = Evaluator.start(PLANE, registered([document], PLANE)), Stamper()
    for at in range(0, len(world), max(size, 1)):
        evaluator.process(stamper.stamp(table_of(world[at : at + size])))
    evaluator.finish()
    return evaluator.counters()["constraint"]["peak_events"]


NEAR: dict[str, Any] = {"family": "constraint", "variables": {"A": {}, "B": {}}, "constraints": [{"between": ["A", "B"], "dt": [-100, 100]}]}
LINE: list[Row] = [{"seq": i, "entity": "a", "t": i, "x": 0.0, "y": 0.0} for i in range(20)]


def test_more_events_than_the_limit_stop_the_query_with_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "MOST_EVENTS", 20)
    assert run([NEAR], LINE, PLANE) == answers(LINE, [NEAR])
    monkeypatch.setattr(operator, "MOST_EVENTS", 7)
    with pytest.raises(QueryStopped, match="query '0': it would keep 8 events at t = 7; at most 7"):
        run([NEAR], LINE, PLANE)


@pytest.mark.parametrize(("size", "partitions"), [(1, 1), (3, 2), (20, 1), (20, 4)])
def test_the_limit_is_met_at_the_same_event_whatever_the_batches_and_partitions(size: int, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "MOST_EVENTS", 7)
    evaluator, stamper = Evaluator.start(PLANE, registered([NEAR], PLANE), partitions), Stamper()
    with pytest.raises(QueryStopped, match="query '0': it would keep 8 events at t = 7; at most 7"):
        for at in range(0, len(LINE), size):
            evaluator.process(stamper.stamp(table_of(LINE[at : at + size])))
        evaluator.finish()


def test_more_solutions_than_the_limit_stop_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "MOST_SOLUTIONS", 38)
    assert run([NEAR], LINE, PLANE) == answers(LINE, [NEAR])
    monkeypatch.setattr(operator, "MOST_SOLUTIONS", 9)
    with pytest.raises(QueryStopped, match="t = 5 completes more than 9 solutions"):
        run([NEAR], LINE, PLANE)


def test_solutions_leave_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "_ROOM", 3)
    monkeypatch.setattr(operator, "_CHUNK", 4)
    for form in KEPT:
        document = {**NEAR, "expiration": form}
        assert run([document], LINE, PLANE) == answers(LINE, [document])


def test_a_state_of_another_version_is_refused() -> None:
    stages = ConstraintOperator()
    index = stages.compile(registered([NEAR], PLANE), PLANE)
    data = stages.keyed.dump(index, stages.keyed.initial(index))
    stages.keyed.load(index, data)
    with np.load(io.BytesIO(data)) as arrays, io.BytesIO() as older:
        np.savez(older, **{name: arrays[name] for name in arrays.files if name != "version"})
        with pytest.raises(ValueError, match="not of version"):
            stages.keyed.load(index, older.getvalue())
