"""The event calculus point by point, from a program's text: a fluent is the set
of ticks at which it holds.

Written from specification 5.6 and the CAVIAR definitions, section 1; only the terms come from
the project's parser. Nothing here is optimised. Conditions are satisfied by trying everything, like
Prolog; all fluents are computed repeatedly from the results of the previous round until nothing
changes. One window contains the whole stream; times are whole numbers, the tick is 1, time begins
at `begin`.

Inputs: `events` {(name, arguments): {t, ...}}, `points` {(name, arguments, value): {t,
...}}, `intervals` {(name, arguments, value): [(s, e), ...]}. Ticks run to `last`; what
holds at last + 1 is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.event_calculus.parser import parse
from engine.event_calculus.terms import Atom, Clause, Compound, ListTerm, Term, Variable
from tests.oracles.event_calculus_terms import (
    COMPARISONS,
    Binding,
    Key,
    Rule,
    alternatives,
    arithmetic,
    assignments,
    binds,
    compared,
    conjuncts,
    flat,
    match,
    match_all,
    match_each,
    match_flat,
    match_fluent,
    match_fluent_terms,
    match_term,
    names_of,
    names_of_all,
    negated,
    rule_of,
    spelt,
    text,
    unify,
    unique,
    value_of,
)

Happened = tuple[str, tuple[str, ...]]
POINT_RULES = {"initiatedAt": "initiate", "terminatedAt": "terminate", "initiates": "initiate", "terminates": "terminate", "happensAt": "event"}


@dataclass
class PointByPoint:
    text: str
    last: int
    begin: int = 0
    events: dict[Happened, set[int]] = field(default_factory=dict)
    points: dict[Key, set[int]] = field(default_factory=dict)
    intervals: dict[Key, list[tuple[int, int]]] = field(default_factory=dict)
    dialect: str = "rtec"

    def __post_init__(self) -> None:
        self.rules: dict[str, list[Rule]] = {"initiate": [], "terminate": [], "event": [], "derived": [], "initially": [], "grounding": []}
        self.deadlines: list[tuple[Rule, Rule, Term, bool]] = []
        self.extends: list[Rule] = []
        self.background: dict[tuple[str, int], list[Clause]] = {}
        for clause in parse(self.text):
            self._read(clause)

    def _read(self, clause: Clause) -> None:
        head, body = clause.head, tuple(conjuncts(clause.body))
        if not isinstance(head, Compound):
            return
        name, arguments = head.name, head.arguments
        if name in POINT_RULES:
            time = arguments[2 if len(arguments) == 4 else -1]
            if name in ("initiates", "terminates"):
                body = (Compound("happensAt", (arguments[0], time), head.location), *body)
                arguments = arguments[1:]
            assert isinstance(time, Variable)
            self.rules[POINT_RULES[name]] += [rule_of(arguments[0], time.name, one) for one in alternatives(body)]
        elif name == "holdsFor":
            self.rules["derived"].append(rule_of(arguments[-2], str(arguments[-1]), body))
        elif name in ("initially", "grounding"):
            self.rules[name].append(rule_of(arguments[0], "", body))
        elif name in ("fi", "maxDuration", "maxDurationUE"):
            before, after = rule_of(arguments[0], "", body), rule_of(arguments[1], "", body)
            self.deadlines.append((before, after, arguments[2], name == "maxDurationUE"))
        elif name == "p" and isinstance(arguments[0], Compound) and arguments[0].name == "=":
            self.extends.append(rule_of(arguments[0], "", ()))
        else:
            self.background.setdefault(head.indicator, []).append(clause)

    @cached_property
    def constants(self) -> set[str]:
        """The names in background knowledge."""
        heads = [clause.head for clauses in self.background.values() for clause in clauses]
        return {text(term) for head in heads if isinstance(head, Compound) for term in head.arguments if isinstance(term, Atom)}

    @property
    def defined(self) -> set[str]:
        return {rule.name for kind in ("initiate", "derived", "initially") for rule in self.rules[kind]}

    def answer(self) -> dict[Key, set[int]]:
        """The ticks of every fluent-value pair that holds at some tick, inputs included;
        `happens` are then all events."""
        given = self._given()
        holds, happens, initiated = dict(given), dict(self.events), dict[Key, set[int]]()
        for _ in range(1_000):
            self.holds, self.happens, self.initiated = holds, happens, initiated
            next_happens = self._computed_events()
            next_holds, next_initiated = self._simple_fluents()
            for rule in self.rules["derived"]:
                for key, ticks in self._derived(rule):
                    next_holds[key] = next_holds.get(key, set()) | ticks
            shown = {key: ticks for key, ticks in next_holds.items() if ticks and self._is_declared(key)}
            next_holds = given | shown
            if next_holds == holds and next_happens == happens and next_initiated == initiated:
                return holds
            holds, happens, initiated = next_holds, next_happens, next_initiated
        raise AssertionError("the rounds do not end")

    def _given(self) -> dict[Key, set[int]]:
        given: dict[Key, set[int]] = {}
        for key, ticks in self.points.items():
            given[key] = set(ticks) | ({self.last + 1} if self.last in ticks else set())
        for key, spans in self.intervals.items():
            given[key] = given.get(key, set()) | {t for s, e in spans for t in range(max(s, self.begin), e)}
        return {key: ticks for key, ticks in given.items() if ticks}

    # -- conditions --------------------------------------------------------------------------------

    def satisfy(self, body: Sequence[Term], binding: Binding) -> Iterator[Binding]:
        """Every way to satisfy all of `body`: one condition after the other, each as soon
        as its variables are bound."""
        if not body:
            yield binding
            return
        place = next((n for n, one in enumerate(body) if self._ready(one, binding, [*body[:n], *body[n + 1 :]])), None)
        assert place is not None, f"nothing binds the variables of {', '.join(map(str, body))}"
        for extended in self._one(body[place], binding, body):
            yield from self.satisfy((*body[:place], *body[place + 1 :]), extended)

    @staticmethod
    def _ready(literal: Term, binding: Binding, others: Sequence[Term]) -> bool:
        if not isinstance(literal, Compound):
            return True
        open_ = names_of(literal) - binding.keys()
        if literal.name == "=":
            return sum(isinstance(side, Variable) and side.name not in binding for side in literal.arguments) < 2
        if literal.name == "is":
            return not names_of(literal.arguments[1]) - binding.keys()
        if literal.name in COMPARISONS or literal.name in ("inRange", "absoluteAngleDiff"):
            return not open_
        if literal.name in ("\\+", "findall"):
            bindable = set[str]().union(*(binds(one) for one in others)) if others else set()
            return not open_ & bindable
        if literal.name == "length":
            return str(literal.arguments[0]) in binding
        return literal.name != "holdsAt" or str(literal.arguments[1]) in binding

    def _one(self, literal: Term, binding: Binding, body: Sequence[Term]) -> Iterator[Binding]:
        if isinstance(literal, Atom):
            assert literal.name in ("!", "true")
            yield binding
            return
        assert isinstance(literal, Compound)
        name, arguments = literal.name, literal.arguments
        if name == "happensAt":
            event = arguments[0]
            if isinstance(event, Compound) and event.indicator in (("start", 1), ("end", 1)):
                for key in self.holds:
                    for extended in match_fluent(event.arguments[0], key, binding):
                        for t in self._edges(key, event.name):
                            yield from match(arguments[1], t, extended)
                return
            for (other, given), times in self.happens.items():
                for extended in match_all(event, (other, *given), binding):
                    for t in times:
                        yield from match(arguments[1], t, extended)
        elif name == "holdsAt":
            for key, ticks in self.holds.items():
                for extended in match_fluent(arguments[0], key, binding):
                    if extended[str(arguments[1])] in ticks:
                        yield extended
        elif name == "initiatedAt":
            for key, ticks in self.initiated.items():
                for extended in match_fluent(arguments[0], key, binding) if self._is_declared(key) else ():
                    for t in ticks:
                        yield from match(arguments[2 if len(arguments) == 4 else 1], t, extended)
        elif name == "\\+":
            if not any(True for _ in self.satisfy(conjuncts(arguments[0]), binding)):
                yield binding
        elif name == ";":
            for part in arguments:
                yield from self.satisfy(conjuncts(part), binding)
        elif name == "findall":
            found = {spelt(arguments[0], one) for one in self.satisfy(conjuncts(arguments[1]), binding)}
            yield {**binding, str(arguments[2]): found}
        elif name == "length":
            yield from match(arguments[1], str(len(binding[str(arguments[0])])), binding)
        elif name in COMPARISONS:
            yield from compared(name, arguments, binding)
        else:
            yield from self._called(literal, binding)

    def _called(self, call: Compound, binding: Binding) -> Iterator[Binding]:
        """Background knowledge: facts and rules."""
        seen = []
        for clause in self.background.get(call.indicator, ()):
            assert isinstance(clause.head, Compound)
            local: list[Binding] = [{}]
            for formal, actual in zip(clause.head.arguments, call.arguments, strict=True):
                if not names_of(actual) - binding.keys():
                    local = [more for one in local for more in match_term(formal, value_of(actual, binding), one)]
            for one in local:
                for solved in self.satisfy(tuple(conjuncts(clause.body)), one):
                    extended = [binding]
                    for formal, actual in zip(clause.head.arguments, call.arguments, strict=True):
                        extended = [more for known in extended for more in match_term(actual, value_of(formal, solved), known)]
                    seen += [new for new in extended if new not in seen]
        yield from seen

    def _edges(self, key: Key, kind: str) -> list[int]:
        ticks, shift = self.holds[key], 1 if self.dialect == "rtec" else 0
        if kind == "start":
            return [t - shift for t in ticks if t - 1 not in ticks]
        return [t + 1 - shift for t in ticks if t + 1 not in ticks and t <= self.last]

    # -- declared groundings -----------------------------------------------------------------------

    def _groundings(self, rule: Rule) -> list[Rule]:
        """The declarations of a fluent, or an event, of this name."""
        return [one for one in self.rules["grounding"] if one.name == rule.name and (one.value is None) == (rule.value is None)]

    def _of_head(self, rule: Rule) -> list[Binding]:
        """The head's variables as the groundings that it can have bind them; the declared ones that
        cannot be listed are left out."""
        found = []
        for declared in self._groundings(rule):
            if unify(rule.terms, declared.terms):
                for solved in self.satisfy(declared.body, {}):
                    for known in match_each(rule.terms, [value_of(term, solved) for term in declared.terms], {}):
                        found.append(known)
        return found

    def _is_declared(self, key: Key) -> bool:
        declared = [one for one in self.rules["grounding"] if one.name == key[0] and one.value is not None]
        if not declared:
            return True
        for one in declared:
            for known in match_fluent_terms(one.arguments, one.value, key):
                if any(True for _ in self.satisfy(one.body, known)):
                    return True
        return False

    # -- rules over points -------------------------------------------------------------------------

    def _computed_events(self) -> dict[Happened, set[int]]:
        found = {key: set(times) for key, times in self.events.items()}
        for rule in self.rules["event"]:
            declared = self._groundings(rule)
            for start in self._of_head(rule) if declared else [{}]:
                for binding in self.satisfy(rule.body, start):
                    key = (rule.name, flat(rule.arguments, binding))
                    found.setdefault(key, set()).add(binding[rule.time])
        return found

    def _points(self, rule: Rule, begun: Iterable[tuple[str, ...]]) -> Iterator[Binding]:
        """Ways to satisfy a rule of a simple fluent: what its conditions do not bind is declared,
        or a grounding that has begun."""
        open_ = set[str]().union(*(names_of(term) for term in rule.terms)) - set[str]().union(*(binds(one) for one in rule.body))
        if not open_:
            yield from self.satisfy(rule.body, {})
            return
        starts = self._of_head(rule)
        value = rule.value
        if not (isinstance(value, Variable) and value.name in open_ and value.name in negated(rule.body)):
            starts += [known for arguments in begun for known in match_flat(rule.arguments, arguments, {})]
        for start in unique(starts):
            yield from self.satisfy(rule.body, start)

    def _simple_fluents(self) -> tuple[dict[Key, set[int]], dict[Key, set[int]]]:
        holds: dict[Key, set[int]] = {}
        started: dict[Key, set[int]] = {}
        kinds = {rule.name for kind in ("initiate", "initially") for rule in self.rules[kind]}
        for name in sorted(kinds):
            initiated: dict[tuple[tuple[str, ...], str], set[int]] = {}
            at_start = set(self._start(name))
            begun = {arguments for (other, arguments, _) in self.initiated if other == name} | {arguments for arguments, _ in at_start}
            for rule in self.rules["initiate"]:
                if rule.name == name:
                    for binding in self._points(rule, begun):
                        if not names_of_all(rule.terms) - binding.keys():
                            key = flat(rule.arguments, binding), spelt(rule.value, binding)
                            initiated.setdefault(key, set()).add(binding[rule.time])
            for arguments in sorted({arguments for arguments, _ in [*initiated, *at_start]} | begun):
                own = {v: ts for (a, v), ts in initiated.items() if a == arguments}
                for value, ticks, moments in self._grounding(name, arguments, own, {v for a, v in at_start if a == arguments}, begun):
                    holds[name, arguments, value] = ticks
                    if moments:
                        started[name, arguments, value] = moments
        return holds, started

    def _start(self, name: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """The groundings that hold from the beginning: the declared ones, else those that the
        conditions bind."""
        for rule in self.rules["initially"]:
            if rule.name == name:
                for start in self._of_head(rule) if self._groundings(rule) else [{}]:
                    for binding in self.satisfy(rule.body, start):
                        if not names_of_all(rule.terms) - binding.keys():
                            yield flat(rule.arguments, binding), spelt(rule.value, binding)

    def _durations(self, name: str, arguments: tuple[str, ...]) -> list[tuple[str, str, int, bool]]:
        """The deadlines of one grounding: value before, value after, duration, whether a
        new initiation extends it."""
        found = []
        for before, after, delay, until_extended in self.deadlines:
            values = spelt(before.value, {}), spelt(after.value, {})
            if before.name != name or any(self._pattern_declared(name, v) and not self._is_declared((name, arguments, v)) for v in values):
                continue
            for known in match_flat(before.arguments, arguments, {}):
                extends = until_extended or any(
                    one.name == name and spelt(one.value, {}) == values[0] and list(match_flat(one.arguments, arguments, {})) for one in self.extends
                )
                found += [(*values, int(arithmetic(delay, solved)), extends) for solved in self.satisfy(before.body, known)]
        return list(dict.fromkeys(found))

    def _pattern_declared(self, name: str, value: str) -> bool:
        """Whether there is a declaration for F=V."""
        return any(
            one.name == name and one.value is not None and (isinstance(one.value, Variable) or spelt(one.value, {}) == value)
            for one in self.rules["grounding"]
        )

    def _grounding(
        self, name: str, arguments: tuple[str, ...], initiated: dict[str, set[int]], at_start: set[str], begun: set[tuple[str, ...]]
    ) -> Iterator[tuple[str, set[int], set[int]]]:
        """state(t + 1) = not broken(t) and (initiated(t) or state(t)), value by value."""
        deadlines = self._durations(name, arguments)
        values = {*initiated, *at_start, *(v for d in deadlines for v in d[:2])}
        terminated = {value: self._terminations(name, arguments, value, begun) for value in values}
        ticks: dict[str, set[int]] = {value: set() for value in values}
        made: dict[str, list[int]] = {value: [] for value in values}
        broken: dict[str, list[int]] = {value: [] for value in values}
        for t in range(self.begin - 1, self.last + 1):
            # What holds from the beginning was initiated one tick before.
            now = {value for value in values if t in initiated.get(value, set())} | (at_start if t == self.begin - 1 else set())
            for before, after, delay, extends in deadlines:
                due = [b for b in made[before] if b + delay == t and not any(b < x < t for x in broken[before])]
                again = any(b < x for b in due for x in made[before]) or before in now
                if due and not extends:
                    # Only the first initiation before a deadline counts.
                    due = [b for b in due if not any(x < b < x + delay and not any(x < y <= b for y in broken[before]) for x in made[before])]
                if due and not (extends and again):
                    now = now | {after}
            for value in values:
                ends = t in terminated[value] or bool(now - {value})
                if ends:
                    broken[value].append(t)
                if not ends and (value in now or t in ticks[value]):
                    ticks[value].add(t + 1)
                if value in now:
                    made[value].append(t)
        for value in values:
            yield value, ticks[value], {t for t in made[value] if t >= self.begin}

    def _terminations(self, name: str, arguments: tuple[str, ...], value: str, begun: set[tuple[str, ...]]) -> set[int]:
        """Times at which some rule ends this grounding's value; an unbound variable matches
        anything."""
        found = set()
        for rule in self.rules["terminate"]:
            if rule.name == name:
                for binding in self._points(rule, begun | {arguments}):
                    for known in match_flat(rule.arguments, arguments, binding):
                        if list(match(rule.value, value, known)):
                            found.add(binding[rule.time])
        return found

    # -- rules over intervals ----------------------------------------------------------------------

    def _derived(self, rule: Rule) -> Iterator[tuple[Key, set[int]]]:
        """Every way to bind the rule's variables: by declared groundings, else to
        names that occur anywhere."""
        if rule.time == "[]":
            return
        lists = [one for one in rule.body if isinstance(one, Compound) and one.name == "holdsFor"]
        conditions = [one for one in rule.body if not self._of_lists(one, rule)]
        names = names_of_all(rule.terms).union(*(names_of(one.arguments[-2]) for one in lists))
        known = {name for _, arguments, value in self.holds for name in (*arguments, value)} | self.constants
        for start in self._of_head(rule) if self._groundings(rule) else [{}]:
            for binding in assignments(sorted(names - start.keys()), sorted(known), start):
                for satisfied in self.satisfy(conditions, binding):
                    if ticks := self._algebra(rule, satisfied):
                        yield (rule.name, flat(rule.arguments, satisfied), spelt(rule.value, satisfied)), ticks

    @staticmethod
    def _of_lists(literal: Term, rule: Rule) -> bool:
        """Whether a condition is about lists of intervals."""
        inner = literal.arguments[0] if isinstance(literal, Compound) and literal.name == "\\+" else literal
        if not isinstance(inner, Compound):
            return False
        return inner.name in LISTS or any(isinstance(side, ListTerm) for side in inner.arguments)

    def _algebra(self, rule: Rule, binding: Binding) -> set[int]:
        lists: dict[str, set[int]] = {}
        for literal in rule.body:
            if not self._of_lists(literal, rule):
                continue
            assert isinstance(literal, Compound)
            name, arguments = literal.name, literal.arguments
            if name == "holdsFor":
                made: set[int] = set()
                for key, ticks in self.holds.items():
                    if list(match_fluent(arguments[-2], key, binding)):
                        made |= {t for t in ticks if t >= self.begin}
                lists[str(arguments[-1])] = made
            elif name in ("\\+", "=", "\\=", "==", "\\=="):
                inner = literal.arguments[0] if name == "\\+" else literal
                assert isinstance(inner, Compound)
                side = next(str(side) for side in inner.arguments if isinstance(side, Variable))
                empty = (inner.name in ("=", "==")) != (name == "\\+")
                if bool(lists[side]) == empty:
                    return set()
            else:
                result = self._construct(literal, lists, binding)
                if result is None:
                    return set()
                lists[str(arguments[-1])] = result
        return lists[rule.time]

    def _construct(self, literal: Compound, lists: dict[str, set[int]], binding: Binding) -> set[int] | None:
        """The result of a construct; null where its sixth argument means that the rule gives
        nothing."""
        name, arguments = literal.name, literal.arguments
        first = arguments[0]
        inputs = [lists[str(one)] for one in first.items] if isinstance(first, ListTerm) else []
        if name == "union_all":
            return set[int]().union(*inputs)
        if name == "intersect_all":
            return set.intersection(*inputs)
        if name == "complement_all":
            return set(range(self.begin, self.last + 2)).difference(*inputs)
        if name == "relative_complement_all":
            others = arguments[1]
            assert isinstance(others, ListTerm)
            return lists[str(first)].difference(*(lists[str(one)] for one in others.items))
        if name == "intDurGreater":
            amount = arithmetic(arguments[1], binding)
            # An open interval (it reaches last + 2, the end of the universe) has lasted
            # until now, which is `last`.
            return {t for s, e in runs(lists[str(first)]) if (self.last if e > self.last + 1 else e) - s > amount for t in range(s, e)}
        relation, *arguments_ = (name, *arguments) if name != "allen" else arguments
        source, target = runs(lists[str(arguments_[0])]), runs(lists[str(arguments_[1])])
        related = [(i, j) for i in source for j in target if allen(str(relation), *i, *j, self.last + 2)]
        if len(arguments_) == 5 and str(arguments_[3]) in ("true", "false") and (str(arguments_[3]) == "true") != bool(related):
            return None
        i_ticks = {t for (s, e), _ in related for t in range(s, e)}
        j_ticks = {t for _, (s, e) in related for t in range(s, e)}
        return {
            "source": i_ticks, "target": j_ticks, "union": i_ticks | j_ticks, "intersection": i_ticks & j_ticks,
            "relative_complement": i_ticks - j_ticks, "relative_complement_inverse": j_ticks - i_ticks,
        }[str(arguments_[2])]  # fmt: skip


ALLEN = ("before", "meets", "starts", "finishes", "during", "overlaps", "equal")
LISTS = ("holdsFor", "union_all", "intersect_all", "complement_all", "relative_complement_all", "intDurGreater", "allen", *ALLEN)


def allen(relation: str, s1: int, e1: int, s2: int, e2: int, infinite: int) -> bool:
    """RTEC's relations between half-open intervals; an end of `infinite` is open."""
    return {
        "before": e1 <= s2 and e1 < infinite,
        "meets": e1 < infinite and e1 - 1 == s2 and s1 != s2,
        "starts": s1 == s2 and e1 < e2,
        "finishes": s1 > s2 and e1 == e2,
        "during": s1 > s2 and e1 < e2,
        "overlaps": s1 < s2 < e1 - 1 and e1 < e2,
        "equal": s1 == s2 and e1 == e2,
    }[relation]


def runs(ticks: set[int]) -> list[tuple[int, int]]:
    """Maximal intervals [s, e) of a set of ticks."""
    return [(t, next(e for e in range(t, t + len(ticks) + 2) if e not in ticks)) for t in sorted(ticks) if t - 1 not in ticks]
