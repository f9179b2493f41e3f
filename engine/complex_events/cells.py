"""The query index: which classes each event belongs to.

[RFID] 3.1 has a grid over readers and tags, with the queries of each cell. Here every column with
conditions is an axis: the set of conditions that a value of the column satisfies is its
**signature**, a cell is a combination of signatures, and a cell's classes are found when an event
first falls into it, for all new cells of a batch together (`_Tree`). For columns of texts, and of
whole numbers that are compared for equality, conditions are evaluated once for each distinct value;
all others (order of numbers, regions) once a batch for all rows.

This is a cache, derived from the classes and the values seen; it is not
part of the operator's state.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from engine.complex_events.classes import Atom, Class, Predicate
from engine.complex_events.search import Ints
from engine.model.batch import ENTITY, Batch

MOST_VALUES = 1_000_000
"""The greatest number of cached values of one column."""
_DENSE = 4_000_000
_AT_ONCE = 4_000_000
"""The greatest number of candidates that are processed at once when the
classes of new cells are found."""
_UNKNOWN = -1


class Cells:
    """Finds the classes of events."""

    def __init__(self, classes: Sequence[Class]) -> None:
        columns = sorted({column for one in classes for column, _ in one if column is not None})
        numbers: dict[str | None, dict[Predicate, int]] = {column: {} for column in [*columns, None]}
        asked = np.full((len(classes), len(numbers)), _UNKNOWN, np.int64)
        owner = np.repeat(np.arange(len(classes)), [len(one) for one in classes])
        places = {column: i for i, column in enumerate(numbers)}
        place = [places[column] for one in classes for column, _ in one]
        asked[owner, place] = [_number(numbers[column], predicate) for one in classes for column, predicate in one]
        self.axes: list[_Values | _Masks] = [_Values(column, list(numbers[column])) for column in columns]
        if numbers[None]:
            self.axes.append(_Masks(list(numbers[None])))
        kinds, tree_of = np.unique(asked >= 0, axis=0, return_inverse=True)
        trees = ((np.flatnonzero(kind), np.flatnonzero(tree_of.reshape(-1) == i)) for i, kind in enumerate(kinds))
        self.trees = [_Tree(axes.tolist(), asked[np.ix_(own, axes)], own, [len(self.axes[i].predicates) for i in axes]) for axes, own in trees]
        self.pairs = [_Pairs() for _ in self.axes[1:]]
        self.known = np.zeros(0, np.int64)
        """The position in `ends` of the cell of each code, or _UNKNOWN."""
        self.ends = np.zeros(1, np.int64)
        self.classes = np.zeros(0, np.int64)

    def classes_of_rows(self, batch: Batch) -> tuple[Ints, Ints]:
        """The classes of each row in CSR form: ends (n + 1) and classes, ascending in each row."""
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
        """Positions of cells in `ends`; new cells get the next ones."""
        if (more := int(code.max(initial=-1)) + 1 - len(self.known)) > 0:
            self.known = np.append(self.known, np.full(more + len(self.known), _UNKNOWN))
        new = np.unique(code[self.known[code] == _UNKNOWN])
        if len(new):
            cells, classes = self._classes_of(new)
            self.known[new] = len(self.ends) - 1 + np.arange(len(new))
            self.ends = np.append(self.ends, self.ends[-1] + np.cumsum(np.bincount(cells, minlength=len(new))))
            self.classes = np.append(self.classes, classes)
        return self.known[code]

    def _classes_of(self, codes: Ints) -> tuple[Ints, Ints]:
        """Classes whose predicates are all satisfied by the cells' signatures: pairs (index
        in `codes`, class), sorted."""
        signatures: list[Ints] = []
        for pairs in reversed(self.pairs):
            codes, last = pairs.first[codes], pairs.second[codes]
            signatures.append(last)
        signatures = [codes, *reversed(signatures)]
        parts = [tree.classes_of([self.axes[i].predicates_of(signatures[i]) for i in tree.axes], len(codes)) for tree in self.trees]
        cells, classes = (np.concatenate([codes[:0], *column]) for column in zip((codes[:0], codes[:0]), *parts, strict=True))
        order = np.lexsort((classes, cells))
        return cells[order], classes[order]


def _number(numbers: dict[Predicate, int], one: Predicate) -> int:
    """The number of a predicate; a new one gets the next number."""
    return numbers.setdefault(one, len(numbers))


class _Satisfied:
    """The predicates that cells satisfy on one axis: `predicates[ends[s]:ends[s + 1]]`
    for signature s, ascending."""

    def __init__(self, signatures: Ints, ends: Ints, predicates: Ints) -> None:
        self.signatures, self.ends, self.predicates = signatures, ends, predicates

    def counts(self, cells: Ints) -> Ints:
        own = self.signatures[cells]
        return np.asarray(self.ends[own + 1] - self.ends[own], np.int64)


class _Level:
    """The nodes of a tree on one level: a node's code is its parent * `many` +
    its predicate; codes ascend."""

    def __init__(self, codes: Ints, above: int, many: int) -> None:
        self.codes, self.many = codes, many
        self.ends = np.searchsorted(codes, np.arange(above + 1) * many)

    def below(self, cells: Ints, nodes: Ints, held: _Satisfied) -> tuple[Ints, Ints]:
        """Pairs (cell, node of this level) below pairs (cell, node), if the cell
        satisfies the node's predicate."""
        few = held.counts(cells) <= self.ends[nodes + 1] - self.ends[nodes]
        one, other = self._match_by_predicate(cells[few], nodes[few], held), self._match_by_node(cells[~few], nodes[~few], held)
        return np.append(one[0], other[0]), np.append(one[1], other[1])

    def _match_by_predicate(self, cells: Ints, nodes: Ints, held: _Satisfied) -> tuple[Ints, Ints]:
        """For cells that satisfy few predicates: each predicate is looked up among the nodes."""
        owner, at = _spread(held.ends, held.signatures[cells])
        found, there = _places(self.codes, nodes[owner] * self.many + held.predicates[at])
        return cells[owner[there]], found[there]

    def _match_by_node(self, cells: Ints, nodes: Ints, held: _Satisfied) -> tuple[Ints, Ints]:
        """For nodes with few children: the predicate of each child is looked up among
        those that the cell satisfies."""
        owner, at = _spread(self.ends, nodes)
        satisfied = np.repeat(np.arange(len(held.ends) - 1), np.diff(held.ends)) * self.many + held.predicates
        _, there = _places(satisfied, held.signatures[cells[owner]] * self.many + self.codes[at] % self.many)
        return cells[owner[there]], at[there]


class _Tree:
    """A prefix tree of the classes with predicates on the same axes, by their predicates axis by
    axis: it joins cells' signatures with all these classes."""

    def __init__(self, axes: Sequence[int], predicates: Ints, classes: Ints, many: Sequence[int]) -> None:
        """`predicates`: those of each class on each axis; `many`: the number of
        distinct predicates of each axis."""
        self.axes, self.levels = axes, list[_Level]()
        node, above = np.zeros(len(classes), np.int64), 1
        for column, most in zip(predicates.T, many, strict=True):
            codes, node = np.unique(node * most + column, return_inverse=True)
            self.levels.append(_Level(codes, above, most))
            above = len(codes)
        self.ends = np.append(0, np.cumsum(np.bincount(node, minlength=above)))
        self.classes = classes[np.argsort(node, kind="stable")]

    def classes_of(self, held: Sequence[_Satisfied], count: int) -> tuple[Ints, Ints]:
        """Pairs (cell, class) for `count` cells."""
        return self._descend(0, np.arange(count), np.zeros(count, np.int64), held)

    def _descend(self, level: int, cells: Ints, nodes: Ints, held: Sequence[_Satisfied]) -> tuple[Ints, Ints]:
        """Pairs (cell, class) below pairs (cell, node); in parts if they are too many at once."""
        while level < len(self.levels):
            here = self.levels[level]
            if len(cells) > 1 and np.minimum(held[level].counts(cells), here.ends[nodes + 1] - here.ends[nodes]).sum() > _AT_ONCE:
                half = len(cells) // 2
                parts = [self._descend(level, cells[some], nodes[some], held) for some in (slice(half), slice(half, None))]
                return np.append(parts[0][0], parts[1][0]), np.append(parts[0][1], parts[1][1])
            cells, nodes = here.below(cells, nodes, held[level])
            level += 1
        owner, at = _spread(self.ends, nodes)
        return cells[owner], self.classes[at]


def _spread(ends: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The items of rows in CSR form: for each item the index of its row in
    `rows`, and the item's position."""
    starts, lengths = ends[rows], ends[rows + 1] - ends[rows]
    owner = np.repeat(np.arange(len(rows)), lengths)
    return owner, np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(owner))


def _places(ascending: Ints, wanted: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The positions of numbers among ascending ones, and whether they are among them."""
    at = np.searchsorted(ascending, wanted)
    there = at < len(ascending)
    there[there] = ascending[at[there]] == wanted[there]
    return at, there


class _Axis:
    """The distinct predicates on an axis; a signature is a set of satisfied ones."""

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        self.predicates = predicates
        self.kinds: dict[Hashable, int] = {(): 0}
        self.members: list[tuple[int, ...]] = [()]
        self.ends, self.satisfied = np.zeros(1, np.int64), np.zeros(0, np.int64)

    def kind(self, satisfied: tuple[int, ...]) -> int:
        """The signature of a set of predicates."""
        number = self.kinds.setdefault(satisfied, len(self.members))
        if number == len(self.members):
            self.members.append(satisfied)
        return number

    def predicates_of(self, signatures: Ints) -> _Satisfied:
        """The predicates that cells with these signatures satisfy."""
        if fresh := self.members[len(self.ends) - 1 :]:
            self.ends = np.append(self.ends, self.ends[-1] + np.cumsum([len(one) for one in fresh]))
            self.satisfied = np.append(self.satisfied, np.array(list(chain.from_iterable(fresh)), np.int64))
        return _Satisfied(signatures, self.ends, self.satisfied)


class _Values(_Axis):
    """An axis with few distinct values: predicates are evaluated once for each."""

    def __init__(self, column: str, predicates: Sequence[Predicate]) -> None:
        super().__init__(predicates)
        self.column = column
        self.equal: dict[Any, list[int]] = {}
        self.beginning: dict[str, list[int]] = {}
        self.others: list[int] = []
        for number, predicate in enumerate(self.predicates):
            self._index_predicate(number, predicate)
        self.lengths = sorted({len(text) for text in self.beginning})
        self.known: dict[Any, int] = {}
        self.of_entity = np.zeros(0, np.int64)

    def _index_predicate(self, number: int, predicate: Predicate) -> None:
        """Adds a predicate to the lookup tables of the values that may satisfy it."""
        for atom in predicate:
            if atom.condition is not None and atom.condition.op in ("=", "in"):
                constant = atom.condition.constant
                for value in set(constant) if isinstance(constant, tuple) else {constant}:
                    self.equal.setdefault(value, []).append(number)
                return
        for atom in predicate:
            if atom.prefix is not None:
                self.beginning.setdefault(atom.prefix[1], []).append(number)
                return
        self.others.append(number)

    def signatures(self, batch: Batch) -> Ints:
        if self.column == ENTITY:
            return self._entity_signatures(batch)
        column = batch.column(self.column)
        encoded = column.dictionary_encode()
        if len(self.known) > MOST_VALUES:
            self.known = {}
        own = np.array([0, *(self._signature(value) for value in encoded.dictionary.to_pylist())], np.int64)
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        return np.asarray(own[codes + 1], np.int64)

    def _entity_signatures(self, batch: Batch) -> Ints:
        codes, names = batch.entity, batch.entities.names
        if (more := int(codes.max(initial=-1)) + 1 - len(self.of_entity)) > 0:
            self.of_entity = np.append(self.of_entity, np.full(more + len(self.of_entity), _UNKNOWN))
        # An answer used as an event may have no entity: it satisfies no
        # predicate, which is signature 0.
        found = np.zeros(len(codes), np.int64)
        named = np.flatnonzero(codes >= 0)
        codes = codes[named]
        fresh = np.unique(codes[self.of_entity[codes] == _UNKNOWN])
        self.of_entity[fresh] = [self._compute_signature(names[code]) for code in fresh.tolist()]
        found[named] = self.of_entity[codes]
        return found

    def _signature(self, value: Any) -> int:
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = self._compute_signature(value)
        return found

    def _compute_signature(self, value: Any) -> int:
        if value is None:
            return 0
        candidates = [*self.equal.get(value, ()), *self.others]
        for length in self.lengths:
            candidates += self.beginning.get(value[:length], ()) if len(value) >= length else ()
        return self.kind(tuple(sorted(number for number in set(candidates) if all(_holds(atom, value) for atom in self.predicates[number]))))


class _Masks(_Axis):
    """The axis of all predicates that are evaluated on whole rows."""

    column = None

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        super().__init__(predicates)
        self.atoms = list(dict.fromkeys(atom for predicate in self.predicates for atom in predicate))
        numbers = {atom: i for i, atom in enumerate(self.atoms)}
        self.parts = [frozenset(numbers[atom] for atom in predicate) for predicate in self.predicates]
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
    """Numbers pairs of codes, by a dense table while it is small; `first`,
    `second`: the pair of each number."""

    def __init__(self) -> None:
        self.first, self.second = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.table = np.zeros((0, 0), np.int64)

    def codes(self, first: Ints, second: Ints) -> Ints:
        rows, columns = int(first.max(initial=0)) + 1, int(second.max(initial=0)) + 1
        have = self.table.shape
        if (rows > have[0] or columns > have[1]) and max(2 * rows, have[0]) * max(2 * columns, have[1]) <= _DENSE:
            larger = np.full((max(2 * rows, have[0]), max(2 * columns, have[1])), _UNKNOWN, np.int64)
            larger[: have[0], : have[1]] = self.table
            self.table = larger
        if rows > self.table.shape[0] or columns > self.table.shape[1]:
            return self._sorted_numbers(first << 32 | second)
        found = self.table[first, second]
        new = np.flatnonzero(found == _UNKNOWN)
        if len(new):
            found[new] = self._sorted_numbers(first[new] << 32 | second[new])
            self.table[first[new], second[new]] = found[new]
        return found

    def _sorted_numbers(self, packed: Ints) -> Ints:
        """The numbers without the table: by sorting."""
        asked, inverse = np.unique(packed, return_inverse=True)
        known = self.first << 32 | self.second
        order = np.argsort(known)
        at, there = _places(known[order], asked)
        numbers = np.cumsum(~there) - 1 + len(known)
        numbers[there] = order[at[there]]
        self.first, self.second = np.append(self.first, asked[~there] >> 32), np.append(self.second, asked[~there] & 0xFFFFFFFF)
        return np.asarray(numbers[inverse.reshape(-1)], np.int64)


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
