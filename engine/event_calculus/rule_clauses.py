"""Reads rules: of events and fluents at time points, of fluents over intervals, and `initially`."""

from __future__ import annotations

from dataclasses import replace

from engine.event_calculus.interval_bodies import interval_body, lists_read
from engine.event_calculus.literals import InvalidClause, body_of, cuts, event_pattern, fluent_pattern, restore_anonymous, term_text, time_variable
from engine.event_calculus.ordering import Unsafe, bound_by, order_body
from engine.event_calculus.parsed_program import ParsedProgram
from engine.event_calculus.syntax import (
    Assignment,
    Comparison,
    Construct,
    Count,
    Declared,
    Edge,
    Happens,
    Initially,
    Initiated,
    IntervalRule,
    Negation,
    PointRule,
    Retrieve,
    literal_variables,
    timed,
)  # fmt: skip
from engine.event_calculus.terms import Clause, Compound, ListTerm, Term, Variable, conjuncts, variable_names, variables
from engine.model.messages import Message

MAX_RULES = 2_000
MAX_LITERALS = 60


class RuleClauses:
    """Adds the rules of clauses to a parsed program. Raises InvalidClause."""

    def __init__(self, parsed: ParsedProgram) -> None:
        self.parsed = parsed

    def read(self, head: Compound, clause: Clause) -> None:
        if head.name == "holdsFor" and len(head.arguments) == 3:
            self.parsed.notice(head.location, Message("the index {index} of holdsFor/3", index=term_text(head.arguments[0])))
            head = Compound(head.name, head.arguments[1:], head.location)
        if len(head.arguments) == 4:
            self._spans(head, clause.body)
            head = Compound(head.name, (head.arguments[0], head.arguments[2]), head.location)
        for cut in cuts(clause.body):
            self.parsed.notice(cut.location, Message("the cut; all clauses of a head are evaluated, and their answers united"))
        for body in self.parsed.expander.alternatives(clause.body, clause.location):
            if len(body) > MAX_LITERALS:
                raise InvalidClause(
                    head.location, Message("a rule may have {most} conditions; this one has {count}", most=MAX_LITERALS, count=len(body))
                )
            self._rule(head, body)
        if len(self.parsed.point_rules) + len(self.parsed.interval_rules) > MAX_RULES:
            raise InvalidClause(head.location, Message("more than {most:,} rules after expansion", most=MAX_RULES))

    def _spans(self, head: Compound, body: Term | None) -> None:
        """Checks RTEC's initiatedAt(F=V, T1, T, T2): no other condition may read T1 or T2, the span
        [T1, T2) that RTEC searches."""
        for span in (head.arguments[1], head.arguments[3]):
            if not isinstance(span, Variable):
                raise InvalidClause(
                    span.location,
                    Message("the span of {name}/4 is two variables, as in {name}(F=V, T1, T, T2), not {span}", name=head.name, span=term_text(span)),
                )
            for literal in conjuncts(body):
                points = isinstance(literal, Compound) and literal.indicator == ("initiatedAt", 4)
                inside = (literal.arguments[0], literal.arguments[2]) if points and isinstance(literal, Compound) else (literal,)
                if any(variable.name == span.name for term in inside for variable in variables(term)):
                    raise InvalidClause(
                        literal.location, Message("{span} is the span of {name}/4, which rules cannot read", span=span, name=head.name)
                    )
            self.parsed.notice(span.location, Message("the span {span} of {name}/4; every moment is evaluated", span=term_text(span), name=head.name))

    def _rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        if head.name in ("initiates", "terminates"):
            event, fluent, time = head.arguments
            body = (Compound("happensAt", (event, time), head.location), *body)
            head = Compound("initiatedAt" if head.name == "initiates" else "terminatedAt", (fluent, time), head.location)
        if head.name == "holdsFor":
            self._interval_rule(head, body)
        elif head.name == "initially":
            self.parsed.initially.append(self._start(head, body))
        else:
            self._point_rule(head, body)

    def _start(self, head: Compound, body: tuple[Term, ...]) -> Initially:
        literals = body_of(body)
        for literal in timed(literals):
            raise InvalidClause(
                literal.location, Message("initially speaks of the beginning: its conditions are facts, comparisons and arithmetic, without a time")
            )
        return Initially(fluent_pattern(head.arguments[0]), literals, head.location)

    def _point_rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        time = time_variable(head.arguments[1])
        number = len(self.parsed.point_rules) + len(self.parsed.interval_rules)
        literals = body_of(body)
        if head.name == "happensAt":
            name, terms = event_pattern(head.arguments[0])
            rule = PointRule("event", name, terms, time, literals, head.location, number)
        else:
            fluent = fluent_pattern(head.arguments[0])
            rule = PointRule(
                "initiate" if head.name == "initiatedAt" else "terminate", fluent.name, fluent.terms, time, literals, head.location, number
            )
        self.parsed.point_rules.append(self._order_body(rule))

    def _order_body(self, rule: PointRule) -> PointRule:
        """The rule with its body in an order that can be evaluated; an event of
        the body must bind its time."""
        if not any(isinstance(literal, Happens | Edge | Initiated) and literal.time == rule.time for literal in rule.body):
            raise InvalidClause(rule.location, Message("the body must hold happensAt(_, {time}): an event that fixes the time", time=rule.time))
        try:
            return replace(rule, body=order_body((*rule.body, *_left_to_groundings(rule)), set()))
        except Unsafe as unsafe:
            raise InvalidClause(unsafe.location, unsafe.message) from None

    def _interval_rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        fluent = fluent_pattern(head.arguments[0])
        number = len(self.parsed.point_rules) + len(self.parsed.interval_rules)
        out = head.arguments[1]
        if isinstance(out, ListTerm) and not out.items:
            self.parsed.notice(
                head.location,
                Message(
                    "{head}; where no other clause says that {fluent} holds it does not", head=term_text(head), fluent=term_text(head.arguments[0])
                ),
            )
            return
        if not isinstance(out, Variable):
            raise InvalidClause(head.location, Message("the second argument of holdsFor must be a variable, not {out}", out=out))
        intervals, conditions = interval_body(body)
        known: set[str] = set()
        for literal in intervals:
            for name in lists_read(literal):
                if name not in known:
                    raise InvalidClause(literal.location, Message("the list {name} is used before anything is bound to it", name=name))
            if isinstance(literal, Retrieve | Construct):
                if literal.out in known:
                    raise InvalidClause(literal.location, Message("the list {out} is bound twice", out=literal.out))
                known.add(literal.out)
        if out.name not in known:
            raise InvalidClause(head.location, Message("nothing binds the list {name}", name=out.name))
        read = {out.name, *(name for literal in intervals for name in lists_read(literal))}
        for literal in intervals:
            if isinstance(literal, Retrieve | Construct) and literal.out not in read:
                what = f"holdsFor({literal.fluent}, {literal.out})" if isinstance(literal, Retrieve) else literal.out
                self.parsed.notice(
                    literal.location,
                    Message("the list of {list}; nothing reads {out}", list=restore_anonymous(what), out=restore_anonymous(literal.out)),
                )
        self.parsed.interval_rules.append(IntervalRule(fluent, intervals, conditions, out.name, head.location, number))


def _left_to_groundings(rule: PointRule) -> tuple[Declared, ...]:
    """The groundings that bind the head's variables that conditions need and no condition binds."""
    bound = bound_by(rule.body)
    open_ = variable_names(rule.terms) - bound
    needed = set().union(*(literal_variables(literal) for literal in rule.body if isinstance(literal, Negation | Count | Comparison | Assignment)))
    key = rule.name if rule.kind == "event" else "=" + rule.name
    return (Declared(key, rule.terms, rule.location),) if open_ & needed else ()
