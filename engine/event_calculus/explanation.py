"""Explains why an interval begins and ends: the rule of each edge and the
events and fluents behind it.

Simple fluents: the initiatedAt, terminatedAt, fi or initially clause whose head matches at
the moment before the edge, and its conditions with their values. Statically determined
fluents: the holdsFor clause that has the edge, and the state there of the fluents that it
reads. Inputs have no rule. Everything is derived again from the window's own tables, so
nothing is recorded while a query runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.event_calculus.conditions import as_symbols, satisfy
from engine.event_calculus.evaluation import Evaluation
from engine.event_calculus.intervals import INF
from engine.event_calculus.keys import find_rows
from engine.event_calculus.levels import Node
from engine.event_calculus.shapes import format_relation
from engine.event_calculus.syntax import Count, Edge, Happens, HoldsAt, Initiated, IntervalRule, Literal, Negation, PointRule, Retrieve
from engine.event_calculus.tables import SYMBOL, FluentTable, Rows, number_text, stack
from engine.event_calculus.terms import SourceLocation, Term, Variable

Key = tuple[int, ...]
MAX_REASONS = 20


@dataclass(frozen=True)
class Cause:
    """The clause of an edge: the line of its head, its text as written, and the matches of its
    conditions at `t`, one sentence each."""

    line: int
    text: str
    t: int
    because: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"line": self.line, "text": self.text, "t": self.t, "because": list(self.because)}


@dataclass(frozen=True)
class _Satisfied:
    """One way in which a point rule was satisfied: its key (null matches any) and its row."""

    rule: PointRule
    rows: Rows
    position: int
    key: tuple[int | None, ...]

    def fits(self, key: Key) -> bool:
        return all(mine is None or mine == other for mine, other in zip(self.key, key, strict=True))


class Explainer:
    """Causes of the edges of one evaluated window. `texts`: the clauses of the program by
    the place of their heads."""

    def __init__(self, evaluation: Evaluation, texts: Mapping[SourceLocation, str]) -> None:
        self.evaluation = evaluation
        self.texts = texts
        self._points: dict[Node, dict[tuple[str, int], list[_Satisfied]]] = {}
        self._derived: dict[int, FluentTable | None] = {}

    def explain_start(self, node: Node, key: Key, s: int) -> Cause | None:
        """Why F=V with this key (arguments, value) holds from `s` on; null if
        it held before the window."""
        if node.kind == "derived":
            return self._list_cause(node, key, s, "s")
        t = s - self.evaluation.kb.tick
        for found in self._points_at(node, "initiate", t):
            if found.fits(key):
                return self._rule_cause(found, t)
        return self._deadline_cause(node, key, t, after=True) or self._initial_cause(node, key, t)

    def explain_end(self, node: Node, key: Key, e: int) -> Cause | None:
        """Why F=V ends at `e`; null for an open interval."""
        if e == INF:
            return None
        if node.kind == "derived":
            return self._list_cause(node, key, e, "e")
        t = e - self.evaluation.kb.tick
        for found in self._points_at(node, "terminate", t):
            if found.fits(key):
                return self._rule_cause(found, t)
        for found in self._points_at(node, "initiate", t):
            if found.key[-1] != key[-1] and found.fits((*key[:-1], found.key[-1] if found.key[-1] is not None else -1)):
                return self._rule_cause(found, t)
        return self._deadline_cause(node, key, t, after=False)

    def explain_event(self, node: Node, key: Key, t: int) -> Cause | None:
        """Why an event of the program happened at `t`; `key` is its arguments."""
        return next((self._rule_cause(found, t) for found in self._points_at(node, "event", t) if found.fits(key)), None)

    # -- point rules -------------------------------------------------------------------------------

    def _points_at(self, node: Node, kind: str, t: int) -> list[_Satisfied]:
        if node not in self._points:
            index: dict[tuple[str, int], list[_Satisfied]] = {}
            self._points[node] = index
            for rule in self.evaluation.plan.point_rules(node):
                for found, moment in self._satisfying(rule):
                    index.setdefault((rule.kind, moment), []).append(found)
        return self._points[node].get((kind, t), [])

    def _satisfying(self, rule: PointRule) -> Iterator[tuple[_Satisfied, int]]:
        rows = self.evaluation.satisfying(rule)
        if not rows.n:
            return
        columns = [self.evaluation.column(rows, term).tolist() if rows.bound(term) else [None] * rows.n for term in rule.terms]
        times = rows.columns[rule.time].tolist()
        for position in range(rows.n):
            yield _Satisfied(rule, rows, position, tuple(column[position] for column in columns)), int(times[position])

    def _rule_cause(self, found: _Satisfied, t: int) -> Cause:
        because = [sentence for literal in found.rule.body if (sentence := self._sentence(literal, found.rows, found.position))]
        return self._make_cause(found.rule.location, t, because)

    def _make_cause(self, location: SourceLocation, t: int, because: Sequence[str]) -> Cause:
        return Cause(location.line, self.texts.get(location, ""), t, tuple(because[:MAX_REASONS]))

    def _sentence(self, literal: Literal, rows: Rows, position: int) -> str:
        """The match of a condition, in the language's notation; empty for background knowledge."""

        def written(name: str, terms: Sequence[Term]) -> str:
            return format_relation(name, [self._value_text(term, rows, position) for term in terms])

        if isinstance(literal, Negation):
            inner = ", ".join(part for one in literal.body if (part := self._sentence(one, rows, position)))
            return f"\\+ {inner}" if inner else ""
        if isinstance(literal, Happens):
            return f"happensAt({written(literal.name, literal.arguments)}, {self._time(literal.time, rows, position)})"
        if isinstance(literal, Count):
            inner = ", ".join(part for one in literal.body if (part := self._sentence(one, rows, position)))
            return f"{self._value_text(literal.number, rows, position)} {literal.variable} with {inner}"
        if isinstance(literal, Edge | HoldsAt | Initiated):
            fluent = f"{written(literal.fluent.name, literal.fluent.arguments)}={self._value_text(literal.fluent.value, rows, position)}"
            moment = self._time(literal.time, rows, position)
            if isinstance(literal, Edge):
                return f"happensAt({literal.kind}({fluent}), {moment})"
            return f"{'holdsAt' if isinstance(literal, HoldsAt) else 'initiatedAt'}({fluent}, {moment})"
        return ""

    @staticmethod
    def _time(name: str, rows: Rows, position: int) -> str:
        return str(int(rows.columns[name][position])) if name in rows.columns else name

    def _value_text(self, term: Term, rows: Rows, position: int) -> str:
        if not isinstance(term, Variable):
            return str(term)
        if term.name not in rows.columns:
            return "_" if term.name.startswith("_") else term.name
        value = rows.columns[term.name][position]
        if rows.kinds[term.name] == "number":
            return number_text(float(value)) if np.isfinite(value) else str(value)
        names = self.evaluation.kb.symbols.names
        return names[int(value)] if rows.kinds[term.name] == "symbol" else str(int(value))

    def _deadline_cause(self, node: Node, key: Key, t: int, *, after: bool) -> Cause | None:
        """The fi clause that asserted (`after`) or ended a value at t, if no rule did."""
        symbols = self.evaluation.kb.symbols
        for deadline in self.evaluation.plan.deadlines.get(node, ()):
            if symbols.term(deadline.after if after else deadline.before) != key[-1]:  # type: ignore[arg-type]
                continue
            for row, delay in deadline.rows:
                if all(term is None or symbols.term(term) == code for term, code in zip(row, key[:-1], strict=True)):
                    return self._make_cause(deadline.location, t, [f"{deadline.before} was initiated at {t - delay}"])
        return None

    def _initial_cause(self, node: Node, key: Key, t: int) -> Cause | None:
        if t != self.evaluation.bounds.begin - self.evaluation.kb.tick:
            return None
        for start in self.evaluation.plan.starts(node):
            given = {term.name: code for term, code in zip(start.fluent.terms, key, strict=True) if isinstance(term, Variable)}
            rows = Rows(1, {name: np.array([code]) for name, code in given.items()}, dict.fromkeys(given, SYMBOL))
            asserted = [self.evaluation.column(rows, term)[0] for term in start.fluent.terms]
            if asserted == list(key) and satisfy(self.evaluation.kb, rows, start.body).n:
                return self._make_cause(start.location, t, ["initially"])
        return None

    # -- interval rules ----------------------------------------------------------------------------

    def _list_cause(self, node: Node, key: Key, edge: int, side: str) -> Cause | None:
        """The holdsFor clause whose list has this edge, else one whose list holds there."""
        for rule in self.evaluation.plan.interval_rules(node):
            given = self._rule_table(rule)
            if given is None:
                continue
            lists = given.lists
            rows = find_rows(given.keys, stack(key, 1))
            edges = lists.s if side == "s" else lists.e
            if any((edges[lists.ptr[row] : lists.ptr[row + 1]] == edge).any() for row in rows[rows >= 0]):
                return self._make_cause(rule.location, edge, self._list_states(rule, key, edge))
        return None

    def _rule_table(self, rule: IntervalRule) -> FluentTable | None:
        if rule.number not in self._derived:
            self._derived[rule.number] = self.evaluation.interval_rule(rule)
        return self._derived[rule.number]

    def _list_states(self, rule: IntervalRule, key: Key, edge: int) -> list[str]:
        """The states at an edge of the fluents that a rule reads; those
        that change there come first."""
        names = self.evaluation.kb.symbols.names
        bound = {term.name: code for term, code in zip(rule.head.terms, key, strict=True) if isinstance(term, Variable)}
        changing: list[str] = []
        steady: list[str] = []
        for literal in rule.intervals:
            if not isinstance(literal, Retrieve):
                continue
            terms = literal.fluent.terms
            if any(isinstance(term, Variable) and term.name not in bound for term in terms):
                continue
            wanted = [bound[term.name] if isinstance(term, Variable) else self.evaluation.kb.symbols.term(term) for term in terms]  # type: ignore[arg-type]
            text = f"{format_relation(literal.fluent.name, [names[code] for code in wanted[:-1]])}={names[wanted[-1]]}"
            state = self._state(self.evaluation.sources(literal.fluent), wanted, edge)
            (changing if state in ("begins", "ends") else steady).append(f"{text} {state}")
        return [*changing, *steady]

    @staticmethod
    def _state(tables: Sequence[FluentTable], wanted: Sequence[int], edge: int) -> str:
        for table in tables:
            row = int(find_rows(table.keys, stack(wanted, 1))[0])
            if row < 0:
                continue
            part = slice(table.lists.ptr[row], table.lists.ptr[row + 1])
            s, e = table.lists.s[part], table.lists.e[part]
            if (s == edge).any():
                return "begins"
            if (e == edge).any():
                return "ends"
            if ((s < edge) & (edge < e)).any():
                return "holds"
        return "does not hold"


def key_columns(evaluation: Evaluation, node: Node) -> list[list[int]]:
    """The arguments of an event table as symbol codes."""
    table = evaluation.events[node]
    return [as_symbols(evaluation.kb, column, kind).tolist() for column, kind in zip(table.columns, table.kinds, strict=True)]
