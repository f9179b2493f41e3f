"""Checks of the whole program: names, arities, safety of heads, hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from engine.event_calculus.candidates import NotCovered, alternatives
from engine.event_calculus.expansion import Expander
from engine.event_calculus.levels import check_hierarchy, simple_values
from engine.event_calculus.literals import unknown
from engine.event_calculus.ordering import Unsafe, bound_by, order_body
from engine.event_calculus.plan import may_match
from engine.event_calculus.program import EVENT, Output, Program
from engine.event_calculus.shapes import base_name, format_relation, is_shape, may_coincide, variable_at_term
from engine.event_calculus.syntax import (
    Construct,
    Count,
    Declared,
    Edge,
    Fact,
    FluentPattern,
    Grounding,
    Happens,
    HoldsAt,
    Indicator,
    Initially,
    Initiated,
    IntervalRule,
    Literal,
    Negation,
    PointRule,
    Retrieve,
    timed,
)  # fmt: skip
from engine.event_calculus.tables import symbol_name
from engine.event_calculus.terms import SourceLocation, Term, Variable, variable_names, written_name
from engine.model.messages import Message, either

A_FLUENT, A_SIMPLE_FLUENT, AN_EVENT, A_FACT = Message("fluent"), Message("simple fluent"), Message("event"), Message("fact")


class Checker:
    """Names, arities, safety of heads, hierarchy."""

    def __init__(self, program: Program, expander: Expander, fault: Callable[[SourceLocation, Message], None]) -> None:
        self.program = program
        self.expander = expander
        self.fault = fault
        self.events = program.events | {indicator for indicator, kind in program.inputs.items() if kind == EVENT}
        self.fluents = program.fluents | {indicator for indicator, kind in program.inputs.items() if kind != EVENT}
        self.facts = set(program.facts) | set(program.domains)
        self.facts_read: set[Indicator] = {(spatial.region, 2) for spatial in program.spatial}
        self.reads: list[tuple[FluentPattern, SourceLocation]] = []
        """The fluents that conditions read, with their places in the text."""
        self.shapes: dict[str, list[str]] = {}
        for name in sorted({name for name, _ in self.events | self.fluents | self.facts if is_shape(name)}):
            self.shapes.setdefault(base_name(name), []).append(name)

    def check(self) -> None:
        self._kinds()
        self._check_shapes()
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
            self._no_whole_term(interval_rule.head.name, interval_rule.head.arguments)
            self._interval_head(interval_rule)
        for start in self.program.initially:
            self._start(start)
        for rules in self.program.groundings.values():
            for grounding in rules:
                self._grounding(grounding)
        for deadline in self.program.deadlines:
            self._indicator(A_SIMPLE_FLUENT, deadline.fluent, self.program.simple_fluents, deadline.location)
        for spatial in self.program.spatial:
            if spatial.position not in {name for name, _ in self.events}:
                self.fault(spatial.location, unknown(Message("event that gives positions"), spatial.position, {name for name, _ in self.events}))
        for location, message in check_hierarchy(self.program):
            self.fault(location, message)

    def _kinds(self) -> None:
        """A fluent's value must be simple, statically determined or an input; other values of the
        fluent may be of another kind."""
        simple = self.program.simple_fluents
        values = simple_values(self.program)
        for rule in self.program.interval_rules:
            if rule.head.indicator not in simple:
                continue
            own, value = values[rule.head.indicator], rule.head.value
            if own is None or isinstance(value, Variable):
                self.fault(
                    rule.location,
                    Message("{name} is defined by initiatedAt and by holdsFor: its heads must say which value is which", name=rule.head.name),
                )
            elif symbol_name(value) in own:  # type: ignore[arg-type]
                self.fault(rule.location, Message("{head} is defined by initiatedAt and by holdsFor; choose one", head=rule.head))
        for point_rule in self.program.point_rules:
            if point_rule.indicator in self.program.inputs and (point_rule.kind == "event") == (self.program.inputs[point_rule.indicator] == EVENT):
                self.fault(point_rule.location, Message("{name} is an input; rules cannot define it", name=point_rule.name))

    def _check_shapes(self) -> None:
        """Two shapes of one fluent or event must not look the same in
        answers, which write terms out."""
        first: dict[tuple[bool, Indicator], SourceLocation] = {}
        for rule in self.program.point_rules:
            first.setdefault((rule.kind == "event", rule.indicator), rule.location)
        for interval_rule in self.program.interval_rules:
            first.setdefault((False, interval_rule.head.indicator), interval_rule.location)
        for (event, (name, arity)), location in first.items():
            for (other_event, (other, other_arity)), before in first.items() if is_shape(name) else ():
                if event == other_event and name != other and base_name(name) == base_name(other) and may_coincide(name, arity, other, other_arity):
                    later = max(location, before, key=lambda one: (one.line, one.column))
                    self.fault(
                        later, Message("answers of {name} and {other} would read alike; give one of them another name", name=name, other=other)
                    )
                    return

    def _literal(self, literal: Literal) -> None:
        if isinstance(literal, Negation | Count):
            for inner in literal.body:
                self._literal(inner)
        elif isinstance(literal, Happens):
            if self._no_whole_term(literal.name, literal.arguments):
                self._indicator(AN_EVENT, literal.indicator, self.events, literal.location)
        elif isinstance(literal, Edge | HoldsAt):
            self._fluent(literal.fluent)
        elif isinstance(literal, Initiated):
            self.reads.append((literal.fluent, literal.fluent.location))
            if self._no_whole_term(literal.fluent.name, literal.fluent.arguments):
                self._indicator(A_SIMPLE_FLUENT, literal.fluent.indicator, self.program.simple_fluents, literal.fluent.location)
        elif isinstance(literal, Fact) and self._no_whole_term(literal.name, literal.arguments):
            self.facts_read.add(literal.indicator)
            self._indicator(A_FACT, literal.indicator, self.facts, literal.location)

    def output(self, output: Output, location: SourceLocation) -> None:
        """The names in outputEntity must exist."""
        if output.fluent:
            self._indicator(A_FLUENT, (output.name, len(output.terms) - 1), self.fluents, location)
        else:
            self._indicator(AN_EVENT, (output.name, len(output.terms)), self.events, location)

    def _fluent(self, pattern: FluentPattern) -> None:
        self.reads.append((pattern, pattern.location))
        if self._no_whole_term(pattern.name, pattern.arguments):
            self._indicator(A_FLUENT, pattern.indicator, self.fluents, pattern.location)

    def _no_whole_term(self, name: str, arguments: Sequence[Term]) -> bool:
        """Whether no variable is in the place of a compound term. A variable is a name or a number,
        so it would silently skip compound terms."""
        siblings = self.shapes.get(base_name(name), []) if self.shapes else []
        for other in siblings:
            if other != name and (variable := variable_at_term(name, arguments, other)) is not None:
                shown = written_name(variable.name)
                known = ", ".join(siblings[:10])
                self.fault(
                    variable.location,
                    Message("{shown} would stand for a whole term; write the term with its arguments, as in {known}", shown=shown, known=known),
                )
                return False
        return True

    def _indicator(self, what: Message, indicator: Indicator, known: set[Indicator], location: SourceLocation) -> None:
        if indicator in known:
            return
        arities = sorted(arity for name, arity in known if name == indicator[0])
        if arities:
            self.fault(
                location,
                Message(
                    "{what} {name} takes {arities} arguments, not {arity}",
                    what=what,
                    name=indicator[0],
                    arities=either(arities),
                    arity=indicator[1],
                ),
            )
            return
        others = [kind for kind, names in ((A_FLUENT, self.fluents), (AN_EVENT, self.events), (A_FACT, self.facts)) if indicator in names]
        if others and what != A_FACT:
            self.fault(
                location, Message("{name}/{arity} is a {other}, not a {what}", name=indicator[0], arity=indicator[1], other=others[0], what=what)
            )
            return
        self.fault(location, unknown(what, indicator[0], {name for name, _ in known}))

    def _head(self, rule: PointRule) -> None:
        self._no_whole_term(rule.name, rule.terms if rule.kind == "event" else rule.terms[:-1])
        bound = bound_by(literal for literal in rule.body if not isinstance(literal, Declared))
        free = {term.name: term.location for term in rule.terms if isinstance(term, Variable) and term.name not in bound}
        if not free or (rule.kind == "terminate" and not self._reads_values(rule)):
            return
        declared = self._groundings(rule)
        if declared:
            self._bound_by_groundings(declared, rule.terms, free)
            return
        if rule.kind == "initiate" and "=" + rule.name in self.program.groundings:
            return
        name, location = next(iter(free.items()))
        shown = written_name(name)
        if rule.kind == "event":
            self.fault(location, Message("unsafe: no condition binds {shown}; use it in happensAt, holdsAt or a fact", shown=shown))
            return
        self.fault(
            location,
            Message(
                "unsafe: no condition binds {shown}; use it in happensAt, holdsAt or a fact or declare grounding({name}(...)=...) :- ...",
                shown=shown,
                name=base_name(rule.name),
            ),
        )

    def _reads_values(self, rule: PointRule) -> bool:
        """Whether a condition needs the value that a terminatedAt leaves open; other arguments come
        from groundings that have begun."""
        return any(isinstance(literal, Declared) for literal in rule.body) and isinstance(rule.terms[-1], Variable)

    def _groundings(self, rule: PointRule) -> list[Grounding]:
        key = rule.name if rule.kind == "event" else "=" + rule.name
        return [one for one in self.program.groundings.get(key, ()) if may_match(rule.terms, one.terms)]

    def _bound_by_groundings(self, declared: Sequence[Grounding], terms: Sequence[Term], free: Mapping[str, SourceLocation]) -> None:
        """Each grounding must bind the variables that the head leaves open."""
        for grounding in declared:
            bound = bound_by(grounding.body)
            for term, own in zip(terms, grounding.terms, strict=True):
                if isinstance(term, Variable) and term.name in free and isinstance(own, Variable) and own.name not in bound:
                    name = written_name(own.name)
                    self.fault(
                        own.location, Message("unsafe: a rule leaves {name} to this grounding, and no fact or domain of it binds {name}", name=name)
                    )
                    return

    def _start(self, start: Initially) -> None:
        self._no_whole_term(start.fluent.name, start.fluent.arguments)
        for literal in start.body:
            self._literal(literal)
        bound = bound_by(start.body)
        free = next((term for term in start.fluent.terms if isinstance(term, Variable) and term.name not in bound), None)
        if free is not None and "=" + start.fluent.name not in self.program.groundings:
            name = written_name(free.name)
            self.fault(
                free.location,
                Message(
                    "unsafe: no condition binds {name}; use it in a fact or declare grounding({fluent}) :- ...",
                    name=name,
                    fluent=_fluent_text(start.fluent),
                ),
            )

    def _interval_head(self, rule: IntervalRule) -> None:
        try:
            alternatives(rule, grounded="=" + rule.head.name in self.program.groundings)
        except NotCovered as gap:
            shown = written_name(gap.variable)
            self.fault(
                rule.location,
                Message(
                    "unsafe: the groundings of {shown} do not follow from the conditions; declare grounding({fluent}) :- ...",
                    shown=shown,
                    fluent=_fluent_text(rule.head),
                ),
            )
        try:
            bound = variable_names(term for part in rule.intervals if isinstance(part, Retrieve) for term in part.fluent.terms)
            bound |= variable_names(rule.head.terms)
            order_body(rule.conditions, bound)
        except Unsafe as unsafe:
            self.fault(unsafe.location, unsafe.message)

    def _grounding(self, grounding: Grounding) -> None:
        if grounding.name.startswith("="):
            self._no_whole_term(grounding.name[1:], grounding.terms[:-1])
        for timed_ in timed(grounding.body):
            self.fault(timed_.location, Message("a grounding may use only domains, facts and comparisons"))
        for literal in _inner(grounding.body):
            if isinstance(literal, Count):
                self.fault(literal.location, Message("a grounding may use only domains, facts and comparisons"))
            elif isinstance(literal, Fact):
                # An undefined domain belongs to an unused input; RTEC's
                # declarations often have these.
                self.facts_read.add(literal.indicator)
        try:
            order_body(grounding.body, variable_names(grounding.terms))
        except Unsafe as unsafe:
            self.fault(unsafe.location, unsafe.message)


def _inner(body: Iterable[Literal]) -> Iterator[Literal]:
    """All conditions of a body, also those in negations."""
    for literal in body:
        yield literal
        if isinstance(literal, Negation | Count):
            yield from _inner(literal.body)


def _fluent_text(fluent: FluentPattern) -> str:
    """The fluent in the notation of programs."""
    return f"{format_relation(fluent.name, ['_' if str(term).startswith('_#') else str(term) for term in fluent.arguments])}={fluent.value}"
