"""impliedSpeedBelow: selects intervals by the entity's implied speed between its position at the
start and its position at the end."""

from __future__ import annotations

import numpy as np

from engine.event_calculus.conditions import distance_m, number
from engine.event_calculus.context import WindowContext
from engine.event_calculus.intervals import INF, Intervals, Ints, keep
from engine.event_calculus.keys import find_rows
from engine.event_calculus.memory import Floats
from engine.event_calculus.syntax import Construct, Indicator, IntervalRule
from engine.event_calculus.tables import Rows, group_intervals, stack, union_tables
from engine.event_calculus.terms import Term


class Speeds:
    """The speeds of one window.

    An open interval counts as slow (speed 0), so a delay is asserted while it lasts. If it ends and
    was not slow after all, the whole interval is retracted, also its part before the window: the
    context's `retracted` gets these wrong assertions, by fluent.
    """

    def __init__(self, context: WindowContext) -> None:
        self.context = context

    def slower(self, rule: IntervalRule, rows: Rows, construct: Construct, lists: Intervals) -> Intervals:
        """Intervals whose speed from the position at their start event to the position at their end
        event is below the amount.

        Positions are the events `position` (entity, longitude, latitude) at start - tick and end -
        tick; an interval with an unknown position is left out, an open one with a known start
        position has speed 0. Metres per unit of t; great circle, R = 6371.0088 km. With exact edges
        the start and its position are carried across the window's edge.
        """
        assert construct.position is not None and construct.amount is not None
        context = self.context
        tick, bounds = context.kb.tick, context.bounds
        name = f"places {rule.number} {construct.out}"
        keys = stack([rows.columns[one] for one in context.plan.essential[rule.number]], rows.n)
        held = None
        if context.exact:
            lists, held = context.crossing.restore(name, keys, lists)
        owner = lists.owners()
        entity = context.groundings.column(rows, construct.position.arguments[0])[owner]
        begin = self._places(construct.position.indicator, entity, lists.s - tick)
        if held is not None and held.places is not None:
            at = find_rows(held.keys, keys)[owner]
            carried = (at >= 0) & (lists.s <= bounds.first)
            begin[:, carried] = held.places[:, at[carried]]
        if context.exact:
            # The position of a start at the next window's first tick is also before that window.
            context.crossing.keep(name, keys, lists, begin, edge=bounds.next_low + tick)
        end = self._places(construct.position.indicator, entity, np.where(lists.e == INF, 0, lists.e - tick))
        with np.errstate(invalid="ignore"):
            metres = distance_m(*begin, *end)
            limit = np.broadcast_to(np.asarray(number(context.kb, rows, construct.amount), np.float64), (rows.n,))[owner]
            slow = np.where(lists.e == INF, ~np.isnan(begin[0]) & (limit > 0), metres / (lists.e - lists.s) < limit)
        self._retract(rule, rows, construct, owner[(lists.s < bounds.first) & ~slow], lists.s[(lists.s < bounds.first) & ~slow])
        return keep(lists, slow)

    def _places(self, indicator: Indicator, entity: Ints, moments: Ints) -> Floats:
        """The positions of entities at moments, (2, moments); NaN if there is no event."""
        found = np.full((2, len(entity)), np.nan)
        places = self.context.kb.events.get(indicator)
        if places is None or places.t is None or places.n == 0 or not len(entity):
            return found
        at = find_rows(stack([places.columns[0], places.t], places.n), stack([entity, moments], len(entity)))
        for axis in range(2):
            found[axis, at >= 0] = places.columns[1 + axis][at[at >= 0]]
        return found

    def _retract(self, rule: IntervalRule, rows: Rows, construct: Construct, owner: Ints, s: Ints) -> None:
        """Notes the part before the window of intervals that a rule asserted while they were open;
        only if no other rule derives the fluent."""
        plan = self.context.plan
        if not len(owner) or construct.out != rule.out or plan.has_other_rules(rule):
            return
        terms: tuple[Term, ...] = rule.head.terms
        keys = stack([self.context.groundings.column(rows, term)[owner] for term in terms], len(owner))
        found, retracted = group_intervals(keys, s, np.full(len(owner), self.context.bounds.first)), self.context.retracted
        others = retracted.get(rule.head.indicator)
        retracted[rule.head.indicator] = found if others is None else union_tables([others, found], len(terms))
