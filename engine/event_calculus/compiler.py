"""Clauses to a checked program: every fault is found here, with its place, so that running discovers nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.event_calculus import builtins
from engine.event_calculus.checks import Checker
from engine.event_calculus.expansion import Expander
from engine.event_calculus.interval_bodies import interval_body, lists_read
from engine.event_calculus.literals import (
    MAX_ARGUMENTS,
    Faulty,
    event_pattern,
    fluent_pattern,
    ground_target,
    is_near,
    literal_of,
    name_of,
    time_variable,
    unknown,
)
from engine.event_calculus.ordering import Unsafe, order_body
from engine.event_calculus.parser import Problem, ProgramRefused, parse
from engine.event_calculus.program import EVENT, INTERVALS, POINTS, Program
from engine.event_calculus.shapes import called
from engine.event_calculus.syntax import (
    Construct,
    Deadline,
    Edge,
    FluentPattern,
    Grounding,
    Happens,
    Indicator,
    Initially,
    IntervalRule,
    PointRule,
    Retrieve,
    SpatialFluent,
    timed,
)  # fmt: skip
from engine.event_calculus.tables import symbol_name
from engine.event_calculus.terms import Atom, Clause, Compound, ListTerm, Number, Place, Term, Variable, conjuncts, variables

MAX_RULES = 2_000
MAX_FACTS = 200_000
MAX_LITERALS = 60

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
        elif any(isinstance(argument, Compound) for argument in head.arguments) and is_near(head.name, _RULE_HEADS):
            self._fault(clause.place, unknown("kind of rule", head.name, _RULE_HEADS))
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
        rows = self.facts.setdefault(indicator, [])
        rows.append(arguments)
        if len(rows) == MAX_FACTS + 1:
            self._fault(head.place, f"more than {MAX_FACTS:,} facts {indicator[0]}/{indicator[1]}")

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
            raise Faulty(head.place, f"{head.name} takes {arity} arguments, not {len(head.arguments)}")
        for body in self.expander.alternatives(clause.body, clause.place):
            if len(body) > MAX_LITERALS:
                raise Faulty(head.place, f"a rule may have {MAX_LITERALS} conditions; this one has {len(body)}")
            self._rule(head, body)
        if len(self.point_rules) + len(self.interval_rules) > MAX_RULES:
            raise Faulty(head.place, f"more than {MAX_RULES:,} rules after expansion")

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
        literals = tuple(literal_of(term) for term in body)
        for literal in timed(literals):
            raise Faulty(literal.place, "initially speaks of the beginning: its conditions are facts, comparisons and arithmetic, without a time")
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
        literals = tuple(literal_of(term) for term in body)
        if head.name == "happensAt":
            name, terms = event_pattern(head.arguments[0])
            rule = PointRule("event", name, terms, time, literals, head.place, number)
        else:
            fluent = fluent_pattern(head.arguments[0])
            rule = PointRule("initiate" if head.name == "initiatedAt" else "terminate", fluent.name, fluent.terms, time, literals, head.place, number)
        self.point_rules.append(self._ordered(rule))

    def _ordered(self, rule: PointRule) -> PointRule:
        """The rule with its body in an order that can be evaluated; its time must come from an event of the body."""
        if not any(isinstance(literal, Happens | Edge) and literal.time == rule.time for literal in rule.body):
            raise Faulty(rule.place, f"the body must hold happensAt(_, {rule.time}): an event that fixes the time")
        try:
            return replace(rule, body=order_body(rule.body, set()))
        except Unsafe as unsafe:
            raise Faulty(unsafe.place, unsafe.message) from None

    def _interval_rule(self, head: Compound, body: tuple[Term, ...]) -> None:
        fluent = fluent_pattern(head.arguments[0])
        number = len(self.point_rules) + len(self.interval_rules)
        out = head.arguments[1]
        if isinstance(out, ListTerm) and not out.items:
            return  # holdsFor(F=V, []): "otherwise none", which is what no rule says anyway
        if not isinstance(out, Variable):
            raise Faulty(head.place, f"the second argument of holdsFor must be a variable, not {out}")
        intervals, conditions = interval_body(body, out.name)
        known: set[str] = set()
        for literal in intervals:
            for name in lists_read(literal):
                if name not in known:
                    raise Faulty(literal.place, f"the list {name} is used before anything is bound to it")
            if isinstance(literal, Retrieve | Construct):
                if literal.out in known:
                    raise Faulty(literal.place, f"the list {literal.out} is bound twice")
                known.add(literal.out)
        if out.name not in known:
            raise Faulty(head.place, f"nothing binds the list {out.name}")
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
            self.outputs[name_of(arguments[0])] = None
        elif name == "dynamicDomain":
            domain = arguments[0]
            if not isinstance(domain, Compound):
                raise Faulty(head.place, "dynamicDomain takes a name with arguments, as in dynamicDomain(vessel(_))")
            self.domains[domain.indicator] = None
        elif name == "grounding":
            for body in self.expander.alternatives(clause.body, clause.place):
                target, terms = ground_target(arguments[0])
                literals = tuple(literal_of(term) for term in body)
                self.groundings.setdefault(target, []).append(Grounding(target, terms, literals, head.place))
        elif name == "fi":
            self._deadline(head, clause)
        elif name == "p":
            self.extends.append(fluent_pattern(arguments[0]))
        elif name == "spatial":
            self._spatial(head)

    def _declare_input(self, term: Term, kind: str | None) -> None:
        if isinstance(term, Variable):
            return
        if isinstance(term, Compound) and term.name == "=":
            indicator = fluent_pattern(term).indicator
        else:
            name, terms = event_pattern(term)
            indicator, kind = (name, len(terms)), kind or EVENT
        self.inputs.setdefault(indicator, kind or INTERVALS)
        if kind == POINTS and indicator not in self.mapped:
            self.inputs[indicator] = POINTS

    def _deadline(self, head: Compound, clause: Clause) -> None:
        if len(head.arguments) != 3:
            raise Faulty(head.place, "fi takes F=V, F=W and a duration")
        before, after = fluent_pattern(head.arguments[0]), fluent_pattern(head.arguments[1])
        if before.name != after.name or before.arguments != after.arguments:
            raise Faulty(head.place, "fi must name one fluent with the same arguments twice, with two values")
        names = [term.name for term in before.arguments if isinstance(term, Variable)]
        if len(set(names)) < len(names):
            raise Faulty(head.place, "the arguments of fi are different variables and constants")
        for value in (before.value, after.value):
            if isinstance(value, Variable):
                raise Faulty(value.place, "the values of fi are constants")
        conditions = tuple(term for term in conjuncts(clause.body) if not (isinstance(term, Compound) and term.name == "grounding"))
        self.fi.append((before, after, head.arguments[2], conditions, head.place))

    def _spatial(self, head: Compound) -> None:
        usage = "write spatial(F=V, distance(Position, D)), proximity(Position, D, Slot) or inside(Position, Region, MaxGap)"
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
                raise Faulty(place, f"there is no table of facts {region}(Area, Region)")
            wanted = [(str(row[1]), row[1].place) for row in rows]
        for name, where in wanted:
            if name not in self.regions:
                self._fault(where, unknown("stored region", name, self.regions))

    # -- finishing -----------------------------------------------------------------------------------------------

    def _finish(self) -> Program:
        deadlines = tuple(deadline for entry in self.fi if (deadline := self._resolved(entry)) is not None)
        program = Program(
            tuple(self.point_rules), tuple(self.interval_rules), tuple(map(self._ordered_start, self.initially)), deadlines,
            {name: tuple(rules) for name, rules in self.groundings.items()}, tuple(self.domains),
            {indicator: tuple(rows) for indicator, rows in self.facts.items()}, tuple(self.spatial), dict(self.inputs), tuple(self.outputs),
        )  # fmt: skip
        program = self._with_implied_inputs(program)
        Checker(program, self.expander, self._fault).check()
        return program

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

    def _resolved(self, entry: tuple[FluentPattern, FluentPattern, Term, tuple[Term, ...], Place]) -> Deadline | None:
        before, after, delay, conditions, place = entry
        value = delay.value if isinstance(delay, Number) else None
        for condition in conditions:
            if value is None and isinstance(condition, Compound) and isinstance(delay, Variable):
                value = self._only_number(condition, delay)
        if value is None or value <= 0 or value != int(value):
            self._fault(place, "the duration of a deadline must be a positive whole number, or a variable that one fact fixes")
            return None
        return Deadline(before.indicator, before.arguments, before.value, after.value, int(value), self._extends(before, place), place)

    def _extends(self, before: FluentPattern, place: Place) -> bool:
        """Whether p is declared for what a deadline speaks of: for all of it, or for none."""
        for pattern in self.extends:
            pairs = list(zip(pattern.terms, before.terms, strict=True)) if pattern.indicator == before.indicator else []
            names = [tuple(symbol_name(term) if isinstance(term, Atom | Number) else None for term in pair) for pair in pairs]
            if not pairs or any(one is not None and other is not None and one != other for one, other in names):
                continue
            if any(one is not None and other is None for one, other in names):
                self._fault(place, f"p({pattern}) speaks of some groundings of {before} only; write a deadline for them and one for the others")
            return True
        return False

    def _only_number(self, condition: Compound, wanted: Variable) -> float | None:
        """The number the only matching fact gives `wanted`."""
        found = set()
        for row in self.facts.get(condition.indicator, []):
            if all(isinstance(term, Variable) or str(term) == str(given) for term, given in zip(condition.arguments, row, strict=True)):
                found |= {given.value for term, given in zip(condition.arguments, row, strict=True) if term == wanted and isinstance(given, Number)}
        return found.pop() if len(found) == 1 else None
