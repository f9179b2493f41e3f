"""The event calculus point by point: a fluent is the set of ticks at which it holds.

Nothing here is clever. Conditions are satisfied by trying everything, as Prolog would; all fluents are computed again and again from
what the round before found until nothing changes. One window that holds the whole stream; times are whole numbers, the tick is 1.

Inputs: `events` {(name, arguments): {t, ...}}, `points` {(name, arguments, value): {t, ...}},
`intervals` {(name, arguments, value): [(s, e), ...]}. Ticks run from `first` to `last`; what holds at last + 1 is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.event_calculus.program import Program
from engine.event_calculus.syntax import (
    Assignment,
    Comparison,
    Construct,
    Edge,
    Fact,
    FluentPattern,
    Happens,
    HoldsAt,
    IntervalRule,
    Negation,
    NonEmpty,
    PointRule,
    Retrieve,
)  # fmt: skip
from engine.event_calculus.terms import Atom, Compound, Number, Term, Variable

Key = tuple[str, tuple[str, ...], str]
"""Fluent, arguments, value."""
Binding = dict[str, Any]


@dataclass
class PointByPoint:
    program: Program
    first: int
    last: int
    events: dict[tuple[str, tuple[str, ...]], set[int]] = field(default_factory=dict)
    points: dict[Key, set[int]] = field(default_factory=dict)
    intervals: dict[Key, list[tuple[int, int]]] = field(default_factory=dict)
    dialect: str = "rtec"
    listed: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)

    def answer(self) -> dict[Key, set[int]]:
        """The ticks of every fluent-value pair that holds at some tick, inputs included."""
        given = self._given()
        holds, happens = dict(given), dict(self.events)
        while True:
            self.holds, self.happens = holds, happens
            next_happens = self._computed_events()
            next_holds = dict(given)
            for name, arity in sorted({rule.indicator for rule in self.program.point_rules if rule.kind != "event"}):
                next_holds.update(self._simple(name, arity))
            for rule in self.program.interval_rules:
                for key, ticks in self._derived(rule):
                    next_holds[key] = next_holds.get(key, set()) | ticks
            next_holds = {key: ticks for key, ticks in next_holds.items() if ticks and (key in given or self._is_declared(key))}
            if next_holds == holds and next_happens == happens:
                return holds
            holds, happens = next_holds, next_happens

    @property
    def universe(self) -> range:
        return range(self.first, self.last + 2)

    def _given(self) -> dict[Key, set[int]]:
        given: dict[Key, set[int]] = {}
        for key, ticks in self.points.items():
            given[key] = set(ticks) | ({self.last + 1} if self.last in ticks else set())
        for key, spans in self.intervals.items():
            given[key] = given.get(key, set()) | {t for s, e in spans for t in range(max(s, self.first), e)}
        return {key: ticks for key, ticks in given.items() if ticks}

    # -- conditions ------------------------------------------------------------------------------------------------

    def satisfy(self, body: Sequence[Any], binding: Binding) -> Iterator[Binding]:
        if not body:
            yield binding
            return
        for extended in self._one(body[0], binding):
            yield from self.satisfy(body[1:], extended)

    def _one(self, literal: Any, binding: Binding) -> Iterator[Binding]:
        if isinstance(literal, Happens):
            for (name, arguments), times in self.happens.items():
                if name == literal.name and len(arguments) == len(literal.arguments):
                    for t in times:
                        yield from self._unify([*literal.arguments, literal.time], [*arguments, t], binding)
        elif isinstance(literal, Edge):
            for key in self.holds:
                for t in self._edges(key, literal.kind):
                    yield from self._unify_fluent(literal.fluent, key, [literal.time], [t], binding)
        elif isinstance(literal, HoldsAt):
            for key, ticks in self.holds.items():
                for extended in self._unify_fluent(literal.fluent, key, [], [], binding):
                    if extended[literal.time] in ticks:
                        yield extended
        elif isinstance(literal, Fact):
            for row in self.program.facts.get(literal.indicator, ()):
                yield from self._unify(literal.arguments, [str(term) for term in row], binding)
        elif isinstance(literal, Comparison):
            yield from self._compared(literal, binding)
        elif isinstance(literal, Assignment):
            yield {**binding, literal.variable: arithmetic(literal.expression, binding)}
        else:
            assert isinstance(literal, Negation)
            if not any(True for _ in self.satisfy(literal.body, binding)):
                yield binding

    def _compared(self, literal: Comparison, binding: Binding) -> Iterator[Binding]:
        if literal.operator == "=":
            yield from self._unify([literal.left], [text(literal.right, binding)], binding) if isinstance(literal.left, Variable) else []
            return
        if literal.operator in ("\\=", "@<"):
            left, right = text(literal.left, binding), text(literal.right, binding)
            holds = left != right if literal.operator == "\\=" else left < right
        else:
            a, b = arithmetic(literal.left, binding), arithmetic(literal.right, binding)
            holds = {"<": a < b, ">": a > b, "=<": a <= b, ">=": a >= b, "=:=": a == b, "=\\=": a != b}[literal.operator]
        if holds:
            yield binding

    def _edges(self, key: Key, kind: str) -> list[int]:
        ticks, shift = self.holds[key], 1 if self.dialect == "rtec" else 0
        if kind == "start":
            return [t - shift for t in ticks if t - 1 not in ticks]
        return [t + 1 - shift for t in ticks if t + 1 not in ticks and t <= self.last]

    def _unify_fluent(self, pattern: FluentPattern, key: Key, more: list[str], given: list[int], binding: Binding) -> Iterator[Binding]:
        name, arguments, value = key
        if name == pattern.name and len(arguments) == len(pattern.arguments):
            yield from self._unify([*pattern.arguments, pattern.value, *more], [*arguments, value, *given], binding)

    @staticmethod
    def _unify(terms: Sequence[Any], values: Sequence[Any], binding: Binding) -> Iterator[Binding]:
        extended = dict(binding)
        for term, value in zip(terms, values, strict=True):
            name = term if isinstance(term, str) else term.name if isinstance(term, Variable) else None
            if name is None:
                if str(term) != value:
                    return
            elif extended.setdefault(name, value) != value:
                return
        yield extended

    # -- declared groundings ---------------------------------------------------------------------------------------

    def _declared(self, name: str) -> set[tuple[str, ...]]:
        """Arguments and values that grounding declarations of a fluent list; each must be listed by facts alone."""
        if name not in self.listed:
            rules = self.program.groundings["=" + name]
            self.listed[name] = {tuple(text(term, binding) for term in rule.terms) for rule in rules for binding in self.satisfy(rule.body, {})}
        return self.listed[name]

    def _is_declared(self, key: Key) -> bool:
        name, arguments, value = key
        return "=" + name not in self.program.groundings or (*arguments, value) in self._declared(name)

    def _grounded(self, name: str, terms: Sequence[Term], binding: Binding) -> Iterator[Binding]:
        """A binding with what it leaves open of `terms` bound by the declared groundings."""
        if all(not isinstance(term, Variable) or term.name in binding for term in terms):
            yield binding
        elif "=" + name in self.program.groundings:
            for row in self._declared(name):
                yield from self._unify(terms, row, binding)

    # -- fluents ---------------------------------------------------------------------------------------------------

    def _computed_events(self) -> dict[tuple[str, tuple[str, ...]], set[int]]:
        found = {key: set(times) for key, times in self.events.items()}
        for rule in self.program.point_rules:
            if rule.kind == "event":
                for binding in self.satisfy(rule.body, {}):
                    key = (rule.name, tuple(text(term, binding) for term in rule.terms))
                    found.setdefault(key, set()).add(binding[rule.time])
        return found

    def _simple(self, name: str, arity: int) -> Iterator[tuple[Key, set[int]]]:
        """state(t + 1) = not broken(t) and (initiated(t) or state(t)), value by value, for every grounding that is ever initiated."""
        initiated: dict[tuple[tuple[str, ...], str], set[int]] = {}
        for rule in self._rules(name, arity, "initiate"):
            for binding in self.satisfy(rule.body, {}):
                for grounded in self._grounded(name, rule.terms, binding):
                    key = tuple(text(term, grounded) for term in rule.terms[:-1]), text(rule.terms[-1], grounded)
                    initiated.setdefault(key, set()).add(grounded[rule.time])
        start = set(self._start(name, arity))
        for arguments in sorted({arguments for arguments, _ in [*initiated, *start]}):
            yield from self._grounding(
                name, arity, arguments, {v: ts for (a, v), ts in initiated.items() if a == arguments}, {v for a, v in start if a == arguments}
            )

    def _start(self, name: str, arity: int) -> Iterator[tuple[tuple[str, ...], str]]:
        """What holds from 0: declared groundings are tried one by one, else what the conditions bind."""
        for start in self.program.initially:
            if start.indicator == (name, arity):
                terms = start.fluent.terms
                open_ = {term.name for term in terms if isinstance(term, Variable)}
                first = self._grounded(name, terms, {}) if open_ and "=" + name in self.program.groundings else iter([{}])
                for binding in first:
                    for extended in self.satisfy(start.body, binding):
                        yield tuple(text(term, extended) for term in terms[:-1]), text(terms[-1], extended)

    def _rules(self, name: str, arity: int, kind: str) -> list[PointRule]:
        return [rule for rule in self.program.point_rules if rule.kind == kind and rule.indicator == (name, arity)]

    def _grounding(
        self, name: str, arity: int, arguments: tuple[str, ...], initiated: dict[str, set[int]], at_start: set[str]
    ) -> Iterator[tuple[Key, set[int]]]:
        deadlines = [d for d in self.program.deadlines if d.fluent == (name, arity) and any(True for _ in self._unify(d.arguments, arguments, {}))]
        values = {*initiated, *at_start, *(str(v) for d in deadlines for v in (d.before, d.after))}
        terminated = {value: self._terminations(name, arity, arguments, value) for value in values}
        ticks: dict[str, set[int]] = {value: set() for value in values}
        begun: dict[str, list[int]] = {value: [] for value in values}
        broken: dict[str, list[int]] = {value: [] for value in values}
        for t in range(self.first - 1, self.last + 1):
            # What holds from 0 was initiated at -1.
            now = {value for value in values if t in initiated.get(value, set())} | (at_start if t == -1 else set())
            for deadline in deadlines:
                before = str(deadline.before)
                due = [b for b in begun[before] if b + deadline.delay == t and not any(b < x < t for x in broken[before])]
                again = any(b < x for b in due for x in begun[before]) or before in now
                if due and not (deadline.extends and again):
                    now = now | {str(deadline.after)}
            for value in values:
                ends = t in terminated[value] or bool(now - {value})
                if ends:
                    broken[value].append(t)
                if not ends and (value in now or t in ticks[value]):
                    ticks[value].add(t + 1)
                if value in now:
                    begun[value].append(t)
        for value in values:
            yield (name, arguments, value), ticks[value]

    def _terminations(self, name: str, arity: int, arguments: tuple[str, ...], value: str) -> set[int]:
        """Times at which some rule ends this grounding's value: a variable no condition binds stands for anything."""
        found = set()
        for rule in self._rules(name, arity, "terminate"):
            for binding in self.satisfy(rule.body, {}):
                fits = all(
                    (isinstance(term, Variable) and term.name not in binding) or text(term, binding) == wanted
                    for term, wanted in zip(rule.terms, (*arguments, value), strict=True)
                )
                if fits:
                    found.add(binding[rule.time])
        return found

    def _derived(self, rule: IntervalRule) -> Iterator[tuple[Key, set[int]]]:
        """Every way to bind the rule's variables to names that occur anywhere."""
        names = sorted({v.name for part in rule.intervals if isinstance(part, Retrieve) for v in part.fluent.terms if isinstance(v, Variable)})
        known = sorted({name for _, arguments, value in self.holds for name in (*arguments, value)})
        for binding in _bindings(names, known):
            for satisfied in self.satisfy(rule.conditions, binding):
                for extended in self._grounded(rule.head.name, rule.head.terms, satisfied):
                    ticks = self._algebra(rule, extended)
                    if ticks:
                        yield (rule.head.name, tuple(text(t, extended) for t in rule.head.arguments), text(rule.head.value, extended)), ticks

    def _algebra(self, rule: IntervalRule, binding: Binding) -> set[int]:
        lists: dict[str, set[int]] = {}
        for part in rule.intervals:
            if isinstance(part, Retrieve):
                key = (part.fluent.name, tuple(text(t, binding) for t in part.fluent.arguments), text(part.fluent.value, binding))
                lists[part.out] = {t for t in self.holds.get(key, set()) if t >= self.first}
            elif isinstance(part, NonEmpty):
                if bool(lists[part.list]) == part.negated:
                    return set()
            else:
                lists[part.out] = self._construct(part, [lists[name] for name in part.inputs], binding)
        return lists[rule.out]

    def _construct(self, construct: Construct, inputs: list[set[int]], binding: Binding) -> set[int]:
        if construct.operator == "union_all":
            return set().union(*inputs)
        if construct.operator == "intersect_all":
            return set.intersection(*inputs)
        if construct.operator == "relative_complement_all":
            return inputs[0].difference(*inputs[1:])
        if construct.operator == "complement_all":
            return set(self.universe).difference(*inputs)
        if construct.operator == "longer_than":
            amount = arithmetic(construct.amount, binding)
            # An open interval (it reaches last + 2, the end of the universe) has lasted until now, which is `last`.
            return {t for s, e in runs(inputs[0]) if (self.last if e > self.last + 1 else e) - s > amount for t in range(s, e)}
        source, target = runs(inputs[0]), runs(inputs[1])
        related = [(i, j) for i in source for j in target if allen(construct.relation, *i, *j, self.last + 2)]
        i_ticks = {t for (s, e), _ in related for t in range(s, e)}
        j_ticks = {t for _, (s, e) in related for t in range(s, e)}
        return {
            "source": i_ticks, "target": j_ticks, "union": i_ticks | j_ticks, "intersection": i_ticks & j_ticks,
            "relative_complement": i_ticks - j_ticks, "relative_complement_inverse": j_ticks - i_ticks,
        }[construct.mode]  # fmt: skip


def allen(relation: str, s1: int, e1: int, s2: int, e2: int, infinite: int) -> bool:
    """RTEC's relations between half-open intervals; an end of `infinite` is open."""
    return {
        "before": e1 <= s2 and e1 < infinite,
        "meets": e1 < infinite and e1 - 1 == s2 and s1 != s2,
        "starts": s1 == s2 and e1 < e2,
        "finishes": s1 > s2 and e1 == e2,
        "during": s1 > s2 and e1 < e2,
        "overlaps": s1 < s2 < e1 < e2,
        "equal": s1 == s2 and e1 == e2,
    }[relation]


def runs(ticks: set[int]) -> list[tuple[int, int]]:
    """Maximal intervals [s, e) of a set of ticks."""
    return [(t, next(e for e in range(t, t + len(ticks) + 2) if e not in ticks)) for t in sorted(ticks) if t - 1 not in ticks]


def text(term: Term, binding: Binding) -> str:
    return str(binding[term.name]) if isinstance(term, Variable) else str(term)


def arithmetic(term: Term | None, binding: Binding) -> float:
    if isinstance(term, Variable):
        return float(binding[term.name])
    if isinstance(term, Number):
        return term.value
    if isinstance(term, Atom):
        return float(term.name)
    assert isinstance(term, Compound)
    operands = [arithmetic(argument, binding) for argument in term.arguments]
    if term.name == "abs":
        return abs(operands[0])
    return {"+": sum(operands), "-": operands[0] - operands[-1], "*": operands[0] * operands[-1]}[term.name]


def _bindings(names: Sequence[str], values: Sequence[str]) -> Iterator[Binding]:
    if not names:
        yield {}
        return
    for value in values:
        for rest in _bindings(names[1:], values):
            yield {names[0]: value, **rest}
