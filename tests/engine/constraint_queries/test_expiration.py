"""What is kept and for how long: the paper's example, the forms compared, limits."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from engine.constraint_queries import operator
from engine.constraint_queries.operator import ConstraintOperator
from engine.model.batch import Batch, EntityDictionary
from engine.model.events import Stamper
from engine.operator import QueryStopped
from engine.runtime.evaluator import Evaluator
from tests.engine.constraint_queries.worlds import PLANE, one_document, registered, rows, run, table_of
from tests.oracles.constraint_queries import Row, answers

FIGURE_1B: dict[str, Any] = {
    "family": "constraint",
    "variables": {f"V{i + 1}": {"where": [["s", "=", letter]]} for i, letter in enumerate("ABC")},
    "constraints": [
        {"between": ["V1", "V2"], "distance": {"max": 1, "open": True}, "dt": [0, 5]},
        {"between": ["V2", "V3"], "distance": {"max": 1, "open": True}, "dt": [1, 5]},
    ],
}
FIGURE_2 = [("a1", 1, 0.0), ("b1", 2, 7.0), ("b2", 3, 0.5), ("c1", 3, 0.6), ("c2", 6, 1.2)]
# The paper drops b1 at once. Here a V1 of the same time may still arrive after it (`dt` may be 0), so tight keeps b1 through its own instant;
# loose does not look at what is missing and keeps it until a V3 could come. All other times are the paper's.
KEPT = {
    "loose": [{"a1": 11}, {"a1": 11, "b1": 7}, *[{"a1": 11, "b1": 7, "b2": 8}] * 3],
    "tight": [{"a1": 6}, {"a1": 6, "b1": 2}, *[{"a1": 8, "b2": 8}] * 3],
}
KEPT["domains"] = KEPT["loose"]


@pytest.mark.parametrize("form", KEPT)
def test_the_papers_example_event_by_event(form: str) -> None:
    stages, dictionary = ConstraintOperator(), EntityDictionary()
    index = stages.compile(registered([{**FIGURE_1B, "expiration": form}], PLANE), PLANE)
    state = stages.relational.initial(index)
    alerts = []
    for seq, (name, t, x) in enumerate(FIGURE_2):
        row = table_of([{"entity": name, "t": t, "x": x, "y": 0.0, "s": name[0].upper()}]).append_column("seq", pa.array([seq]))
        emitted = stages.keyed.step(index, stages.keyed.initial(index), Batch(row.to_batches()[0], dictionary), t).emitted
        output = stages.relational.step(index, state, Batch(emitted, dictionary), t)
        alerts += [(name, change["entities"], change["start"], change["end"]) for change in output.changes.to_pylist()]
        store = output.state
        domains = store.domains()
        names = [dictionary.names[code] for code in store.events.entity[domains["member"]]]
        kept = {event: until for event, until in zip(names, domains["until"].tolist(), strict=True) if until >= t}
        assert kept == KEPT[form][seq]
        assert store.kept == len(kept)
    assert alerts == [("c2", ["a1", "b2", "c2"], 1, 6)]


def test_a_bound_of_zero_loses_nothing() -> None:
    """[CCQ] Algorithm 2 as printed takes the least bound over all future variables, 0 here, and forgets the first event at once."""
    document = {
        "family": "constraint",
        "variables": {"V1": {"where": [["s", "=", "p"]]}, "V2": {"where": [["s", "=", "q"]]}, "V3": {"where": [["s", "=", ""]]}},
        "constraints": [{"between": ["V1", "V2"], "dt": [-5, 0]}, {"between": ["V1", "V3"], "dt": [1, 9]}],
    }  # fmt: skip
    world: list[Row] = [{"seq": i, "entity": "a", "t": t, "x": 0.0, "y": 0.0, "s": s} for i, (t, s) in enumerate([(0, "q"), (1, "p"), (8, "")])]
    assert sum(run([document], world, PLANE).values()) == 1


@settings(max_examples=60)
@given(rows(most=20), one_document())
def test_tight_never_keeps_more_and_batches_do_not_count(world: list[Row], document: Any) -> None:
    peaks = {form: peak({**document, "expiration": form}, world, len(world)) for form in KEPT}
    assert peaks["tight"] <= peaks["loose"] <= peaks["domains"]
    assert peaks == {form: peak({**document, "expiration": form}, world, 2) for form in KEPT}


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


def test_more_solutions_than_the_limit_stop_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "MOST_SOLUTIONS", 38)
    assert run([NEAR], LINE, PLANE) == answers(LINE, [NEAR])
    monkeypatch.setattr(operator, "MOST_SOLUTIONS", 9)
    with pytest.raises(QueryStopped, match="t = 5 completes more than 9 solutions"):
        run([NEAR], LINE, PLANE)


def test_solutions_leave_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "_ROOM", 3)
    monkeypatch.setattr(operator, "_CHUNK", 4)
    for form in KEPT:
        document = {**NEAR, "expiration": form}
        assert run([document], LINE, PLANE) == answers(LINE, [document])


def test_a_state_of_another_version_is_refused() -> None:
    stages = ConstraintOperator()
    index = stages.compile(registered([NEAR], PLANE), PLANE)
    data = stages.relational.dump(index, stages.relational.initial(index))
    stages.relational.load(index, data)
    with np.load(io.BytesIO(data)) as arrays, io.BytesIO() as older:
        np.savez(older, **{name: arrays[name] for name in arrays.files if name != "version"})
        with pytest.raises(ValueError, match="not of version"):
            stages.relational.load(index, older.getvalue())
