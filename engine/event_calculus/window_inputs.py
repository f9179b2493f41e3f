"""The inputs of a window's rules: tables of input events and fluents, background knowledge,
domains, spatial fluents.

References: [dRTEC] 3 (indexing, dynamic grounding); specification 5.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.event_calculus import spatial
from engine.event_calculus.arrivals import InputRows
from engine.event_calculus.conditions import as_symbols
from engine.event_calculus.evaluation import Evaluation
from engine.event_calculus.intervals import INF, Ints
from engine.event_calculus.keys import is_sorted
from engine.event_calculus.local_results import LocalLists
from engine.event_calculus.memory import Bounds
from engine.event_calculus.partitioning import Relation, StagePart
from engine.event_calculus.plan import Naming, Plan
from engine.event_calculus.program import EVENT, POINTS
from engine.event_calculus.sharing import Key
from engine.event_calculus.state import Settings, WindowState
from engine.event_calculus.syntax import Indicator
from engine.event_calculus.tables import (
    NUMBER,
    SYMBOL,
    Column,
    FluentTable,
    Symbols,
    Table,
    distinct_rows,
    empty_fluent,
    empty_keys,
    facts_table,
    group_intervals,
    stack,
    union_tables,
)
from engine.event_calculus.terms import Atom


class WindowInputs:
    """The inputs of one query. Immutable."""

    def __init__(self, plan: Plan, settings: Settings, areas: Mapping[str, spatial.Area], part: StagePart | None = None) -> None:
        self.plan = plan
        self.part = part
        self.settings = settings
        self.areas = areas
        self.positions = frozenset(one.position for one in plan.program.spatial)

    def fill(self, evaluation: Evaluation, seen: Mapping[Indicator, InputRows], state: WindowState, lists: LocalLists | None = None) -> None:
        """Sets all tables that the rules of an evaluation read. `seen`: the window's rows, and
        earlier positions that still count in it; `lists`: the results of the keyed stage."""
        counted = {indicator: self._rows_in_window(indicator, rows, evaluation.bounds) for indicator, rows in seen.items()}
        keys = self._inputs(evaluation, counted)
        if state.facts is None:
            state.facts = self._facts(state.symbols)
        evaluation.kb.facts = dict(state.facts)
        self._domains(evaluation, keys, state, {} if lists is None else lists.domains)
        if lists is not None:
            evaluation.kb.count_rows(lists.work)
            lists.copy_to(evaluation)
        elif evaluation.share is not None:
            for (name, arity), table in evaluation.inputs.items():
                evaluation.inputs[name, arity] = evaluation.share.filter_fluent(Relation(True, name, arity), table, state.symbols)
        if self.part is None or self.part.pairs:
            self._spatial(evaluation, seen, state)

    def _rows_in_window(self, indicator: Indicator, rows: InputRows, bounds: Bounds) -> InputRows:
        return rows.after(bounds.rows_after) if indicator[0] in self.positions and self.reach_back(indicator[0]) else rows

    def _inputs(self, evaluation: Evaluation, counted: Mapping[Indicator, InputRows]) -> dict[Indicator, Sequence[Column]]:
        """Fills the tables of the inputs. Returns the columns of their arguments, for each row
        or each list of rows once."""
        named: dict[Indicator, Sequence[Column]] = {}
        for indicator, kind in self.plan.program.inputs.items():
            if kind == POINTS and indicator not in counted and (self.part is None or indicator in self.part.inputs):
                evaluation.inputs[indicator] = self._join_earlier(evaluation, indicator, empty_fluent(indicator[1] + 1))
        for indicator, rows in counted.items():
            named[indicator] = rows.columns
            kind = self.plan.program.inputs.get(indicator, EVENT)
            if kind == EVENT:
                kinds = tuple(NUMBER if column.dtype == np.float64 else SYMBOL for column in rows.columns)
                evaluation.kb.events[indicator] = Table(rows.columns, kinds, len(rows), rows.t)
            elif kind == POINTS:
                ends = np.where(rows.t == evaluation.bounds.query_time, INF, rows.t + self.settings.tick)
                table = group_intervals(stack(rows.columns, len(rows)), rows.t, ends)
                evaluation.inputs[indicator] = self._join_earlier(evaluation, indicator, table)
                named[indicator] = tuple(table.keys)
            else:
                evaluation.inputs[indicator] = self._from_intervals(rows, evaluation.bounds)
        return named

    def _join_earlier(self, evaluation: Evaluation, indicator: Indicator, table: FluentTable) -> FluentTable:
        return evaluation.crossing.join_earlier(f"input {indicator[0]}/{indicator[1]}", table) if self.settings.exact else table

    def _from_intervals(self, rows: InputRows, bounds: Bounds) -> FluentTable:
        s = np.maximum(rows.t, bounds.begin if self.settings.exact else max(bounds.first_row, bounds.begin))
        some = np.flatnonzero(s < rows.end)
        return group_intervals(stack([column[some] for column in rows.columns], len(some)), s[some], rows.end[some])

    def _facts(self, symbols: Symbols) -> dict[Indicator, Table]:
        return {indicator: facts_table(rows, symbols) for indicator, rows in self.plan.program.facts.items()}

    # -- dynamic grounding -------------------------------------------------------------------------

    def _domains(
        self,
        evaluation: Evaluation,
        keys: Mapping[Indicator, Sequence[Column]],
        state: WindowState,
        local_results: Mapping[Indicator, Table],
    ) -> None:
        """Domains of the window: entities named by its rows (`keys`), in answers that were open
        before it, and members in `local_results`.

        In a share, members of a domain are never removed once there are so many that each is in an
        open answer of some share.
        """
        lasting: Mapping[Indicator, int] = {} if evaluation.share is None else evaluation.share.sharing.lasting
        for indicator, sources in self.plan.domain_sources.items():
            members = self._domain_members(evaluation, indicator[1], sources, keys, state)
            if indicator in local_results:
                both = [np.concatenate(pair) for pair in zip(members, local_results[indicator].columns, strict=True)]
                members = tuple(column[distinct_rows(both, len(both[0]))] for column in both)
            before = state.members.get(indicator)
            if before is not None and indicator in lasting and len(before) >= lasting[indicator]:
                members = (np.union1d(members[0], before),)
            table = state.domains.get(indicator)
            if table is None or not all(map(np.array_equal, table.columns, members)):
                # The same table object has the same members, so groundings
                # listed from it remain valid.
                table = state.domains[indicator] = Table(members, (SYMBOL,) * indicator[1], len(members[0]))
            evaluation.kb.facts[indicator] = table

    def _domain_members(
        self, evaluation: Evaluation, width: int, sources: list[Naming], keys: Mapping[Indicator, Sequence[Column]], state: WindowState
    ) -> tuple[Ints, ...]:
        """Members of a domain of `width` arguments, which one tuple names together."""
        parts = [empty_keys(width)]
        limit = evaluation.bounds.low if self.settings.exact else INF - 1
        for source in sources:
            places = source.places.reshape(-1).tolist()
            named = keys.get((source.name, source.arity), ())
            if len(named) == source.arity + source.fluent:
                columns = [as_symbols(evaluation.kb, named[place], NUMBER if named[place].dtype == np.float64 else SYMBOL) for place in places]
                parts.append(stack(columns, len(named[0])).reshape(width, -1))
            answer = state.answers.get(f"{source.name}/{source.arity}") if source.fluent else None
            if answer is not None and answer.n:
                alive = np.unique(answer.lists.owners()[answer.lists.e > limit])
                parts.append(answer.keys[places][:, alive].reshape(width, -1))
        members = np.concatenate(parts, axis=1)
        members = members[:, (members >= 0).all(axis=0)]
        return tuple(members[:, distinct_rows(list(members), members.shape[1])])

    # -- spatial fluents ---------------------------------------------------------------------------

    def reach_back(self, position: str, slot: int | None = None) -> int:
        """How long before a window samples are read: as long as a sample counts for a spatial
        fluent (of this `slot`; null: of all)."""
        if not self.settings.exact:
            return 0
        slots = [one.slot for one in self.plan.program.spatial if one.position == position] if slot is None else [slot]
        return max(slots, default=0)

    def _spatial(self, evaluation: Evaluation, seen: Mapping[Indicator, InputRows], state: WindowState) -> None:
        share = evaluation.share
        groups: dict[tuple[str, str, int, Key | None], list[int]] = {}
        for place, declared in enumerate(self.plan.program.spatial):
            fluent = Relation(True, *declared.fluent.indicator)
            if share is None or share.computes(fluent):
                # Fluents that are measured together have the same key.
                key = None if share is None else share.sharing.keys.get(fluent)
                groups.setdefault((declared.relation, declared.position, declared.slot, key), []).append(place)
        tables: dict[Indicator, list[FluentTable]] = {}
        for (relation, position, slot, _), places in groups.items():
            samples = self._samples(seen, position, evaluation.bounds.rows_after - self.reach_back(position, slot if relation != "distance" else 0))
            if samples is None:
                continue
            found: spatial.NearPairs | None = None
            if relation != "inside":
                limits = sorted({self.plan.program.spatial[place].amount for place in places})
                fluent = Relation(True, *self.plan.program.spatial[places[0]].fluent.indicator)
                sides = None if share is None else share.sides(fluent, samples.entity, state.symbols)
                measure, span = (spatial.contacts, self.settings.tick) if relation == "distance" else (spatial.meetings, slot)
                found = measure(samples, span, evaluation.bounds.query_time, limits, self.settings.geographic, sides)
                state.pairs_examined += found.examined
            for place in places:
                declared = self.plan.program.spatial[place]
                table = self._spatial_table(evaluation, place, samples, found)
                tables.setdefault(declared.fluent.indicator, []).append(table)
        for indicator, parts in tables.items():
            evaluation.inputs[indicator] = union_tables(parts, indicator[1] + 1)

    def _samples(self, seen: Mapping[Indicator, InputRows], position: str, low: int) -> spatial.Positions | None:
        """The positions after `low`, in order of time."""
        for indicator, all_rows in seen.items():
            if indicator[0] == position and len(rows := all_rows.after(low)):
                # A sum is NaN if one of its terms is.
                known = rows.x + rows.y
                part = rows if not np.isnan(known).any() else rows.take(~np.isnan(known))
                order = slice(None) if is_sorted(part.t) else np.argsort(part.t, kind="stable")
                return spatial.Positions(np.asarray(part.columns[0], np.int64)[order], part.t[order], part.x[order], part.y[order])
        return None

    def _spatial_table(self, evaluation: Evaluation, place: int, samples: spatial.Positions, found: spatial.NearPairs | None) -> FluentTable:
        declared = self.plan.program.spatial[place]
        symbols = evaluation.kb.symbols
        assert isinstance(declared.fluent.value, Atom)
        value = symbols.term(declared.fluent.value)
        if found is not None:
            table = spatial.near_pairs(found, declared.amount, value)
        else:
            table = spatial.stays(samples, self._areas_of(place, symbols), declared.slot, evaluation.bounds.query_time, value)
        if declared.slot:
            # Samples before the window count in it; their intervals before it are already decided.
            table = table.take_lists(np.arange(table.n), evaluation.bounds.first_row)
        if evaluation.share is not None:
            table = evaluation.share.filter_fluent(Relation(True, *declared.fluent.indicator), table, symbols)
        return evaluation.crossing.join_earlier(f"spatial {place}", evaluation.groundings.filter_table("=" + declared.fluent.name, table))

    def _areas_of(self, place: int, symbols: Symbols) -> list[tuple[int | None, spatial.Area]]:
        declared = self.plan.program.spatial[place]
        if len(declared.fluent.arguments) == 1:
            return [(None, self.areas[declared.region])]
        rows = self.plan.program.facts[declared.region, 2]
        return [(symbols.code(str(area)), self.areas[str(region)]) for area, region in rows]
