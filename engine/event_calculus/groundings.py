"""Declared groundings of a window: which arguments and values a fluent may have there."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import numpy as np

from engine.event_calculus.conditions import World, as_symbols, satisfy
from engine.event_calculus.intervals import Ints
from engine.event_calculus.keys import find_indexed, index_rows, number_rows, take_rows
from engine.event_calculus.memory import Groundings, Listed
from engine.event_calculus.plan import Plan
from engine.event_calculus.syntax import Fact, Grounding
from engine.event_calculus.tables import SYMBOL, TIME, FluentTable, Rows, Table, distinct_rows, no_keys, one_row, rows_of
from engine.event_calculus.terms import Atom, Number, Place, Term, Variable

MAX_ENUMERATED = 20_000
"""Rows of a declared grounding that are listed; larger ones are checked row by row."""
_NOWHERE = Place(0, 0)


class DeclaredGroundings:
    """The groundings of one window; `kept` holds what was listed in earlier ones, good while the domains stay as they are."""

    def __init__(self, plan: Plan, world: World, kept: Groundings) -> None:
        self.plan = plan
        self.world = world
        self._kept = kept
        self._listed: dict[str, Listed | None] = {}

    def column(self, rows: Rows, term: Term) -> Ints:
        """Symbols of a bound term for each row."""
        if isinstance(term, Variable):
            return as_symbols(self.world, rows.columns[term.name], rows.kinds[term.name])
        assert isinstance(term, Atom | Number)
        return np.full(rows.n, self.world.symbols.term(term))

    def of_rows(self, rows: Rows, terms: Sequence[Term], name: str) -> Rows:
        """Rows whose `terms` have a declared grounding, unbound terms bound by it; all rows where nothing is declared."""
        rules = self.plan.groundings_of(terms, name)
        if rules is None or rows.n == 0:
            return rows
        if not rules:
            return Rows(0, {}, {})
        if all(rows.bound(term) for term in terms):
            listed = self.listed(name, len(terms))
            if listed is not None:
                kept = find_indexed(*listed, rows_of([self.column(rows, term) for term in terms], rows.n)) >= 0
                return rows if kept.all() else rows.take(kept)
        parts = [self._ground(rows, terms, rule) for rule in rules]
        parts = [part for part in parts if part.n]
        if not parts:
            return Rows(0, {}, {})
        if len(parts) == 1:
            return parts[0]
        columns = {column: np.concatenate([part.columns[column] for part in parts]) for column in parts[0].columns}
        whole = Rows(len(next(iter(columns.values()))), columns, parts[0].kinds)
        _, first, _ = distinct_rows([as_symbols(self.world, whole.columns[c], whole.kinds[c]) for c in columns], whole.n)
        return whole.take(np.sort(first))

    def _ground(self, rows: Rows, terms: Sequence[Term], rule: Grounding) -> Rows:
        inner = Rows(rows.n, {"#row": np.arange(rows.n)}, {"#row": TIME})
        for given, declared in zip(terms, rule.terms, strict=True):
            if not rows.bound(given):
                continue
            column = self.column(rows, given)[inner.columns["#row"]]
            if isinstance(declared, Variable) and declared.name not in inner.columns:
                inner.columns[declared.name], inner.kinds = column, {**inner.kinds, declared.name: SYMBOL}
            else:
                inner = inner.take(column == self.column(inner, declared))
        inner = satisfy(self.world, inner, rule.body)
        if inner.n == 0:
            return inner
        found = rows.take(inner.columns["#row"])
        for given, declared in zip(terms, rule.terms, strict=True):
            if isinstance(given, Variable) and given.name not in found.columns:
                found.columns[given.name] = self.column(inner, declared)
                found.kinds = {**found.kinds, given.name: SYMBOL}
        if found.n > 1:
            _, first, n = distinct_rows([as_symbols(self.world, column, found.kinds[name]) for name, column in found.columns.items()], found.n)
            if n < found.n:
                found = found.take(np.sort(first))
        return found

    def of_table(self, name: str, table: FluentTable) -> FluentTable:
        """Only the lists whose arguments and value have a declared grounding, where any is declared."""
        if table.n == 0 or "=" + name not in self.plan.program.groundings:
            return table
        listed = self.listed(name, len(table.keys))
        if listed is not None:
            return table.picked(np.flatnonzero(find_indexed(*listed, table.keys) >= 0))
        names = [f"#{place}" for place in range(len(table.keys))]
        columns = {**dict(zip(names, table.keys, strict=True)), "#list": np.arange(table.n)}
        rows = Rows(table.n, columns, {**dict.fromkeys(names, SYMBOL), "#list": TIME})
        kept = self.of_rows(rows, [Variable(column, _NOWHERE) for column in names], name)
        return table.picked(np.sort(kept.columns["#list"]) if kept.n else np.empty(0, np.int64))

    def listed(self, name: str, width: int) -> Listed | None:
        """All declared rows of a fluent (arguments and value: `width` columns), none twice, if they are few."""
        key = f"={name}/{width}"
        if key not in self._listed:
            parts = [self._rule(rule) for rule in self.plan.program.groundings["=" + name] if len(rule.terms) == width]
            known = [part for part in parts if part is not None]
            self._listed[key] = self._together(key, known, width) if len(known) == len(parts) else None
        return self._listed[key]

    def _together(self, key: str, parts: list[Ints], width: int) -> Listed:
        known = self._kept.get(key)
        if known is not None and len(known[0]) == len(parts) and all(map(is_, known[0], parts)):
            return known[1]
        rows = parts[0] if len(parts) == 1 else np.concatenate([no_keys(width), *parts], axis=1)
        rows = take_rows(rows, number_rows(rows)[1])
        listed = Listed(rows, index_rows(rows))
        self._kept[key] = (list(parts), listed)
        return listed

    def _rule(self, rule: Grounding) -> Ints | None:
        """All rows one grounding declares; null where they are many or not listed by facts and domains."""
        body = self.plan.grounding_key(rule)
        if body is None:
            return None
        facts = self.world.facts
        size = 1
        domains: list[object] = []
        for literal in rule.body:
            if isinstance(literal, Fact):
                table: Table | None = facts.get(literal.indicator)
                size *= table.n if table is not None else 0
                if table is not None and literal.indicator in self.plan.domains:
                    domains.append(table)
        if size > MAX_ENUMERATED:
            return None
        known = self._kept.get(body)
        if known is not None and len(known[0]) == len(domains) and all(map(is_, known[0], domains)):
            return known[1].keys
        rows = satisfy(self.world, one_row(), rule.body)
        keys = no_keys(len(rule.terms))
        if rows.n:
            keys = rows_of([self.column(rows, term) for term in rule.terms], rows.n)
            keys = take_rows(keys, number_rows(keys)[1])
        self._kept[body] = (domains, Listed(keys, index_rows(keys)))
        return keys
