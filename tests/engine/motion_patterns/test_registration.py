"""Queries added and removed while the stream runs: caught up from the log, they answer
as if they had always run."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.model.batch import EntityDictionary
from engine.model.events import Stamper
from engine.runtime.evaluator import Evaluator
from tests.engine.motion_patterns.worlds import OPERATOR, PLANE, add_answers, batch_of, box, documents, streams, table_of
from tests.engine.runs import registered
from tests.examples import examples
from tests.oracles.motion_patterns import answers


class Registry(RuleBasedStateMachine):
    """A running evaluator with queries that are added (caught up from the log) and removed, against
    the oracle on the whole stream."""

    @initialize(partitions=st.integers(1, 2))
    def start(self, partitions):
        self.rows, self.t, self.next = [], 0, 0
        self.documents: dict[int, dict] = {}
        self.answered: Counter = Counter()
        self.stamper = Stamper()
        self.log = []
        self.evaluator = Evaluator.start(PLANE, [], partitions)

    def queries(self):
        return [query for n, document in self.documents.items() for query in registered([document], PLANE, n)]

    @rule(rows=streams(most=8))
    def arrive(self, rows):
        fresh = [{**row, "t": self.t + max(row["t"], 0), "seq": len(self.rows) + i} for i, row in enumerate(rows)]
        if fresh:
            self.t = max(row["t"] for row in fresh)
            self.rows += fresh
            stamped = self.stamper.stamp(table_of(fresh))
            self.log.append(stamped)
            add_answers(self.answered, self.evaluator.process(stamped).changes)

    @rule(added=st.lists(documents(), min_size=1, max_size=3))
    def add(self, added):
        first, self.next = self.next, self.next + len(added)
        side = self.evaluator.side_evaluator(registered(added, PLANE, first))
        for stamped in self.log:
            add_answers(self.answered, side.process(stamped).changes)
        self.documents |= dict(enumerate(added, first))
        self.evaluator.register(self.queries(), side)

    @rule(data=st.data())
    def remove(self, data):
        if self.documents:
            gone = data.draw(st.sampled_from(sorted(self.documents)))
            del self.documents[gone]
            self.evaluator.register(self.queries())
            self.answered = Counter({answer: n for answer, n in self.answered.items() if answer[0] != gone})

    @rule()
    def restart(self):
        self.evaluator = Evaluator.load(PLANE, self.queries(), self.evaluator.dump())

    @invariant()
    def answers_are_those_of_the_whole_stream(self):
        if hasattr(self, "evaluator"):
            self.evaluator.check()
            numbers = sorted(self.documents)
            expected = answers(self.rows, [self.documents[n] for n in numbers], until=self.t - 1)
            assert self.answered == Counter({(numbers[answer[0]], *answer[1:]): n for answer, n in expected.items()})


Registry.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=10, deadline=None)
TestRegistry = Registry.TestCase

TOUR = {"family": "motion", "predicates": [{"inside": {"center": [0, 0], "radius": 1}, "window": [50, 0]}], "every": 1}


def row(seq, t, x=0.0, entity="1"):
    return {"entity": entity, "t": t, "seq": seq, "x": x, "y": 0.0}


def test_equal_predicates_of_many_queries_keep_their_points_once():
    index = OPERATOR.compile(registered([TOUR] * 50, PLANE), PLANE)
    state = OPERATOR.keyed.step(index, OPERATOR.keyed.initial(index), batch_of([row(0, 0), row(1, 1)], EntityDictionary()), 1).state
    assert OPERATOR.keyed.counters(index, state)["index_points_kept"] == 2


IN_ORDER = {"family": "motion", "predicates": [{"inside": {"center": [0, 0], "radius": 1}}], "horizon": 50, "every": 1}
IN_ORDER_FAR_BACK = IN_ORDER | {"horizon": 5000, "every": 7}


@pytest.mark.parametrize(("document", "rows"), [(TOUR, 2000), (IN_ORDER, 2000), (IN_ORDER_FAR_BACK, 7000)], ids=["planes", "in order", "points"])
def test_memory_is_that_of_the_longest_window(document, rows):
    index = OPERATOR.compile(registered([document], PLANE), PLANE)
    state, dictionary = OPERATOR.keyed.initial(index), EntityDictionary()
    for first in range(0, rows, 5):
        batch = [row(t, t) for t in range(first, first + 5)]
        state = OPERATOR.keyed.step(index, state, batch_of(batch, dictionary), first + 5).state
        if first % 100 == 0:
            OPERATOR.keyed.check(index, state)
    longest = 5000 if document is IN_ORDER_FAR_BACK else 50
    assert OPERATOR.keyed.counters(index, state)["index_points_kept"] <= longest + 11
    assert (state.points is not None) == (document is IN_ORDER_FAR_BACK)
    assert state.points is None or len(state.points.points.t) <= 4 * longest
    assert all(len(part.store.t) <= 1024 for part in state.planes)


def test_a_query_that_starts_here_knows_what_equal_predicates_kept_and_tells_nothing_of_before():
    dictionary = EntityDictionary()
    old = OPERATOR.compile(registered([TOUR], PLANE), PLANE)
    state = OPERATOR.keyed.step(old, OPERATOR.keyed.initial(old), batch_of([row(0, 3)], dictionary), 10).state
    both = OPERATOR.compile(registered([TOUR, TOUR], PLANE), PLANE)
    output = OPERATOR.keyed.step(both, OPERATOR.keyed.migrate(both, [(old, state)]), batch_of([], dictionary), 11)
    OPERATOR.keyed.check(both, output.state)
    assert [(one["query"], one["start"], one["weight"]) for one in output.changes.to_pylist()] == [(1, 10, 1)]


def test_a_silent_stretch_costs_no_evaluations():
    index = OPERATOR.compile(registered([TOUR], PLANE), PLANE)
    rows = [row(0, 0), row(1, 10**12)]
    state = OPERATOR.keyed.step(index, OPERATOR.keyed.initial(index), batch_of(rows, EntityDictionary()), 10**12 + 1).state
    assert OPERATOR.keyed.counters(index, state)["evaluations"] == 3


def test_removing_every_query_empties_the_state():
    index, empty = OPERATOR.compile(registered([TOUR], PLANE), PLANE), OPERATOR.compile([], PLANE)
    state = OPERATOR.keyed.step(index, OPERATOR.keyed.initial(index), batch_of([row(0, 0)], EntityDictionary()), 1).state
    state = OPERATOR.keyed.migrate(empty, [(index, state)])
    OPERATOR.keyed.check(empty, state)
    assert OPERATOR.keyed.counters(empty, state)["events_kept"] == 0
    assert OPERATOR.keyed.step(empty, state, batch_of([row(1, 5)], EntityDictionary()), 2).changes.num_rows == 0


def test_a_group_takes_over_no_sample_that_only_another_still_needs():
    """Both queries have buckets of one unit, but only the second, which has other planes, needs
    samples of three units back."""
    here = box(0, 0, 1, 1)
    near = {"family": "motion", "predicates": [{"inside": here, "window": [1, 0]}], "every": 1}
    far = {"family": "motion", "predicates": [{"inside": here, "window": [3, 2]}, {"outside": here, "window": [1, 0]}], "every": 1}
    queries, stamper = registered([near, far], PLANE), Stamper()
    evaluator = Evaluator.start(PLANE, queries)
    for t in (0, 3):
        evaluator.process(stamper.stamp(table_of([{"entity": "1", "t": t, "x": 0.5, "y": 0.5}])))
    evaluator.register(queries)
    evaluator.check()


def test_totals_count_their_stretches_and_switches_and_a_snapshot_keeps_the_counts():
    spot = {"center": [0, 0], "radius": 1}
    total = {"family": "motion", "predicates": [{"inside": spot, "window": [10, 0], "quantifier": "total", "at_least": 4}], "every": 1}
    index = OPERATOR.compile(registered([total], PLANE), PLANE)
    samples = [row(0, t, x) for t, x in ((0, 0), (1, 0), (2, 9), (3, 0), (8, 9), (40, 9))]
    state = OPERATOR.keyed.step(index, OPERATOR.keyed.initial(index), batch_of(samples, EntityDictionary()), 41).state
    work = OPERATOR.keyed.counters(index, state)
    # Inside over [0, 2) and [3, 8): at least 4 of the last 10 from t = 6 on, and
    # no longer from t = 15 on.
    assert (work["total_stretches"], work["total_switches"], work["total_stretches_kept"]) == (2, 2, 1)
    assert OPERATOR.keyed.counters(index, OPERATOR.keyed.load(index, OPERATOR.keyed.dump(index, state))) == work
    plain = OPERATOR.compile(registered([TOUR], PLANE), PLANE)
    assert "total_switches" not in OPERATOR.keyed.counters(plain, OPERATOR.keyed.initial(plain))
