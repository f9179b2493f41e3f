"""One window: from the tables of its inputs to the tables of all fluents
and events, level by level.

References: [dRTEC] 2 and 3.4; CAVIAR definitions 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.event_calculus.conditions import KnowledgeBase, LimitExceeded, satisfy, without_missing_numbers
from engine.event_calculus.context import WindowContext
from engine.event_calculus.crossing import Crossing
from engine.event_calculus.derived import DerivedFluents
from engine.event_calculus.groundings import DeclaredGroundings
from engine.event_calculus.intervals import Ints
from engine.event_calculus.levels import Node
from engine.event_calculus.memory import Bounds, Groundings, Memory, SimpleCarry
from engine.event_calculus.partitioning import StagePart, relation_of
from engine.event_calculus.plan import Plan
from engine.event_calculus.sharing import Share
from engine.event_calculus.simple_fluents import Points
from engine.event_calculus.syntax import Declared, FluentPattern, Indicator, IntervalRule, PointRule
from engine.event_calculus.tables import SYMBOL, FluentTable, Rows, Table, distinct_rows, empty_fluent, one_row
from engine.event_calculus.terms import Term
from engine.model.messages import Message

MAX_GROUNDINGS = 1_000_000
ROWS_A_NODE = 5_000
"""The number of rows that take as long as a node without rows."""


class FluentTables:
    """The fluents of one window: the computed tables by node, and the input tables by indicator."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.computed: dict[Node, FluentTable] = {}
        self.inputs: dict[Indicator, FluentTable] = {}

    def matching(self, pattern: FluentPattern) -> list[FluentTable]:
        """Tables that hold the intervals of a pattern."""
        nodes, given = self._plan.sources(pattern)
        found = [table for node in nodes if (table := self.computed.get(node)) is not None]
        if given and (table := self.inputs.get(pattern.indicator)) is not None:
            found.append(table)
        return found


class Evaluation:
    """Evaluates a plan over one window; `run` fills `fluents` and `events` (those of rules) and
    returns the memory for the next window.

    It has no reference cycle, so a window's arrays are freed with it (left to the garbage collector
    they cost a tenth of a small window). `retracted`, `undecided`: those of the context. `part`:
    only its nodes are computed; the tables of the others are set by the caller or not needed.
    `share`: of distributed relations only this share is computed.
    """

    def __init__(
        self,
        plan: Plan,
        kb: KnowledgeBase,
        bounds: Bounds,
        memory: Memory,
        exact: bool,
        groundings: Groundings | None = None,
        part: StagePart | None = None,
        share: Share | None = None,
    ) -> None:
        self.plan = plan
        self.kb = kb
        self.bounds = bounds
        self.memory = memory
        self.exact = exact
        self.part = part
        self.share = share
        tables = FluentTables(plan)
        self.fluents, self.inputs, self.sources = tables.computed, tables.inputs, tables.matching
        self.events: dict[Node, Table] = {}
        self.groundings = DeclaredGroundings(plan, kb, {} if groundings is None else groundings, share)
        if plan.grounds_heads:
            kb.grounded = self.groundings.bind_head
        self.initiated: dict[Node, Table] = {}
        self.crossing = Crossing(memory, bounds, ends_at_edge=exact and kb.start_offset == 0)
        self._carries: dict[Node, SimpleCarry] = {}
        kb.fluents = tables.matching
        self.context = WindowContext(plan, kb, bounds, self.groundings, self.crossing, exact, share)
        self.retracted, self.undecided = self.context.retracted, self.context.undecided

    def run(self) -> Memory:
        derived = DerivedFluents(self.context)
        for component, cyclic in self.plan.components:
            if self.part is not None and component[0] not in self.part.nodes:
                continue
            if self.share is not None and not self.share.computes(relation_of(component[0])):
                for node in component:
                    self._set_empty(node)
                continue
            if cyclic:
                self._cycle(component, derived)
            else:
                self._node(component[0], derived)
        return Memory(self._carries, self.crossing.kept, self.crossing.ended)

    def _node(self, node: Node, derived: DerivedFluents) -> None:
        self.kb.count_rows(ROWS_A_NODE)
        if node.kind == "event":
            happened = self._event(node)
            self._add_events(node, happened if self.share is None else self.share.filter_events(relation_of(node), happened, self.kb.symbols))
            return
        if node.kind == "simple":
            table, self._carries[node] = self._simple(node)
            if self.crossing.ends_at_edge:
                table = self.crossing.join_earlier(f"simple {node.name}/{node.arity} {node.part}", table)
        else:
            table = derived.table(node)
            if self.share is not None:
                table = self.share.filter_fluent(relation_of(node), table, self.kb.symbols)
            table = self.crossing.join_earlier(f"fluent {node.name}/{node.arity} {node.part}", table)
        if table.n > MAX_GROUNDINGS:
            raise LimitExceeded(
                Message("{name} has {count:,} groundings in a window; the limit is {limit:,}", name=node.name, count=table.n, limit=MAX_GROUNDINGS)
            )
        self.fluents[node] = table

    def _cycle(self, component: Sequence[Node], derived: DerivedFluents) -> None:
        """Evaluates simple fluents (and events) that depend on each other,
        by iteration to a fixpoint.

        Conditions that close a cycle refer strictly to the past, so each round is right for at
        least one more time point.
        """
        for node in component:
            self._set_empty(node)
        before: list[bytes] = []
        while True:
            for node in component:
                self._node(node, derived)
            after = [self._fingerprint(node) for node in component]
            if after == before:
                return
            before = after

    def _set_empty(self, node: Node) -> None:
        if node.kind == "event":
            self._add_events(node, _no_events(node.arity))
        else:
            self.fluents[node] = empty_fluent(node.arity + 1)
            if node in self.plan.initiations_read:
                self._add_initiations(node, _no_events(node.arity + 1))

    def _fingerprint(self, node: Node) -> bytes:
        table = self.events[node] if node.kind == "event" else self.initiated.get(node)
        moments = b""
        if table is not None:
            assert table.t is not None
            moments = b"".join(np.ascontiguousarray(column).tobytes() for column in (*table.columns, table.t))
        if node.kind == "event":
            return moments
        fluent = self.fluents[node]
        return moments + b"".join(column.tobytes() for column in (fluent.keys, *fluent.lists))

    def _add_events(self, node: Node, table: Table) -> None:
        """Adds events to the table of their name: the parts of a divided event are joined."""
        self.events[node] = table
        parts = [part for other, part in self.events.items() if (other.name, other.arity) == (node.name, node.arity)]
        self.kb.events[node.name, node.arity] = table if len(parts) == 1 else _concat_events(parts)

    # -- events and simple fluents -----------------------------------------------------------------

    def satisfying(self, rule: PointRule) -> Rows:
        """All ways to satisfy a rule's conditions that bind all variables of its head."""
        return without_missing_numbers(satisfy(self.kb, one_row(), rule.body), rule.terms)

    def _event(self, node: Node) -> Table:
        parts = []
        for rule in self.plan.point_rules(node):
            rows = self.satisfying(rule)
            if rule.name in self.plan.program.groundings and rows.n:
                rows = self.groundings.bind_rows(rows, rule.terms, rule.name)
            if rows.n:
                parts.append((*(self.column(rows, term) for term in rule.terms), rows.columns[rule.time]))
        if not parts:
            return _no_events(node.arity)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        first = distinct_rows(columns, len(columns[0]))
        columns = [column[first] for column in columns]
        return Table(tuple(columns[:-1]), (SYMBOL,) * node.arity, len(first), columns[-1])

    def column(self, rows: Rows, term: Term) -> Ints:
        """Symbols of a bound term for each row."""
        return self.groundings.column(rows, term)

    def interval_rule(self, rule: IntervalRule) -> FluentTable | None:
        """The result of one holdsFor rule; null if it is empty."""
        return DerivedFluents(self.context).rule(rule)

    def _simple(self, node: Node) -> tuple[FluentTable, SimpleCarry]:
        points = Points(self.context, node)
        rules: Sequence[PointRule] = self.plan.point_rules(node)
        carry = self.memory.simple.get(node)
        if self.plan.grounds_heads:
            rules = self._evaluate_independent_rules(points, rules, carry)
        for rule in rules:
            rows = self.satisfying(rule)
            if rows.n:
                points.add(rule, rows)
        result = points.table(carry)
        if node in self.plan.initiations_read:
            self._add_initiations(node, points.initiated)
        return result

    def _evaluate_independent_rules(self, points: Points, rules: Sequence[PointRule], carry: SimpleCarry | None) -> list[PointRule]:
        """The rules that read the groundings that have begun; the others are evaluated
        first, as they may begin some."""
        asking = [rule for rule in rules if any(isinstance(literal, Declared) for literal in rule.body)]
        for rule in rules:
            if rule not in asking:
                rows = self.satisfying(rule)
                if rows.n:
                    points.add(rule, rows)
        if asking:
            if self.bounds.initial:
                points.initially()
            self.groundings.begun["=" + points.node.name] = points.begun_groundings(carry)
        return asking

    def _add_initiations(self, node: Node, table: Table) -> None:
        self.initiated[node] = table
        parts = [part for other, part in self.initiated.items() if (other.name, other.arity) == (node.name, node.arity)]
        self.kb.initiated[node.name, node.arity] = table if len(parts) == 1 else _concat_events(parts)


def _no_events(arity: int) -> Table:
    return Table(tuple(np.empty(0, np.int64) for _ in range(arity)), (SYMBOL,) * arity, 0, np.empty(0, np.int64))


def _concat_events(parts: Sequence[Table]) -> Table:
    """Events of several rules in one table; their arguments are names."""
    columns = tuple(np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True))
    times = np.concatenate([part.t for part in parts if part.t is not None])
    return Table(columns, parts[0].kinds, sum(part.n for part in parts), times)
