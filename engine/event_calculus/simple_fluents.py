"""Simple fluents of a window: the points that rules give, applied to groundings, and what inertia makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.event_calculus import inertia
from engine.event_calculus.conditions import join
from engine.event_calculus.intervals import INF, Bools, Ints, amalgamate
from engine.event_calculus.keys import locate
from engine.event_calculus.levels import Node
from engine.event_calculus.memory import SimpleCarry
from engine.event_calculus.syntax import Deadline, PointRule
from engine.event_calculus.tables import FluentTable, Rows, distinct_rows, no_fluent, one_row
from engine.event_calculus.terms import Atom, Number, Term

if TYPE_CHECKING:
    from engine.event_calculus.evaluation import Evaluation


class Points:
    """Collects the initiations and terminations of one simple fluent and turns them into its table."""

    def __init__(self, evaluation: Evaluation, node: Node) -> None:
        self.evaluation = evaluation
        self.node = node
        self.exact: list[tuple[tuple[Ints, ...], Ints, Ints, bool]] = []
        self.loose: list[tuple[list[Ints | None], Ints | None, Ints, bool]] = []

    def add(self, rule: PointRule, rows: Rows) -> None:
        """Rows of one rule: initiations of declared groundings open groups, everything else applies to groups that exist."""
        evaluation = self.evaluation
        start = rule.kind == "initiate"
        columns = [evaluation.column(rows, term) if rows.bound(term) else None for term in rule.terms]
        if start and all(column is not None for column in columns):
            known = [column for column in columns if column is not None]
            self.exact.append((tuple(known[:-1]), known[-1], rows.columns[rule.time], True))
            return
        if start:
            wider = evaluation.grounded(rows, rule.terms, rule.name)
            if wider.n and all(wider.bound(term) for term in rule.terms):
                bound = [evaluation.column(wider, term) for term in rule.terms]
                self.exact.append((tuple(bound[:-1]), bound[-1], wider.columns[rule.time], True))
        self.loose.append((columns[:-1], columns[-1], rows.columns[rule.time], start))

    def _groups(self, carry: SimpleCarry | None) -> tuple[tuple[Ints, ...], Ints]:
        """Arguments of all groundings with an initiation or a carried state; and which (group, value) may be stated."""
        width = self.node.arity
        parts = [part[0] for part in self.exact]
        if carry is not None:
            parts.append(carry.keys)
        parts += [keys for keys, _ in self._initially()]
        if not parts:
            return tuple(np.empty(0, np.int64) for _ in range(width)), np.zeros(0, np.int64)
        if width == 0:
            return (), np.zeros(1, np.int64)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        _, first, n = distinct_rows(columns, len(columns[0]))
        return tuple(column[first] for column in columns), np.zeros(n, np.int64)

    def _initially(self) -> list[tuple[tuple[Ints, ...], Ints]]:
        evaluation = self.evaluation
        if not evaluation.bounds.initial:
            return []
        found = []
        for pattern in evaluation.plan.program.initially:
            if pattern.indicator == (self.node.name, self.node.arity):
                rows = evaluation.grounded(one_row(), pattern.terms, pattern.name)
                if rows.n and all(rows.bound(term) for term in pattern.terms):
                    columns = [evaluation.column(rows, term) for term in pattern.terms]
                    found.append((tuple(columns[:-1]), columns[-1]))
        return found

    def table(self, carry: SimpleCarry | None) -> tuple[FluentTable, SimpleCarry]:
        evaluation = self.evaluation
        bounds, world = evaluation.bounds, evaluation.world
        if not self.exact and (carry is None or not len(carry.value)) and not bounds.initial:
            nothing = tuple(np.empty(0, np.int64) for _ in range(self.node.arity))
            return no_fluent(self.node.arity + 1), SimpleCarry(nothing, np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.int64))
        deadlines = evaluation.plan.deadlines.get(self.node, ())
        keys, groups = self._groups(carry)
        n = len(groups)
        owner, t, value, code_kind = self._applied(keys, n)
        values = _Values(
            np.concatenate(
                (
                    value[code_kind != 2],
                    *([carry.value[carry.value >= 0]] if carry is not None else []),
                    *(v for _, v in self._initially()),
                    self._deadline_values(deadlines),
                )
            )
        )
        code = np.where(code_kind == 2, inertia.ANY_VALUE, values.local(value))
        code = np.where(code_kind == 1, -1 - code, code)
        order = np.lexsort((t, owner))
        owner, t, code = owner[order], t[order], code[order]
        ptr = np.searchsorted(owner, np.arange(n + 1))
        state = self._state(keys, n, carry, values, deadlines)
        table = np.array(
            [
                [values.one(self._code(d.before)) for d in deadlines],
                [values.one(self._code(d.after)) for d in deadlines],
                [d.delay for d in deadlines],
                [int(d.extends) for d in deadlines],
            ],
            np.int64,
        ).reshape(4, len(deadlines))
        runs = inertia.inertia(ptr, t, code, state, table, tick=world.tick, query_time=bounds.query_time, snapshot=bounds.next_low)
        return self._stated(keys, runs, values), self._carried(keys, runs.carry, values)

    def _code(self, term: Term) -> int:
        assert isinstance(term, Atom | Number)
        return self.evaluation.world.symbols.term(term)

    def _deadline_values(self, deadlines: Sequence[Deadline]) -> Ints:
        return np.array([self._code(term) for deadline in deadlines for term in (deadline.before, deadline.after)], np.int64)

    def _applied(self, keys: tuple[Ints, ...], n: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Group, time, value and kind (0 initiates, 1 terminates the value, 2 terminates any) of every point."""
        owners, times, values, kinds = ([np.empty(0, np.int64)] for _ in range(4))
        for arguments, value, t, _ in self.exact:
            group = locate(keys, arguments) if keys else np.zeros(len(t), np.int64)
            self._append(owners, times, values, kinds, group, t, value, 0)
        for arguments, value in self._initially():
            # What holds at 0 was initiated one tick before.
            group = locate(keys, arguments) if keys else np.zeros(len(value), np.int64)
            self._append(owners, times, values, kinds, group, np.full(len(value), -self.evaluation.world.tick), value, 0)
        numbers = np.arange(n)
        for columns, loose_value, t, start in self.loose:
            bound = [place for place, column in enumerate(columns) if column is not None]
            if len(bound) == len(columns):
                rows = np.arange(len(t))
                group = locate(keys, [column for column in columns if column is not None]) if keys else np.zeros(len(t), np.int64) + (0 if n else -1)
            else:
                rows, group = _pairs([c for c in columns if c is not None], [keys[place] for place in bound], len(t), numbers)
            picked = np.full(len(rows), 0) if loose_value is None else loose_value[rows]
            self._append(owners, times, values, kinds, group, t[rows], picked, 0 if start else (2 if loose_value is None else 1))
        return np.concatenate(owners), np.concatenate(times), np.concatenate(values), np.concatenate(kinds)

    @staticmethod
    def _append(owners: list[Ints], times: list[Ints], values: list[Ints], kinds: list[Ints], group: Ints, t: Ints, value: Ints, kind: int) -> None:
        known: Bools = group >= 0
        owners.append(group[known])
        times.append(t[known])
        values.append(value[known])
        kinds.append(np.full(int(known.sum()), kind))

    def _state(self, keys: tuple[Ints, ...], n: int, carry: SimpleCarry | None, values: _Values, deadlines: Sequence[Deadline]) -> inertia.Carry:
        value, start, due = np.full(n, -1), np.zeros(n, np.int64), np.full((n, len(deadlines)), INF)
        if carry is not None and len(carry.value):
            at = locate(keys, carry.keys) if keys else np.zeros(len(carry.value), np.int64)
            value[at] = np.where(carry.value >= 0, values.local(carry.value), -1)
            start[at] = carry.start
            due[at] = carry.due
        return inertia.Carry(value, start, due)

    def _stated(self, keys: tuple[Ints, ...], runs: inertia.Runs, values: _Values) -> FluentTable:
        if not len(runs.group):
            return no_fluent(self.node.arity + 1)
        owner, first, m = distinct_rows([runs.group, runs.value], len(runs.group))
        lists = amalgamate(owner, runs.s, runs.e, m)
        columns = (*(key[runs.group[first]] for key in keys), values.codes[runs.value[first]])
        table = FluentTable(columns, lists)
        if "=" + self.node.name not in self.evaluation.plan.program.groundings:
            return table
        return self.evaluation.declared(self.node.name, table)

    def _carried(self, keys: tuple[Ints, ...], carry: inertia.Carry, values: _Values) -> SimpleCarry:
        alive = (carry.value >= 0) | (carry.due < INF).any(axis=1)
        value = np.where(carry.value >= 0, values.codes[carry.value], -1) if len(values.codes) else carry.value
        return SimpleCarry(tuple(key[alive] for key in keys), value[alive], carry.start[alive], carry.due[alive])


class _Values:
    """Values of one fluent in one window as small numbers."""

    def __init__(self, codes: Ints) -> None:
        self.codes = np.unique(codes)

    def local(self, codes: Ints) -> Ints:
        return np.searchsorted(self.codes, codes)

    def one(self, code: int) -> int:
        return int(np.searchsorted(self.codes, code))


def _pairs(columns: list[Ints], keys: list[Ints], n: int, numbers: Ints) -> tuple[Ints, Ints]:
    """All pairs (row, group) that agree on the bound columns."""
    return join(n, len(numbers), None, list(zip(columns, keys, strict=True)), MAX_PAIRS)


MAX_PAIRS = 20_000_000
