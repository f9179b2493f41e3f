"""Evaluation of conditions: each maps the bindings found so far to those that also satisfy it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.event_calculus import builtins
from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import INF, Bools, Ints, holds
from engine.event_calculus.keys import number_rows, pairs, take_rows
from engine.event_calculus.syntax import (
    Assignment,
    Comparison,
    Count,
    Declared,
    Edge,
    Fact,
    FluentPattern,
    Happens,
    HoldsAt,
    Indicator,
    Initiated,
    Literal,
    Negation,
)  # fmt: skip
from engine.event_calculus.tables import NUMBER, SYMBOL, TIME, Column, FluentTable, Rows, Symbols, Table, distinct_rows, stack
from engine.event_calculus.terms import Atom, Compound, Number, Term, Variable
from engine.model.messages import Message

Floats = npt.NDArray[np.float64]

EARTH_RADIUS_M = 6_371_008.8


class LimitExceeded(RuntimeError):
    """A query exceeds a limit; the message contains the figure."""


@dataclass
class KnowledgeBase:
    """The tables that conditions read in one window.

    `events` and `facts` are tables by indicator; `fluents(pattern)` returns the tables with a
    pattern's intervals. Start and end events have times > `edge_after`. A dialect subtracts
    `start_offset` from the start of an interval (and from its end) to get the time of start(F=V)
    (and end(F=V)). `initiated`: the initiations of simple fluents that some condition reads;
    `grounded` binds variables that a head leaves open to its groundings.
    """

    symbols: Symbols
    tick: int
    edge_after: int
    start_offset: int
    fluents: Callable[[FluentPattern], list[FluentTable]]
    events: dict[Indicator, Table] = field(default_factory=dict)
    facts: dict[Indicator, Table] = field(default_factory=dict)
    initiated: dict[Indicator, Table] = field(default_factory=dict)
    grounded: Callable[[Rows, Declared], Rows] | None = None
    max_rows: int = 4_000_000
    max_work: int = 20_000_000
    work: int = 0

    def count_rows(self, rows: int) -> None:
        """Counts rows read. Raises LimitExceeded if the window has read too many: a bound on its
        work that is the same on every machine."""
        self.work += rows
        if self.work > self.max_work:
            raise LimitExceeded(Message("a window would look at more than {limit:,} rows", limit=self.max_work))


def satisfy(kb: KnowledgeBase, rows: Rows, body: Iterable[Literal]) -> Rows:
    """`rows` extended by all ways to satisfy `body`, which is ordered; without
    columns if there is none."""
    for literal in body:
        kb.count_rows(rows.n)
        rows = _satisfy_one(kb, rows, literal)
        if rows.n == 0:
            return _NO_ROWS
    return rows


_NO_ROWS = Rows(0, {}, {})


def _satisfy_one(kb: KnowledgeBase, rows: Rows, literal: Literal) -> Rows:
    if isinstance(literal, Happens):
        table = kb.events.get(literal.indicator)
        return _NO_ROWS if table is None else match(kb, rows, table, literal.arguments, literal.time)
    if isinstance(literal, Edge):
        tables = [edge_points(kb, table, literal.kind) for table in kb.fluents(literal.fluent) if table.n]
        return _concat([match(kb, rows, table, literal.fluent.terms, literal.time) for table in tables])
    if isinstance(literal, HoldsAt):
        return _concat([_holding(kb, rows, table, literal) for table in kb.fluents(literal.fluent) if table.n])
    if isinstance(literal, Fact):
        table = kb.facts.get(literal.indicator)
        return _NO_ROWS if table is None else match(kb, rows, table, literal.arguments, None)
    if isinstance(literal, Comparison):
        return _compare(kb, rows, literal)
    if isinstance(literal, Assignment):
        return _assign(kb, rows, literal)
    if isinstance(literal, Initiated):
        table = kb.initiated.get(literal.fluent.indicator)
        return _NO_ROWS if table is None else match(kb, rows, table, literal.fluent.terms, literal.time)
    if isinstance(literal, Count):
        return _count_values(kb, rows, literal)
    if isinstance(literal, Declared):
        assert kb.grounded is not None
        return kb.grounded(rows, literal)
    return _anti_join(kb, rows, literal)


def _concat(found: list[Rows]) -> Rows:
    """The rows of all tables of one pattern together."""
    full = [part for part in found if part.n]
    if len(full) < 2:
        return full[0] if full else _NO_ROWS
    columns = {name: np.concatenate([part.columns[name] for part in full]) for name in full[0].columns}
    return Rows(sum(part.n for part in full), columns, full[0].kinds)


# -- joins -----------------------------------------------------------------------------------------


def match(kb: KnowledgeBase, rows: Rows, table: Table, terms: Sequence[Term], time: str | None) -> Rows:
    """Natural join of `rows` with `table`, whose columns are named by
    `terms` and its times by `time`."""
    if rows.n == 0 or table.n == 0:
        return _NO_ROWS
    kb.count_rows(table.n)
    if not rows.columns and rows.n == 1:
        return _scan(kb, table, terms, time)
    kept: Ints | None = None
    keys: list[tuple[Column, Column]] = []
    new: list[tuple[str, Column, str]] = []
    seen: dict[str, Column] = {}
    for term, column, kind in zip(terms, table.columns, table.kinds, strict=True):
        if not isinstance(term, Variable):
            kept = _and(kept, _equals_constant(kb, column, kind, term))
        elif term.name in rows.columns:
            keys.append(_comparable(kb, rows.columns[term.name], rows.kinds[term.name], column, kind))
        elif term.name in seen:
            kept = _and(kept, np.flatnonzero(column == seen[term.name]))
        else:
            seen[term.name] = column
            new.append((term.name, column, kind))
    if time is not None and table.t is not None:
        if time in rows.columns:
            keys.append((rows.columns[time], table.t))
        else:
            new.append((time, table.t, TIME))
    return _join_rows(kb, rows, table.n, kept, keys, new)


def _scan(kb: KnowledgeBase, table: Table, terms: Sequence[Term], time: str | None) -> Rows:
    """`match` for the first condition of a rule: the rows of the table that have its constants."""
    kept: Bools | None = None
    columns: dict[str, Column] = {}
    kinds: dict[str, str] = {}
    for term, column, kind in zip(terms, table.columns, table.kinds, strict=True):
        if isinstance(term, Variable) and term.name not in columns:
            columns[term.name], kinds[term.name] = column, kind
            continue
        same = column == (columns[term.name] if isinstance(term, Variable) else _constant(kb, kind, term))
        kept = same if kept is None else kept & same
    if time is not None and table.t is not None:
        columns[time], kinds[time] = table.t, TIME
    rows = Rows(table.n, columns, kinds)
    if kept is None or kept.all():
        return rows
    return rows.take(kept) if kept.any() else _NO_ROWS


def _join_rows(
    kb: KnowledgeBase, rows: Rows, n: int, kept: Ints | None, keys: list[tuple[Column, Column]], new: list[tuple[str, Column, str]]
) -> Rows:
    left, right = join(rows.n, n, kept, keys, kb.max_rows)
    if not len(left):
        return _NO_ROWS
    kb.count_rows(len(left))
    columns = {name: column[left] for name, column in rows.columns.items()}
    kinds = dict(rows.kinds)
    for name, column, kind in new:
        columns[name] = column[right]
        kinds[name] = kind
    return Rows(len(left), columns, kinds)


def _and(kept: Ints | None, more: Ints) -> Ints:
    return more if kept is None else np.intersect1d(kept, more, assume_unique=True)


def join(n: int, m: int, kept: Ints | None, keys: list[tuple[Column, Column]], limit: int) -> tuple[Ints, Ints]:
    """Positions of matching pairs of rows, in the order of the left side."""
    size = m if kept is None else len(kept)
    if n == 0 or size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if not keys:
        if n == 1:
            right = np.arange(m) if kept is None else kept
            return np.zeros(size, np.int64), right
        if n * size > limit:
            raise LimitExceeded(Message("a condition would give {total:,} rows; the limit is {limit:,}", total=n * size, limit=limit))
        right = np.arange(m) if kept is None else kept
        return np.repeat(np.arange(n), size), np.tile(right, n)
    known = stack([key[1] if kept is None else key[1][kept] for key in keys], size)
    total, left, right = pairs(stack([key[0] for key in keys], n), known, limit)
    if total > limit:
        raise LimitExceeded(Message("a condition would give {total:,} rows; the limit is {limit:,}", total=total, limit=limit))
    return left, right if kept is None else kept[right]


def _equals_constant(kb: KnowledgeBase, column: Column, kind: str, term: Term) -> Ints:
    return np.flatnonzero(column == _constant(kb, kind, term))


def _constant(kb: KnowledgeBase, kind: str, term: Term) -> float:
    """The code of a constant in a column of this kind."""
    assert isinstance(term, Atom | Number)
    if kind == SYMBOL:
        return kb.symbols.term(term)
    if kind == TIME:
        return term.value if isinstance(term, Number) else -1
    return term.value if isinstance(term, Number) else builtins.CONSTANTS.get(term.name, float("nan"))


def _comparable(kb: KnowledgeBase, a: Column, kind_a: str, b: Column, kind_b: str) -> tuple[Column, Column]:
    """Two columns as integers that are equal if and only if the values are."""
    if kind_a == kind_b and kind_a != NUMBER:
        return a, b
    if kind_a == kind_b:
        _, inverse = np.unique(np.concatenate((a, b)), return_inverse=True)
        inverse = inverse.reshape(-1)
        return inverse[: len(a)], np.where(np.isnan(b), -1, inverse[len(a) :])
    return as_symbols(kb, a, kind_a), as_symbols(kb, b, kind_b)


def as_symbols(kb: KnowledgeBase, column: Column, kind: str) -> Ints:
    if kind == SYMBOL:
        return column
    return kb.symbols.encode_numbers(np.asarray(column, np.float64))


# -- fluents ---------------------------------------------------------------------------------------


def edge_points(kb: KnowledgeBase, table: FluentTable, kind: str) -> Table:
    """The start or end events of a fluent: one for each maximal interval that begins
    (ends) inside the window."""
    moments = table.lists.s if kind == "start" else table.lists.e
    t = moments - kb.start_offset
    inside = (t > kb.edge_after) & (moments != INF)
    keys = take_rows(table.keys, table.lists.owners()[inside])
    return Table(tuple(keys), (SYMBOL,) * len(keys), keys.shape[1], t[inside])


def _holding(kb: KnowledgeBase, rows: Rows, table: FluentTable, literal: HoldsAt) -> Rows:
    row_number = "#list"
    found = match(kb, rows, table.with_list_numbers(), (*literal.fluent.terms, Variable(row_number, literal.location)), None)
    if found.n == 0:
        return found
    picked = found.columns.pop(row_number)
    found.kinds.pop(row_number)
    return found.take(holds(table.lists, picked, found.columns[literal.time]))


def _anti_join(kb: KnowledgeBase, rows: Rows, negation: Negation) -> Rows:
    if len(negation.body) == 1 and isinstance(event := negation.body[0], Happens) and event.time in rows.columns:
        table = kb.events.get(event.indicator)
        if table is None or table.n == 0:
            return rows
        if all(
            isinstance(term, Variable) and rows.kinds.get(term.name) == kind == SYMBOL
            for term, kind in zip(event.arguments, table.kinds, strict=True)
        ):
            return _without_event(kb, rows, table, event)
    numbered, inner = _with_row_numbers(rows)
    found = satisfy(kb, inner, negation.body)
    if found.n == 0:
        return rows
    kept = np.ones(rows.n, np.bool_)
    kept[found.columns[numbered]] = False
    return rows.take(kept)


def _with_row_numbers(rows: Rows) -> tuple[str, Rows]:
    """The name of a new column with the rows' numbers, and the rows with it."""
    numbered = "#row"
    while numbered in rows.columns:
        numbered += "'"
    return numbered, rows.with_column(numbered, np.arange(rows.n), TIME)


def _count_values(kb: KnowledgeBase, rows: Rows, count: Count) -> Rows:
    """The rows with the number of values of the variable that satisfy the counted conditions."""
    numbered, inner = _with_row_numbers(rows)
    found = without_missing_numbers(satisfy(kb, inner, count.body), [Variable(count.variable, count.location)])
    totals = np.zeros(rows.n)
    if found.n:
        values = as_symbols(kb, found.columns[count.variable], found.kinds[count.variable])
        first = distinct_rows([found.columns[numbered], values], found.n)
        totals = np.bincount(found.columns[numbered][first], minlength=rows.n).astype(np.float64)
    if isinstance(count.number, Variable) and count.number.name not in rows.columns:
        return rows.with_column(count.number.name, totals, NUMBER)
    return rows.take(np.broadcast_to(np.equal(number(kb, rows, count.number), totals), (rows.n,)))


def _without_event(kb: KnowledgeBase, rows: Rows, table: Table, event: Happens) -> Rows:
    """Rows at whose time no event with these arguments happens: the most frequent
    negation, in one look-up."""
    assert table.t is not None
    kb.count_rows(table.n)
    wanted = stack([*(rows.columns[term.name] for term in event.arguments if isinstance(term, Variable)), rows.columns[event.time]], rows.n)
    kept = _missing(stack([*table.columns, table.t], table.n), wanted)
    return rows if kept.all() else rows.take(kept)


@jit
def _missing(keys: Ints, wanted: Ints) -> Bools:
    """Which rows of `wanted` are not among `keys`; `keys` may contain duplicates."""
    number, first = number_rows(np.concatenate((keys, wanted), axis=1))
    out = np.empty(wanted.shape[1], np.bool_)
    for i in range(len(out)):
        out[i] = first[number[keys.shape[1] + i]] >= keys.shape[1]
    return out


# -- arithmetic ------------------------------------------------------------------------------------


def _compare(kb: KnowledgeBase, rows: Rows, comparison: Comparison) -> Rows:
    operator, left, right = comparison.operator, comparison.left, comparison.right
    if operator in builtins.NUMERIC_COMPARISONS:
        with np.errstate(invalid="ignore"):
            holding = _NUMERIC[operator](number(kb, rows, left), number(kb, rows, right))
        return rows.take(np.broadcast_to(holding, (rows.n,)))
    if operator == "=":
        for new, old in ((left, right), (right, left)):
            if isinstance(new, Variable) and new.name not in rows.columns:
                return rows.with_column(new.name, *_value(kb, rows, old))
    rows = without_missing_numbers(rows, (left, right))
    a, b = _comparable(kb, *_value(kb, rows, left), *_value(kb, rows, right))
    if operator in ("=", "=="):
        return rows.take(a == b)
    if operator in ("\\=", "\\=="):
        return rows.take(a != b)
    ranks = kb.symbols.ranks
    return rows.take(_NUMERIC[operator[1:]](ranks[a], ranks[b]))


def without_missing_numbers(rows: Rows, terms: Iterable[Term]) -> Rows:
    """Rows in which no number among `terms` is missing: a missing number has no name and satisfies
    no condition, not even an inequality."""
    for term in terms:
        if isinstance(term, Variable) and rows.kinds.get(term.name) == NUMBER:
            there = ~np.isnan(np.asarray(rows.columns[term.name], np.float64))
            rows = rows if there.all() else rows.take(there)
    return rows


def _differ(a: Any, b: Any) -> Any:
    """Inequality; NaN is not unequal to anything."""
    return np.less(a, b) | np.greater(a, b)


_NUMERIC: Mapping[str, Callable[[Any, Any], Bools]] = {
    "<": np.less, ">": np.greater, "=<": np.less_equal, ">=": np.greater_equal, "=:=": np.equal, "=\\=": _differ,
}  # fmt: skip


def _value(kb: KnowledgeBase, rows: Rows, term: Term) -> tuple[Column, str]:
    if isinstance(term, Variable):
        return rows.columns[term.name], rows.kinds[term.name]
    assert isinstance(term, Atom | Number)
    return np.full(rows.n, kb.symbols.term(term)), SYMBOL


def _assign(kb: KnowledgeBase, rows: Rows, assignment: Assignment) -> Rows:
    values = np.broadcast_to(number(kb, rows, assignment.expression), (rows.n,)).astype(np.float64)
    if assignment.variable in rows.columns:
        known = number(kb, rows, Variable(assignment.variable, assignment.location))
        return rows.take(np.equal(known, values))
    return rows.with_column(assignment.variable, values, NUMBER)


def number(kb: KnowledgeBase, rows: Rows, term: Term) -> Floats | float:
    """Value of an arithmetic expression for each row; NaN where it is undefined."""
    if isinstance(term, Number):
        return term.value
    if isinstance(term, Atom):
        return builtins.CONSTANTS[term.name]
    if isinstance(term, Variable):
        column, kind = rows.columns[term.name], rows.kinds[term.name]
        if kind == SYMBOL:
            # A name that is not a number satisfies no comparison.
            return np.where(column < 0, np.nan, kb.symbols.numbers[column]) if len(column) else np.empty(0)
        return np.asarray(column)
    assert isinstance(term, Compound)
    operands = [number(kb, rows, argument) for argument in term.arguments]
    with np.errstate(all="ignore"):
        value: Floats | float = _FUNCTIONS[term.name, len(operands)](*operands)
    return value


def angle_difference(a: Any, b: Any) -> Any:
    """The smaller angle between two directions, degrees."""
    return np.abs((a - b + 180.0) % 360.0 - 180.0)


def distance_m(lon1: Any, lat1: Any, lon2: Any, lat2: Any) -> Any:
    """Great-circle distance, metres, by the haversine formula on a sphere of EARTH_RADIUS_M."""
    a1, a2 = np.radians(lat1), np.radians(lat2)
    half = np.sin((a2 - a1) / 2) ** 2 + np.cos(a1) * np.cos(a2) * np.sin(np.radians(np.subtract(lon2, lon1)) / 2) ** 2
    return 2 * EARTH_RADIUS_M * np.arcsin(np.minimum(1.0, np.sqrt(half)))


def bearing_deg(lon1: Any, lat1: Any, lon2: Any, lat2: Any) -> Any:
    """Initial course of the great circle from the first place to the second, degrees
    clockwise from north, [0, 360)."""
    a1, a2, d = np.radians(lat1), np.radians(lat2), np.radians(np.subtract(lon2, lon1))
    return np.degrees(np.arctan2(np.sin(d) * np.cos(a2), np.cos(a1) * np.sin(a2) - np.sin(a1) * np.cos(a2) * np.cos(d))) % 360.0


_FUNCTIONS: Mapping[tuple[str, int], Callable[..., Any]] = {
    ("+", 2): np.add, ("-", 2): np.subtract, ("*", 2): np.multiply, ("/", 2): np.divide, ("//", 2): lambda a, b: np.trunc(np.divide(a, b)),
    ("mod", 2): np.mod, ("rem", 2): np.fmod, ("+", 1): np.positive, ("-", 1): np.negative, ("abs", 1): np.abs, ("min", 2): np.minimum,
    ("max", 2): np.maximum, ("sqrt", 1): np.sqrt, ("angle_difference", 2): angle_difference, ("distance", 4): distance_m, ("bearing", 4): bearing_deg,
}  # fmt: skip
