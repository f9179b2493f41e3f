"""The rules of a simple fluent over few rows in one compiled call: the moments at which it is initiated and terminated.

Most rules are an event (or the start or end of an interval) with conditions of the same moment, over some dozens of rows. Evaluated literal by
literal each costs some 10 calls into numpy (measured on the CAVIAR windows: 25 us a rule, a third of a window). Here everything the rules of a
fluent read is laid one behind the other and one kernel joins it, row by row. Rules of another form, and windows with more rows, go literal by
literal (`conditions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.conditions import World
from engine.event_calculus.inertia import ANY_ARGUMENT, INITIATE, OPEN_INITIATE, TERMINATE, TERMINATE_ANY
from engine.event_calculus.intervals import INF, Ints
from engine.event_calculus.levels import Node
from engine.event_calculus.syntax import Edge, FluentPattern, Grounding, Happens, HoldsAt, Literal, Negation, PointRule
from engine.event_calculus.tables import SYMBOL
from engine.event_calculus.terms import Atom, Number, Term, Variable

MAX_ROWS = 512
"""Rows and intervals of one source; more are left to the other way, which sorts."""
MAX_COMPARED = 8_192
"""Comparisons of a row with a binding, as far as sizes show: as many take about as long as the calls of the other way (measured: 10 ns each)."""
MAX_BINDINGS = 4_096
"""Bindings of one rule."""
HAPPENS, START, END, HOLDS = 0, 1, 2, 3
OPEN = -(1 << 30)
"""Code of an argument that a rule leaves open."""


@dataclass(frozen=True)
class FusedPoints:
    """Rules in numbers.

    `sources`: what they read, each once: an event (Happens) or a fluent's lists. `rules`: kind of point, first literal, place after the last.
    `literals`: source, how it is read (HAPPENS, START, END, HOLDS), 1 if negated. `terms`: for each literal the variable's place in each column of
    its source, or -1 - p for the constant at place p. `heads`: the same for the arguments and the value of each rule, or OPEN. `variables`: the
    greatest number of variables of a rule.
    """

    sources: tuple[Happens | FluentPattern, ...]
    rules: Ints
    literals: Ints
    terms: Ints
    heads: Ints
    constants: tuple[Atom | Number, ...]
    variables: int

    def points(self, world: World, arity: int) -> tuple[Ints, Ints] | None:
        """Points and parts as `simple_fluent` takes them; null where there are too many rows, or rows of another kind."""
        laid = self._laid_out(world)
        if laid is None:
            return None
        arrays, shape = laid
        constants = world.symbols.terms(self.constants)
        fits, looked, points, parts = _points(
            np.concatenate(arrays), shape, self.rules, self.literals, self.terms, self.heads, constants, self.variables, arity,
            world.start_offset, world.edge_after,
        )  # fmt: skip
        world.spend(looked)
        return (points, parts) if fits else None

    def _laid_out(self, world: World) -> tuple[list[Ints], Ints] | None:
        """The sources' arrays, one behind the other, and of each where it begins, its columns, rows and intervals."""
        arrays: list[Ints] = [_NOTHING]
        shape = []
        at = 0
        for source in self.sources:
            width, rows, intervals = 0, 0, 0
            if isinstance(source, Happens):
                table = world.events.get(source.indicator)
                if table is not None and table.n:
                    if table.n > MAX_ROWS or table.t is None or any(kind != SYMBOL for kind in table.kinds):
                        return None
                    width, rows = len(table.columns), table.n
                    arrays += (*table.columns, table.t)
            else:
                filled = [one for one in world.fluents(source) if len(one.lists.s)]
                if len(filled) > 1:
                    return None
                if filled:
                    keys, lists = filled[0].keys, filled[0].lists
                    width, rows, intervals = len(keys), filled[0].n, len(lists.s)
                    if rows + intervals > MAX_ROWS:
                        return None
                    arrays += (keys.reshape(-1), *lists)
            shape.append((at, width, rows, intervals))
            at += (width + 1) * rows + (2 * intervals + 1 if intervals else 0)
        return arrays, np.array(shape, np.int64)


_NOTHING = np.empty(0, np.int64)


def fused_points(
    rules: Sequence[PointRule], groundings: Sequence[tuple[Grounding, ...] | None], nodes: Callable[[FluentPattern], Sequence[Node]]
) -> tuple[FusedPoints | None, list[PointRule]]:
    """The rules in numbers, and those of a form that this way of evaluation does not take.

    `groundings`: those declared for each rule's head; `nodes`: those that hold intervals of a pattern.
    """
    building = _Building(nodes)
    left = [rule for rule, declared in zip(rules, groundings, strict=True) if not building.add(rule, declared)]
    return (building.built() if building.rules else None), left


class _Building:
    def __init__(self, nodes: Callable[[FluentPattern], Sequence[Node]]) -> None:
        self.nodes = nodes
        self.sources: list[Happens | FluentPattern] = []
        self.places: dict[tuple[object, ...], int] = {}
        self.rules: list[tuple[int, int, int]] = []
        self.literals: list[tuple[int, int, int]] = []
        self.terms: list[list[int]] = []
        self.heads: list[list[int]] = []
        self.constants: list[Atom | Number] = []
        self.variables = 0

    def add(self, rule: PointRule, declared: tuple[Grounding, ...] | None) -> bool:
        """Whether the rule has the form; then it is taken."""
        body = [_plain(literal, rule.time) for literal in rule.body]
        found = [one for one in body if one is not None]
        kind = _kind(rule, {name for literal, negated in found if not negated for name in _names(literal)}, declared)
        if len(found) < len(body) or kind is None:
            return False
        names: list[str] = []
        first = len(self.literals)
        for literal, negated in found:
            mode = HAPPENS if isinstance(literal, Happens) else HOLDS if isinstance(literal, HoldsAt) else START if literal.kind == "start" else END
            self.literals.append((self._source(literal), mode, int(negated)))
            self.terms.append([self._coded(term, names) for term in _terms(literal)])
        bound = {name for literal, negated in found if not negated for name in _names(literal)}
        self.heads.append([OPEN if isinstance(term, Variable) and term.name not in bound else self._coded(term, names) for term in rule.terms])
        self.rules.append((kind, first, len(self.literals)))
        self.variables = max(self.variables, len(names))
        return True

    def _source(self, literal: Happens | Edge | HoldsAt) -> int:
        """The place of what the literal reads among the sources."""
        source = literal if isinstance(literal, Happens) else literal.fluent
        value = None if isinstance(source, Happens) or isinstance(source.value, Variable) else source.value
        nodes = () if isinstance(source, Happens) else tuple(self.nodes(source))
        place = self.places.setdefault((type(source), source.indicator, value, nodes), len(self.sources))
        if place == len(self.sources):
            self.sources.append(source)
        return place

    def _coded(self, term: Term, names: list[str]) -> int:
        if isinstance(term, Variable):
            if term.name not in names:
                names.append(term.name)
            return names.index(term.name)
        assert isinstance(term, Atom | Number)
        self.constants.append(term)
        return -len(self.constants)

    def built(self) -> FusedPoints:
        widest = max(map(len, self.terms))
        terms = np.array([[*own, *[0] * (widest - len(own))] for own in self.terms], np.int64).reshape(len(self.terms), widest)
        rules, literals, heads = (np.array(rows, np.int64) for rows in (self.rules, self.literals, self.heads))
        return FusedPoints(tuple(self.sources), rules, literals, terms, heads, tuple(self.constants), self.variables)


def _plain(literal: Literal, time: str) -> tuple[Happens | Edge | HoldsAt, bool] | None:
    """A condition at the rule's own time and whether it is negated; null for anything else."""
    if isinstance(literal, Negation) and len(literal.body) == 1 and not isinstance(literal.body[0], Negation):
        inner = _plain(literal.body[0], time)
        return None if inner is None else (inner[0], True)
    if not isinstance(literal, Happens | Edge | HoldsAt) or literal.time != time or time in _names(literal):
        return None
    return (literal, False) if all(isinstance(term, Variable | Atom | Number) for term in _terms(literal)) else None


def _terms(literal: Happens | Edge | HoldsAt) -> tuple[Term, ...]:
    return literal.arguments if isinstance(literal, Happens) else literal.fluent.terms


def _names(literal: Happens | Edge | HoldsAt) -> set[str]:
    return {term.name for term in _terms(literal) if isinstance(term, Variable)}


def _kind(rule: PointRule, bound: set[str], declared: tuple[Grounding, ...] | None) -> int | None:
    """What the rule's points do; null where its groundings have to be looked up."""
    *arguments, value = (not isinstance(term, Variable) or term.name in bound for term in rule.terms)
    if rule.time in {term.name for term in rule.terms if isinstance(term, Variable)}:
        return None
    if rule.kind == "terminate":
        return TERMINATE if value else TERMINATE_ANY
    if value and all(arguments):
        return INITIATE
    # An initiation that leaves arguments open also opens the declared groundings, where there are any.
    return OPEN_INITIATE if value and not declared else None


@jit
def _bound(data: Ints, at: int, rows: int, width: int, row: int, terms: Ints, constants: Ints, before: Ints, after: Ints) -> bool:
    """Whether a row agrees with the variables so far (-1: not bound); `after` holds them with those that it binds."""
    after[:] = before
    for j in range(width):
        value, code = data[at + j * rows + row], terms[j]
        if code < 0:
            if value != constants[-1 - code]:
                return False
        elif after[code] < 0:
            after[code] = value
        elif after[code] != value:
            return False
    return True


@jit
def _satisfied(
    data: Ints, shape: Ints, mode: int, terms: Ints, constants: Ints, before: Ints, time: int, offset: int, edge_after: int, only_one: bool,
    out: Ints, n: int,
) -> int:  # fmt: skip
    """Writes every way to satisfy one condition (variables, then time; `time` INF: not bound) to `out` from row n on; the place after the last."""
    at, width, rows, intervals = shape
    variables = len(before)
    after = np.empty(variables, np.int64)
    pointers = at + width * rows
    starts = pointers + rows + 1
    for row in range(rows):
        if mode == HAPPENS:
            low, high = row, row + 1
            if time != INF and data[pointers + row] != time:
                continue
        else:
            low, high = data[pointers + row], data[pointers + row + 1]
        if low == high or not _bound(data, at, rows, width, row, terms, constants, before, after):
            continue
        for k in range(low, high):
            if mode == HAPPENS:
                moment = data[pointers + k]
            elif mode == HOLDS:
                if not data[starts + k] <= time < data[starts + intervals + k]:
                    continue
                moment = time
            else:
                moment = data[starts + k] if mode == START else data[starts + intervals + k]
                if moment == INF or moment - offset <= edge_after:
                    continue
                moment -= offset
            if time != INF and moment != time:
                continue
            if n < len(out):
                out[n, :variables] = after
                out[n, variables] = moment
            n += 1
            if only_one:
                return n
    return n


@jit
def _comparisons(shape: Ints, rules: Ints, literals: Ints) -> int:
    """How many there will be when each row of a rule's first condition is a binding of all others."""
    total = 0
    for rule in range(len(rules)):
        first = shape[literals[rules[rule, 1], 0]]
        bindings = max(first[2], first[3])
        for literal in range(rules[rule, 1] + 1, rules[rule, 2]):
            total += bindings * shape[literals[literal, 0], 2]
    return total


@jit
def _points(
    data: Ints, shape: Ints, rules: Ints, literals: Ints, terms: Ints, heads: Ints, constants: Ints, variables: int, arity: int, offset: int,
    edge_after: int,
) -> Any:  # fmt: skip
    """Points of all rules, one part a rule that has any; false where that takes more than it may. The second result counts rows looked at."""
    if _comparisons(shape, rules, literals) > MAX_COMPARED:
        return False, 0, np.empty((3 + arity, 0), np.int64), np.zeros(1, np.int64)
    capacity = 64
    found, following = np.empty((capacity, variables + 1), np.int64), np.empty((capacity, variables + 1), np.int64)
    points = np.empty((capacity, 3 + arity), np.int64)
    parts = np.zeros(len(rules) + 1, np.int64)
    k = filled = looked = 0
    for rule in range(len(rules)):
        found[0, :] = -1
        found[0, variables] = INF
        n = 1
        for literal in range(rules[rule, 1], rules[rule, 2]):
            source, mode, negated = literals[literal]
            looked += n * shape[source, 2]
            m = 0
            for i in range(n):
                while True:
                    end = _satisfied(
                        data, shape[source], mode, terms[literal], constants, found[i, :variables], found[i, variables], offset, edge_after,
                        negated == 1, following, m,
                    )  # fmt: skip
                    if end <= len(following):
                        break
                    if end > MAX_BINDINGS:
                        return False, looked, np.empty((3 + arity, 0), np.int64), np.zeros(1, np.int64)
                    following = _larger(following, 2 * end)
                if negated == 1:
                    if end == m:
                        if m + 1 > len(following):
                            following = _larger(following, 2 * m + 2)
                        following[m] = found[i]
                        m += 1
                else:
                    m = end
            found, following = following, found
            n = m
            if n == 0:
                break
        if n == 0:
            continue
        if k + n > len(points):
            points = _larger(points, 2 * (k + n))
        for i in range(n):
            points[k, 0], points[k, 1] = found[i, variables], rules[rule, 0]
            for j in range(arity + 1):
                code = heads[rule, j]
                value = (ANY_ARGUMENT if j < arity else 0) if code == OPEN else (found[i, code] if code >= 0 else constants[-1 - code])
                points[k, 3 + j if j < arity else 2] = value
            k += 1
        filled += 1
        parts[filled] = k
    return True, looked, np.ascontiguousarray(points[:k].T), parts[: filled + 1]


@jit
def _larger(rows: Ints, size: int) -> Ints:
    larger = np.empty((size, rows.shape[1]), np.int64)
    larger[: len(rows)] = rows
    return larger
