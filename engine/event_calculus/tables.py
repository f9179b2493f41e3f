"""Relations: columns of equal length. A column contains symbols (int64 codes), numbers
(float64) or times (int64)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.event_calculus.intervals import INF, Bools, Intervals, Ints, amalgamate, empty, gather
from engine.event_calculus.keys import number_rows, take_rows
from engine.event_calculus.terms import Atom, Number, Term, Variable

SYMBOL, NUMBER, TIME = "symbol", "number", "time"

Column = npt.NDArray[Any]


def number_text(value: float) -> str:
    """The symbol name of a number: 24.0 is `24`."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(float(value))


def symbol_name(term: Atom | Number) -> str:
    """The symbol name of a constant."""
    return term.name if isinstance(term, Atom) else number_text(term.value)


class Symbols:
    """Names and their codes, dense from 0 in order of first appearance, never reused.

    `numbers[c]` is name c as a number (NaN: it is none), so that a symbol can
    be compared with numbers.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.codes: dict[str, int] = {}
        self._numbers = np.empty(64)
        self._order: list[int] = []
        self._ranks = np.empty(0, np.int64)
        self._hashes = np.empty(0, np.int64)
        for name in names:
            self.code(name)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        return self._numbers[: len(self.names)]

    @property
    def ranks(self) -> Ints:
        """Each code's rank in the standard order of terms: numbers by value,
        then names alphabetically."""
        if len(self._ranks) < len(self.names):
            # New names are few, and sorting nearly sorted names takes linear time.
            self._order.extend(range(len(self._order), len(self.names)))
            self._order.sort(key=self._place)
            self._ranks = np.empty(len(self.names), np.int64)
            self._ranks[self._order] = np.arange(len(self.names))
        return self._ranks

    @property
    def hashes(self) -> Ints:
        """The CRC-32 of each name, which does not depend on the name's code."""
        if len(self._hashes) < len(self.names):
            fresh = [zlib.crc32(name.encode()) for name in self.names[len(self._hashes) :]]
            self._hashes = np.concatenate((self._hashes, np.array(fresh, np.int64)))
        return self._hashes

    def _place(self, code: int) -> tuple[int, float, str]:
        value = float(self._numbers[code])
        return (1, 0.0, self.names[code]) if value != value else (0, value, self.names[code])

    def code(self, name: str) -> int:
        code = self.codes.get(name)
        if code is None:
            code = self.codes[name] = len(self.names)
            self.names.append(name)
            if code == len(self._numbers):
                self._numbers = np.concatenate((self._numbers, np.empty(code)))
            self._numbers[code] = _number(name)
        return code

    def encode(self, column: pa.Array) -> Ints:
        """Codes of an Arrow column (-1 for null); numbers and booleans get
        their names in the language."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_null(column.type):
            return np.full(len(column), -1, np.int64)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        local = np.fromiter((self.code(_text(value)) for value in encoded.dictionary.to_pylist()), np.int64)
        positions = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
        if len(local) == 0:
            return np.full(len(positions), -1, np.int64)
        return np.where(positions < 0, -1, local[positions])

    def encode_numbers(self, values: npt.NDArray[np.float64]) -> Ints:
        distinct, inverse = np.unique(values, return_inverse=True)
        codes = np.fromiter((-1 if np.isnan(value) else self.code(number_text(value)) for value in distinct), np.int64, len(distinct))
        return codes[inverse.reshape(-1)]

    def term(self, term: Atom | Number) -> int:
        return self.code(symbol_name(term))

    def terms(self, constants: Sequence[Atom | Number]) -> Ints:
        """Codes of a rule's constants."""
        return np.array([self.term(constant) for constant in constants], np.int64)


def _number(name: str) -> float:
    if not name or not (name[0].isdigit() or name[0] in "+-."):
        return float("nan")
    try:
        return float(name)
    except ValueError:
        return float("nan")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    return str(value)


@dataclass(frozen=True)
class Table:
    """A relation without names: columns with their kinds, and a time for each row if it is a
    relation over time points."""

    columns: tuple[Column, ...]
    kinds: tuple[str, ...]
    n: int
    t: Ints | None = None


@dataclass(frozen=True)
class FluentTable:
    """Lists of maximal intervals of a fluent: `keys` (arguments, then value; lists) are symbol
    codes, one column for each list.

    No two lists have the same key.
    """

    keys: Ints
    lists: Intervals

    @property
    def n(self) -> int:
        return len(self.lists.ptr) - 1

    def relation(self) -> Table:
        """The keys as a relation."""
        return Table(tuple(self.keys), (SYMBOL,) * len(self.keys), self.n)

    def with_list_numbers(self) -> Table:
        """The keys, and the number of each list."""
        return Table((*self.keys, np.arange(self.n)), (SYMBOL,) * (len(self.keys) + 1), self.n)

    def take_lists(self, rows: Ints, begin: int = -INF) -> FluentTable:
        """Only these lists, from `begin` on."""
        if len(rows) == self.n and begin == -INF:
            return self
        return FluentTable(take_rows(self.keys, rows), gather(self.lists, rows, begin))

    def check(self) -> None:
        self.lists.check()
        assert self.lists.lists == self.n
        assert len(number_rows(self.keys)[1]) == self.n, "a key occurs twice"


def facts_table(rows: Sequence[tuple[Term, ...]], symbols: Symbols) -> Table:
    """Background knowledge as symbols; for comparisons their numbers are looked up.
    (Measured with the numbers of 6,000 vessels: converting numbers to symbols for every join
    took two thirds of a window.)"""
    codes = [[symbols.term(term) for term in column if isinstance(term, Atom | Number)] for column in zip(*rows, strict=True)]
    return Table(tuple(np.array(column, np.int64) for column in codes), (SYMBOL,) * len(rows[0]), len(rows))


def empty_keys(width: int) -> Ints:
    return np.empty((width, 0), np.int64)


def stack(columns: Sequence[Ints | int], n: int) -> Ints:
    """`n` rows of columns as one array (columns, rows)."""
    out = np.empty((len(columns), n), np.int64)
    for place, column in enumerate(columns):
        out[place] = column
    return out


def empty_fluent(width: int) -> FluentTable:
    return FluentTable(empty_keys(width), empty(0))


def group_by_key(keys: Ints, lists: Intervals) -> FluentTable:
    """The table of lists, several of which may have one key: these are
    united; empty ones are left out."""
    return group_intervals(take_rows(keys, lists.owners()), lists.s, lists.e)


def group_intervals(keys: Ints, s: Ints, e: Ints) -> FluentTable:
    """The table of intervals, each with its key."""
    number, first = number_rows(keys)
    return FluentTable(take_rows(keys, first), amalgamate(number, s, e, len(first)))


def union_tables(parts: Sequence[FluentTable], width: int) -> FluentTable:
    """One table of several: lists of equal keys are united."""
    filled = [part for part in parts if len(part.lists.s)]
    if len(filled) < 2:
        return filled[0] if filled else empty_fluent(width)
    both = concat_tables(filled)
    return group_by_key(both.keys, both.lists)


def concat_tables(filled: Sequence[FluentTable]) -> FluentTable:
    """The lists of several tables, concatenated; their keys differ, or
    equal ones are united later."""
    if len(filled) == 1:
        return filled[0]
    offsets = np.cumsum([0, *(len(part.lists.s) for part in filled)])
    ptr = np.concatenate([np.zeros(1, np.int64), *(part.lists.ptr[1:] + offset for part, offset in zip(filled, offsets, strict=False))])
    s, e = np.concatenate([part.lists.s for part in filled]), np.concatenate([part.lists.e for part in filled])
    return FluentTable(np.concatenate([part.keys for part in filled], axis=1), Intervals(ptr, s, e))


class Rows:
    """Bindings of a rule's variables: named columns of equal length."""

    __slots__ = ("columns", "kinds", "n")

    def __init__(self, n: int, columns: dict[str, Column], kinds: dict[str, str]) -> None:
        self.n = n
        self.columns = columns
        self.kinds = kinds

    def take(self, picked: Ints | Bools) -> Rows:
        columns = {name: column[picked] for name, column in self.columns.items()}
        n = int(np.count_nonzero(picked)) if picked.dtype == np.bool_ else len(picked)
        return Rows(n, columns, self.kinds)

    def with_column(self, name: str, column: Column, kind: str) -> Rows:
        return Rows(self.n, {**self.columns, name: column}, {**self.kinds, name: kind})

    def distinct(self) -> Rows:
        """The distinct rows; numbers are equal if their bits are."""
        columns = [column.view(np.int64) if column.dtype == np.float64 else column for column in self.columns.values()]
        first = number_rows(stack(columns, self.n))[1]
        return self if len(first) == self.n else self.take(first)

    def bound(self, term: Term) -> bool:
        return not isinstance(term, Variable) or term.name in self.columns


def one_row() -> Rows:
    """The relation that binds nothing: one empty row."""
    return Rows(1, {}, {})


def distinct_rows(columns: Sequence[Ints], n: int) -> Ints:
    """The position of the first row of each distinct value, in the order of the columns."""
    first = number_rows(stack(columns, n))[1]
    return first[np.lexsort([column[first] for column in reversed(columns)])] if columns else first
