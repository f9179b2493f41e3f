"""The query index: which classes each event belongs to.

[RFID] 3.1 lays a grid over readers and tags, with the queries of each cell. Here every column that conditions look at is an axis: what a value of
the column satisfies is its **signature**, a cell is a combination of signatures, and a cell's classes are found when an event first falls into it.
Columns of texts, and of whole numbers that are compared for equality, are asked once for each different value, all else (numbers' order, regions)
once a batch for all rows.

What is remembered here follows from the classes and the values seen: it is no part of the operator's state.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from math import prod
from operator import contains
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from engine.complex_events.classes import Atom, Class
from engine.complex_events.search import Ints
from engine.model.batch import ENTITY, Batch
from engine.model.feed import ColumnType, Feed

MOST_VALUES = 1_000_000
"""Values of one column that are remembered."""
_DENSE = 4_000_000
Demand = frozenset[Atom]
"""What a class asks of one axis."""


class Cells:
    """Gives the classes of events."""

    def __init__(self, classes: Sequence[Class], feed: Feed) -> None:
        split = [_by_axis(one, feed) for one in classes]
        columns = sorted({column for one in split for column in one if column is not None})
        self.axes: list[_Values | _Masks] = [_Values(column, [one.get(column) for one in split]) for column in columns]
        if any(None in one for one in split):
            self.axes.append(_Masks([one.get(None) for one in split]))
        self.always = [number for number, one in enumerate(split) if not one]
        self.joined = _joined(split, [axis.column for axis in self.axes], [axis.demanded for axis in self.axes])
        self.pairs = [_Pairs() for _ in self.axes[1:]]
        self.numbers: dict[int, int] = {}
        self.ends = np.zeros(1, np.int64)
        self.classes = np.zeros(0, np.int64)

    def of(self, batch: Batch) -> tuple[Ints, Ints]:
        """The classes of each row in CSR form: ends (n + 1) and classes, ascending in each row."""
        if not self.axes:
            code = np.zeros(len(batch), np.int64)
        for i, axis in enumerate(self.axes):
            own = axis.signatures(batch)
            code = own if i == 0 else self.pairs[i - 1].codes(code, own)
        cells = self._cells(code)
        starts, lengths = self.ends[cells], self.ends[cells + 1] - self.ends[cells]
        ends = np.zeros(len(batch) + 1, np.int64)
        np.cumsum(lengths, out=ends[1:])
        return ends, self.classes[np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1])]

    def _cells(self, code: Ints) -> Ints:
        """Positions of cells in `ends`; cells seen for the first time get the next ones."""
        highest = int(code.max(initial=-1))
        known = np.full(highest + 1, -1, np.int64)
        if highest >= 0 and highest <= 4 * len(code) + 1024:
            known[code] = 0
            distinct = np.flatnonzero(known == 0)
        else:
            distinct = np.unique(code)
        new = [one for one in distinct.tolist() if one not in self.numbers]
        if new:
            lists = [self._classes_of(one) for one in new]
            self.numbers.update({one: len(self.ends) - 1 + i for i, one in enumerate(new)})
            self.ends = np.append(self.ends, self.ends[-1] + np.cumsum([len(one) for one in lists]))
            self.classes = np.concatenate([self.classes, *(np.array(one, np.int64) for one in lists)])
        known[distinct] = [self.numbers[one] for one in distinct.tolist()]
        return known[code]

    def _classes_of(self, code: int) -> list[int]:
        """Classes all of whose demands the cell's signatures satisfy."""
        signatures = []
        for pairs in reversed(self.pairs):
            code, last = pairs.parts[code]
            signatures.append(last)
        signatures = [code, *reversed(signatures)] if self.axes else []
        found = list(self.always)
        for asked, classes in self.joined:
            members = [self.axes[i].members[signatures[i]] for i in asked]
            if prod(map(len, members)) <= len(classes):
                for demands in product(*members):
                    found += classes.get(demands, ())
            else:
                held = list(map(set, members))
                found += [one for demands, own in classes.items() if all(map(contains, held, demands)) for one in own]
        return sorted(found)


def _joined(
    split: Sequence[Mapping[str | None, Demand]], columns: Sequence[str | None], numbers: Sequence[Mapping[Demand, int]]
) -> list[tuple[tuple[int, ...], dict[tuple[int, ...], list[int]]]]:
    """Classes by the axes that they ask, and by the numbers of their demands there."""
    places = {column: i for i, column in enumerate(columns)}
    found: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
    for number, one in enumerate(split):
        if one:
            asked = tuple(sorted(places[column] for column in one))
            demands = tuple(numbers[i][one[columns[i]]] for i in asked)
            found.setdefault(asked, {}).setdefault(demands, []).append(number)
    return list(found.items())


def _by_axis(one: Class, feed: Feed) -> dict[str | None, Demand]:
    """What a class asks, by the column whose values answer it; null for what is asked of whole rows."""
    found: dict[str | None, set[Atom]] = {}
    for atom in one:
        column = atom.column
        if atom.condition is not None and feed.types[atom.condition.column] is not ColumnType.STRING:
            equality = feed.types[atom.condition.column] is ColumnType.INT and atom.condition.op in ("=", "in")
            column = column if equality else None
        found.setdefault(column, set()).add(atom)
    return {column: frozenset(some) for column, some in found.items()}


class _Axis:
    """Different demands on an axis; a signature is a set of satisfied ones."""

    def __init__(self, demands: Sequence[Demand | None]) -> None:
        self.demands = list(dict.fromkeys(one for one in demands if one is not None))
        self.demanded = {one: number for number, one in enumerate(self.demands)}
        self.kinds: dict[Hashable, int] = {(): 0}
        self.members: list[tuple[int, ...]] = [()]

    def kind(self, satisfied: tuple[int, ...]) -> int:
        """The signature of a set of demands."""
        number = self.kinds.setdefault(satisfied, len(self.members))
        if number == len(self.members):
            self.members.append(satisfied)
        return number


class _Values(_Axis):
    """An axis whose values are few: each is asked once."""

    def __init__(self, column: str, demands: Sequence[Demand | None]) -> None:
        super().__init__(demands)
        self.column = column
        self.equal: dict[Any, list[int]] = {}
        self.beginning: dict[str, list[int]] = {}
        self.others: list[int] = []
        for number, demand in enumerate(self.demands):
            self._file(number, demand)
        self.lengths = sorted({len(text) for text in self.beginning})
        self.known: dict[Any, int] = {}
        self.of_entity = np.zeros(0, np.int64)

    def _file(self, number: int, demand: Demand) -> None:
        """Files a demand where values that may satisfy it are looked up."""
        for atom in demand:
            if atom.condition is not None and atom.condition.op in ("=", "in"):
                constant = atom.condition.constant
                for value in set(constant) if isinstance(constant, tuple) else {constant}:
                    self.equal.setdefault(value, []).append(number)
                return
        for atom in demand:
            if atom.prefix is not None:
                self.beginning.setdefault(atom.prefix[1], []).append(number)
                return
        self.others.append(number)

    def signatures(self, batch: Batch) -> Ints:
        if self.column == ENTITY:
            return self._of_entities(batch)
        column = batch.column(self.column)
        encoded = column.dictionary_encode()
        if len(self.known) > MOST_VALUES:
            self.known = {}
        own = np.array([0, *(self._signature(value) for value in encoded.dictionary.to_pylist())], np.int64)
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        return np.asarray(own[codes + 1], np.int64)

    def _of_entities(self, batch: Batch) -> Ints:
        codes = batch.entity
        have, names = len(self.of_entity), batch.entities.names
        if (highest := int(codes.max(initial=-1))) >= have:
            fresh = [self._asked(name) for name in names[have : highest + 1]]
            self.of_entity = np.append(self.of_entity, np.array(fresh, np.int64))
        return self.of_entity[codes]

    def _signature(self, value: Any) -> int:
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = self._asked(value)
        return found

    def _asked(self, value: Any) -> int:
        if value is None:
            return 0
        candidates = [*self.equal.get(value, ()), *self.others]
        for length in self.lengths:
            candidates += self.beginning.get(value[:length], ()) if len(value) >= length else ()
        return self.kind(tuple(sorted(number for number in set(candidates) if all(_holds(atom, value) for atom in self.demands[number]))))


class _Masks(_Axis):
    """The axis of all that is asked of whole rows."""

    column = None

    def __init__(self, demands: Sequence[Demand | None]) -> None:
        super().__init__(demands)
        self.atoms = list(dict.fromkeys(atom for demand in self.demands for atom in demand))
        numbers = {atom: i for i, atom in enumerate(self.atoms)}
        self.parts = [frozenset(numbers[atom] for atom in demand) for demand in self.demands]
        self.seen: dict[bytes, int] = {}

    def signatures(self, batch: Batch) -> Ints:
        asked = np.column_stack([_mask(atom, batch) for atom in self.atoms])
        packed = np.ascontiguousarray(np.packbits(asked, axis=1))
        distinct, first, inverse = np.unique(packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1), return_index=True, return_inverse=True)
        own = np.array([self._signature(one.tobytes(), asked[at]) for one, at in zip(distinct, first.tolist(), strict=True)], np.int64)
        return own[inverse.reshape(-1)] if len(own) else np.zeros(len(batch), np.int64)

    def _signature(self, packed: bytes, bits: npt.NDArray[np.bool_]) -> int:
        if packed not in self.seen:
            true = set(np.flatnonzero(bits).tolist())
            self.seen[packed] = self.kind(tuple(number for number, part in enumerate(self.parts) if part <= true))
        return self.seen[packed]


class _Pairs:
    """Numbers for pairs of codes: a dense table while it is small, else one by one."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []
        self.numbers: dict[tuple[int, int], int] = {}
        self.table = np.full((16, 16), -1, np.int64)

    def codes(self, first: Ints, second: Ints) -> Ints:
        rows, columns = int(first.max(initial=0)) + 1, int(second.max(initial=0)) + 1
        have = self.table.shape
        if (rows > have[0] or columns > have[1]) and max(2 * rows, have[0]) * max(2 * columns, have[1]) <= _DENSE:
            larger = np.full((max(2 * rows, have[0]), max(2 * columns, have[1])), -1, np.int64)
            larger[: have[0], : have[1]] = self.table
            self.table = larger
        if rows <= self.table.shape[0] and columns <= self.table.shape[1]:
            found = self.table[first, second]
            new = np.flatnonzero(found < 0)
            if len(new):
                for one, other in np.unique(np.column_stack([first[new], second[new]]), axis=0).tolist():
                    self.table[one, other] = self._number(one, other)
                found[new] = self.table[first[new], second[new]]
            return found
        distinct, inverse = np.unique(np.column_stack([first, second]), axis=0, return_inverse=True)
        return np.array([self._number(one, other) for one, other in distinct.tolist()], np.int64)[inverse.reshape(-1)]

    def _number(self, first: int, second: int) -> int:
        number = self.numbers.setdefault((first, second), len(self.parts))
        if number == len(self.parts):
            self.parts.append((first, second))
        return number


def _holds(atom: Atom, value: Any) -> bool:
    """Whether one value of the atom's column satisfies it."""
    if atom.condition is not None:
        return atom.condition.holds(value)
    assert atom.prefix is not None
    return bool(value.startswith(atom.prefix[1]))


def _mask(atom: Atom, batch: Batch) -> npt.NDArray[np.bool_]:
    """Which rows satisfy an atom of whole rows."""
    if atom.condition is not None:
        return atom.condition.mask(batch)
    assert atom.region is not None
    inside = atom.region.contains(batch.x, batch.y)
    return inside if not atom.outside else ~inside & ~np.isnan(batch.x) & ~np.isnan(batch.y)
