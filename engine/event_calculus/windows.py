"""Sliding windows over a stream of rows: what counts at each query time, what is carried on, how the answer changes.

Time line of one window (Q query time, W window, K tick):

    ----|=========================|---->      (Q - W, Q] counts; `low` = Q - W on the tick grid
      Q - W                       Q           first tick: low + K

With `edge` "exact" the window looks one tick further back, to `low` = Q - W - K, so that start and end events at Q - W, which are
decided by what holds at the first tick, are seen together with the events of Q - W.

References: [dRTEC] 2 (windowing); CONTRACT 2.6; CAVIAR definitions 1, rules 1, 8, 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from engine.event_calculus import spatial
from engine.event_calculus.answers import NEVER, Change, difference, revised, stacked, without_empty
from engine.event_calculus.conditions import World, as_symbols
from engine.event_calculus.evaluation import Evaluation
from engine.event_calculus.intervals import INF, Bools, Ints, amalgamate, counting_order, keep, runs
from engine.event_calculus.keys import among, mark, mark_alive, packed, picked_rows
from engine.event_calculus.memory import Bounds, Groundings, Memory
from engine.event_calculus.plan import Plan
from engine.event_calculus.program import EVENT, INTERVALS, POINTS
from engine.event_calculus.syntax import Indicator
from engine.event_calculus.tables import NUMBER, SYMBOL, Column, FluentTable, Symbols, Table, distinct_rows, no_fluent
from engine.event_calculus.terms import Atom, Number


@dataclass(frozen=True)
class Settings:
    """When and over what a query is evaluated; times in the unit of t."""

    window: int
    step: int
    origin: int = 0
    tick: int = 1
    dialect: str = "rtec"
    exact: bool = True
    geographic: bool = False
    max_rows: int = 20_000_000
    max_work: int = 300_000_000


@dataclass(frozen=True)
class InputRows:
    """Rows of one input. `arrived`: the feed's clock when the row had come, so the row counts at Q if arrived <= Q.

    `columns` are the arguments (and for fluents the value last); positions have x and y beside them.
    """

    columns: tuple[Column, ...]
    t: Ints
    end: Ints
    arrived: Ints
    x: Column
    y: Column

    def take(self, picked: Ints | Bools | slice) -> InputRows:
        return InputRows(
            tuple(column[picked] for column in self.columns), self.t[picked], self.end[picked], self.arrived[picked], self.x[picked], self.y[picked]
        )

    @staticmethod
    def together(parts: list[InputRows]) -> InputRows:
        if len(parts) == 1:
            return parts[0]
        columns = tuple(np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True))
        return InputRows(columns, *(np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "end", "arrived", "x", "y")))

    def __len__(self) -> int:
        return len(self.t)


@dataclass
class WindowState:
    """Everything a query remembers between two query times.

    `rows` have arrived by the last query time, `waiting` after it; `first_time` is the t of the first row that came; `last_query` is
    the last query time decided; `clock` the feed's clock. NEVER stands for none. `idle` counts query times without rows in a row.
    """

    symbols: Symbols
    rows: dict[Indicator, list[InputRows]] = field(default_factory=dict)
    waiting: dict[Indicator, list[InputRows]] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    answers: dict[str, FluentTable] = field(default_factory=dict)
    instants: dict[str, Table] = field(default_factory=dict)
    last_query: int = NEVER
    clock: int = NEVER
    first_time: int = NEVER
    idle: int = 0
    windows: int = 0
    pairs_examined: int = 0
    groundings: int = 0
    allowed: Groundings = field(default_factory=dict, repr=False, compare=False)
    domains: dict[Indicator, Table] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Decision:
    """What one query time brought: the changes, and the answers as they stood then, forgotten parts of this window included.

    `answers` and `instants` are by "name/arity".
    """

    query_time: int
    changes: list[Change]
    answers: Mapping[str, FluentTable]
    instants: Mapping[str, Table]


class Windows:
    """Evaluates one query over its windows. Immutable: everything that changes is in the WindowState."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        outputs: tuple[str, ...],
        areas: Mapping[str, spatial.Area] | None = None,
        made: frozenset[Indicator] = frozenset(),
    ) -> None:
        """`made`: inputs that a stage before makes of rows; at the end of the input they count although their time of certainty has not come."""
        self.plan = plan
        self.made = made
        self.settings = settings
        self.outputs = outputs
        self.areas = dict(areas or {})
        self.position_names = {declared.position for declared in plan.program.spatial}
        self._output_nodes = {name: [node for node in plan.nodes if node.name == name] for name in outputs}
        self._facts_cache: tuple[int, dict[Indicator, Table]] | None = None

    def initial(self) -> WindowState:
        return WindowState(Symbols())

    # -- query times ---------------------------------------------------------------------------------------------

    def query_after(self, moment: int) -> int:
        """The first query time >= moment."""
        step, origin = self.settings.step, self.settings.origin
        return origin + -(-(moment - origin) // step) * step

    def take(self, state: WindowState, rows: Mapping[Indicator, InputRows], first_time: int, clock: int) -> None:
        """Rows that have come; `first_time` is the t of the first of them in order of arrival (NEVER: there is none)."""
        for indicator, part in rows.items():
            state.waiting.setdefault(indicator, []).append(part)
        if state.first_time == NEVER:
            state.first_time = first_time
        state.clock = max(state.clock, clock)

    def advance(self, state: WindowState) -> Iterator[Decision]:
        """Decides the query times that the clock has passed, in order."""
        while state.first_time != NEVER and (query_time := self.next_query(state)) < state.clock:
            yield self.decide(state, query_time)

    def conclude(self, state: WindowState, last: int) -> Iterator[Decision]:
        """At the end of the input, `last` being its last time: the query times left, up to the first >= last.

        That one is not final: should the input go on, it is decided again.
        """
        state.clock = max(state.clock, last)
        yield from self.advance(state)
        if state.first_time != NEVER:
            yield self.decide(state, self.next_query(state), commit=False)

    def next_query(self, state: WindowState) -> int:
        """The query time to decide next; stretches in which nothing can change are passed over."""
        if state.last_query == NEVER:
            return self.query_after(state.first_time)
        following = state.last_query + self.settings.step
        if state.idle < 2 or any(name.startswith("rule") for name in state.memory.held) or self._deadline_set(state):
            return following
        arrivals = [int(part.arrived.min()) for parts in state.waiting.values() for part in parts if len(part)]
        return max(following, self.query_after(min([*arrivals, state.clock])))

    @staticmethod
    def _deadline_set(state: WindowState) -> bool:
        return any((carry.due < INF).any() for carry in state.memory.simple.values())

    # -- one window ----------------------------------------------------------------------------------------------

    def bounds(self, query_time: int) -> Bounds:
        settings = self.settings
        tick = settings.tick
        begin = query_time - settings.window
        low = begin - begin % tick
        following = begin + settings.step
        next_low = following - following % tick
        if settings.exact:
            low, next_low = low - tick, next_low - tick
        return Bounds(query_time, low, low + tick, next_low, begin <= 0)

    def evaluate(self, state: WindowState, query_time: int, *, final: bool = False) -> tuple[Evaluation, Memory]:
        """All fluents and events of the window that ends at `query_time`, and what it leaves to the next; `state` is not changed.

        `final`: no row is to come, so made inputs count at once.
        """
        bounds = self.bounds(query_time)
        settings = self.settings
        if bounds.initial and state.last_query != NEVER and -settings.tick <= bounds.low:
            # What held at 0 has been initiated in an earlier window and is carried.
            bounds = replace(bounds, initial=False)
        edge_after = bounds.low if settings.exact else bounds.low - 1
        offset = settings.tick if settings.dialect == "rtec" else 0
        if offset == 0:
            edge_after = bounds.low
        world = World(state.symbols, settings.tick, edge_after, offset, bounds.first, lambda pattern: [], max_rows=settings.max_rows)
        world.max_work = settings.max_work
        evaluation = Evaluation(self.plan, world, bounds, state.memory, settings.exact, state.allowed)
        counted = self._counted(state, bounds, final)
        self._inputs(evaluation, counted, state)
        world.facts = self._facts(state.symbols)
        self._domains(evaluation, counted, state)
        self._spatial(evaluation, counted, state)
        memory = evaluation.run()
        state.groundings = sum(table.n for table in evaluation.fluents.values())
        return evaluation, memory

    def _counted(self, state: WindowState, bounds: Bounds, final: bool) -> dict[Indicator, InputRows]:
        """Rows of the window that have arrived: (Q - W, Q], and with exact edges those of the tick before that counted before."""
        counted = {}
        begin = bounds.query_time - self.settings.window
        self._admit(state, bounds.query_time)
        for indicator, parts in state.rows.items():
            state.rows[indicator] = [InputRows.together(parts)]
        at_once = self.made if final else frozenset()
        for indicator in [*state.rows, *(at_once & state.waiting.keys() - state.rows.keys())]:
            rows = InputRows.together([*state.rows.get(indicator, ()), *(state.waiting[indicator] if indicator in at_once else ())])
            kind = self.plan.program.inputs.get(indicator, EVENT)
            when = rows.end if kind == INTERVALS else rows.t
            arrived = INF if indicator in at_once else bounds.query_time
            n, picked = picked_rows(
                when, rows.arrived, bounds.low, bounds.query_time, arrived, begin, state.last_query if self.settings.exact else INF
            )
            counted[indicator] = rows if n == len(rows) else rows.take(picked)
        return counted

    @staticmethod
    def _admit(state: WindowState, query_time: int) -> None:
        """Moves what has arrived by `query_time` from the waiting rows to the rows."""
        for indicator, parts in state.waiting.items():
            rows = InputRows.together(parts)
            if np.any(rows.arrived[1:] < rows.arrived[:-1]):
                rows = rows.take(np.argsort(rows.arrived, kind="stable"))
            split = int(np.searchsorted(rows.arrived, query_time, "right"))
            if split:
                state.rows.setdefault(indicator, []).append(rows.take(slice(0, split)))
            state.waiting[indicator] = [rows.take(slice(split, None))]

    def _inputs(self, evaluation: Evaluation, counted: Mapping[Indicator, InputRows], state: WindowState) -> None:
        for indicator, kind in self.plan.program.inputs.items():
            if kind == POINTS and indicator not in counted:
                evaluation.inputs[indicator] = self._continued(evaluation, indicator, no_fluent(indicator[1] + 1))
        for indicator, rows in counted.items():
            kind = self.plan.program.inputs.get(indicator, EVENT)
            if kind == EVENT:
                kinds = tuple(NUMBER if column.dtype == np.float64 else SYMBOL for column in rows.columns)
                evaluation.world.events[indicator] = Table(rows.columns, kinds, len(rows), rows.t)
            elif kind == POINTS:
                table = self._from_points(rows, evaluation.bounds)
                evaluation.inputs[indicator] = self._continued(evaluation, indicator, table)
            else:
                evaluation.inputs[indicator] = self._from_intervals(rows, evaluation.bounds)

    def _continued(self, evaluation: Evaluation, indicator: Indicator, table: FluentTable) -> FluentTable:
        if not self.settings.exact:
            return table
        return evaluation.joined(f"input {indicator[0]}/{indicator[1]}", table)

    def _from_points(self, rows: InputRows, bounds: Bounds) -> FluentTable:
        if np.any(rows.t[1:] < rows.t[:-1]):
            rows = rows.take(np.argsort(rows.t, kind="stable"))
        keys = [np.asarray(column, np.int64) for column in rows.columns]
        owner, first, n = distinct_rows(keys, len(rows))
        order, ptr = counting_order(owner, n)
        return FluentTable(tuple(key[first] for key in keys), runs(ptr, rows.t[order], self.settings.tick, bounds.query_time))

    def _from_intervals(self, rows: InputRows, bounds: Bounds) -> FluentTable:
        begin = NEVER if self.settings.exact else bounds.first
        s = np.maximum(rows.t, begin)
        some = s < rows.end
        keys = [np.asarray(column, np.int64)[some] for column in rows.columns]
        owner, first, n = distinct_rows(keys, int(some.sum()))
        return FluentTable(tuple(key[first] for key in keys), amalgamate(owner, s[some], rows.end[some], n))

    def _facts(self, symbols: Symbols) -> dict[Indicator, Table]:
        """Background knowledge as tables; a column is numbers when all its entries are."""
        if self._facts_cache is not None and self._facts_cache[0] == id(symbols):
            return dict(self._facts_cache[1])
        tables = {}
        for indicator, rows in self.plan.program.facts.items():
            columns: list[Column] = []
            kinds = []
            for column in zip(*rows, strict=True):
                if all(isinstance(term, Number) for term in column):
                    columns.append(np.array([term.value for term in column if isinstance(term, Number)]))
                    kinds.append(NUMBER)
                else:
                    columns.append(np.array([symbols.term(term) for term in column if isinstance(term, Atom | Number)], np.int64))
                    kinds.append(SYMBOL)
            tables[indicator] = Table(tuple(columns), tuple(kinds), len(rows))
        self._facts_cache = (id(symbols), tables)
        return dict(tables)

    # -- dynamic grounding ---------------------------------------------------------------------------------------

    def _domains(self, evaluation: Evaluation, counted: Mapping[Indicator, InputRows], state: WindowState) -> None:
        """Domains of the window: what its rows name, and the arguments of answers that were open before it."""
        for indicator, sources in self.plan.domain_sources.items():
            if indicator[1] == 1:
                members: tuple[Ints, ...] = (self._named(evaluation, sources, counted, state),)
            else:
                members = self._named_together(evaluation, indicator[1], sources, counted, state)
            table = state.domains.get(indicator)
            if table is None or not all(map(np.array_equal, table.columns, members)):
                # The same table stands for the same members: what is listed from it is kept.
                table = state.domains[indicator] = Table(members, (SYMBOL,) * indicator[1], len(members[0]))
            evaluation.world.facts[indicator] = table

    def _named(
        self,
        evaluation: Evaluation,
        sources: list[tuple[str, int, bool, tuple[int, ...]]],
        counted: Mapping[Indicator, InputRows],
        state: WindowState,
    ) -> Ints:
        """Members of a domain of one argument."""
        named = np.zeros(len(state.symbols) + 64, np.bool_)
        limit = evaluation.bounds.low if self.settings.exact else INF - 1
        for name, arity, fluent, (place,) in sources:
            rows = counted.get((name, arity))
            if rows is not None and len(rows.columns) == arity + fluent:
                for column in self._as_symbols(evaluation, rows.columns[place : place + 1]):
                    if len(state.symbols) > len(named):
                        named = np.concatenate((named, np.zeros(len(state.symbols), np.bool_)))
                    mark(named, np.ascontiguousarray(column))
            answer = state.answers.get(f"{name}/{arity}") if fluent else None
            if answer is not None and answer.n:
                mark_alive(named, answer.keys[place], answer.lists.ptr, answer.lists.e, limit)
        return np.flatnonzero(named)

    def _named_together(
        self, evaluation: Evaluation, width: int, sources: list[tuple[str, int, bool, tuple[int, ...]]], counted: Mapping[Indicator, InputRows],
        state: WindowState,
    ) -> tuple[Ints, ...]:  # fmt: skip
        """Members of a domain of several arguments, which are named together."""
        parts: list[tuple[Ints, ...]] = [(np.empty(0, np.int64),) * width]
        limit = evaluation.bounds.low if self.settings.exact else INF - 1
        for name, arity, fluent, places in sources:
            rows = counted.get((name, arity))
            if rows is not None and len(rows.columns) == arity + fluent:
                parts.append(self._as_symbols(evaluation, tuple(rows.columns[place] for place in places)))
            answer = state.answers.get(f"{name}/{arity}") if fluent else None
            if answer is not None:
                alive = np.unique(answer.lists.owners()[answer.lists.e > limit])
                parts.append(tuple(answer.keys[place][alive] for place in places))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        _, first, _ = distinct_rows(columns, len(columns[0]))
        return tuple(column[first] for column in columns)

    @staticmethod
    def _as_symbols(evaluation: Evaluation, columns: tuple[Column, ...]) -> tuple[Ints, ...]:
        return tuple(as_symbols(evaluation.world, column, NUMBER if column.dtype == np.float64 else SYMBOL) for column in columns)

    # -- spatial fluents -----------------------------------------------------------------------------------------

    def _spatial(self, evaluation: Evaluation, counted: Mapping[Indicator, InputRows], state: WindowState) -> None:
        groups: dict[tuple[str, str, int], list[int]] = {}
        for place, declared in enumerate(self.plan.program.spatial):
            groups.setdefault((declared.relation, declared.position, declared.slot), []).append(place)
        tables: dict[Indicator, list[FluentTable]] = {}
        for (relation, position, slot), places in groups.items():
            samples = self._samples(counted, position)
            if samples is None:
                continue
            found = None
            if relation != "inside":
                reach = max(self.plan.program.spatial[place].amount for place in places)
                seen, slots = (samples, samples.t) if relation == "distance" else spatial.last_in_slot(samples, slot)
                found = spatial.contacts(seen, slots, reach, self.settings.geographic)
                state.pairs_examined += found.examined
            for place in places:
                declared = self.plan.program.spatial[place]
                table = self._spatial_table(evaluation, place, samples, found)
                tables.setdefault(declared.fluent.indicator, []).append(table)
        for indicator, parts in tables.items():
            evaluation.inputs[indicator] = parts[0] if len(parts) == 1 else stacked(parts)

    def _samples(self, counted: Mapping[Indicator, InputRows], position: str) -> spatial.Positions | None:
        for indicator, rows in counted.items():
            if indicator[0] == position and len(rows):
                known = ~(np.isnan(rows.x) | np.isnan(rows.y))
                part = rows if known.all() else rows.take(known)
                order = np.argsort(part.t, kind="stable") if np.any(part.t[1:] < part.t[:-1]) else slice(None)
                return spatial.Positions(np.asarray(part.columns[0], np.int64)[order], part.t[order], part.x[order], part.y[order])
        return None

    def _spatial_table(self, evaluation: Evaluation, place: int, samples: spatial.Positions, found: spatial.Contacts | None) -> FluentTable:
        declared = self.plan.program.spatial[place]
        symbols = evaluation.world.symbols
        assert isinstance(declared.fluent.value, Atom)
        value = symbols.term(declared.fluent.value)
        query_time = evaluation.bounds.query_time
        if found is not None:
            tick = declared.slot or self.settings.tick
            last = query_time - query_time % tick if declared.slot else query_time
            table = spatial.near_pairs(found, declared.amount, tick, last, value)
        else:
            table = spatial.stays(samples, self._areas_of(place, symbols), declared.slot, query_time, value)
        table = self._declared(evaluation, declared.fluent.name, table)
        return evaluation.joined(f"spatial {place}", table)

    def _declared(self, evaluation: Evaluation, name: str, table: FluentTable) -> FluentTable:
        if "=" + name not in self.plan.program.groundings or table.n == 0:
            return table
        return evaluation.declared(name, table)

    def _areas_of(self, place: int, symbols: Symbols) -> list[tuple[int | None, spatial.Area]]:
        declared = self.plan.program.spatial[place]
        if len(declared.fluent.arguments) == 1:
            return [(None, self.areas[declared.region])]
        rows = self.plan.program.facts[declared.region, 2]
        return [(symbols.code(str(area)), self.areas[str(region)]) for area, region in rows]

    # -- answers -------------------------------------------------------------------------------------------------

    def decide(self, state: WindowState, query_time: int, *, commit: bool = True) -> Decision:
        """Evaluates the window, brings the stored answers up to date and tells what changed.

        Without `commit` the answers are brought up to date but the stream is not moved on: the same query time will be decided again.
        """
        evaluation, memory = self.evaluate(state, query_time, final=not commit)
        bounds = evaluation.bounds
        changes = []
        for name in self.outputs:
            for arity, table in self._current(evaluation, name).items():
                changes += self._fluent_changes(state, f"{name}/{arity}", name, table, bounds)
            for arity, instants in self._current_events(evaluation, name).items():
                changes += self._event_changes(state, f"{name}/{arity}", name, instants, bounds)
        decision = Decision(query_time, changes, dict(state.answers), dict(state.instants))
        if commit:
            quiet = not changes and not any(len(part) for parts in state.rows.values() for part in parts)
            state.idle = state.idle + 1 if quiet else 0
            state.memory = memory
            state.last_query = query_time
            state.windows += 1
            self._forget(state, bounds)
        return decision

    def _current(self, evaluation: Evaluation, name: str) -> dict[int, FluentTable]:
        parts: dict[int, list[FluentTable]] = {}
        for node in self._output_nodes[name]:
            if node.kind != "event":
                parts.setdefault(node.arity, []).append(evaluation.fluents[node])
        for indicator, table in evaluation.inputs.items():
            if indicator[0] == name:
                parts.setdefault(indicator[1], []).append(table)
        for arity in {fluent.fluent.indicator[1] for fluent in self.plan.program.spatial if fluent.fluent.name == name}:
            parts.setdefault(arity, []).append(no_fluent(arity + 1))
        return {arity: stacked(tables) for arity, tables in parts.items()}

    def _current_events(self, evaluation: Evaluation, name: str) -> dict[int, Table]:
        return {node.arity: evaluation.world.events[node.name, node.arity] for node in self._output_nodes[name] if node.kind == "event"}

    def _fluent_changes(self, state: WindowState, key: str, name: str, table: FluentTable, bounds: Bounds) -> list[Change]:
        before = state.answers.get(key) or no_fluent(len(table.keys))
        after = revised(before, table, bounds.first)
        state.answers[key] = after
        return difference(name, before, after)

    def _event_changes(self, state: WindowState, key: str, name: str, table: Table, bounds: Bounds) -> list[Change]:
        assert table.t is not None
        columns = [
            as_symbols(World(state.symbols, 1, 0, 0, 0, lambda pattern: []), column, kind)
            for column, kind in zip(table.columns, table.kinds, strict=True)
        ]
        seen = table.t > bounds.low
        new = Table(tuple(column[seen] for column in columns), (SYMBOL,) * len(columns), int(seen.sum()), table.t[seen])
        old = state.instants.get(key)
        state.instants[key] = new
        if old is None or old.t is None:
            old = Table(tuple(np.empty(0, np.int64) for _ in columns), new.kinds, 0, np.empty(0, np.int64))
        assert new.t is not None and old.t is not None
        late = old.t > bounds.low
        a, b = packed([*(column[late] for column in old.columns), old.t[late]], [*new.columns, new.t])
        gone, come = ~among(b, a), ~among(a, b)
        keys = tuple(np.concatenate((x[late][gone], y[come])) for x, y in zip(old.columns, new.columns, strict=True))
        times = np.concatenate((old.t[late][gone], new.t[come]))
        if not len(times):
            return []
        return [Change(name, keys, times, None, np.concatenate((np.full(int(gone.sum()), -1), np.full(int(come.sum()), 1))))]

    def _forget(self, state: WindowState, bounds: Bounds) -> None:
        """Drops rows no later window can see and answers that no later window can change."""
        for indicator, parts in state.rows.items():
            kind = self.plan.program.inputs.get(indicator, EVENT)
            rows = InputRows.together(parts)
            when = rows.end if kind == INTERVALS else rows.t
            n, kept = picked_rows(when, rows.arrived, bounds.next_low, INF, INF, bounds.next_low, INF)
            state.rows[indicator] = [rows if n == len(rows) else rows.take(kept if n else slice(0, 0))]
        for key, table in state.answers.items():
            kept = table.lists.e > bounds.next_low
            if not kept.all():
                state.answers[key] = without_empty(FluentTable(table.keys, keep(table.lists, kept)))
