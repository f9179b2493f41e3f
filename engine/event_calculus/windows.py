"""Sliding windows over a stream of rows: the rows of each query time, the memory carried to the
next window, and the changes of the answer.

Time line of one window (Q query time, W window, K tick):

    ----|=========================|---->      (Q - W, Q] counts; `low` = Q - W on the tick grid
      Q - W                       Q           first tick: low + K

With `edge` "exact" the window extends one tick further back, to `low` = Q - W - K, so that
start and end events at Q - W, which depend on the fluents at the first tick, are in one window
with the events at Q - W.

References: [dRTEC] 2 (windowing); specification 5.6; CAVIAR definitions 1, rules 1, 8, 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from engine.event_calculus import spatial
from engine.event_calculus.answers import NEVER, Change, difference, revise
from engine.event_calculus.arrivals import InputRows
from engine.event_calculus.conditions import KnowledgeBase, as_symbols
from engine.event_calculus.evaluation import Evaluation
from engine.event_calculus.intervals import INF, Bools, Ints
from engine.event_calculus.keys import take_rows
from engine.event_calculus.levels import Node
from engine.event_calculus.local_results import LocalResults
from engine.event_calculus.memory import Bounds, Memory
from engine.event_calculus.partitioning import Partitioning, Relation
from engine.event_calculus.plan import Plan
from engine.event_calculus.program import EVENT, INTERVALS
from engine.event_calculus.shapes import base_name
from engine.event_calculus.sharing import Share
from engine.event_calculus.state import Settings, WindowState
from engine.event_calculus.syntax import Indicator
from engine.event_calculus.tables import SYMBOL, FluentTable, Symbols, Table, empty_fluent, empty_keys, stack, union_tables
from engine.event_calculus.terms import Atom, Number, Term, Variable
from engine.event_calculus.window_inputs import WindowInputs


@dataclass(frozen=True)
class WindowResult:
    """The result of one query time: the changes, and the answers at that time, including those that
    are forgotten after this window.

    `answers` and `instants` are by "name/arity".
    """

    query_time: int
    changes: list[Change]
    answers: Mapping[str, FluentTable]
    instants: Mapping[str, Table]
    evaluation: Evaluation


@dataclass(frozen=True)
class _OutputRelation:
    """One output: the fluents (with one number of arguments) or the event of its name,
    and the key of its answers."""

    key: str
    name: str
    arity: int
    nodes: tuple[Node, ...]
    event: bool = False
    wanted: tuple[tuple[Term, ...], ...] = ()
    """The patterns that outputEntity declares for it, unless it declares all."""

    def wanted_keys(self, keys: Ints, symbols: Symbols) -> Bools | None:
        """Which keys (arguments, and a fluent's value) are wanted; null: all."""
        if not self.wanted:
            return None
        found: Bools = np.zeros(keys.shape[1], np.bool_)
        for terms in self.wanted:
            fits: Bools = np.ones(keys.shape[1], np.bool_)
            for column, term in zip(keys, terms, strict=True):
                if isinstance(term, Atom | Number):
                    fits &= column == symbols.term(term)
            found |= fits
        return found


def _with_declared_patterns(plan: Plan, asserted: _OutputRelation) -> _OutputRelation | None:
    """The output with the program's declared patterns; null if the program declares only others."""
    if not plan.program.outputs:
        return asserted
    width = asserted.arity + (not asserted.event)
    own = [one.terms for one in plan.program.outputs if one.name == asserted.name and one.fluent != asserted.event and len(one.terms) == width]
    if not own:
        return None
    return asserted if any(all(isinstance(term, Variable) for term in terms) for terms in own) else replace(asserted, wanted=tuple(own))


def _output_relations(plan: Plan, name: str) -> Iterator[_OutputRelation]:
    """The relations with an output's name: several if their arguments have shapes."""
    relations = [node.name for node in plan.nodes] + [name for name, _ in plan.program.inputs] + [one.fluent.name for one in plan.program.spatial]
    for relation in dict.fromkeys(relations):
        if base_name(relation) == name:
            yield from _relations_named(plan, relation)


def _relations_named(plan: Plan, name: str) -> Iterator[_OutputRelation]:
    nodes = [node for node in plan.nodes if node.name == name]
    arities = {indicator[1] for indicator in plan.program.inputs if indicator[0] == name}
    arities |= {declared.fluent.indicator[1] for declared in plan.program.spatial if declared.fluent.name == name}
    fluents = {node.arity: None for node in nodes if node.kind != "event"} | dict.fromkeys(sorted(arities))
    for arity in fluents:
        yield _OutputRelation(f"{name}/{arity}", name, arity, tuple(node for node in nodes if node.kind != "event" and node.arity == arity))
    events = {node.arity: None for node in nodes if node.kind == "event"}
    for arity in events:
        own = tuple(node for node in nodes if node.kind == "event" and node.arity == arity)
        yield _OutputRelation(f"{name}/{arity}", name, arity, own, event=True)


class Windows:
    """Evaluates one query over its windows. Immutable: everything that
    changes is in the WindowState."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        outputs: tuple[str, ...],
        areas: Mapping[str, spatial.Area] | None = None,
        made: frozenset[Indicator] = frozenset(),
        parts: Partitioning | None = None,
        *,
        keyed: bool = False,
    ) -> None:
        """`made`: inputs that an earlier stage derives from rows; at the end of the input they
        count although they are not yet certain.

        `parts`: only one of them is evaluated here, the `keyed` or the relational one.
        """
        self.shares: Sequence[Share] = ()
        self.plan = plan
        self.parts = parts
        self.part = None if parts is None else parts.keyed if keyed else parts.relational
        self.made = made
        self.settings = settings
        self.outputs = outputs
        self.inputs = WindowInputs(plan, settings, dict(areas or {}), self.part)
        self._outputs = [
            declared
            for name in outputs
            for asserted in _output_relations(plan, name)
            if (not keyed or self._are_local(asserted.nodes)) and (declared := _with_declared_patterns(plan, asserted)) is not None
        ]

    def initial(self) -> WindowState:
        second = self.parts is not None and self.part is self.parts.relational
        return WindowState(Symbols(), local_results=LocalResults() if second else None)

    def with_shares(self, shares: Sequence[Share]) -> Windows:
        """The same windows, where each state has one of these shares of
        the distributed relations."""
        found = copy(self)
        found.shares = shares
        return found

    def share_of(self, state: WindowState) -> Share | None:
        return self.shares[state.share] if self.shares else None

    def _are_local(self, nodes: Sequence[Node]) -> bool:
        return len(nodes) > 0 and (self.part is None or self.part.nodes.issuperset(nodes))

    # -- query times -------------------------------------------------------------------------------

    def query_after(self, moment: int) -> int:
        """The first query time >= moment."""
        step, origin = self.settings.step, self.settings.origin
        return origin + -(-(moment - origin) // step) * step

    def take(
        self, state: WindowState, rows: Mapping[Indicator, InputRows], first_time: int, clock: int, t: Ints | None = None, arrived: Ints | None = None
    ) -> None:
        """Adds rows that have arrived; `first_time` is the t of the first with which query times
        may begin (NEVER: there is none); `t` and `arrived` are those of rows of the feed that
        came with them, read or not.
        """
        if t is not None and arrived is not None and self.settings.begin is None:
            earlier = t < state.earliest if state.earliest != NEVER else np.ones(len(t), np.bool_)
            state.beginnings = _least_so_far(state.beginnings, t[earlier], arrived[earlier])
        for indicator, part in rows.items():
            state.waiting.setdefault(indicator, []).append(part)
        if state.first_time == NEVER:
            state.first_time = first_time
        state.clock = max(state.clock, clock)

    def advance(self, state: WindowState) -> Iterator[WindowResult]:
        """Decides the query times that the clock has passed, in order."""
        while state.first_time != NEVER and (query_time := self.next_query(state)) < state.clock:
            yield self.decide(state, query_time)

    def pass_time(self, state: WindowState, moment: int, *, ended: bool) -> Iterator[WindowResult]:
        """Decides what is decided when the clock is at `moment`: if the input goes on, later rows
        may change everything after it."""
        if ended:
            yield from self.conclude(state, moment)
        else:
            state.clock = max(state.clock, moment)
            yield from self.advance(state)

    def conclude(self, state: WindowState, last: int) -> Iterator[WindowResult]:
        """Decides the remaining query times at the end of the input, up to the first >=
        `last`, the input's last time.

        That one is not final: if the input continues, it is decided again.
        """
        state.clock = max(state.clock, last)
        yield from self.advance(state)
        if state.first_time != NEVER:
            yield self.decide(state, self.next_query(state), commit=False)

    def next_query(self, state: WindowState) -> int:
        """The query time to decide next; query times at which nothing can change are skipped."""
        if state.last_query == NEVER:
            return self.query_after(state.first_time)
        following = state.last_query + self.settings.step
        if state.idle < 2 or any(name.startswith("rule") for name in state.memory.held) or self._deadline_set(state):
            return following
        arrivals = [int(part.arrived.min()) for parts in state.waiting.values() for part in parts if len(part)]
        if state.local_results is not None:
            arrivals += state.local_results.pending_query_times()
        if state.looked_at != NEVER:
            arrivals.append(state.looked_at)
        return max(following, self.query_after(min([*arrivals, state.clock])))

    @staticmethod
    def _deadline_set(state: WindowState) -> bool:
        return any((carry.due < INF).any() for carry in state.memory.simple.values())

    # -- one window --------------------------------------------------------------------------------

    @property
    def needs_first_row(self) -> bool:
        """Whether the feed's first row matters although no rule reads it: time begins with it, or
        something holds initially."""
        return self.settings.begin is None or bool(self.plan.program.initially)

    def _begin(self, state: WindowState, query_time: int) -> int:
        """The beginning of time for the window that ends at `query_time`.

        Rows that arrive later, perhaps in the same batch, do not move it; those that have arrived
        move it as far as the window reaches.
        """
        if self.settings.begin is not None:
            return self.settings.begin
        known = min((t for arrived, t in state.beginnings if arrived <= query_time), default=None)
        if state.earliest == NEVER:
            return state.first_time if known is None else known
        if known is None:
            return state.earliest
        begin = query_time - self.settings.window
        return min(state.earliest, max(known, begin - begin % self.settings.tick + self.settings.tick))

    def bounds(self, query_time: int, time_begins: int, *, first_of_all: bool = False, begins_earlier: bool = False) -> Bounds:
        """The window that ends at a query time. `first_of_all`: there was none before it,
        so `initially` has not been evaluated yet; `begins_earlier`: the windows before it
        had a later beginning of time.
        """
        settings = self.settings
        tick = settings.tick
        begin = query_time - settings.window
        low = begin - begin % tick
        following = begin + settings.step
        next_low = following - following % tick
        if settings.exact:
            low, next_low = low - tick, next_low - tick
        # Fluents that hold from the beginning of time were initiated in an earlier window, if it
        # contained the first tick, and are carried on.
        initial = first_of_all or begins_earlier or (begin <= time_begins and low < time_begins - tick)
        rows_after = low
        if first_of_all and self.plan.program.initially:
            # With exact edges events at `low` are not in the window, and what holds initially
            # starts one tick before the beginning of time.
            before = time_begins - (2 * tick if settings.exact else tick)
            low = min(low, before - before % tick)
        return Bounds(query_time, low, low + tick, next_low, initial, time_begins, rows_after)

    def evaluate(self, state: WindowState, query_time: int, *, final: bool = False) -> tuple[Evaluation, Memory]:
        """All fluents and events of the window that ends at `query_time`, and the memory for the
        next; `state` stays at its query time.

        `final`: no more rows will come, so derived inputs count immediately.
        """
        begin, first_of_all = self._begin(state, query_time), state.last_query == NEVER
        bounds = self.bounds(query_time, begin, first_of_all=first_of_all, begins_earlier=not first_of_all and begin < state.earliest)
        if final:
            bounds = replace(bounds, next_low=min(bounds.next_low, query_time))
        settings = self.settings
        state.looked_at = query_time
        edge_after = bounds.low if settings.exact else bounds.low - 1
        offset = settings.tick if settings.dialect == "rtec" else 0
        if offset == 0:
            edge_after = bounds.low
        kb = KnowledgeBase(state.symbols, settings.tick, edge_after, offset, lambda pattern: [], max_rows=settings.max_rows)
        kb.max_work = settings.max_work
        if state.local_results is not None:
            state.local_results.advance(query_time)
        share = self.share_of(state)
        evaluation = Evaluation(self.plan, kb, bounds, state.memory, settings.exact, state.allowed, self.part, share)
        lists = None if state.local_results is None or self.parts is None else state.local_results.lists(self.parts, state.symbols, share)
        self.inputs.fill(evaluation, self._rows_in_window(state, bounds, final), state, lists)
        memory = evaluation.run()
        state.groundings = sum(table.n for table in evaluation.fluents.values())
        return evaluation, memory

    def _rows_in_window(self, state: WindowState, bounds: Bounds, final: bool) -> dict[Indicator, InputRows]:
        """Rows of the window that have arrived: (Q - W, Q], and with exact edges those of the tick
        before that an earlier window counted."""
        counted = {}
        begin = bounds.query_time - self.settings.window
        known = state.last_query if self.settings.exact else INF
        for indicator, parts in state.waiting.items():
            if not any(map(len, parts)):
                continue
            come, to_come = InputRows.concat(parts).split_by_arrival(bounds.query_time)
            state.waiting[indicator] = [to_come]
            if len(come):
                state.rows[indicator] = [InputRows.concat([*(part for part in state.rows.get(indicator, ()) if len(part)), come])]
        at_once = self.made if final else frozenset()
        for indicator in [*state.rows, *(at_once & state.waiting.keys() - state.rows.keys())]:
            rows = InputRows.concat([*state.rows.get(indicator, ()), *(state.waiting[indicator] if indicator in at_once else ())])
            arrived = INF if indicator in at_once else bounds.query_time
            low = max(bounds.rows_after - self._reach_back(indicator), bounds.begin - 1)
            counted[indicator] = rows.in_window(self._when(indicator, rows), low, bounds.query_time, arrived, begin, known)
        return counted

    def _reach_back(self, indicator: Indicator) -> int:
        """How long before a window rows of an input are read."""
        return self.inputs.reach_back(indicator[0]) if indicator[0] in self.inputs.positions else 0

    def _when(self, indicator: Indicator, rows: InputRows) -> Ints:
        """The time by which rows belong to a window."""
        return rows.end if self.plan.program.inputs.get(indicator, EVENT) == INTERVALS else rows.t

    # -- answers -----------------------------------------------------------------------------------

    def decide(self, state: WindowState, query_time: int, *, commit: bool = True) -> WindowResult:
        """Evaluates the window, updates the stored answers and returns the changes.

        Without `commit` the answers are updated but the stream does not advance: the same query
        time will be decided again.
        """
        evaluation, memory = self.evaluate(state, query_time, final=not commit)
        bounds = evaluation.bounds
        changes: list[Change] = []
        share = self.share_of(state)
        for output in self._outputs:
            relation = Relation(not output.event, output.name, output.arity)
            if share is not None and not share.remembers(relation):
                continue
            if output.event:
                changed = self._event_changes(state, output, evaluation.kb.events[output.name, output.arity], bounds)
            else:
                before = state.answers.get(output.key) or empty_fluent(output.arity + 1)
                indicator = (output.name, output.arity)
                state.answers[output.key], changed = revise(
                    output.name, before, self._current(evaluation, output), bounds.low, bounds.first,
                    evaluation.retracted.get(indicator), evaluation.undecided.get(indicator),
                )  # fmt: skip
            if share is None or share.asserts(relation):
                changes += changed
        if share is not None:
            state.members = {domain: evaluation.kb.facts[domain].columns[0] for domain in share.sharing.lasting}
        changes = [change.as_reported(state.symbols) for change in changes]
        decision = WindowResult(query_time, changes, dict(state.answers), dict(state.instants), evaluation)
        if commit:
            unchanged = not changes and not any(len(part) for parts in state.rows.values() for part in parts)
            unchanged = unchanged and (state.local_results is None or state.local_results.without_rows)
            # Intervals that end at the edge are kept for one more window. While `initially`
            # applies, what it initiates is not in the memory yet.
            unchanged = unchanged and memory.equals(state.memory) and not (bounds.initial and self.plan.program.initially)
            state.idle = state.idle + 1 if unchanged else 0
            state.memory = memory
            if any(arrived <= query_time for arrived, _ in state.beginnings):
                state.earliest = bounds.begin
                state.beginnings = [one for one in state.beginnings if one[0] > query_time]
            state.last_query = query_time
            state.looked_at = NEVER
            state.windows += 1
            self._forget(state, bounds)
        return decision

    def _current(self, evaluation: Evaluation, output: _OutputRelation) -> FluentTable:
        tables = [evaluation.fluents[node] for node in output.nodes]
        own_input = evaluation.inputs.get((output.name, output.arity))
        if own_input is not None:
            tables.append(own_input)
        table = tables[0] if len(tables) == 1 else union_tables(tables, output.arity + 1)
        wanted = output.wanted_keys(table.keys, evaluation.kb.symbols)
        return table if wanted is None else table.take_lists(np.flatnonzero(wanted))

    def _event_changes(self, state: WindowState, output: _OutputRelation, table: Table, bounds: Bounds) -> list[Change]:
        assert table.t is not None
        kb = KnowledgeBase(state.symbols, 1, 0, 0, lambda pattern: [])
        columns = [as_symbols(kb, column, kind) for column, kind in zip(table.columns, table.kinds, strict=True)]
        seen = table.t > bounds.low
        wanted = output.wanted_keys(stack(columns, table.n), state.symbols)
        if wanted is not None:
            seen &= wanted
        now = take_rows(stack([*columns, table.t], table.n), np.flatnonzero(seen))
        before = empty_keys(len(now))
        if output.key in state.instants:
            old = state.instants[output.key]
            assert old.t is not None
            before = take_rows(stack([*old.columns, old.t], old.n), np.flatnonzero(old.t > bounds.low))
        state.instants[output.key] = Table(tuple(now[:-1]), (SYMBOL,) * len(columns), now.shape[1], now[-1])
        rows, weight = difference(before, now)
        return [Change(output.name, rows[:-1], rows[-1], None, weight)] if len(weight) else []

    def _forget(self, state: WindowState, bounds: Bounds) -> None:
        """Drops rows that no later window reads. A row's time is never after its arrival."""
        if bounds.next_low >= bounds.query_time and not self.inputs.positions:
            state.rows.clear()
        for indicator, parts in state.rows.items():
            rows = InputRows.concat(parts)
            if not len(rows):
                continue
            state.rows[indicator] = [rows.keep_after(self._when(indicator, rows), bounds.next_low - self._reach_back(indicator))]


def _least_so_far(known: Sequence[tuple[int, int]], t: Ints, arrived: Ints) -> list[tuple[int, int]]:
    """The known pairs (arrived, t) and those of rows, in order of arrival, without those whose t is
    not less than all before."""
    if not len(t):
        return list(known)
    arrived = np.append(np.array([one[0] for one in known], np.int64), arrived)
    t = np.append(np.array([one[1] for one in known], np.int64), t)
    order = np.lexsort((t, arrived))
    least = np.minimum.accumulate(t[order])
    first = order[np.append(True, least[1:] < least[:-1])]
    return list(zip(arrived[first].tolist(), t[first].tolist(), strict=True))
