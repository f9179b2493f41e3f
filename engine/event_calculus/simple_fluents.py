"""Simple fluents of a window: the points that rules derive, applied to groundings, and the
intervals that result by inertia.

A fluent's points are processed in one compiled call, for any number of points: most windows have
some dozens, and each call into numpy takes longer than these (measured on the CAVIAR windows: 290
us a fluent by numpy, 25 compiled).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.event_calculus.conditions import LimitExceeded, satisfy, without_missing_numbers
from engine.event_calculus.context import WindowContext
from engine.event_calculus.inertia import (
    ANY_ARGUMENT,
    INITIATE,
    OPEN_INITIATE,
    TERMINATE,
    TERMINATE_ANY,
    InertiaInput,
    begun,
    initiations,
    simple_fluent,
)
from engine.event_calculus.intervals import Intervals, Ints
from engine.event_calculus.keys import find_rows, number_rows, take_rows
from engine.event_calculus.levels import Node
from engine.event_calculus.memory import SimpleCarry
from engine.event_calculus.partitioning import relation_of
from engine.event_calculus.syntax import Deadline, PointRule
from engine.event_calculus.tables import SYMBOL, TIME, FluentTable, Rows, Table, empty_fluent, empty_keys, one_row
from engine.event_calculus.terms import Atom, Number, SourceLocation, Term, Variable
from engine.model.messages import Message

MAX_PAIRS = 20_000_000
_NO_DELAYS = np.empty((0, 0), np.int64)
_NOWHERE = SourceLocation(0, 0)


@dataclass(frozen=True)
class _Part:
    """Points of one rule: arguments and value (null: the rule leaves it open), times, and kind."""

    columns: list[Ints | int | None]
    value: Ints | int | None
    t: Ints
    kind: int


class Points:
    """Collects the initiations and terminations of one simple fluent and
    turns them into its table."""

    def __init__(self, context: WindowContext, node: Node) -> None:
        self.context = context
        self.node = node
        self.parts: list[_Part] = []
        self.started = False
        self.initiated = Table((np.empty(0, np.int64),) * (node.arity + 1), (SYMBOL,) * (node.arity + 1), 0, np.empty(0, np.int64))
        """The initiations of each value, if a condition reads them."""

    def add(self, rule: PointRule, rows: Rows) -> None:
        """Adds the rows of one rule: initiations of declared groundings open groups, all others
        apply to existing groups."""
        context = self.context
        *columns, value = [self._column(rows, term) for term in rule.terms]
        t = rows.columns[rule.time]
        if rule.kind != "initiate":
            self.parts.append(_Part(columns, value, t, TERMINATE_ANY if value is None else TERMINATE))
            return
        if value is not None and all(column is not None for column in columns):
            self.parts.append(_Part(columns, value, t, INITIATE))
            return
        wider = context.groundings.bind_rows(rows, rule.terms, "=" + rule.name)
        if wider.n and all(wider.bound(term) for term in rule.terms):
            *bound, wide_value = (context.groundings.column(wider, term) for term in rule.terms)
            self.parts.append(_Part(list(bound), wide_value, wider.columns[rule.time], INITIATE))
        if value is not None:
            self.parts.append(_Part(columns, value, t, OPEN_INITIATE))

    def _column(self, rows: Rows, term: Term) -> Ints | int | None:
        """The symbols of a term: one for all rows if it is a constant, null if it is not bound."""
        if not isinstance(term, Variable):
            return self._code(term)
        return self.context.groundings.column(rows, term) if term.name in rows.columns else None

    def initially(self) -> None:
        """Adds the values that hold from the beginning of time, as initiated one tick before it."""
        self.started = True
        context = self.context
        for start in context.plan.starts(self.node):
            terms = start.fluent.terms
            rows = context.groundings.bind_rows(one_row(), terms, "=" + start.fluent.name)
            rows = without_missing_numbers(satisfy(context.kb, rows, start.body), terms)
            if rows.n and all(rows.bound(term) for term in terms):
                *columns, value = (context.groundings.column(rows, term) for term in terms)
                self.parts.append(_Part(list(columns), value, np.full(rows.n, context.bounds.begin - context.kb.tick), INITIATE))

    def table(self, carry: SimpleCarry | None) -> tuple[FluentTable, SimpleCarry]:
        context, width = self.context, self.node.arity
        bounds, kb = context.bounds, context.kb
        if bounds.initial and not self.started:
            self.initially()
        if carry is None:
            carry = SimpleCarry(empty_keys(width), np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.int64))
        points, parts = self._concat_points()
        if not len(carry.value) and not (points[1] == INITIATE).any():
            return empty_fluent(width + 1), carry
        deadlines = context.plan.deadlines.get(self.node, ())
        # Where windows leave a gap (W < S) deadlines fire in it: no row of the gap ever counts.
        horizon = max(bounds.query_time, bounds.next_low)
        inputs = InertiaInput(
            points, parts, carry.keys, carry.value, carry.start, carry.due if len(carry.value) else np.empty((0, len(deadlines)), np.int64),
            self._table(deadlines), self._delays(deadlines, points, carry), kb.tick, horizon, bounds.next_low, MAX_PAIRS,
        )  # fmt: skip
        fits, keys, ptr, s, e, *kept = simple_fluent(inputs)
        if not fits:
            raise LimitExceeded(
                Message("conditions of {name} would apply to more than {most:,} pairs of a time and a grounding", name=self.node.name, most=MAX_PAIRS)
            )
        if self.node in context.plan.initiations_read:
            self.initiated = self._declared(*initiations(inputs, bounds.begin))
        table = FluentTable(keys, Intervals(ptr, s, e))
        return context.groundings.filter_table("=" + self.node.name, table), SimpleCarry(*kept)

    def _declared(self, rows: Ints, t: Ints) -> Table:
        """Initiations (arguments and value; their times) of declared groundings:
        no other is ever initiated."""
        first = number_rows(rows)[1]
        each = FluentTable(take_rows(rows, first), Intervals(np.arange(len(first) + 1), t[first], t[first] + self.context.kb.tick))
        declared = self.context.groundings.filter_table("=" + self.node.name, each)
        kept = np.flatnonzero(find_rows(declared.keys, rows) >= 0)
        return Table(tuple(take_rows(rows, kept)), (SYMBOL,) * len(rows), len(kept), t[kept])

    def begun_groundings(self, carry: SimpleCarry | None) -> Table:
        """The arguments of all groundings that the rules so far have initiated, or that
        hold at the window's edge."""
        before = empty_keys(self.node.arity) if carry is None else carry.keys
        keys = begun(self._concat_points()[0], before)
        return Table(tuple(keys), (SYMBOL,) * self.node.arity, keys.shape[1])

    def _concat_points(self) -> tuple[Ints, Ints]:
        """All points, concatenated: rows t, kind, value, arguments; and the offset of each part.
        For a share those that may be its own."""
        points, parts = self._points_of_all_shares()
        share, relation = self.context.share, relation_of(self.node)
        key = None if share is None else share.sharing.keys.get(relation)
        if share is None or key is None:
            return points, parts
        columns = [points[3 + place] for place in key]
        mine = share.own_keys(columns, self.context.kb.symbols)
        mine |= np.logical_or.reduce([column == ANY_ARGUMENT for column in columns])
        if mine.all():
            return points, parts
        return take_rows(points, np.flatnonzero(mine)), np.searchsorted(np.flatnonzero(mine), parts)

    def _points_of_all_shares(self) -> tuple[Ints, Ints]:
        counts = [len(part.t) for part in self.parts]
        points = np.empty((3 + self.node.arity, sum(counts)), np.int64)
        parts = np.zeros(len(counts) + 1, np.int64)
        low = 0
        for place, (part, count) in enumerate(zip(self.parts, counts, strict=True)):
            high = low + count
            points[0, low:high] = part.t
            points[1, low:high] = part.kind
            points[2, low:high] = 0 if part.value is None else part.value
            for column, values in enumerate(part.columns):
                points[3 + column, low:high] = ANY_ARGUMENT if values is None else values
            parts[place + 1] = low = high
        return points, parts

    def _table(self, deadlines: Sequence[Deadline]) -> Ints:
        rows = [[self._code(one.before), self._code(one.after), int(one.extends)] for one in deadlines]
        return np.ascontiguousarray(np.array(rows, np.int64).reshape(len(deadlines), 3).T)

    def _delays(self, deadlines: Sequence[Deadline], points: Ints, carry: SimpleCarry) -> Ints:
        """For each grounding and each deadline its duration; 0 if the deadline does
        not apply to the grounding."""
        if not deadlines:
            return _NO_DELAYS
        keys = begun(points, carry.keys)
        delays = np.zeros((keys.shape[1], len(deadlines)), np.int64)
        for place, one in enumerate(deadlines):
            given = np.array([delay for _, delay in one.rows])
            if not one.bound:
                delays[:, place] = given[0]
                continue
            codes = self.context.kb.symbols.terms(one.constants).reshape(len(one.rows), len(one.bound))
            found = find_rows(np.ascontiguousarray(codes.T), np.ascontiguousarray(keys[list(one.bound)]))
            delays[:, place] = np.where(found >= 0, given[found], 0)
        for place, one in enumerate(deadlines):
            for value in (one.before, one.after):
                delays[self._undeclared(keys, value), place] = 0
        return delays

    def _undeclared(self, keys: Ints, value: Term) -> Ints:
        """The groundings that are not declared with this value, if some
        groundings are declared with it."""
        context = self.context
        name = "=" + self.node.name
        if name not in context.plan.program.groundings:
            return np.empty(0, np.int64)
        terms = [*(Variable(f"#{place}", _NOWHERE) for place in range(len(keys))), value]
        if not context.plan.groundings_of(terms, name):
            return np.empty(0, np.int64)
        columns = {f"#{place}": column for place, column in enumerate(keys)}
        rows = Rows(keys.shape[1], {**columns, "#list": np.arange(keys.shape[1])}, {**dict.fromkeys(columns, SYMBOL), "#list": TIME})
        declared = context.groundings.bind_rows(rows, terms, name)
        return np.setdiff1d(np.arange(keys.shape[1]), declared.columns["#list"] if declared.n else np.empty(0, np.int64))

    def _code(self, term: Term) -> int:
        assert isinstance(term, Atom | Number)
        return self.context.kb.symbols.term(term)
