"""One window: from the tables of its inputs to the tables of all fluents and events, level by level.

References: [dRTEC] 2 and 3.4; CAVIAR definitions 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from engine.event_calculus.allen import allen
from engine.event_calculus.candidates import REMEMBERED, Needs
from engine.event_calculus.conditions import LimitExceeded, World, as_symbols, distance_m, match, number, satisfy
from engine.event_calculus.fused import MAX_ROWS, Lists
from engine.event_calculus.intervals import (
    INF,
    Intervals,
    Ints,
    always,
    amalgamate,
    empty,
    gather,
    intersect,
    keep,
    longer_than,
    subtract,
    union,
)  # fmt: skip
from engine.event_calculus.keys import locate, packed
from engine.event_calculus.levels import Node
from engine.event_calculus.memory import Bounds, Groundings, Held, Memory, SimpleCarry
from engine.event_calculus.plan import Plan
from engine.event_calculus.simple_fluents import Points
from engine.event_calculus.syntax import Construct, Fact, FluentPattern, Grounding, IntervalRule, NonEmpty, PointRule, Retrieve
from engine.event_calculus.tables import SYMBOL, TIME, FluentTable, Rows, Table, distinct_rows, no_fluent, one_row
from engine.event_calculus.terms import Atom, Number, Place, Term, Variable

MAX_GROUNDINGS = 5_000_000
ROWS_A_NODE = 5_000
"""Rows that could be looked at in the time a node takes even when it has none."""
MAX_ENUMERATED = 20_000
"""Rows of a declared grounding that are listed; larger ones are checked row by row."""
_NOWHERE = Place(0, 0)


class Evaluation:
    """Evaluates a plan over one window; `run` fills `fluents` and `events` and returns what the next window needs."""

    def __init__(self, plan: Plan, world: World, bounds: Bounds, memory: Memory, exact: bool, groundings: Groundings | None = None) -> None:
        self.plan = plan
        self.world = world
        self.bounds = bounds
        self.memory = memory
        self.exact = exact
        self.groundings: Groundings = {} if groundings is None else groundings
        self.fluents: dict[Node, FluentTable] = {}
        self.inputs: dict[tuple[str, int], FluentTable] = {}
        self.kept = Memory()
        self._listed: dict[str, tuple[Ints, ...] | None] = {}
        self._lists: dict[int, Lists | None] = {}
        world.fluents = self.sources

    def sources(self, pattern: FluentPattern) -> list[FluentTable]:
        """Tables that hold the intervals of a pattern."""
        found = [table for node in self.plan.sources(pattern) if (table := self.fluents.get(node)) is not None]
        given = self.inputs.get(pattern.indicator)
        if given is not None:
            found.append(given)
        return found

    def run(self) -> Memory:
        for component, cyclic in self.plan.components:
            if cyclic:
                self._cycle(component)
            else:
                self._node(component[0])
        return self.kept

    def _node(self, node: Node) -> None:
        self.world.spend(ROWS_A_NODE)
        if node.kind == "event":
            self.world.events[node.name, node.arity] = self._event(node)
        elif node.kind == "simple":
            table, self.kept.simple[node] = self._simple(node)
            self.fluents[node] = self.joined(f"simple {node.name}/{node.arity}", table) if self._ends_at_edge else table
        else:
            self.fluents[node] = self.joined(f"fluent {node.name}/{node.arity}={node.value}", self._derived(node))
        if node.kind != "event" and self.fluents[node].n > MAX_GROUNDINGS:
            raise LimitExceeded(f"{node.name} has {self.fluents[node].n:,} groundings in a window; the limit is {MAX_GROUNDINGS:,}")

    def _cycle(self, component: Sequence[Node]) -> None:
        """Simple fluents (and events) that need each other: repeat until nothing changes.

        Conditions that close a cycle look strictly back in time, so each round is right for one more time point at least.
        """
        for node in component:
            if node.kind == "event":
                self.world.events[node.name, node.arity] = Table(
                    tuple(np.empty(0, np.int64) for _ in range(node.arity)), (SYMBOL,) * node.arity, 0, np.empty(0, np.int64)
                )
            else:
                self.fluents[node] = no_fluent(node.arity + 1)
        before: list[bytes] = []
        while True:
            for node in component:
                self._node(node)
            after = [self._print(node) for node in component]
            if after == before:
                return
            before = after

    def _print(self, node: Node) -> bytes:
        if node.kind == "event":
            table = self.world.events[node.name, node.arity]
            assert table.t is not None
            return b"".join(np.ascontiguousarray(column).tobytes() for column in (*table.columns, table.t))
        fluent = self.fluents[node]
        return b"".join(column.tobytes() for column in (*fluent.keys, *fluent.lists))

    # -- events and simple fluents -------------------------------------------------------------------------------

    def satisfying(self, rule: PointRule) -> Rows:
        """All ways to satisfy a rule's conditions."""
        return satisfy(self.world, one_row(), rule.body)

    def _event(self, node: Node) -> Table:
        parts = []
        for rule in self.plan.point_rules(node):
            rows = self.satisfying(rule)
            if rows.n:
                parts.append((*(self.column(rows, term) for term in rule.terms), rows.columns[rule.time]))
        if not parts:
            return Table(tuple(np.empty(0, np.int64) for _ in range(node.arity)), (SYMBOL,) * node.arity, 0, np.empty(0, np.int64))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        _, first, n = distinct_rows(columns, len(columns[0]))
        columns = [column[first] for column in columns]
        return Table(tuple(columns[:-1]), (SYMBOL,) * node.arity, n, columns[-1])

    def column(self, rows: Rows, term: Term) -> Ints:
        """Symbols of a bound term for each row."""
        if isinstance(term, Variable):
            return as_symbols(self.world, rows.columns[term.name], rows.kinds[term.name])
        assert isinstance(term, Atom | Number)
        return np.full(rows.n, self.world.symbols.term(term))

    def _simple(self, node: Node) -> tuple[FluentTable, SimpleCarry]:
        points = Points(self, node)
        for rule in self.plan.point_rules(node):
            rows = self.satisfying(rule)
            if rows.n:
                points.add(rule, rows)
        return points.table(self.memory.simple.get(node))

    # -- groundings ----------------------------------------------------------------------------------------------

    def grounded(self, rows: Rows, terms: Sequence[Term], name: str) -> Rows:
        """Rows whose `terms` have a declared grounding, unbound terms bound by it; all rows where nothing is declared."""
        rules = self.plan.groundings_of(terms, name)
        if rules is None or rows.n == 0:
            return rows
        if not rules:
            return Rows(0, {}, {})
        if all(rows.bound(term) for term in terms):
            allowed = [self._allowed(rule) for rule in rules]
            if all(keys is not None for keys in allowed):
                given = [self.column(rows, term) for term in terms]
                kept = np.zeros(rows.n, np.bool_)
                for keys in allowed:
                    kept |= locate(keys or (), given) >= 0
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

    def _allowed(self, rule: Grounding) -> tuple[Ints, ...] | None:
        """All rows a grounding declares, if they are few; kept while the domains stay as they are."""
        body = self.plan.grounding_key(rule)
        if body is None:
            return None
        if body not in self._listed:
            self._listed[body] = self._enumerated(rule, body)
        return self._listed[body]

    def _enumerated(self, rule: Grounding, body: str) -> tuple[Ints, ...] | None:
        facts = self.world.facts
        size = 1
        domains: list[Table] = []
        for literal in rule.body:
            if isinstance(literal, Fact):
                table = facts.get(literal.indicator)
                size *= table.n if table is not None else 0
                if table is not None and literal.indicator in self.plan.domains:
                    domains.append(table)
        if size > MAX_ENUMERATED:
            return None
        known = self.groundings.get(body)
        if known is not None and len(known[0]) == len(domains) and all(map(is_, known[0], domains)):
            return known[1]
        rows = satisfy(self.world, one_row(), rule.body)
        if rows.n == 0:
            self.groundings[body] = (domains, none := tuple(np.empty(0, np.int64) for _ in rule.terms))
            return none
        columns = tuple(self.column(rows, term) for term in rule.terms)
        _, first, _ = distinct_rows(columns, rows.n)
        keys = tuple(column[first] for column in columns)
        self.groundings[body] = (domains, keys)
        return keys

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

    def declared(self, name: str, table: FluentTable) -> FluentTable:
        """Only the lists whose arguments and value have a declared grounding."""
        rules = self.plan.program.groundings["=" + name]
        allowed = [self._allowed(rule) for rule in rules if len(rule.terms) == len(table.keys)]
        if all(keys is not None for keys in allowed):
            kept_ = np.zeros(table.n, np.bool_)
            for keys in allowed:
                kept_ |= locate(keys or (), table.keys) >= 0
            return self._picked(table, np.flatnonzero(kept_))
        names = [f"#{place}" for place in range(len(table.keys))]
        columns = {**dict(zip(names, table.keys, strict=True)), "#list": np.arange(table.n)}
        rows = Rows(table.n, columns, {**dict.fromkeys(names, SYMBOL), "#list": TIME})
        kept = self.grounded(rows, [Variable(column, _NOWHERE) for column in names], name)
        return self._picked(table, np.sort(kept.columns["#list"]) if kept.n else np.empty(0, np.int64))

    @staticmethod
    def _picked(table: FluentTable, picked: Ints) -> FluentTable:
        if len(picked) == table.n:
            return table
        return FluentTable(tuple(key[picked] for key in table.keys), gather(table.lists, picked, -INF))

    # -- statically determined fluents ---------------------------------------------------------------------------

    def _derived(self, node: Node) -> FluentTable:
        rules = self.plan.interval_rules(node)
        parts = [part for rule in rules if (part := self.interval_rule(rule)) is not None]
        if len(rules) == len(parts) == 1 and self._few(rules[0]) is not None and not rules[0].conditions:
            # The candidates were distinct and bind the head, and only those with an answer are left.
            return FluentTable(*parts[0])
        return self._merged(parts, node.arity + 1)

    def _merged(self, parts: list[tuple[tuple[Ints, ...], Intervals]], width: int) -> FluentTable:
        """One table of the lists of several, lists with equal keys united and empty ones left out."""
        parts = [part for part in parts if len(part[1].s)]
        if not parts:
            return no_fluent(width)
        keys = [np.concatenate(column) for column in zip(*(part[0] for part in parts), strict=True)]
        s = np.concatenate([part[1].s for part in parts])
        e = np.concatenate([part[1].e for part in parts])
        offsets = np.cumsum([0, *(part[1].lists for part in parts[:-1])])
        owners = np.concatenate([part[1].owners() + offset for part, offset in zip(parts, offsets, strict=True)])
        groups, _, _ = distinct_rows(keys, len(keys[0]))
        group = groups[owners]
        # Only lists that hold something get a row.
        used, first, n = distinct_rows([group], len(group))
        lists = amalgamate(used, s, e, n)
        rows = owners[first]
        return FluentTable(tuple(key[rows] for key in keys), lists)

    def interval_rule(self, rule: IntervalRule) -> tuple[tuple[Ints, ...], Intervals] | None:
        """Keys and lists one holdsFor rule gives; null when it gives none."""
        lists = self._few(rule)
        if lists is not None:
            return self._fused(rule, lists)
        rows = self._candidates(rule)
        if rows.n == 0:
            return None
        rows = satisfy(self.world, rows, self.plan.conditions[rule.number])
        rows = self.grounded(rows, rule.head.terms, rule.head.name)
        if rows.n == 0:
            return None
        return tuple(self.column(rows, term) for term in rule.head.terms), self._algebra(rule, rows)

    def _few(self, rule: IntervalRule) -> Lists | None:
        """The lists of a rule that can be evaluated in compiled calls, where they are few enough; null: evaluate it literal by literal."""
        if rule.number not in self._lists:
            self._lists[rule.number] = self._gathered(rule)
        return self._lists[rule.number]

    def _gathered(self, rule: IntervalRule) -> Lists | None:
        fused = self.plan.fused[rule.number]
        if fused is None or (self.exact and fused.program is None):
            return None
        tables = []
        for retrieve in fused.retrieves:
            filled = [table for table in self.sources(retrieve.fluent) if table.n]
            if len(filled) > 1 or (filled and filled[0].n > MAX_ROWS):
                return None
            tables.append(filled[0] if filled else no_fluent(len(retrieve.fluent.terms)))
        term = self.world.symbols.term
        return Lists(fused, tables, np.array([term(constant) for constant in fused.constants], np.int64))

    def _fused(self, rule: IntervalRule, lists: Lists) -> tuple[tuple[Ints, ...], Intervals] | None:
        names = lists.rule.names
        variables = lists.candidates()
        if not len(variables[0]):
            return None
        rows = Rows(len(variables[0]), dict(zip(names, variables, strict=True)), dict.fromkeys(names, SYMBOL))
        if rule.conditions:
            rows = satisfy(self.world, rows, self.plan.conditions[rule.number])
        rows = self.grounded(rows, rule.head.terms, rule.head.name)
        if rows.n == 0:
            return None
        if lists.rule.program is None:
            return tuple(self.column(rows, term) for term in rule.head.terms), self._algebra(rule, rows)
        picked, found = lists.algebra([rows.columns[name] for name in names], self.bounds.first)
        if not len(picked):
            return None
        return tuple(self.column(rows, term)[picked] for term in rule.head.terms), found

    def _candidates(self, rule: IntervalRule) -> Rows:
        """Bindings of the essential variables for which the rule can give an interval."""
        names = self.plan.essential[rule.number]
        parts = []
        for needs in self.plan.alternatives[rule.number]:
            rows = one_row()
            for retrieve in self._in_order(rule, needs):
                rows = self._joined_keys(rows, retrieve, names)
                if rows.n == 0:
                    break
            if rows.n == 0:
                continue
            if any(name not in rows.columns for name in names):
                rows = satisfy(self.world, rows, self.plan.conditions[rule.number])
                rows = self.grounded(rows, rule.head.terms, rule.head.name)
            if rows.n:
                parts.append({name: as_symbols(self.world, rows.columns[name], rows.kinds[name]) for name in names})
        if not parts:
            return Rows(0, {}, {})
        columns = {name: np.concatenate([part[name] for part in parts]) if len(parts) > 1 else parts[0][name] for name in names}
        if not names:
            return one_row()
        if len(parts) == 1 and self.plan.unique_candidates[rule.number]:
            return Rows(len(columns[names[0]]), columns, dict.fromkeys(names, SYMBOL))
        _, first, _ = distinct_rows(list(columns.values()), len(columns[names[0]]))
        return Rows(len(first), {name: column[first] for name, column in columns.items()}, dict.fromkeys(names, SYMBOL))

    def _in_order(self, rule: IntervalRule, needs: Needs) -> list[Retrieve]:
        """The lists from the smallest on, each sharing a variable with those before it where there is one: else two lists give all pairs."""
        left = [literal for position in sorted(needs) if isinstance(literal := rule.intervals[position], Retrieve)]
        order: list[Retrieve] = []
        bound: set[str] = set()
        while left:
            joined = [one for one in left if bound & _names(one)] or left
            order.append(min(joined, key=self._size))
            bound |= _names(order[-1])
            left.remove(order[-1])
        return order

    def _size(self, retrieve: Retrieve) -> int:
        return sum(table.n for table in self.sources(retrieve.fluent))

    def _joined_keys(self, rows: Rows, retrieve: Retrieve, names: Sequence[str]) -> Rows:
        """`rows` joined with the groundings of a list that is not empty, projected to `names`."""
        parts = []
        for table in self.sources(retrieve.fluent):
            found = match(self.world, rows, Table(table.keys, (SYMBOL,) * len(table.keys), table.n), retrieve.fluent.terms, None)
            if found.n:
                parts.append(Rows(found.n, {name: found.columns[name] for name in names if name in found.columns}, found.kinds))
        if not parts:
            return Rows(0, {}, {})
        if len(parts) == 1 and parts[0].columns and all(term.name in names for term in retrieve.fluent.terms if isinstance(term, Variable)):
            # Keys of a table are unique, so nothing can have doubled.
            return Rows(parts[0].n, parts[0].columns, dict.fromkeys(parts[0].columns, SYMBOL))
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
        n = sum(part.n for part in parts)
        if not columns:
            return one_row()
        _, first, size = distinct_rows(list(columns.values()), n)
        return Rows(size, {name: column[first] for name, column in columns.items()}, dict.fromkeys(columns, SYMBOL))

    def _algebra(self, rule: IntervalRule, rows: Rows) -> Intervals:
        """The answer list for each row."""
        lists: dict[str, Intervals] = {}
        failed = np.zeros(rows.n, np.bool_)
        for literal in rule.intervals:
            if isinstance(literal, Retrieve):
                lists[literal.out] = self._retrieved(rows, literal.fluent)
            elif isinstance(literal, NonEmpty):
                filled = lists[literal.list].counts > 0
                failed |= filled if literal.negated else ~filled
            else:
                lists[literal.out] = self._constructed(rule, rows, literal, [lists[name] for name in literal.inputs])
        result = lists[rule.out]
        return keep(result, ~failed[result.owners()]) if failed.any() else result

    def _retrieved(self, rows: Rows, pattern: FluentPattern) -> Intervals:
        first = self.bounds.first
        tables = self.sources(pattern)
        if all(rows.bound(term) for term in pattern.terms):
            result: Intervals | None = None
            wanted = [self.column(rows, term) for term in pattern.terms]
            for table in tables:
                part = gather(table.lists, locate(table.keys, wanted), first)
                result = part if result is None else union(result, part)
            return empty(rows.n) if result is None else result
        owners, s, e = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        numbered = Rows(rows.n, {**rows.columns, "#row": np.arange(rows.n)}, {**rows.kinds, "#row": TIME})
        for table in tables:
            relation = Table((*table.keys, np.arange(table.n)), (SYMBOL,) * (len(table.keys) + 1), table.n)
            found = match(self.world, numbered, relation, (*pattern.terms, Variable("#list", pattern.place)), None)
            if found.n == 0:
                continue
            part = gather(table.lists, found.columns["#list"], first)
            owners.append(found.columns["#row"][part.owners()])
            s.append(part.s)
            e.append(part.e)
        return amalgamate(np.concatenate(owners), np.concatenate(s), np.concatenate(e), rows.n)

    def _constructed(self, rule: IntervalRule, rows: Rows, construct: Construct, inputs: list[Intervals]) -> Intervals:
        if construct.operator in REMEMBERED and self.exact:
            keys = tuple(rows.columns[name] for name in self.plan.essential[rule.number])
            inputs = [self._with_true_starts(f"rule {rule.number} {construct.out} {place}", keys, lists) for place, lists in enumerate(inputs)]
        if construct.operator == "union_all":
            return _folded(union, inputs)
        if construct.operator == "intersect_all":
            return _folded(intersect, inputs)
        if construct.operator == "relative_complement_all":
            return inputs[0] if len(inputs) == 1 else subtract(inputs[0], _folded(union, inputs[1:]))
        if construct.operator == "complement_all":
            return subtract(always(rows.n, self.bounds.first), _folded(union, inputs))
        if construct.operator == "longer_than":
            assert construct.amount is not None
            duration = np.broadcast_to(np.asarray(number(self.world, rows, construct.amount), np.float64), (rows.n,))
            return longer_than(inputs[0], duration, self.bounds.query_time)
        if construct.operator == "allen":
            return allen(construct.relation, construct.mode, inputs[0], inputs[1], self.world.tick)
        return self._slower(rows, construct, inputs[0])

    def _slower(self, rows: Rows, construct: Construct, lists: Intervals) -> Intervals:
        """Intervals whose speed from the place at their start event to the place at their end event is below the amount.

        Places are those of `position` (entity, longitude, latitude) at start - tick and end - tick; an interval whose places are
        unknown is left out, an open one with a known beginning has speed 0. Metres per unit of t; great circle, R = 6371.0088 km.
        """
        assert construct.position is not None and construct.amount is not None
        owner = lists.owners()
        places = self.world.events.get(construct.position.indicator)
        terms = construct.position.arguments
        entity = self.column(rows, terms[0])[owner]
        n = len(owner)
        found = np.full((2, 2, n), np.nan)
        for side, moments in enumerate((lists.s, lists.e)):
            if places is None or places.t is None or places.n == 0:
                break
            left, right = packed([entity, np.where(moments == INF, 0, moments - self.world.tick)], [places.columns[0], places.t])
            order = np.argsort(right, kind="stable")
            at = np.searchsorted(right[order], left)
            at[at == places.n] = 0
            match_ = right[order[at]] == left
            for axis in range(2):
                found[side, axis] = np.where(match_, np.asarray(places.columns[1 + axis], np.float64)[order[at]], np.nan)
        with np.errstate(invalid="ignore"):
            metres = distance_m(found[0, 0], found[0, 1], found[1, 0], found[1, 1])
            limit = np.broadcast_to(np.asarray(number(self.world, rows, construct.amount), np.float64), (rows.n,))[owner]
            slow = np.where(lists.e == INF, ~np.isnan(found[0, 0]) & (limit > 0), metres / (lists.e - lists.s) < limit)
        return keep(lists, slow)

    # -- over the edge of the window -----------------------------------------------------------------------------

    def joined(self, name: str, table: FluentTable) -> FluentTable:
        """The table with the true starts of intervals that go on from before the window; remembers them for the next one."""
        table = FluentTable(table.keys, self._with_true_starts(name, table.keys, table.lists))
        return self._with_ended(name, table) if self._ends_at_edge else table

    @property
    def _ends_at_edge(self) -> bool:
        """Whether an interval that ends with the tick before the window has its end event in the window."""
        return self.exact and self.world.start_offset == 0

    def _with_ended(self, name: str, table: FluentTable) -> FluentTable:
        """Adds intervals that held before the window's first tick and do not go on: their end falls on that tick."""
        held = self.memory.held.get(name)
        if held is None or not len(held.start):
            return table
        going_on = np.unique(table.lists.owners()[(table.lists.s <= self.bounds.low) & (table.lists.e > self.bounds.low)])
        at = locate([key[going_on] for key in table.keys], held.keys)
        ended = at < 0
        n = int(ended.sum())
        if not n:
            return table
        before = Intervals(np.arange(n + 1), held.start[ended], np.full(n, self.bounds.first))
        return self._merged([(table.keys, table.lists), (tuple(key[ended] for key in held.keys), before)], len(table.keys))

    def _with_true_starts(self, name: str, keys: tuple[Ints, ...], lists: Intervals) -> Intervals:
        held = self.memory.held.get(name)
        if held is not None and len(held.start) and lists.lists:
            lists = self._restored(held, keys, lists)
        crossing = (lists.s <= self.bounds.next_low) & (lists.e > self.bounds.next_low)
        self.kept.held.pop(name, None)
        if crossing.any():
            owners = lists.owners()[crossing]
            self.kept.held[name] = Held(tuple(key[owners] for key in keys), lists.s[crossing])
        return lists

    def _restored(self, held: Held, keys: tuple[Ints, ...], lists: Intervals) -> Intervals:
        filled = lists.counts > 0
        heads = np.flatnonzero(filled)
        at_edge = heads[lists.s[lists.ptr[heads]] == self.bounds.first]
        if not len(at_edge):
            return lists
        found = locate(held.keys, [key[at_edge] for key in keys]) if keys else np.zeros(len(at_edge), np.int64)
        known = found >= 0
        s = lists.s.copy()
        s[lists.ptr[at_edge[known]]] = held.start[found[known]]
        return Intervals(lists.ptr, s, lists.e)


def _names(retrieve: Retrieve) -> set[str]:
    return {term.name for term in retrieve.fluent.terms if isinstance(term, Variable)}


def _folded(operation: Any, inputs: list[Intervals]) -> Intervals:
    result = inputs[0]
    for other in inputs[1:]:
        result = operation(result, other)
    return result
