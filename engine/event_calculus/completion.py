"""Makes a checked program from a parsed one, with the checks that need the whole text."""

from __future__ import annotations

from dataclasses import replace

from engine.event_calculus import builtins
from engine.event_calculus.checks import Checker
from engine.event_calculus.deadlines import Deadlines, facts_of
from engine.event_calculus.heads import HEADS, is_misspelt
from engine.event_calculus.literals import restore_anonymous, term_text, unknown
from engine.event_calculus.ordering import Unsafe, order_body
from engine.event_calculus.parsed_program import ParsedProgram
from engine.event_calculus.program import EVENT, INTERVALS, Program
from engine.event_calculus.shapes import base_name
from engine.event_calculus.syntax import FluentPattern, Initially
from engine.event_calculus.tables import symbol_name
from engine.event_calculus.terms import Atom, Compound, Number, SourceLocation, Term, variable_names
from engine.event_calculus.unreachable import unreachable_values
from engine.model.messages import Message, all_of, untranslated


class Completion:
    """Makes the checked program of a parsed one, to which it adds faults."""

    def __init__(self, parsed: ParsedProgram) -> None:
        self.parsed = parsed

    def program(self) -> Program:
        read = self.parsed
        deadlines = Deadlines(read.facts, read.extends, read.fault).compile(read.fi)
        program = Program(
            tuple(read.point_rules), tuple(read.interval_rules), tuple(map(self._ordered_start, read.initially)), deadlines,
            {name: tuple(rules) for name, rules in read.groundings.items()}, tuple(read.domains),
            {indicator: tuple(rows) for indicator, rows in read.facts.items()}, tuple(read.spatial), dict(read.inputs), tuple(read.outputs),
        )  # fmt: skip
        program = self._with_implied_inputs(program)
        checker = Checker(program, self.parsed.expander, self.parsed.fault)
        checker.check()
        for output, location in self.parsed.outputs.items():
            checker.output(output, location)
        for pattern, location in checker.reads:
            self._check_input_value(pattern, location)
        self._report_unread(checker)
        self._groundings_of_inputs(program)
        self.parsed.notices.extend(unreachable_values(program, checker.reads))
        return replace(program, notices=tuple(sorted(self.parsed.notices, key=lambda one: (one.location.line, one.location.column))))

    def _check_input_value(self, pattern: FluentPattern, location: SourceLocation) -> None:
        """A value of an input fluent that is read must be among the values that the text
        declares."""
        declared = self.parsed.given_values.get(pattern.indicator)
        if declared is None or not isinstance(pattern.value, Atom | Number):
            return
        values = {symbol_name(one.value) if isinstance(one.value, Atom | Number) else None for one in declared}
        if None not in values and symbol_name(pattern.value) not in values:
            name = pattern.name
            self.parsed.fault(
                location,
                Message(
                    "{name}={value} is not declared: the inputs {name} have {values}",
                    name=name,
                    value=pattern.value,
                    values=", ".join(sorted(filter(None, values))),
                ),
            )

    def _groundings_of_inputs(self, program: Program) -> None:
        """A grounding of an input declares which arguments are members of dynamic domains; without
        such a domain it has no effect."""
        for name, rules in self.parsed.groundings.items():
            for rule in rules:
                indicator = (name.lstrip("="), len(rule.terms) - name.startswith("="))
                facts = facts_of(rule.body)
                if (
                    indicator not in self.parsed.inputs
                    or indicator in program.fluents | program.events
                    or any(f.indicator in self.parsed.domains for f in facts)
                ):
                    continue
                over = all_of([untranslated(restore_anonymous(f"{fact.name}({', '.join(map(str, fact.arguments))})")) for fact in facts])
                what = restore_anonymous(f"{indicator[0]}({', '.join(map(str, rule.terms))})")
                self.parsed.notice(
                    rule.location,
                    Message(
                        "the grounding of the input {input} over {over}; rows say what happens, and no domain grows by it",
                        input=what,
                        over=over or Message("nothing"),
                    ),
                )

    def _report_unread(self, checker: Checker) -> None:
        """Checks definitions that no condition reads: a fact may be unused,
        anything else is a fault."""
        for head, body in self.parsed.expander.definitions:
            if head.indicator in self.parsed.expander.called:
                continue
            if any(isinstance(term, Compound) for term in head.arguments) or is_misspelt(*head.indicator) or any(map(_is_of_time, body)):
                self.parsed.fault(
                    head.location,
                    Message("{fault}; as a background rule no condition calls it", fault=unknown(Message("kind of rule"), head.name, HEADS)),
                )
            else:
                self.parsed.notice(head.location, Message("the background rule {head}; no condition calls it", head=term_text(head)))
        read = checker.facts_read | {fact.indicator for clause in self.parsed.fi for fact in facts_of(clause.conditions)}
        for indicator in [*self.parsed.facts, *self.parsed.domains]:
            if indicator in read:
                continue
            name, arity = base_name(indicator[0]), indicator[1]
            location = self.parsed.fact_locations.get(indicator) or self.parsed.domains[indicator]
            if is_misspelt(name, arity):
                self.parsed.fault(location, unknown(Message("kind of rule"), name, HEADS))
            else:
                count = len(self.parsed.facts.get(indicator, ()))
                if count > 1:
                    self.parsed.notice(
                        location, Message("{count:,} facts {name}/{arity}; no condition reads them", count=count, name=name, arity=arity)
                    )
                elif count:
                    self.parsed.notice(location, Message("{count} fact {name}/{arity}; no condition reads it", count=count, name=name, arity=arity))
                else:
                    self.parsed.notice(location, Message("the domain {name}/{arity}; no condition reads it", name=name, arity=arity))

    def _with_implied_inputs(self, program: Program) -> Program:
        """Adds the names with a grounding but no rule as inputs: RTEC's users declare
        their inputs in this way."""
        inputs = dict(self.parsed.inputs)
        defined = program.fluents | program.events
        for name, rules in self.parsed.groundings.items():
            for rule in rules:
                arity = len(rule.terms) - (1 if name.startswith("=") else 0)
                indicator = (name.lstrip("="), arity)
                if indicator not in defined and base_name(indicator[0]) not in {base_name(known) for known, _ in [*defined, *inputs]}:
                    inputs[indicator] = INTERVALS if name.startswith("=") else EVENT
        return replace(program, inputs=inputs)

    def _ordered_start(self, start: Initially) -> Initially:
        """The clause with its body in an order that can be evaluated;
        declared groundings come first."""
        grounded = "=" + start.fluent.name in self.parsed.groundings
        try:
            return replace(start, body=order_body(start.body, variable_names(start.fluent.terms) if grounded else set()))
        except Unsafe as unsafe:
            self.parsed.fault(unsafe.location, unsafe.message)
            return start


def _is_of_time(literal: Term) -> bool:
    """Whether a condition, or one nested in it, is about events or fluents."""
    return isinstance(literal, Compound) and (literal.name in builtins.CONDITIONS or any(map(_is_of_time, literal.arguments)))
