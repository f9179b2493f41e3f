"""Statically determined fluents of a window: holdsFor rules, evaluated over few lists in one
compiled call, else literal by literal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.event_calculus.allen import allen, ended_sources, prepend_ended
from engine.event_calculus.answers import NEVER
from engine.event_calculus.candidates import REMEMBERED, Needs
from engine.event_calculus.conditions import as_symbols, match, number, satisfy
from engine.event_calculus.context import WindowContext
from engine.event_calculus.fused import MAX_ROWS, ListTables
from engine.event_calculus.intervals import Bools, Intervals, Ints, always, amalgamate, empty, gather, intersect, keep, longer_than, subtract, union
from engine.event_calculus.keys import find_rows
from engine.event_calculus.levels import Node
from engine.event_calculus.speeds import Speeds
from engine.event_calculus.syntax import Construct, FluentPattern, IntervalRule, NonEmpty, Retrieve
from engine.event_calculus.tables import (
    SYMBOL,
    TIME,
    FluentTable,
    Rows,
    distinct_rows,
    empty_fluent,
    group_by_key,
    group_intervals,
    one_row,
    stack,
    union_tables,
)
from engine.event_calculus.terms import Variable, variable_names


class DerivedFluents:
    """The holdsFor rules of one window."""

    def __init__(self, context: WindowContext) -> None:
        self.plan, self.kb, self.bounds = context.plan, context.kb, context.bounds
        self.groundings, self.crossing = context.groundings, context.crossing
        self.exact, self.context = context.exact, context
        self.speeds = Speeds(context)
        self.related: Bools = np.empty(0, np.bool_)
        """For each candidate whether the last of Allen's relations has a pair."""

    def table(self, node: Node) -> FluentTable:
        """The lists that the rules of one fluent-value derive."""
        parts = [part for rule in self.plan.interval_rules(node) if (part := self.rule(rule)) is not None]
        return parts[0] if len(parts) == 1 else union_tables(parts, node.arity + 1)

    def rule(self, rule: IntervalRule) -> FluentTable | None:
        """The lists that one rule derives, all non-empty, one for each
        grounding; null if there are none."""
        tables = self._small_tables(rule)
        found = self._evaluate_literals(rule) if tables is None else self._evaluate_fused(rule, tables)
        return found if found is not None and len(found.lists.s) else None

    def _evaluate_literals(self, rule: IntervalRule) -> FluentTable | None:
        rows = self._candidates(rule)
        if rows.n == 0:
            return None
        rows = satisfy(self.kb, rows, self.plan.conditions[rule.number])
        return self._union_by_head(rule, self.groundings.bind_rows(rows, rule.head.terms, "=" + rule.head.name))

    def _union_by_head(self, rule: IntervalRule, rows: Rows) -> FluentTable | None:
        """The lists of candidates that satisfy all conditions; several may have one head."""
        if rows.n == 0:
            return None
        keys = stack([self.groundings.column(rows, term) for term in rule.head.terms], rows.n)
        return group_by_key(keys, self._algebra(rule, rows))

    # -- few lists ---------------------------------------------------------------------------------

    def _small_tables(self, rule: IntervalRule) -> list[FluentTable] | None:
        """The tables of a rule's lists, if it can be evaluated in one compiled
        call and they are few enough."""
        fused = self.plan.fused[rule.number]
        if fused is None or (fused.program is None and (self.exact or self.plan.relations[rule.number])):
            return None
        if self.exact and any(isinstance(part, Construct) and part.operator == "complement_all" for part in rule.intervals):
            return None
        tables = []
        for retrieve in fused.retrieves:
            filled = [table for table in self.kb.fluents(retrieve.fluent) if table.n]
            if len(filled) > 1 or (filled and filled[0].n > MAX_ROWS):
                return None
            tables.append(filled[0] if filled else empty_fluent(len(retrieve.fluent.terms)))
        return tables

    def _evaluate_fused(self, rule: IntervalRule, tables: list[FluentTable]) -> FluentTable | None:
        fused = self.plan.fused[rule.number]
        assert fused is not None
        if fused.lacks_lists(tables):
            return None
        declared = None
        if "=" + rule.head.name in self.plan.program.groundings:
            declared = self.groundings.all_declared("=" + rule.head.name, len(rule.head.terms))
            if declared is None:
                return self._evaluate_literals(rule)
        lists = ListTables(fused, tables, self.kb.symbols.terms(fused.constants), declared)
        if not rule.conditions and lists.rule.program is not None:
            return lists.algebra(None, self.bounds.earliest)
        names, variables = lists.rule.names, lists.candidates()
        rows = Rows(variables.shape[1], dict(zip(names, variables, strict=True)), dict.fromkeys(names, SYMBOL))
        rows = satisfy(self.kb, rows, self.plan.conditions[rule.number])
        if rows.n == 0 or lists.rule.program is None:
            return self._union_by_head(rule, self.groundings.bind_rows(rows, rule.head.terms, "=" + rule.head.name))
        return lists.algebra(stack([rows.columns[name] for name in names], rows.n), self.bounds.earliest)

    # -- literal by literal ------------------------------------------------------------------------

    def _candidates(self, rule: IntervalRule) -> Rows:
        """Bindings of the essential variables for which the rule may derive an interval."""
        names = self.plan.essential[rule.number]
        parts = []
        for needs in self.plan.alternatives[rule.number]:
            rows = one_row()
            for retrieve in self._join_order(rule, needs):
                rows = self._joined_keys(rows, retrieve, names)
                if rows.n == 0:
                    break
            if rows.n == 0:
                continue
            if any(name not in rows.columns for name in names):
                # Variables that a head leaves open are bound by its groundings, before
                # conditions are evaluated.
                if self.plan.grounded_first[rule.number]:
                    rows = self.groundings.bind_rows(rows, rule.head.terms, "=" + rule.head.name)
                rows = satisfy(self.kb, rows, self.plan.conditions[rule.number])
                rows = self.groundings.bind_rows(rows, rule.head.terms, "=" + rule.head.name)
            if rows.n:
                parts.append({name: as_symbols(self.kb, rows.columns[name], rows.kinds[name]) for name in names})
        for construct in self.plan.relations[rule.number]:
            ended = self.crossing.saved_sources(_list_name(rule, construct))
            if ended is not None:
                parts.append(dict(zip(names, ended.keys, strict=True)))
        return _distinct(parts)

    def _join_order(self, rule: IntervalRule, needs: Needs) -> list[Retrieve]:
        """The lists from the smallest on, each sharing a variable with those before it if possible,
        which avoids cross products."""
        left = [literal for position in sorted(needs) if isinstance(literal := rule.intervals[position], Retrieve)]
        order: list[Retrieve] = []
        bound: set[str] = set()
        while left:
            joined = [one for one in left if bound & variable_names(one.fluent.terms)] or left
            order.append(min(joined, key=self._size))
            bound |= variable_names(order[-1].fluent.terms)
            left.remove(order[-1])
        return order

    def _size(self, retrieve: Retrieve) -> int:
        return sum(table.n for table in self.kb.fluents(retrieve.fluent))

    def _joined_keys(self, rows: Rows, retrieve: Retrieve, names: Sequence[str]) -> Rows:
        """`rows` joined with the groundings of a list that is not empty, projected to `names`."""
        found = [match(self.kb, rows, table.relation(), retrieve.fluent.terms, None) for table in self.kb.fluents(retrieve.fluent)]
        return _distinct([{name: part.columns[name] for name in names if name in part.columns} for part in found if part.n])

    def _algebra(self, rule: IntervalRule, rows: Rows) -> Intervals:
        """The answer list for each row."""
        lists: dict[str, Intervals] = {}
        failed = np.zeros(rows.n, np.bool_)
        for literal in rule.intervals:
            if isinstance(literal, Retrieve):
                lists[literal.out] = self._retrieve(rows, literal.fluent)
            elif isinstance(literal, NonEmpty):
                filled = lists[literal.list].counts > 0
                failed |= filled if literal.negated else ~filled
            else:
                lists[literal.out] = self._apply_construct(rule, rows, literal, [lists[name] for name in literal.inputs])
                if literal.satisfied is not None:
                    failed |= self.related != literal.satisfied
        result = lists[rule.out]
        return keep(result, ~failed[result.owners()]) if failed.any() else result

    def _retrieve(self, rows: Rows, pattern: FluentPattern) -> Intervals:
        first = self.bounds.first
        tables = self.kb.fluents(pattern)
        if all(rows.bound(term) for term in pattern.terms):
            result: Intervals | None = None
            wanted = [self.groundings.column(rows, term) for term in pattern.terms]
            for table in tables:
                part = gather(table.lists, find_rows(table.keys, stack(wanted, rows.n)), first)
                result = part if result is None else union(result, part)
            return empty(rows.n) if result is None else result
        owners, s, e = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        numbered = rows.with_column("#row", np.arange(rows.n), TIME)
        for table in tables:
            found = match(self.kb, numbered, table.with_list_numbers(), (*pattern.terms, Variable("#list", pattern.location)), None)
            if found.n == 0:
                continue
            part = gather(table.lists, found.columns["#list"], first)
            owners.append(found.columns["#row"][part.owners()])
            s.append(part.s)
            e.append(part.e)
        return amalgamate(np.concatenate(owners), np.concatenate(s), np.concatenate(e), rows.n)

    def _apply_construct(self, rule: IntervalRule, rows: Rows, construct: Construct, inputs: list[Intervals]) -> Intervals:
        if construct.operator == "slower_than":
            return self.speeds.slower(rule, rows, construct, inputs[0])
        if construct.operator in REMEMBERED and (self.exact or construct.operator == "allen"):
            keys = self._keys(rule, rows)
            inputs = [
                self.crossing.true_starts(f"{_list_name(rule, construct)} {place}", keys, self._with_true_starts(rule, rows, name, lists))
                for place, (name, lists) in enumerate(zip(construct.inputs, inputs, strict=True))
            ]
            for lists in inputs:
                self._note_undecided(rule, rows, lists)
        if construct.operator == "union_all":
            return _fold(union, inputs)
        if construct.operator == "intersect_all":
            return _fold(intersect, inputs)
        if construct.operator == "relative_complement_all":
            return inputs[0] if len(inputs) == 1 else subtract(self._in_window(inputs[0]), _fold(union, inputs[1:]))
        if construct.operator == "complement_all":
            return subtract(self._always(rule, rows, construct), _fold(union, inputs))
        if construct.operator == "longer_than":
            assert construct.amount is not None
            duration = np.broadcast_to(np.asarray(number(self.kb, rows, construct.amount), np.float64), (rows.n,))
            return longer_than(inputs[0], duration, self.bounds.query_time)
        return self._apply_allen(rule, rows, construct, inputs[0], inputs[1])

    def _note_undecided(self, rule: IntervalRule, rows: Rows, lists: Intervals) -> None:
        """Notes the part before the window of intervals that may be selected in a later one."""
        first, undecided = self.bounds.first, self.context.undecided
        crossing = np.flatnonzero(lists.s < first)
        if not len(crossing):
            return
        owner = lists.owners()[crossing]
        keys = stack([self.groundings.column(rows, term)[owner] for term in rule.head.terms], len(owner))
        found = group_intervals(keys, lists.s[crossing], np.full(len(owner), first))
        others = undecided.get(rule.head.indicator)
        undecided[rule.head.indicator] = found if others is None else union_tables([others, found], len(keys))

    def _in_window(self, lists: Intervals) -> Intervals:
        """The lists without what is before the window: other lists are not known there."""
        return gather(lists, np.arange(lists.lists), self.bounds.first)

    def _always(self, rule: IntervalRule, rows: Rows, construct: Construct) -> Intervals:
        """The whole window for each grounding. With exact edges it has one tick more, which is
        another window's for groundings that are new."""
        whole = always(rows.n, self.bounds.earliest)
        if not self.exact:
            return whole
        new = self.crossing.new_groundings(f"complement {rule.number} {construct.out}", self._keys(rule, rows))
        own = max(self.bounds.first + self.kb.tick, self.bounds.begin)
        return Intervals(whole.ptr, np.where(new, own, whole.s), whole.e)

    def _apply_allen(self, rule: IntervalRule, rows: Rows, construct: Construct, source: Intervals, target: Intervals) -> Intervals:
        """The result of an Allen relation; remembers the sources that may still be in relation with
        a target after the window."""
        name, keys, tick = _list_name(rule, construct), self._keys(rule, rows), self.kb.tick
        *whole, over = prepend_ended(*self.crossing.saved_source_lists(name, keys), *source)
        sources = Intervals(*whole)
        result, self.related = allen(construct.relation, construct.mode, sources, target, tick, self.bounds.first, over)
        self.crossing.save_sources(name, keys, *ended_sources(construct.relation, sources, target, self.bounds.next_low, tick))
        return result

    def _keys(self, rule: IntervalRule, rows: Rows) -> Ints:
        return stack([rows.columns[name] for name in self.plan.essential[rule.number]], rows.n)

    def _with_true_starts(self, rule: IntervalRule, rows: Rows, name: str, lists: Intervals) -> Intervals:
        """The list of this name with true starts, if it is a fluent's own: the fluent has them even
        if the rule's grounding is new."""
        pattern = next((part.fluent for part in rule.intervals if isinstance(part, Retrieve) and part.out == name), None)
        crossing = pattern is not None and self.exact and bool((lists.s == self.bounds.first).any())
        if pattern is None or not crossing or not all(rows.bound(term) for term in pattern.terms):
            return lists
        tables = self.kb.fluents(pattern)
        if len(tables) != 1:
            return lists
        wanted = stack([self.groundings.column(rows, term) for term in pattern.terms], rows.n)
        found = gather(tables[0].lists, find_rows(tables[0].keys, wanted), NEVER)
        return keep(found, found.e > self.bounds.first)


def _distinct(parts: Sequence[Mapping[str, Ints]]) -> Rows:
    """The distinct rows of all parts, which have the same columns of symbols; one
    empty row if they have none."""
    if not parts:
        return Rows(0, {}, {})
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if not columns:
        return one_row()
    first = distinct_rows(list(columns.values()), len(next(iter(columns.values()))))
    return Rows(len(first), {name: column[first] for name, column in columns.items()}, dict.fromkeys(columns, SYMBOL))


def _list_name(rule: IntervalRule, construct: Construct) -> str:
    """The name under which the operands of a construct are remembered."""
    return f"rule {rule.number} {construct.out}"


def _fold(operation: Any, inputs: list[Intervals]) -> Intervals:
    result = inputs[0]
    for other in inputs[1:]:
        result = operation(result, other)
    return result
