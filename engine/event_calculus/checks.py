"""What only the whole program shows: names, arities, safety of heads, hierarchy."""

from __future__ import annotations

from collections.abc import Callable

from engine.event_calculus.candidates import NotCovered, alternatives
from engine.event_calculus.expansion import Expander
from engine.event_calculus.levels import check_hierarchy
from engine.event_calculus.literals import unknown
from engine.event_calculus.ordering import Unsafe, order_body
from engine.event_calculus.program import EVENT, Program
from engine.event_calculus.syntax import (
    Comparison,
    Construct,
    Edge,
    Fact,
    FluentPattern,
    Grounding,
    Happens,
    HoldsAt,
    Indicator,
    IntervalRule,
    Literal,
    Negation,
    PointRule,
    Retrieve,
    literal_variables,
)  # fmt: skip
from engine.event_calculus.terms import Place, Variable, variables


class Checker:
    """Names, arities, safety of heads, hierarchy."""

    def __init__(self, program: Program, expander: Expander, fault: Callable[[Place, str], None]) -> None:
        self.program = program
        self.expander = expander
        self.fault = fault
        self.events = program.events | {indicator for indicator, kind in program.inputs.items() if kind == EVENT}
        self.fluents = program.fluents | {indicator for indicator, kind in program.inputs.items() if kind != EVENT}
        self.facts = set(program.facts) | set(program.domains)

    def check(self) -> None:
        self._kinds()
        for rule in self.program.point_rules:
            for literal in rule.body:
                self._literal(literal)
            self._head(rule)
        for interval_rule in self.program.interval_rules:
            for part in interval_rule.intervals:
                if isinstance(part, Retrieve):
                    self._fluent(part.fluent)
                if isinstance(part, Construct) and part.position is not None:
                    self._literal(part.position)
            for literal in interval_rule.conditions:
                self._literal(literal)
            self._interval_head(interval_rule)
        for rules in self.program.groundings.values():
            for grounding in rules:
                self._grounding(grounding)
        for deadline in self.program.deadlines:
            self._indicator("simple fluent", deadline.fluent, self.program.simple_fluents, deadline.place)
        for spatial in self.program.spatial:
            if spatial.position not in {name for name, _ in self.events}:
                self.fault(spatial.place, unknown("event that gives positions", spatial.position, {name for name, _ in self.events}))
        for place, message in check_hierarchy(self.program):
            self.fault(place, message)

    def _kinds(self) -> None:
        """A fluent is simple, statically determined or an input; only a value of its own may be of another kind."""
        simple = self.program.simple_fluents
        for rule in self.program.interval_rules:
            if rule.head.indicator in simple:
                self.fault(rule.place, f"{rule.head.name} is defined by initiatedAt and by holdsFor; choose one")
        for point_rule in self.program.point_rules:
            if point_rule.indicator in self.program.inputs and (point_rule.kind == "event") == (self.program.inputs[point_rule.indicator] == EVENT):
                self.fault(point_rule.place, f"{point_rule.name} is an input; rules cannot define it")

    def _literal(self, literal: Literal) -> None:
        if isinstance(literal, Negation):
            for inner in literal.body:
                self._literal(inner)
        elif isinstance(literal, Happens):
            self._indicator("event", literal.indicator, self.events, literal.place)
        elif isinstance(literal, Edge | HoldsAt):
            self._fluent(literal.fluent)
        elif isinstance(literal, Fact):
            self._indicator("fact", literal.indicator, self.facts, literal.place)

    def _fluent(self, pattern: FluentPattern) -> None:
        self._indicator("fluent", pattern.indicator, self.fluents, pattern.place)

    def _indicator(self, what: str, indicator: Indicator, known: set[Indicator], place: Place) -> None:
        if indicator in known:
            return
        arities = sorted(arity for name, arity in known if name == indicator[0])
        if arities:
            self.fault(place, f"{what} {indicator[0]} takes {' or '.join(map(str, arities))} arguments, not {indicator[1]}")
            return
        others = [kind for kind, names in (("fluent", self.fluents), ("event", self.events), ("fact", self.facts)) if indicator in names]
        if others and what != "fact":
            self.fault(place, f"{indicator[0]}/{indicator[1]} is a {others[0]}, not a {what}")
            return
        self.fault(place, unknown(what, indicator[0], {name for name, _ in known}))

    def _head(self, rule: PointRule) -> None:
        bound = set().union(*(literal_variables(literal) for literal in rule.body if not isinstance(literal, Negation | Comparison)))
        bound |= {
            literal.left.name
            for literal in rule.body
            if isinstance(literal, Comparison) and literal.operator == "=" and isinstance(literal.left, Variable)
        }
        free = {term.name: term.place for term in rule.terms if isinstance(term, Variable) and term.name not in bound}
        if not free or rule.kind == "terminate":
            return
        if rule.kind == "initiate" and "=" + rule.name in self.program.groundings:
            return
        name, place = next(iter(free.items()))
        shown = "_" if name.startswith("_#") else name
        remedy = "" if rule.kind == "event" else f" or declare grounding({rule.name}(...)=...) :- ..."
        self.fault(place, f"unsafe: no condition binds {shown}; use it in happensAt, holdsAt or a fact{remedy}")

    def _interval_head(self, rule: IntervalRule) -> None:
        try:
            alternatives(rule, grounded="=" + rule.head.name in self.program.groundings)
        except NotCovered as gap:
            shown = "_" if gap.variable.startswith("_#") else gap.variable
            self.fault(rule.place, f"unsafe: the groundings of {shown} do not follow from the conditions; declare grounding({rule.head}) :- ...")
        try:
            bound = {v.name for part in rule.intervals if isinstance(part, Retrieve) for term in part.fluent.terms for v in variables(term)}
            bound |= {v.name for term in rule.head.terms for v in variables(term)}
            order_body(rule.conditions, bound)
        except Unsafe as unsafe:
            self.fault(unsafe.place, unsafe.message)

    def _grounding(self, grounding: Grounding) -> None:
        for literal in grounding.body:
            if isinstance(literal, Happens | HoldsAt | Edge):
                self.fault(literal.place, "a grounding may use only domains, facts and comparisons")
            elif isinstance(literal, Fact) and literal.indicator not in self.facts and literal.indicator not in self.expander.defined:
                continue  # a domain of an input nobody uses, as RTEC's declarations often have
        try:
            order_body(grounding.body, {v.name for term in grounding.terms for v in variables(term)})
        except Unsafe as unsafe:
            self.fault(unsafe.place, unsafe.message)
