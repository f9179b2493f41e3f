"""Declared groundings of a window: the arguments and values that a fluent may have in it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import numpy as np

from engine.event_calculus.conditions import KnowledgeBase, as_symbols, match, satisfy, without_missing_numbers
from engine.event_calculus.intervals import Ints
from engine.event_calculus.keys import find_indexed, index_rows, number_rows, take_rows
from engine.event_calculus.memory import Groundings, IndexedRows
from engine.event_calculus.partitioning import Relation
from engine.event_calculus.plan import Plan
from engine.event_calculus.sharing import Key, Share
from engine.event_calculus.syntax import Declared, Fact, Grounding
from engine.event_calculus.tables import SYMBOL, TIME, FluentTable, Rows, Table, empty_keys, one_row, stack
from engine.event_calculus.terms import Atom, Number, SourceLocation, Term, Variable

MAX_ENUMERATED = 20_000
"""Rows of a declared grounding that are listed; larger ones are checked row by row."""
_NOWHERE = SourceLocation(0, 0)


class DeclaredGroundings:
    """The groundings of one window; `kept` caches those listed in earlier windows, valid while
    the domains are unchanged.

    Of distributed relations only the groundings of the `share`.
    """

    def __init__(self, plan: Plan, kb: KnowledgeBase, kept: Groundings, share: Share | None = None) -> None:
        self.plan = plan
        self.kb = kb
        self.share = share
        self._kept = kept
        self._listed: dict[str, IndexedRows | None] = {}
        self._bodies: dict[str, IndexedRows | None] = {}
        self.begun: dict[str, Table] = {}
        """Arguments of the groundings of simple fluents that are initiated in the window or before
        it, if a rule reads them."""

    def column(self, rows: Rows, term: Term) -> Ints:
        """Symbols of a bound term for each row."""
        if isinstance(term, Variable):
            return as_symbols(self.kb, rows.columns[term.name], rows.kinds[term.name])
        assert isinstance(term, Atom | Number)
        return np.full(rows.n, self.kb.symbols.term(term))

    def bind_head(self, rows: Rows, head: Declared) -> Rows:
        """The rows with a head's open variables bound by the groundings declared for it, or by
        those that have begun (with another value)."""
        parts = [self.bind_rows(rows, head.terms, head.name)] if self.plan.groundings_of(head.terms, head.name) else []
        begun = self.begun.get(head.name)
        if begun is not None and rows.bound(head.terms[-1]):
            parts.append(match(self.kb, rows, begun, head.terms[:-1], None))
        return concat_distinct(parts)

    def bind_rows(self, rows: Rows, terms: Sequence[Term], name: str) -> Rows:
        """Rows whose `terms` have a declared grounding, which also binds unbound terms; all
        rows if none is declared."""
        rows = without_missing_numbers(rows, terms)
        rules = self.plan.groundings_of(terms, name)
        if rules is None or rows.n == 0:
            return rows
        if not rules:
            return Rows(0, {}, {})
        if all(rows.bound(term) for term in terms):
            listed = self.all_declared(name, len(terms))
            if listed is not None:
                kept = find_indexed(*listed, stack([self.column(rows, term) for term in terms], rows.n)) >= 0
                return rows if kept.all() else rows.take(kept)
        return self._filter_share(concat_distinct([self._ground(rows, terms, rule) for rule in rules]), terms, name)

    def _key(self, name: str, width: int) -> Key | None:
        """The key of a distributed relation."""
        fluent = name.startswith("=")
        return None if self.share is None else self.share.sharing.keys.get(Relation(fluent, name.removeprefix("="), width - fluent))

    def _filter_share(self, rows: Rows, terms: Sequence[Term], name: str) -> Rows:
        key = self._key(name, len(terms))
        if self.share is None or key is None or rows.n == 0 or not all(rows.bound(terms[place]) for place in key):
            return rows
        return rows.take(self.share.own_keys([self.column(rows, terms[place]) for place in key], self.kb.symbols))

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
        inner = satisfy(self.kb, inner, rule.body)
        if inner.n == 0:
            return inner
        found = rows.take(inner.columns["#row"])
        for given, declared in zip(terms, rule.terms, strict=True):
            if isinstance(given, Variable) and given.name not in found.columns:
                found.columns[given.name] = self.column(inner, declared)
                found.kinds = {**found.kinds, given.name: SYMBOL}
        return found.distinct()

    def filter_table(self, name: str, table: FluentTable) -> FluentTable:
        """Only the lists whose arguments and value have a declared
        grounding; all if none is declared."""
        if table.n == 0 or name not in self.plan.program.groundings:
            return table
        listed = self.all_declared(name, len(table.keys))
        if listed is not None:
            return table.take_lists(np.flatnonzero(find_indexed(*listed, table.keys) >= 0))
        names = [f"#{place}" for place in range(len(table.keys))]
        columns = {**dict(zip(names, table.keys, strict=True)), "#list": np.arange(table.n)}
        rows = Rows(table.n, columns, {**dict.fromkeys(names, SYMBOL), "#list": TIME})
        kept = self.bind_rows(rows, [Variable(column, _NOWHERE) for column in names], name)
        return table.take_lists(np.sort(kept.columns["#list"]) if kept.n else np.empty(0, np.int64))

    def all_declared(self, name: str, width: int) -> IndexedRows | None:
        """All distinct declared rows of a fluent ("=" and its name; arguments and value: `width`
        columns) or an event, if they are few."""
        rules = self.plan.listable(name, width)
        if rules is None:
            return None
        own = self._key(name, width)
        if len(rules) == 1:
            return self._list_rule(*rules[0], own)
        key = f"{name}/{width}"
        if key not in self._listed:
            known = [part for rule in rules if (part := self._list_rule(*rule, own)) is not None]
            self._listed[key] = self._merge(key, known, width) if len(known) == len(rules) else None
        return self._listed[key]

    def _merge(self, key: str, parts: list[IndexedRows], width: int) -> IndexedRows:
        known = self._kept.get(key)
        if known is not None and len(known[0]) == len(parts) and all(map(is_, known[0], parts)):
            return known[1]
        listed = _index(np.concatenate([empty_keys(width), *(part.keys for part in parts)], axis=1))
        self._kept[key] = (list(parts), listed)
        return listed

    def _list_rule(self, rule: Grounding, body: str, own: Key | None) -> IndexedRows | None:
        """All rows that one grounding declares (of a share those whose key is its `own`); null if
        they are many. `body`: its text."""
        key = body if own is None else f"{body} {own}"
        if key not in self._bodies:
            self._bodies[key] = self._list_body(rule, key, own)
        return self._bodies[key]

    def _list_body(self, rule: Grounding, key: str, own: Key | None) -> IndexedRows | None:
        facts = self.kb.facts
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
        known = self._kept.get(key)
        if known is not None and len(known[0]) == len(domains) and all(map(is_, known[0], domains)):
            return known[1]
        rows = self._satisfying_rows(rule)
        if self.share is not None and own is not None:
            rows = take_rows(rows, np.flatnonzero(self.share.own_keys([rows[place] for place in own], self.kb.symbols)))
        listed = _index(rows)
        self._kept[key] = (domains, listed)
        return listed

    def _satisfying_rows(self, rule: Grounding) -> Ints:
        rows = satisfy(self.kb, one_row(), rule.body)
        return stack([self.column(rows, term) for term in rule.terms], rows.n) if rows.n else empty_keys(len(rule.terms))


def concat_distinct(parts: Sequence[Rows]) -> Rows:
    """The distinct rows of all parts, which have the same columns."""
    filled = [part for part in parts if part.n]
    if len(filled) < 2:
        return filled[0] if filled else Rows(0, {}, {})
    columns = {column: np.concatenate([part.columns[column] for part in filled]) for column in filled[0].columns}
    return Rows(sum(part.n for part in filled), columns, filled[0].kinds).distinct()


def _index(rows: Ints) -> IndexedRows:
    keys = take_rows(rows, number_rows(rows)[1])
    return IndexedRows(keys, index_rows(keys))
