"""Clauses to a checked program: every fault is found here, with its place, so that running discovers nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from engine.event_calculus import builtins
from engine.event_calculus.expansion import Expander
from engine.event_calculus.ordering import Unsafe, order_body
from engine.event_calculus.parser import Problem, ProgramRefused, parse
from engine.event_calculus.syntax import (
    Assignment,
    Comparison,
    Construct,
    Deadline,
    Edge,
    Fact,
    FluentPattern,
    Grounding,
    Happens,
    HoldsAt,
    Indicator,
    IntervalLiteral,
    IntervalRule,
    Literal,
    Negation,
    NonEmpty,
    PointRule,
    Retrieve,
    SpatialFluent,
    literal_variables,
)  # fmt: skip
from engine.event_calculus.terms import (
    CUT,
    NEGATION,
    Atom,
    Clause,
    Compound,
    ListTerm,
    Number,
    Place,
    Term,
    Variable,
    conjuncts,
    variables,
)

MAX_RULES = 2_000
MAX_FACTS = 200_000
MAX_LITERALS = 60
MAX_ARGUMENTS = 8

EVENT, POINTS, INTERVALS = "event", "points", "intervals"
"""How rows state an input: at instants, at single ticks, over [t, t_end)."""

_RULE_HEADS = {"initiatedAt": 2, "terminatedAt": 2, "initiates": 3, "terminates": 3, "happensAt": 2, "holdsFor": 2, "initially": 1}
_IGNORED_DECLARATIONS = frozenset(
    [
        "index",
        "cachingOrder",
        "cachingOrder2",
        "event",
        "simpleFluent",
        "sDFluent",
        "inputEntity",
        "needsGrounding",
        "cyclic",
        "collectGrounds",
        "dgrounded",
    ]
)
_DECLARATIONS = frozenset(
    ["grounding", "dynamicDomain", "outputEntity", "points", "collectIntervals", "buildFromPoints", "fi", "p", "spatial", *_IGNORED_DECLARATIONS]
)


@dataclass(frozen=True)
class Program:
    """A program without faults. Rules are numbered in reading order; `number` is their place in a screen's list."""

    point_rules: tuple[PointRule, ...] = ()
    interval_rules: tuple[IntervalRule, ...] = ()
    initially: tuple[FluentPattern, ...] = ()
    deadlines: tuple[Deadline, ...] = ()
    groundings: Mapping[str, tuple[Grounding, ...]] = field(default_factory=dict)
    domains: tuple[Indicator, ...] = ()
    facts: Mapping[Indicator, tuple[tuple[Term, ...], ...]] = field(default_factory=dict)
    spatial: tuple[SpatialFluent, ...] = ()
    inputs: Mapping[Indicator, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()

    @property
    def fluents(self) -> set[Indicator]:
        simple = {rule.indicator for rule in self.point_rules if rule.kind != "event"} | {pattern.indicator for pattern in self.initially}
        return simple | {rule.head.indicator for rule in self.interval_rules} | {spatial.fluent.indicator for spatial in self.spatial}

    @property
    def simple_fluents(self) -> set[Indicator]:
        return {rule.indicator for rule in self.point_rules if rule.kind != "event"} | {pattern.indicator for pattern in self.initially}

    @property
    def events(self) -> set[Indicator]:
        return {rule.indicator for rule in self.point_rules if rule.kind == "event"}


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
        self.initially: list[FluentPattern] = []
        self.groundings: dict[str, list[Grounding]] = {}
        self.domains: dict[Indicator, None] = {}
        self.outputs: dict[str, None] = {}
        self.fi: list[tuple[FluentPattern, FluentPattern, Term, tuple[Term, ...], Place]] = []
        self.extends: list[FluentPattern] = []
        self.spatial: list[SpatialFluent] = []
        self.expander = Expander(self._fault)

    def _fault(self, place: Place, message: str) -> None:
        self.problems.append(Problem(place, message))

    # -- reading -------------------------------------------------------------------------------------------------

    def read(self) -> Program:
        heads = [clause for clause in self.clauses if self._is_rule_of_ours(clause)]
        for clause in self.clauses:
            if clause.head is not None and clause not in heads:
                self._background(clause)
        self.expander.facts = set(self.facts)
        for clause in heads:
            try:
                self._clause(clause)
            except _Faulty as faulty:
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
                self._fault(clause.place, "directives are not run; only dynamic, discontiguous and multifile are accepted (and ignored)")
            return False
        return isinstance(head, Compound) and (head.name in _RULE_HEADS or head.name in _DECLARATIONS)

    def _background(self, clause: Clause) -> None:
        head = clause.head
        if not isinstance(head, Compound):
            self._fault(clause.place, f"a clause must start with a name and arguments, not {head}")
            return
        if len(head.arguments) > MAX_ARGUMENTS:
            self._fault(clause.place, f"{head.name} has {len(head.arguments)} arguments; at most {MAX_ARGUMENTS} are allowed")
        elif head.name in builtins.RESERVED:
            self._fault(clause.place, f"{head.name}/{len(head.arguments)} is built in and cannot be defined")
        elif clause.body is not None:
            self.expander.define(head, clause.body)
        elif all(isinstance(argument, Atom | Number) for argument in head.arguments):
            self.facts.setdefault(head.indicator, []).append(head.arguments)
            if len(self.facts[head.indicator]) == MAX_FACTS + 1:
                self._fault(clause.place, f"more than {MAX_FACTS:,} facts {head.name}/{len(head.arguments)}")
        else:
            self.expander.define(head, None)

    def _clause(self, clause: Clause) -> None:
        head = clause.head
        assert isinstance(head, Compound)
        arity = _RULE_HEADS.get(head.name)
        if arity is None:
            self._declaration(head, clause)
            return
        if head.name == "holdsFor" and len(head.arguments) == 3:
            head = Compound(head.name, head.arguments[1:], head.place)
        if len(head.arguments) != arity:
            raise _Faulty(head.place, f"{head.name} takes {arity} arguments, not {len(head.arguments)}")
        for body in self.expander.alternatives(clause.body, clause.place):
            if len(body) > MAX_LITERALS:
                raise _Faulty(head.place, f"a rule may have {MAX_LITERALS} conditions; this one has {len(body)}")
            self._rule(head, body)
        if len(self.point_rules) + len(self.interval_rules) > MAX_RULES:
            raise _Faulty(head.place, f"more than {MAX_RULES:,} rules after expansion")

    def _rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        if head.name in ("initiates", "terminates"):
            event, fluent, time = head.arguments
            body = (Compound("happensAt", (event, time), head.place), *body)
            head = Compound("initiatedAt" if head.name == "initiates" else "terminatedAt", (fluent, time), head.place)
        if head.name == "holdsFor":
            self._interval_rule(head, body)
        elif head.name == "initially":
            if body:
                raise _Faulty(head.place, "initially takes no conditions")
            self.initially.append(_fluent(head.arguments[0]))
        else:
            self._point_rule(head, body)

    def _point_rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        time = _time(head.arguments[1])
        number = len(self.point_rules) + len(self.interval_rules)
        literals = tuple(_literal(term) for term in body)
        if head.name == "happensAt":
            name, terms = _event(head.arguments[0])
            rule = PointRule("event", name, terms, time, literals, head.place, number)
        else:
            fluent = _fluent(head.arguments[0])
            rule = PointRule("initiate" if head.name == "initiatedAt" else "terminate", fluent.name, fluent.terms, time, literals, head.place, number)
        self.point_rules.append(self._ordered(rule))

    def _ordered(self, rule: PointRule) -> PointRule:
        """The rule with its body in an order that can be evaluated; its time must come from an event of the body."""
        if not any(isinstance(literal, Happens | Edge) and literal.time == rule.time for literal in rule.body):
            raise _Faulty(rule.place, f"the body must hold happensAt(_, {rule.time}): an event that fixes the time")
        try:
            return replace(rule, body=order_body(rule.body, set()))
        except Unsafe as unsafe:
            raise _Faulty(unsafe.place, unsafe.message) from None

    def _interval_rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        fluent = _fluent(head.arguments[0])
        number = len(self.point_rules) + len(self.interval_rules)
        out = head.arguments[1]
        if isinstance(out, ListTerm) and not out.items:
            return  # holdsFor(F=V, []): "otherwise none", which is what no rule says anyway
        if not isinstance(out, Variable):
            raise _Faulty(head.place, f"the second argument of holdsFor must be a variable, not {out}")
        intervals, conditions = _interval_body(body, out.name)
        known: set[str] = set()
        for literal in intervals:
            for name in _lists_read(literal):
                if name not in known:
                    raise _Faulty(literal.place, f"the list {name} is used before anything is bound to it")
            if isinstance(literal, Retrieve | Construct):
                if literal.out in known:
                    raise _Faulty(literal.place, f"the list {literal.out} is bound twice")
                known.add(literal.out)
        if out.name not in known:
            raise _Faulty(head.place, f"nothing binds the list {out.name}")
        self.interval_rules.append(IntervalRule(fluent, intervals, conditions, out.name, head.place, number))

    # -- declarations --------------------------------------------------------------------------------------------

    def _declaration(self, head: Compound, clause: Clause) -> None:
        name, arguments = head.name, head.arguments
        if isinstance(clause.body, Atom) and clause.body.name == "fail":
            return
        if name in _IGNORED_DECLARATIONS:
            if name == "inputEntity" and arguments and not isinstance(arguments[0], Variable):
                self._declare_input(arguments[0], None)
            return
        if name in ("points", "buildFromPoints"):
            self._declare_input(arguments[0], POINTS)
        elif name == "collectIntervals":
            self._declare_input(arguments[0], INTERVALS)
        elif name == "outputEntity":
            self.outputs[_name(arguments[0])] = None
        elif name == "dynamicDomain":
            domain = arguments[0]
            if not isinstance(domain, Compound):
                raise _Faulty(head.place, "dynamicDomain takes a name with arguments, as in dynamicDomain(vessel(_))")
            self.domains[domain.indicator] = None
        elif name == "grounding":
            for body in self.expander.alternatives(clause.body, clause.place):
                target, terms = _ground_target(arguments[0])
                literals = tuple(_literal(term) for term in body)
                self.groundings.setdefault(target, []).append(Grounding(target, terms, literals, head.place))
        elif name == "fi":
            self._deadline(head, clause)
        elif name == "p":
            self.extends.append(_fluent(arguments[0]))
        elif name == "spatial":
            self._spatial(head)

    def _declare_input(self, term: Term, kind: str | None) -> None:
        if isinstance(term, Variable):
            return
        if isinstance(term, Compound) and term.name == "=":
            indicator = _fluent(term).indicator
        else:
            name, terms = _event(term)
            indicator, kind = (name, len(terms)), kind or EVENT
        self.inputs.setdefault(indicator, kind or INTERVALS)
        if kind == POINTS and indicator not in self.mapped:
            self.inputs[indicator] = POINTS

    def _deadline(self, head: Compound, clause: Clause) -> None:
        if len(head.arguments) != 3:
            raise _Faulty(head.place, "fi takes F=V, F=W and a duration")
        before, after = _fluent(head.arguments[0]), _fluent(head.arguments[1])
        if before.name != after.name or before.arguments != after.arguments:
            raise _Faulty(head.place, "fi must name one fluent with the same arguments twice, with two values")
        conditions = tuple(term for term in conjuncts(clause.body) if not (isinstance(term, Compound) and term.name == "grounding"))
        self.fi.append((before, after, head.arguments[2], conditions, head.place))

    def _spatial(self, head: Compound) -> None:
        usage = "write spatial(F=V, distance(Position, D)), proximity(Position, D, Slot) or inside(Position, Region, MaxGap)"
        if len(head.arguments) != 2 or not isinstance(head.arguments[1], Compound):
            raise _Faulty(head.place, usage)
        fluent, how = _fluent(head.arguments[0]), head.arguments[1]
        numbers = [argument.value for argument in how.arguments if isinstance(argument, Number)]
        names = [argument.name for argument in how.arguments if isinstance(argument, Atom)]
        shapes = {"distance": (1, 1), "proximity": (1, 2), "inside": (2, 1)}
        if shapes.get(how.name) != (len(names), len(numbers)) or any(number <= 0 for number in numbers):
            raise _Faulty(how.place, usage)
        pair = how.name != "inside"
        shape = [Variable] * (2 if pair else len(fluent.arguments))
        if (
            [type(argument) for argument in fluent.arguments] != shape
            or not isinstance(fluent.value, Atom)
            or (not pair and not 1 <= len(shape) <= 2)
        ):
            raise _Faulty(
                fluent.place,
                f"{how.name} gives {'two entities' if pair else 'an entity (and an area)'}: write variables for them and a constant value",
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
                raise _Faulty(place, f"there is no table of facts {region}(Area, Region)")
            wanted = [(str(row[1]), row[1].place) for row in rows]
        for name, where in wanted:
            if name not in self.regions:
                self._fault(where, _unknown("stored region", name, self.regions))

    # -- finishing -----------------------------------------------------------------------------------------------

    def _finish(self) -> Program:
        deadlines = tuple(deadline for entry in self.fi if (deadline := self._resolved(entry)) is not None)
        program = Program(
            tuple(self.point_rules), tuple(self.interval_rules), tuple(self.initially), deadlines,
            {name: tuple(rules) for name, rules in self.groundings.items()}, tuple(self.domains),
            {indicator: tuple(rows) for indicator, rows in self.facts.items()}, tuple(self.spatial), dict(self.inputs), tuple(self.outputs),
        )  # fmt: skip
        program = self._with_implied_inputs(program)
        _Checker(program, self.expander, self._fault).check()
        return program

    def _with_implied_inputs(self, program: Program) -> Program:
        """Names with a grounding but no rule are inputs: RTEC's users declare their inputs that way."""
        inputs = dict(self.inputs)
        defined = program.fluents | program.events
        for name, rules in self.groundings.items():
            for rule in rules:
                arity = len(rule.terms) - (1 if name.startswith("=") else 0)
                indicator = (name.lstrip("="), arity)
                if indicator not in defined and not any(known[0] == indicator[0] for known in [*defined, *inputs]):
                    inputs[indicator] = INTERVALS if name.startswith("=") else EVENT
        return replace(program, inputs=inputs)

    def _resolved(self, entry: tuple[FluentPattern, FluentPattern, Term, tuple[Term, ...], Place]) -> Deadline | None:
        before, after, delay, conditions, place = entry
        value = delay.value if isinstance(delay, Number) else None
        for condition in conditions:
            if value is None and isinstance(condition, Compound) and isinstance(delay, Variable):
                value = self._constant(condition, delay)
        if value is None or value <= 0 or value != int(value):
            self._fault(place, "the duration of a deadline must be a positive whole number, or a variable that one fact fixes")
            return None
        extends = any(pattern.indicator == before.indicator and str(pattern.value) == str(before.value) for pattern in self.extends)
        return Deadline(before.indicator, before.value, after.value, int(value), extends, place)

    def _constant(self, condition: Compound, wanted: Variable) -> float | None:
        """The number the only matching fact gives `wanted`."""
        found = set()
        for row in self.facts.get(condition.indicator, []):
            if all(isinstance(term, Variable) or str(term) == str(given) for term, given in zip(condition.arguments, row, strict=True)):
                found |= {given.value for term, given in zip(condition.arguments, row, strict=True) if term == wanted and isinstance(given, Number)}
        return found.pop() if len(found) == 1 else None


class _Faulty(Exception):
    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    shown = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
    return f"unknown {what} {name!r}{hint} Known: {shown or 'none'}"


# -- terms to literals ---------------------------------------------------------------------------------------------


def _simple(term: Term, *, what: str) -> Term:
    if isinstance(term, Variable | Atom | Number):
        return term
    raise _Faulty(term.place, f"{what} must be a variable, a name or a number, not {term}")


def _name(term: Term) -> str:
    if isinstance(term, Compound) and term.name == "=":
        term = term.arguments[0]
    if isinstance(term, Compound | Atom):
        return term.name
    raise _Faulty(term.place, f"expected a fluent or an event, not {term}")


def _fluent(term: Term) -> FluentPattern:
    """`name(arguments)=value`."""
    if not (isinstance(term, Compound) and term.name == "="):
        raise _Faulty(term.place, f"expected a fluent with its value, as in near(A, B)=true, not {term}")
    head, value = term.arguments
    name, arguments = _event(head)
    return FluentPattern(name, arguments, _simple(value, what="the value of a fluent"), head.place)


def _event(term: Term) -> tuple[str, tuple[Term, ...]]:
    if isinstance(term, Atom):
        return term.name, ()
    if isinstance(term, Compound) and term.name not in builtins.OPERATORS:
        if len(term.arguments) > MAX_ARGUMENTS:
            raise _Faulty(term.place, f"{term.name} has {len(term.arguments)} arguments; at most {MAX_ARGUMENTS} are allowed")
        return term.name, tuple(_simple(argument, what=f"an argument of {term.name}") for argument in term.arguments)
    raise _Faulty(term.place, f"expected a name with arguments, not {term}")


def _ground_target(term: Term) -> tuple[str, tuple[Term, ...]]:
    """Key and terms of what a grounding is about; the key of a fluent starts with '='."""
    if isinstance(term, Compound) and term.name == "=":
        fluent = _fluent(term)
        return "=" + fluent.name, fluent.terms
    return _event(term)


def _time(term: Term) -> str:
    if isinstance(term, Variable):
        return term.name
    raise _Faulty(term.place, f"the time must be a variable, not {term}")


def _literal(term: Term) -> Literal:
    """A condition of a rule over time points."""
    if isinstance(term, Compound):
        if term.name == NEGATION:
            inner = term.arguments[0]
            return Negation(tuple(_literal(part) for part in conjuncts(inner)), term.place)
        if term.name in ("happensAt", "holdsAt"):
            if len(term.arguments) != 2:
                raise _Faulty(term.place, f"{term.name} takes 2 arguments, not {len(term.arguments)}")
            time = _time(term.arguments[1])
            if term.name == "holdsAt":
                return HoldsAt(_fluent(term.arguments[0]), time, term.place)
            event = term.arguments[0]
            if isinstance(event, Compound) and event.name in ("start", "end") and len(event.arguments) == 1:
                return Edge("start" if event.name == "start" else "end", _fluent(event.arguments[0]), time, term.place)
            name, arguments = _event(event)
            return Happens(name, arguments, time, event.place)
        if term.name == "is":
            if not isinstance(term.arguments[0], Variable):
                return Comparison("=:=", _expression(term.arguments[0]), _expression(term.arguments[1]), term.place)
            return Assignment(term.arguments[0].name, _expression(term.arguments[1]), term.place)
        if term.name in builtins.NUMERIC_COMPARISONS:
            return Comparison(term.name, _expression(term.arguments[0]), _expression(term.arguments[1]), term.place)
        if term.name in builtins.TERM_COMPARISONS:
            left, right = (_simple(side, what="a side of a comparison") for side in term.arguments)
            return Comparison(term.name, left, right, term.place)
        if term.name == "absoluteAngleDiff" and len(term.arguments) == 3:
            angle = Compound("angle_difference", tuple(_expression(side) for side in term.arguments[:2]), term.place)
            target = term.arguments[2]
            return (
                Assignment(target.name, angle, term.place)
                if isinstance(target, Variable)
                else Comparison("=:=", angle, _expression(target), term.place)
            )
        if term.name in ("holdsFor", "initiatedAt", "terminatedAt", "initially"):
            raise _Faulty(term.place, f"{term.name} cannot be a condition here")
        name, arguments = _event(term)
        return Fact(name, arguments, term.place)
    raise _Faulty(term.place, f"{term} is not a condition")


def _expression(term: Term) -> Term:
    """Checks an arithmetic expression."""
    if isinstance(term, Number | Variable):
        return term
    if isinstance(term, Atom) and term.name in builtins.CONSTANTS:
        return term
    if isinstance(term, Compound) and (arity := builtins.FUNCTIONS.get(term.name)) is not None:
        if len(term.arguments) not in arity:
            raise _Faulty(term.place, f"{term.name} does not take {len(term.arguments)} arguments")
        return Compound(term.name, tuple(_expression(argument) for argument in term.arguments), term.place)
    known = [name for name in builtins.FUNCTIONS if name.isidentifier()]
    raise _Faulty(term.place, _unknown("arithmetic", term.name if isinstance(term, Atom | Compound) else str(term), known))


# -- interval bodies -----------------------------------------------------------------------------------------------

_UNARY = {"union_all": 0, "intersect_all": 0, "complement_all": 0}


def _interval_body(body: tuple[Term, ...], out: str) -> tuple[tuple[IntervalLiteral, ...], tuple[Literal, ...]]:
    intervals: list[IntervalLiteral] = []
    conditions: list[Literal] = []
    aliases: dict[str, str] = {}
    for term in body:
        if isinstance(term, Atom) and term.name == CUT:
            continue
        literal = _interval_literal(term, intervals, aliases)
        if literal is None:
            conditions.append(_literal(term))
    renamed = tuple(_renamed(literal, aliases) for literal in intervals)
    for condition in conditions:
        if isinstance(condition, Happens | Edge | HoldsAt) or (
            isinstance(condition, Negation) and any(isinstance(part, Happens | Edge | HoldsAt) for part in condition.body)
        ):
            raise _Faulty(condition.place, "happensAt and holdsAt have a time; they cannot be conditions of holdsFor")
    return renamed, tuple(conditions)


def _renamed(literal: IntervalLiteral, aliases: Mapping[str, str]) -> IntervalLiteral:
    if isinstance(literal, Construct):
        return replace(literal, inputs=tuple(aliases.get(name, name) for name in literal.inputs), out=aliases.get(literal.out, literal.out))
    if isinstance(literal, Retrieve):
        return replace(literal, out=aliases.get(literal.out, literal.out))
    return replace(literal, list=aliases.get(literal.list, literal.list))


def _interval_literal(term: Term, into: list[IntervalLiteral], aliases: dict[str, str]) -> bool | None:
    """Appends the interval literal `term` is, if it is one."""
    if not isinstance(term, Compound):
        return None
    inner, negated = term, False
    if term.name == NEGATION and isinstance(term.arguments[0], Compound):
        inner, negated = term.arguments[0], True
    if inner.name in ("=", "\\=", "==", "\\==") and any(isinstance(side, ListTerm) for side in inner.arguments):
        side = next((side for side in inner.arguments if isinstance(side, Variable)), None)
        if side is None or any(isinstance(other, ListTerm) and other.items for other in inner.arguments):
            raise _Faulty(inner.place, "lists can only be compared with []")
        empty = inner.name in ("=", "==")
        into.append(NonEmpty(side.name, empty != negated, term.place))
        return True
    bound = {literal.out for literal in into if isinstance(literal, Retrieve | Construct)}
    if inner.name == "=" and not negated and all(isinstance(side, Variable) for side in inner.arguments):
        names = [side.name for side in inner.arguments if isinstance(side, Variable)]
        for new, old in (names, names[::-1]):
            if old in bound and new not in bound:
                aliases[new] = old
                return True
        return None
    if negated:
        if inner.name == "holdsFor":
            raise _Faulty(term.place, "holdsFor cannot be negated; use complement_all or compare its list with []")
        return None
    if inner.name == "holdsFor":
        arguments = inner.arguments[1:] if len(inner.arguments) == 3 else inner.arguments
        if len(arguments) != 2 or not isinstance(arguments[1], Variable):
            raise _Faulty(inner.place, "holdsFor takes a fluent with its value and a variable for its list")
        into.append(Retrieve(_fluent(arguments[0]), arguments[1].name, inner.place))
        return True
    construct = _construct(inner)
    if construct is None:
        return None
    into.append(construct)
    return True


def _construct(term: Compound) -> Construct | None:
    name, arguments = term.name, term.arguments
    if name in _UNARY:
        _expect(term, 2)
        return Construct(name, _lists(arguments[0]), _list(arguments[1]), term.place)
    if name == "relative_complement_all":
        _expect(term, 3)
        return Construct(name, (_list(arguments[0]), *_lists(arguments[1])), _list(arguments[2]), term.place)
    if name == "intDurGreater":
        _expect(term, 3)
        return Construct("longer_than", (_list(arguments[0]),), _list(arguments[2]), term.place, amount=_expression(arguments[1]))
    if name == "impliedSpeedBelow":
        _expect(term, 4)
        position, places = _event(arguments[1])
        return Construct(
            "slower_than", (_list(arguments[0]),), _list(arguments[3]), term.place, amount=_expression(arguments[2]),
            position=Happens(position, places, "", arguments[1].place),
        )  # fmt: skip
    if name == "allen" or name in builtins.ALLEN:
        return _allen(term)
    return None


def _allen(term: Compound) -> Construct:
    arguments = term.arguments
    if term.name == "allen":
        _expect(term, 5, 6)
        relation = _name(arguments[0])
        if relation not in builtins.ALLEN:
            raise _Faulty(term.place, _unknown("Allen relation", relation, builtins.ALLEN))
        arguments = arguments[1:]
    else:
        _expect(term, 4, 5)
        relation = term.name
    mode = _name(arguments[2])
    if mode not in builtins.ALLEN_MODES:
        raise _Faulty(term.place, _unknown("output mode", mode, builtins.ALLEN_MODES))
    return Construct(
        "allen", (_list(arguments[0]), _list(arguments[1])), _list(arguments[-1]), term.place, relation=relation, mode=builtins.ALLEN_MODES[mode]
    )


def _expect(term: Compound, *arities: int) -> None:
    if len(term.arguments) not in arities:
        raise _Faulty(term.place, f"{term.name} takes {' or '.join(map(str, arities))} arguments, not {len(term.arguments)}")


def _list(term: Term) -> str:
    if isinstance(term, Variable):
        return term.name
    raise _Faulty(term.place, f"expected a variable that stands for a list of intervals, not {term}")


def _lists(term: Term) -> tuple[str, ...]:
    if isinstance(term, ListTerm) and term.items:
        return tuple(_list(item) for item in term.items)
    if isinstance(term, Variable):
        return (term.name,)
    raise _Faulty(term.place, "expected a list of variables, as in [I1, I2]")


def _lists_read(literal: IntervalLiteral) -> tuple[str, ...]:
    if isinstance(literal, Construct):
        return literal.inputs
    return (literal.list,) if isinstance(literal, NonEmpty) else ()


# -- checks of the whole -------------------------------------------------------------------------------------------


class _Checker:
    """Names, arities, safety of heads, hierarchy."""

    def __init__(self, program: Program, expander: Expander, fault) -> None:  # type: ignore[no-untyped-def]
        self.program = program
        self.expander = expander
        self.fault = fault
        self.events = program.events | {indicator for indicator, kind in program.inputs.items() if kind == EVENT}
        self.fluents = program.fluents | {indicator for indicator, kind in program.inputs.items() if kind != EVENT}
        self.facts = set(program.facts) | set(program.domains)

    def check(self) -> None:
        from engine.event_calculus.levels import check_hierarchy

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
                self.fault(spatial.place, _unknown("event that gives positions", spatial.position, {name for name, _ in self.events}))
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
        self.fault(place, _unknown(what, indicator[0], {name for name, _ in known}))

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
        from engine.event_calculus.candidates import NotCovered, alternatives

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
