"""Clauses to a checked program: every fault is found here, with its place, so that running discovers nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.event_calculus import builtins
from engine.event_calculus.checks import Checker
from engine.event_calculus.deadlines import Deadlines, FiClause, facts_of
from engine.event_calculus.expansion import Expander
from engine.event_calculus.interval_bodies import interval_body, lists_read
from engine.event_calculus.literals import (
    MAX_ARGUMENTS,
    Faulty,
    body_of,
    cuts,
    event_pattern,
    fluent_pattern,
    ground_target,
    is_near,
    shown,
    time_variable,
    unknown,
    written,
)
from engine.event_calculus.ordering import Unsafe, bound_by, order_body
from engine.event_calculus.parser import Problem, ProgramRefused, parse
from engine.event_calculus.program import EVENT, INTERVALS, POINTS, Output, Program
from engine.event_calculus.shapes import called
from engine.event_calculus.syntax import (
    Assignment,
    Comparison,
    Construct,
    Count,
    Declared,
    Edge,
    FluentPattern,
    Grounding,
    Happens,
    Indicator,
    Initially,
    Initiated,
    IntervalRule,
    Negation,
    PointRule,
    Retrieve,
    SpatialFluent,
    literal_variables,
    timed,
)  # fmt: skip
from engine.event_calculus.tables import symbol_name
from engine.event_calculus.terms import Atom, Clause, Compound, ListTerm, Number, Place, Term, Variable, conjuncts, variables
from engine.model.messages import Message, all_of, as_it_is, either

MAX_RULES = 2_000
MAX_FACTS = 200_000
MAX_LITERALS = 60

_RULE_HEADS: Mapping[str, tuple[int, ...]] = {
    "initiatedAt": (2, 4), "terminatedAt": (2, 4), "initiates": (3,), "terminates": (3,), "happensAt": (2,), "holdsFor": (2, 3), "initially": (1,),
}  # fmt: skip
_IGNORED_DECLARATIONS: Mapping[str, tuple[int, ...]] = {
    "index": (2,), "cachingOrder": (1,), "cachingOrder2": (2,), "event": (1,), "simpleFluent": (1,), "sDFluent": (1,), "needsGrounding": (1, 3),
    "cyclic": (1,), "collectGrounds": (2,), "dgrounded": (2,),
}  # fmt: skip
"""RTEC's hints to its own compiler: what they say follows from the rules here."""
_DECLARATIONS: Mapping[str, tuple[int, ...]] = {
    "grounding": (1,), "dynamicDomain": (1,), "outputEntity": (1,), "inputEntity": (1,), "points": (1,), "collectIntervals": (1,),
    "buildFromPoints": (1,), "fi": (3,), "maxDuration": (3,), "maxDurationUE": (3,), "p": (1,), "spatial": (2,), **_IGNORED_DECLARATIONS,
}  # fmt: skip
_GIVEN = {EVENT: Message("events"), POINTS: Message("a fluent at points"), INTERVALS: Message("a fluent over intervals")}
HEADS = frozenset([*_RULE_HEADS, *_DECLARATIONS])
"""What the language gives a clause to begin with."""


def compile_text(text: str, *, inputs: Mapping[str, tuple[str, int]] | None = None, regions: Iterable[str] | None = None) -> Program:
    """The program written in `text`.

    `inputs`: name to (EVENT, POINTS or INTERVALS, number of arguments) for inputs declared outside the text; `regions`:
    names of stored regions, null when they are not to be checked. Raises ProgramRefused with all faults found.
    """
    return _Reader(parse(text), dict(inputs or {}), None if regions is None else set(regions)).read()


class _Reader:
    def __init__(self, clauses: list[Clause], inputs: dict[str, tuple[str, int]], regions: set[str] | None) -> None:
        self.clauses = clauses
        self.problems: list[Problem] = []
        self.regions = regions
        self.inputs: dict[Indicator, str] = {(name, arity): kind for name, (kind, arity) in inputs.items()}
        self.mapped = set(self.inputs)
        self.facts: dict[Indicator, list[tuple[Term, ...]]] = {}
        self.point_rules: list[PointRule] = []
        self.interval_rules: list[IntervalRule] = []
        self.initially: list[Initially] = []
        self.groundings: dict[str, list[Grounding]] = {}
        self.fact_places: dict[Indicator, Place] = {}
        self.domains: dict[Indicator, Place] = {}
        self.outputs: dict[Output, Place] = {}
        self.kind_declared: set[Indicator] = set()
        """Input fluents of which the text says how rows state them."""
        self.given_values: dict[Indicator, list[FluentPattern]] = {}
        self.fi: list[FiClause] = []
        self.extends: list[FluentPattern] = []
        self.notices: list[Problem] = []
        self.spatial: list[SpatialFluent] = []
        self.expander = Expander(self._fault)

    def _fault(self, place: Place, message: Message) -> None:
        self.problems.append(Problem(place, message))

    def _notice(self, place: Place, message: Message) -> None:
        self.notices.append(Problem(place, Message("ignored: {message}", message=message)))

    # -- reading -------------------------------------------------------------------------------------------------

    def read(self) -> Program:
        rules: list[Clause] = []
        for clause in self.clauses:
            if self._is_rule_of_ours(clause):
                rules.append(clause)
            elif clause.head is not None:
                self._background(clause)
        for clause in rules:
            try:
                self._clause(clause)
            except Faulty as faulty:
                self._fault(faulty.place, faulty.message)
        program = self._finish()
        if self.problems:
            raise ProgramRefused(self.problems)
        return program

    def _is_rule_of_ours(self, clause: Clause) -> bool:
        head = clause.head
        if isinstance(head, Atom):
            return False
        if head is None:
            body = clause.body
            if not (isinstance(body, Compound) and body.name in ("dynamic", "discontiguous", "multifile")):
                self._fault(clause.place, Message("directives are not run; only dynamic, discontiguous and multifile are accepted (and ignored)"))
            else:
                self._notice(clause.place, Message("the directive {directive}; nothing has to be declared before it is used", directive=shown(body)))
            return False
        return isinstance(head, Compound) and head.name in HEADS and self._is_of_language(head)

    @staticmethod
    def _is_of_language(head: Compound) -> bool:
        """Whether a clause with such a head is a rule or a declaration, and no fact that has its name: p(_) with a fluent, not p(a, 3)."""
        arities = _RULE_HEADS.get(head.name) or _DECLARATIONS[head.name]
        fluent = any(isinstance(argument, Compound) and argument.name == "=" for argument in head.arguments)
        return len(head.arguments) in arities or fluent or head.name in _RULE_HEADS

    def _background(self, clause: Clause) -> None:
        head = clause.head
        if not isinstance(head, Compound):
            self._fault(clause.place, Message("a clause must start with a name and arguments, not {head}", head=head))
            return
        if len(head.arguments) > MAX_ARGUMENTS:
            self._fault(
                clause.place,
                Message("{name} has {count} arguments; at most {most} are allowed", name=head.name, count=len(head.arguments), most=MAX_ARGUMENTS),
            )
        elif head.indicator in builtins.RESERVED:
            self._fault(clause.place, Message("{name}/{count} is built in and cannot be defined", name=head.name, count=len(head.arguments)))
        elif any(isinstance(argument, Compound) and argument.name == "=" for argument in head.arguments) or (
            any(isinstance(argument, Compound) for argument in head.arguments) and is_near(head.name, _RULE_HEADS)
        ):
            self._fault(clause.place, unknown(Message("kind of rule"), head.name, HEADS))
        elif clause.body is not None:
            self.expander.define(head, clause.body)
        elif next(variables(head), None) is not None:
            self.expander.define(head, None)
        else:
            self._fact(head)

    def _fact(self, head: Compound) -> None:
        try:
            indicator, arguments = (head.name, len(head.arguments)), head.arguments
            if not all(isinstance(argument, Atom | Number) for argument in arguments):
                name, arguments = event_pattern(head)
                indicator = (name, len(arguments))
        except Faulty as faulty:
            self._fault(faulty.place, faulty.message)
            return
        self.expander.facts.add(head.indicator)
        self.fact_places.setdefault(indicator, head.place)
        rows = self.facts.setdefault(indicator, [])
        rows.append(arguments)
        if len(rows) == MAX_FACTS + 1:
            self._fault(head.place, Message("more than {most:,} facts {name}/{arity}", most=MAX_FACTS, name=indicator[0], arity=indicator[1]))

    def _clause(self, clause: Clause) -> None:
        head = clause.head
        assert isinstance(head, Compound)
        known = _RULE_HEADS.get(head.name) or _DECLARATIONS[head.name]
        if len(head.arguments) not in known:
            raise Faulty(
                head.place,
                Message("{name} takes {arities} arguments, not {count}", name=head.name, arities=either(known), count=len(head.arguments)),
            )
        if head.name in _DECLARATIONS:
            self._declaration(head, clause)
            return
        if head.name == "holdsFor" and len(head.arguments) == 3:
            self._notice(head.place, Message("the index {index} of holdsFor/3", index=shown(head.arguments[0])))
            head = Compound(head.name, head.arguments[1:], head.place)
        if len(head.arguments) == 4:
            self._spans(head, clause.body)
            head = Compound(head.name, (head.arguments[0], head.arguments[2]), head.place)
        for cut in cuts(clause.body):
            self._notice(cut.place, Message("the cut; all clauses of a head are looked at, and their answers united"))
        for body in self.expander.alternatives(clause.body, clause.place):
            if len(body) > MAX_LITERALS:
                raise Faulty(head.place, Message("a rule may have {most} conditions; this one has {count}", most=MAX_LITERALS, count=len(body)))
            self._rule(head, body)
        if len(self.point_rules) + len(self.interval_rules) > MAX_RULES:
            raise Faulty(head.place, Message("more than {most:,} rules after expansion", most=MAX_RULES))

    def _spans(self, head: Compound, body: Term | None) -> None:
        """RTEC's initiatedAt(F=V, T1, T, T2): the span [T1, T2) in which it looks is no matter of the rules, so nothing else may read it."""
        for span in (head.arguments[1], head.arguments[3]):
            if not isinstance(span, Variable):
                raise Faulty(
                    span.place,
                    Message("the span of {name}/4 is two variables, as in {name}(F=V, T1, T, T2), not {span}", name=head.name, span=shown(span)),
                )
            for literal in conjuncts(body):
                points = isinstance(literal, Compound) and literal.indicator == ("initiatedAt", 4)
                inside = (literal.arguments[0], literal.arguments[2]) if points and isinstance(literal, Compound) else (literal,)
                if any(variable.name == span.name for term in inside for variable in variables(term)):
                    raise Faulty(literal.place, Message("{span} is the span of {name}/4, which rules cannot read", span=span, name=head.name))
            self._notice(span.place, Message("the span {span} of {name}/4; every moment is looked at", span=shown(span), name=head.name))

    def _rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        if head.name in ("initiates", "terminates"):
            event, fluent, time = head.arguments
            body = (Compound("happensAt", (event, time), head.place), *body)
            head = Compound("initiatedAt" if head.name == "initiates" else "terminatedAt", (fluent, time), head.place)
        if head.name == "holdsFor":
            self._interval_rule(head, body)
        elif head.name == "initially":
            self.initially.append(self._start(head, body))
        else:
            self._point_rule(head, body)

    def _start(self, head: Compound, body: tuple[Term, ...]) -> Initially:
        literals = body_of(body)
        for literal in timed(literals):
            raise Faulty(
                literal.place, Message("initially speaks of the beginning: its conditions are facts, comparisons and arithmetic, without a time")
            )
        return Initially(fluent_pattern(head.arguments[0]), literals, head.place)

    def _ordered_start(self, start: Initially) -> Initially:
        """With its body in an order that can be evaluated; declared groundings are taken first."""
        grounded = "=" + start.fluent.name in self.groundings
        try:
            return replace(start, body=order_body(start.body, {term.name for term in start.fluent.terms if grounded and isinstance(term, Variable)}))
        except Unsafe as unsafe:
            self._fault(unsafe.place, unsafe.message)
            return start

    def _point_rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        time = time_variable(head.arguments[1])
        number = len(self.point_rules) + len(self.interval_rules)
        literals = body_of(body)
        if head.name == "happensAt":
            name, terms = event_pattern(head.arguments[0])
            rule = PointRule("event", name, terms, time, literals, head.place, number)
        else:
            fluent = fluent_pattern(head.arguments[0])
            rule = PointRule("initiate" if head.name == "initiatedAt" else "terminate", fluent.name, fluent.terms, time, literals, head.place, number)
        self.point_rules.append(self._ordered(rule))

    def _ordered(self, rule: PointRule) -> PointRule:
        """The rule with its body in an order that can be evaluated; its time must come from an event of the body."""
        if not any(isinstance(literal, Happens | Edge | Initiated) and literal.time == rule.time for literal in rule.body):
            raise Faulty(rule.place, Message("the body must hold happensAt(_, {time}): an event that fixes the time", time=rule.time))
        try:
            return replace(rule, body=order_body((*rule.body, *_left_to_groundings(rule)), set()))
        except Unsafe as unsafe:
            raise Faulty(unsafe.place, unsafe.message) from None

    def _interval_rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        fluent = fluent_pattern(head.arguments[0])
        number = len(self.point_rules) + len(self.interval_rules)
        out = head.arguments[1]
        if isinstance(out, ListTerm) and not out.items:
            self._notice(
                head.place,
                Message("{head}; where no other clause says that {fluent} holds it does not", head=shown(head), fluent=shown(head.arguments[0])),
            )
            return
        if not isinstance(out, Variable):
            raise Faulty(head.place, Message("the second argument of holdsFor must be a variable, not {out}", out=out))
        intervals, conditions = interval_body(body, out.name)
        known: set[str] = set()
        for literal in intervals:
            for name in lists_read(literal):
                if name not in known:
                    raise Faulty(literal.place, Message("the list {name} is used before anything is bound to it", name=name))
            if isinstance(literal, Retrieve | Construct):
                if literal.out in known:
                    raise Faulty(literal.place, Message("the list {out} is bound twice", out=literal.out))
                known.add(literal.out)
        if out.name not in known:
            raise Faulty(head.place, Message("nothing binds the list {name}", name=out.name))
        read = {out.name, *(name for literal in intervals for name in lists_read(literal))}
        for literal in intervals:
            if isinstance(literal, Retrieve | Construct) and literal.out not in read:
                what = f"holdsFor({literal.fluent}, {literal.out})" if isinstance(literal, Retrieve) else literal.out
                self._notice(literal.place, Message("the list of {list}; nothing reads {out}", list=written(what), out=written(literal.out)))
        self.interval_rules.append(IntervalRule(fluent, intervals, conditions, out.name, head.place, number))

    # -- declarations --------------------------------------------------------------------------------------------

    def _declaration(self, head: Compound, clause: Clause) -> None:
        name, arguments = head.name, head.arguments
        if isinstance(clause.body, Atom) and clause.body.name == "fail":
            self._notice(head.place, Message("{head} :- fail; that declares nothing", head=shown(head)))
            return
        if clause.body is not None and name not in ("grounding", "fi", "maxDuration", "maxDurationUE"):
            raise Faulty(head.place, Message("{name} has no conditions: end it with '.'", name=name))
        if name in _IGNORED_DECLARATIONS:
            self._notice(head.place, Message("{head}; it follows from the rules, or only speaks of RTEC's speed", head=shown(head)))
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
                raise Faulty(head.place, Message("dynamicDomain takes a name with arguments, as in dynamicDomain(vessel(_))"))
            self.domains.setdefault(domain.indicator, head.place)
        elif name == "grounding":
            for body in self.expander.alternatives(clause.body, clause.place):
                target, terms = ground_target(arguments[0])
                literals = body_of(body)
                self.groundings.setdefault(target, []).append(Grounding(target, terms, literals, head.place))
        elif name in ("fi", "maxDuration", "maxDurationUE"):
            self._deadline(head, clause)
        elif name == "p":
            self.extends.append(fluent_pattern(arguments[0]))
        elif name == "spatial":
            self._spatial(head)

    def _declare_input(self, term: Term, kind: str | None) -> None:
        if isinstance(term, Compound) and term.name == "=":
            pattern = fluent_pattern(term)
            indicator = pattern.indicator
            self.given_values.setdefault(indicator, []).append(pattern)
        else:
            name, terms = event_pattern(term)
            indicator, kind = (name, len(terms)), kind or EVENT
        known = self.inputs.get(indicator)
        if indicator in self.mapped:
            if kind is not None and known not in (kind, None):
                raise Faulty(
                    term.place,
                    Message(
                        "the specification's inputs give {name} as {known}, not as {kind}",
                        name=indicator[0],
                        known=_GIVEN[known or EVENT],
                        kind=_GIVEN[kind],
                    ),
                )
            self._notice(term.place, Message("the declaration of the input {input}; the specification's inputs say the same", input=shown(term)))
            return
        if kind is not None and known is not None and {kind, known} == {POINTS, INTERVALS} and indicator in self.kind_declared:
            raise Faulty(
                term.place, Message("{name} is declared as {known} before, not as {kind}", name=indicator[0], known=_GIVEN[known], kind=_GIVEN[kind])
            )
        if kind is not None:
            self.kind_declared.add(indicator)
            self.inputs[indicator] = kind
        self.inputs.setdefault(indicator, INTERVALS)

    def _declare_output(self, term: Term) -> None:
        if isinstance(term, Compound) and term.name == "=":
            pattern = fluent_pattern(term)
            self.outputs.setdefault(Output(pattern.name, pattern.terms, fluent=True), pattern.place)
        else:
            name, terms = event_pattern(term)
            self.outputs.setdefault(Output(name, terms, fluent=False), term.place)

    def _deadline(self, head: Compound, clause: Clause) -> None:
        before, after = fluent_pattern(head.arguments[0]), fluent_pattern(head.arguments[1])
        if before.name != after.name or before.arguments != after.arguments:
            raise Faulty(head.place, Message("{name} must name one fluent with the same arguments twice, with two values", name=head.name))
        names = [term.name for term in before.arguments if isinstance(term, Variable)]
        if len(set(names)) < len(names):
            raise Faulty(head.place, Message("the arguments of {name} are different variables and constants", name=head.name))
        for value in (before.value, after.value):
            if isinstance(value, Variable):
                raise Faulty(value.place, Message("the values of {name} are constants", name=head.name))
        if before.value == after.value:
            raise Faulty(after.value.place, Message("{name} must name two values of the fluent", name=head.name))
        delay = head.arguments[2]
        if not isinstance(delay, Number | Variable):
            raise Faulty(
                delay.place,
                Message("the duration of {name} is a positive whole number or a variable, not {delay}", name=head.name, delay=shown(delay)),
            )
        for body in self.expander.alternatives(clause.body, clause.place):
            kept = [term for term in body if not self._is_own_grounding(term, before, after)]
            self.fi.append(FiClause(before, after, delay, body_of(kept), head.name == "maxDurationUE", head.place))

    def _is_own_grounding(self, term: Term, before: FluentPattern, after: FluentPattern) -> bool:
        """grounding(F=V) among the conditions of a fi, as RTEC's compiler writes it: a deadline is of declared groundings anyhow."""
        if not (isinstance(term, Compound) and term.indicator == ("grounding", 1)):
            return False
        if fluent_pattern(term.arguments[0]) not in (before, after):
            raise Faulty(
                term.place, Message("the grounding of another fluent is no condition here; write {before} or {after}", before=before, after=after)
            )
        self._notice(term.place, Message("the condition {condition}; a deadline is of declared groundings only", condition=shown(term)))
        return True

    def _spatial(self, head: Compound) -> None:
        usage = Message("write spatial(F=V, distance(Position, D)), proximity(Position, D, Slot) or inside(Position, Region, MaxGap)")
        if len(head.arguments) != 2 or not isinstance(head.arguments[1], Compound):
            raise Faulty(head.place, usage)
        fluent, how = fluent_pattern(head.arguments[0]), head.arguments[1]
        numbers = [argument.value for argument in how.arguments if isinstance(argument, Number)]
        names = [argument.name for argument in how.arguments if isinstance(argument, Atom)]
        shapes = {"distance": (1, 1), "proximity": (1, 2), "inside": (2, 1)}
        if shapes.get(how.name) != (len(names), len(numbers)) or any(number <= 0 for number in numbers):
            raise Faulty(how.place, usage)
        pair = how.name != "inside"
        shape = [Variable] * (2 if pair else len(fluent.arguments))
        if (
            [type(argument) for argument in fluent.arguments] != shape
            or not isinstance(fluent.value, Atom)
            or (not pair and not 1 <= len(shape) <= 2)
        ):
            raise Faulty(
                fluent.place,
                Message(
                    "{name} gives {entities}: write variables for them and a constant value",
                    name=how.name,
                    entities=Message("two entities") if pair else Message("an entity (and an area)"),
                ),
            )
        region = names[1] if how.name == "inside" else ""
        if how.name == "inside":
            self._check_region(region, len(fluent.arguments), how.place)
        slot = int(numbers[-1]) if how.name != "distance" else 0
        self.spatial.append(SpatialFluent(fluent, how.name, names[0], numbers[0], slot, region, head.place))  # type: ignore[arg-type]

    def _check_region(self, region: str, arity: int, place: Place) -> None:
        if self.regions is None:
            return
        if arity == 1:
            wanted: list[tuple[str, Place]] = [(region, place)]
        else:
            rows = self.facts.get((region, 2), [])
            if not rows:
                raise Faulty(place, Message("there is no table of facts {region}(Area, Region)", region=region))
            wanted = [(str(row[1]), row[1].place) for row in rows]
        for name, where in wanted:
            if name not in self.regions:
                self._fault(where, unknown(Message("stored region"), name, self.regions))

    # -- finishing -----------------------------------------------------------------------------------------------

    def _finish(self) -> Program:
        deadlines = Deadlines(self.facts, self.extends, self._fault).of(self.fi)
        program = Program(
            tuple(self.point_rules), tuple(self.interval_rules), tuple(map(self._ordered_start, self.initially)), deadlines,
            {name: tuple(rules) for name, rules in self.groundings.items()}, tuple(self.domains),
            {indicator: tuple(rows) for indicator, rows in self.facts.items()}, tuple(self.spatial), dict(self.inputs), tuple(self.outputs),
        )  # fmt: skip
        program = self._with_implied_inputs(program)
        checker = Checker(program, self.expander, self._fault)
        checker.check()
        for output, place in self.outputs.items():
            checker.output(output, place)
        for pattern, place in checker.reads:
            self._check_given(pattern, place)
        self._unread(checker)
        self._groundings_of_inputs(program)
        return replace(program, notices=tuple(sorted(self.notices, key=lambda one: (one.place.line, one.place.column))))

    def _check_given(self, pattern: FluentPattern, place: Place) -> None:
        """What is read of an input fluent must be among the values that the text declares of it."""
        declared = self.given_values.get(pattern.indicator)
        if declared is None or not isinstance(pattern.value, Atom | Number):
            return
        values = {symbol_name(one.value) if isinstance(one.value, Atom | Number) else None for one in declared}
        if None not in values and symbol_name(pattern.value) not in values:
            name = pattern.name
            self._fault(
                place,
                Message(
                    "{name}={value} is not declared: the inputs {name} have {values}",
                    name=name,
                    value=pattern.value,
                    values=", ".join(sorted(filter(None, values))),
                ),
            )

    def _groundings_of_inputs(self, program: Program) -> None:
        """Of an input that is known anyhow a grounding says where members of dynamic domains are named; without such a domain it changes nothing."""
        for name, rules in self.groundings.items():
            for rule in rules:
                indicator = (name.lstrip("="), len(rule.terms) - name.startswith("="))
                facts = facts_of(rule.body)
                if indicator not in self.inputs or indicator in program.fluents | program.events or any(f.indicator in self.domains for f in facts):
                    continue
                over = all_of([as_it_is(written(f"{fact.name}({', '.join(map(str, fact.arguments))})")) for fact in facts])
                what = written(f"{indicator[0]}({', '.join(map(str, rule.terms))})")
                self._notice(
                    rule.place,
                    Message(
                        "the grounding of the input {input} over {over}; rows say what happens, and no domain grows by it",
                        input=what,
                        over=over or Message("nothing"),
                    ),
                )

    def _unread(self, checker: Checker) -> None:
        """What stands in the text and no condition reads: a fact may stand there unused, anything else is a mistake."""
        for head, body in self.expander.definitions:
            if head.indicator in self.expander.called:
                continue
            if any(isinstance(term, Compound) for term in head.arguments) or _is_misspelt(*head.indicator) or any(map(_is_of_time, body)):
                self._fault(
                    head.place,
                    Message("{fault}; as a background rule no condition calls it", fault=unknown(Message("kind of rule"), head.name, HEADS)),
                )
            else:
                self._notice(head.place, Message("the background rule {head}; no condition calls it", head=shown(head)))
        read = checker.facts_read | {fact.indicator for clause in self.fi for fact in facts_of(clause.conditions)}
        for indicator in [*self.facts, *self.domains]:
            if indicator in read:
                continue
            name, arity = called(indicator[0]), indicator[1]
            place = self.fact_places.get(indicator) or self.domains[indicator]
            if _is_misspelt(name, arity):
                self._fault(place, unknown(Message("kind of rule"), name, HEADS))
            else:
                count = len(self.facts.get(indicator, ()))
                if count > 1:
                    self._notice(place, Message("{count:,} facts {name}/{arity}; no condition reads them", count=count, name=name, arity=arity))
                elif count:
                    self._notice(place, Message("{count} fact {name}/{arity}; no condition reads it", count=count, name=name, arity=arity))
                else:
                    self._notice(place, Message("the domain {name}/{arity}; no condition reads it", name=name, arity=arity))

    def _with_implied_inputs(self, program: Program) -> Program:
        """Names with a grounding but no rule are inputs: RTEC's users declare their inputs that way."""
        inputs = dict(self.inputs)
        defined = program.fluents | program.events
        for name, rules in self.groundings.items():
            for rule in rules:
                arity = len(rule.terms) - (1 if name.startswith("=") else 0)
                indicator = (name.lstrip("="), arity)
                if indicator not in defined and called(indicator[0]) not in {called(known) for known, _ in [*defined, *inputs]}:
                    inputs[indicator] = INTERVALS if name.startswith("=") else EVENT
        return replace(program, inputs=inputs)


def _left_to_groundings(rule: PointRule) -> tuple[Declared, ...]:
    """What binds the variables of a head that its conditions need and no condition binds."""
    bound = bound_by(rule.body)
    open_ = {term.name for term in rule.terms if isinstance(term, Variable)} - bound
    needed = set().union(*(literal_variables(literal) for literal in rule.body if isinstance(literal, Negation | Count | Comparison | Assignment)))
    key = rule.name if rule.kind == "event" else "=" + rule.name
    return (Declared(key, rule.terms, rule.place),) if open_ & needed else ()


def _is_misspelt(name: str, arity: int) -> bool:
    """Whether the name of facts that nothing reads may be that of a rule or a declaration."""
    heads = {head.lower() for known in (_RULE_HEADS, _DECLARATIONS) for head, arities in known.items() if arity in arities}
    return bool(difflib.get_close_matches(name.lower(), heads, n=1, cutoff=0.8))


def _is_of_time(literal: Term) -> bool:
    """Whether a condition, or one in it, speaks of events or fluents."""
    return isinstance(literal, Compound) and (literal.name in builtins.CONDITIONS or any(map(_is_of_time, literal.arguments)))
