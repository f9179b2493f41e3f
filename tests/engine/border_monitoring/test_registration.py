"""Queries registered and removed while the stream runs: caught up from the log, they answer as if
they had always been there."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.border_monitoring import plan, structures
from engine.model.batch import EntityDictionary
from engine.operator import RegisteredQuery
from engine.specification import check
from tests.engine.border_monitoring.worlds import OPERATOR, PLANE, STAGE, answers_in, batch_of, documents, streams
from tests.engine.runs import registered
from tests.examples import examples
from tests.oracles.border_monitoring import answers

SIZES = structures._SMALL, structures._STEP, plan._MANY_GONE


class Registry(RuleBasedStateMachine):
    """A running stage whose queries are added (caught up from the log), and removed, compared with
    the oracle on the whole stream."""

    @initialize(small=st.sampled_from([0, 3, 512]), gone=st.sampled_from([0, 1024]))
    def start(self, small, gone):
        # Thresholds of merging and rebuilding, lowered so that they are reached here.
        structures._SMALL, structures._STEP, plan._MANY_GONE = small, 8 if small else 2, gone
        self.rows, self.t, self.next = [], 0, 0
        self.documents: dict[int, dict] = {}
        self.answered: Counter = Counter()
        self.dictionary = EntityDictionary()
        self.index = OPERATOR.compile([], PLANE)
        self.state = STAGE.initial(self.index)

    def step(self, index, state, rows):
        output = STAGE.step(index, state, batch_of(rows, self.dictionary), self.t)
        self.answered += answers_in(output.changes, index.queries)
        return output.state

    def go_over(self, *parts):
        queries = [RegisteredQuery(str(n), 1, check(document, PLANE)) for n, document in self.documents.items()]
        self.index = OPERATOR.recompile(self.index, queries, PLANE)
        self.state = STAGE.migrate(self.index, parts)

    @rule(rows=streams(most=8))
    def arrive(self, rows):
        fresh = [{**row, "t": self.t + row["t"], "seq": len(self.rows) + i} for i, row in enumerate(rows)]
        self.t = max([self.t, *(row["t"] for row in fresh)])
        self.rows += fresh
        self.state = self.step(self.index, self.state, fresh)

    @rule(added=st.lists(documents(), min_size=1, max_size=4))
    def add(self, added):
        first, self.next = self.next, self.next + len(added)
        index = OPERATOR.compile(registered(added, PLANE, first), PLANE)
        caught_up = self.step(index, STAGE.initial(index), self.rows)
        self.documents |= dict(enumerate(added, first))
        self.go_over((self.index, self.state), (index, caught_up))

    @rule(data=st.data())
    def remove(self, data):
        if self.documents:
            gone = data.draw(st.sampled_from(sorted(self.documents)))
            del self.documents[gone]
            self.go_over((self.index, self.state))
            self.answered = Counter({answer: n for answer, n in self.answered.items() if answer[0] != gone})

    @rule(again=st.booleans())
    def restart(self, again):
        data = STAGE.dump(self.index, self.state)
        if again:
            self.index = OPERATOR.compile(self.index.queries, PLANE)
        self.state = STAGE.load(self.index, data)

    def teardown(self):
        structures._SMALL, structures._STEP, plan._MANY_GONE = SIZES

    @invariant()
    def structures_hold_each_monitor_once(self):
        if hasattr(self, "index"):
            monitors = [m for tuples in self.index.classes for part in tuples.parts for m in part.members.monitors.tolist()]
            assert len(set(monitors)) == len(monitors)
            assert set(self.index.registry.monitors.values()) <= set(monitors)

    @invariant()
    def answers_are_those_of_the_whole_stream(self):
        if hasattr(self, "state"):
            STAGE.check(self.index, self.state)
            numbers = sorted(self.documents)
            expected = answers(self.rows, [self.documents[n] for n in numbers], until=self.t - 1)
            assert self.answered == Counter({(numbers[answer[0]], *answer[1:]): n for answer, n in expected.items()})


Registry.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=12, deadline=None)
TestRegistry = Registry.TestCase


@given(st.lists(documents(), min_size=1, max_size=4), streams(), st.integers(0, 40))
@settings(max_examples=examples(100), deadline=None)
def test_a_new_query_reports_only_later_events(queries, rows, cut):
    """Without history a query joins the stream: it knows the last tuples others share with it, and
    no event before its start."""
    old = OPERATOR.compile(registered(queries, PLANE), PLANE)
    both = OPERATOR.compile(registered(queries, PLANE) + registered(queries, PLANE, first=len(queries)), PLANE)
    dictionary = EntityDictionary()
    answered: Counter = Counter()
    early, late = rows[:cut], rows[cut:]
    output = STAGE.step(old, STAGE.initial(old), batch_of(early, dictionary), max([0, *(row["t"] for row in early)]))
    answered += answers_in(output.changes, old.queries)
    state = STAGE.migrate(both, [(old, output.state)])
    STAGE.check(both, state)
    last = max([0, *(row["t"] for row in rows)])
    answered += answers_in(STAGE.step(both, state, batch_of(late, dictionary), last + 1).changes, both.queries)
    expected = answers(rows, queries)
    joined = Counter(
        {
            (answer[0] + len(queries), *answer[1:]): n
            for answer, n in expected.items()
            if (answer[5][-1] if answer[1] in ("in", "out") else answer[5][0]) >= cut
        }
    )
    assert answered == expected + joined


def test_removing_every_query_empties_the_state():
    documents_ = [{"family": "transition", "ranges": {"v": [1, 5]}, "within": 100}]
    index, empty = OPERATOR.compile(registered(documents_, PLANE), PLANE), OPERATOR.compile([], PLANE)
    rows = [{"entity": "1", "t": t, "seq": t, "v": float(9 - 7 * t)} for t in range(2)]
    state = STAGE.step(index, STAGE.initial(index), batch_of(rows, EntityDictionary()), 1).state
    assert STAGE.counters(index, state)["events_kept"] == 2
    state = STAGE.migrate(empty, [(index, state)])
    STAGE.check(empty, state)
    assert STAGE.counters(empty, state)["events_kept"] == 0
    assert STAGE.step(empty, state, batch_of(rows, EntityDictionary()), 2).changes.num_rows == 0


def test_equal_regions_of_many_queries_are_stored_once():
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    one = OPERATOR.compile(registered([{"family": "border", "region": square}], PLANE), PLANE)
    many = OPERATOR.compile(registered([{"family": "border", "region": square}] * 500, PLANE), PLANE)
    assert many.nbytes == one.nbytes
