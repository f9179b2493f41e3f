"""Declarations: inputs, outputs, groundings, domains, deadlines and spatial fluents."""

from __future__ import annotations

from engine.event_calculus.deadlines import FiClause
from engine.event_calculus.heads import IGNORED_DECLARATIONS
from engine.event_calculus.literals import InvalidClause, body_of, event_pattern, fluent_pattern, ground_target, term_text, unknown
from engine.event_calculus.parsed_program import ParsedProgram
from engine.event_calculus.program import EVENT, INTERVALS, POINTS, Output
from engine.event_calculus.syntax import FluentPattern, Grounding, SpatialFluent
from engine.event_calculus.terms import Atom, Clause, Compound, Number, SourceLocation, Term, Variable, is_span
from engine.model.messages import Message

_GIVEN = {EVENT: Message("events"), POINTS: Message("a fluent at points"), INTERVALS: Message("a fluent over intervals")}


class Declarations:
    """Adds the declarations of clauses to a parsed program. Raises InvalidClause."""

    def __init__(self, parsed: ParsedProgram) -> None:
        self.parsed = parsed

    def read(self, head: Compound, clause: Clause) -> None:
        name, arguments = head.name, head.arguments
        if isinstance(clause.body, Atom) and clause.body.name == "fail":
            self.parsed.notice(head.location, Message("{head} :- fail; that declares nothing", head=term_text(head)))
            return
        if clause.body is not None and name not in ("grounding", "fi", "maxDuration", "maxDurationUE"):
            raise InvalidClause(head.location, Message("{name} has no conditions: end it with '.'", name=name))
        if name in IGNORED_DECLARATIONS:
            self.parsed.notice(head.location, Message("{head}; it follows from the rules, or only concerns RTEC's speed", head=term_text(head)))
        elif name == "inputEntity":
            self._declare_input(arguments[0], None)
        elif name in ("points", "buildFromPoints"):
            self._declare_input(arguments[0], POINTS)
        elif name == "collectIntervals":
            self._declare_input(arguments[0], INTERVALS)
        elif name == "outputEntity":
            self._declare_output(arguments[0])
        elif name == "dynamicDomain":
            domain = arguments[0]
            if not isinstance(domain, Compound):
                raise InvalidClause(head.location, Message("dynamicDomain takes a name with arguments, as in dynamicDomain(vessel(_))"))
            self.parsed.domains.setdefault(domain.indicator, head.location)
        elif name == "grounding":
            for body in self.parsed.expander.alternatives(clause.body, clause.location):
                target, terms = ground_target(arguments[0])
                literals = body_of(body)
                self.parsed.groundings.setdefault(target, []).append(Grounding(target, terms, literals, head.location))
        elif name in ("fi", "maxDuration", "maxDurationUE"):
            self._deadline(head, clause)
        elif name == "p":
            self.parsed.extends.append(fluent_pattern(arguments[0]))
        elif name == "spatial":
            self._spatial(head)

    def _declare_input(self, term: Term, kind: str | None) -> None:
        if isinstance(term, Compound) and term.name == "=":
            pattern = fluent_pattern(term)
            indicator = pattern.indicator
            self.parsed.given_values.setdefault(indicator, []).append(pattern)
        else:
            name, terms = event_pattern(term)
            indicator, kind = (name, len(terms)), kind or EVENT
        known = self.parsed.inputs.get(indicator)
        if indicator in self.parsed.mapped:
            if kind is not None and known not in (kind, None):
                raise InvalidClause(
                    term.location,
                    Message(
                        "the specification's inputs give {name} as {known}, not as {kind}",
                        name=indicator[0],
                        known=_GIVEN[known or EVENT],
                        kind=_GIVEN[kind],
                    ),
                )
            self.parsed.notice(
                term.location, Message("the declaration of the input {input}; the specification's inputs say the same", input=term_text(term))
            )
            return
        if kind is not None and known is not None and {kind, known} == {POINTS, INTERVALS} and indicator in self.parsed.kind_declared:
            raise InvalidClause(
                term.location,
                Message("{name} is declared as {known} before, not as {kind}", name=indicator[0], known=_GIVEN[known], kind=_GIVEN[kind]),
            )
        if kind is not None:
            self.parsed.kind_declared.add(indicator)
            self.parsed.inputs[indicator] = kind
        self.parsed.inputs.setdefault(indicator, INTERVALS)

    def _declare_output(self, term: Term) -> None:
        if isinstance(term, Compound) and term.name == "=":
            pattern = fluent_pattern(term)
            self.parsed.outputs.setdefault(Output(pattern.name, pattern.terms, fluent=True), pattern.location)
        else:
            name, terms = event_pattern(term)
            self.parsed.outputs.setdefault(Output(name, terms, fluent=False), term.location)

    def _deadline(self, head: Compound, clause: Clause) -> None:
        before, after = fluent_pattern(head.arguments[0]), fluent_pattern(head.arguments[1])
        if before.name != after.name or before.arguments != after.arguments:
            raise InvalidClause(head.location, Message("{name} must name one fluent with the same arguments twice, with two values", name=head.name))
        names = [term.name for term in before.arguments if isinstance(term, Variable)]
        if len(set(names)) < len(names):
            raise InvalidClause(head.location, Message("the arguments of {name} are different variables and constants", name=head.name))
        for value in (before.value, after.value):
            if isinstance(value, Variable):
                raise InvalidClause(value.location, Message("the values of {name} are constants", name=head.name))
        if before.value == after.value:
            raise InvalidClause(after.value.location, Message("{name} must name two values of the fluent", name=head.name))
        delay = head.arguments[2]
        if not isinstance(delay, Number | Variable):
            raise InvalidClause(
                delay.location,
                Message("the duration of {name} is a positive whole number or a variable, not {delay}", name=head.name, delay=term_text(delay)),
            )
        for body in self.parsed.expander.alternatives(clause.body, clause.location):
            kept = [term for term in body if not self._is_own_grounding(term, before, after)]
            self.parsed.fi.append(FiClause(before, after, delay, body_of(kept), head.name == "maxDurationUE", head.location))

    def _is_own_grounding(self, term: Term, before: FluentPattern, after: FluentPattern) -> bool:
        """Whether a condition of a fi is its own grounding(F=V), as RTEC's compiler writes it; it
        is redundant, as deadlines have declared groundings."""
        if not (isinstance(term, Compound) and term.indicator == ("grounding", 1)):
            return False
        if fluent_pattern(term.arguments[0]) not in (before, after):
            raise InvalidClause(
                term.location,
                Message("the grounding of another fluent is not a condition here; write {before} or {after}", before=before, after=after),
            )
        self.parsed.notice(
            term.location, Message("the condition {condition}; a deadline applies only to declared groundings", condition=term_text(term))
        )
        return True

    def _spatial(self, head: Compound) -> None:
        usage = Message("write spatial(F=V, distance(Position, D)), proximity(Position, D, Slot) or inside(Position, Region, MaxGap)")
        if len(head.arguments) != 2 or not isinstance(head.arguments[1], Compound):
            raise InvalidClause(head.location, usage)
        fluent, how = fluent_pattern(head.arguments[0]), head.arguments[1]
        numbers = [argument.value for argument in how.arguments if isinstance(argument, Number)]
        names = [argument.name for argument in how.arguments if isinstance(argument, Atom)]
        shapes = {"distance": (1, 1), "proximity": (1, 2), "inside": (2, 1)}
        if shapes.get(how.name) != (len(names), len(numbers)) or any(number <= 0 for number in numbers):
            raise InvalidClause(how.location, usage)
        if how.name != "distance" and not is_span(numbers[-1]):
            span = term_text(how.arguments[-1])
            raise InvalidClause(
                how.location, Message("the time of {name} must be a positive whole number below 2^60, not {span}", name=how.name, span=span)
            )
        pair = how.name != "inside"
        shape = [Variable] * (2 if pair else len(fluent.arguments))
        if (
            [type(argument) for argument in fluent.arguments] != shape
            or not isinstance(fluent.value, Atom)
            or (not pair and not 1 <= len(shape) <= 2)
        ):
            raise InvalidClause(
                fluent.location,
                Message(
                    "{name} gives {entities}: write variables for them and a constant value",
                    name=how.name,
                    entities=Message("two entities") if pair else Message("an entity (and an area)"),
                ),
            )
        region = names[1] if how.name == "inside" else ""
        if how.name == "inside":
            self._check_region(region, len(fluent.arguments), how.location)
        slot = int(numbers[-1]) if how.name != "distance" else 0
        self.parsed.spatial.append(SpatialFluent(fluent, how.name, names[0], numbers[0], slot, region, head.location))  # type: ignore[arg-type]

    def _check_region(self, region: str, arity: int, location: SourceLocation) -> None:
        if self.parsed.regions is None:
            return
        if arity == 1:
            wanted: list[tuple[str, SourceLocation]] = [(region, location)]
        else:
            rows = self.parsed.facts.get((region, 2), [])
            if not rows:
                raise InvalidClause(location, Message("there is no table of facts {region}(Area, Region)", region=region))
            wanted = [(str(row[1]), row[1].location) for row in rows]
        for name, where in wanted:
            if name not in self.parsed.regions:
                self.parsed.fault(where, unknown(Message("stored region"), name, self.parsed.regions))
