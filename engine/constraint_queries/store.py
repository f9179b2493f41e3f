"""The stored events of one query: columns with room, which grow, shrink and travel as bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.constraint_queries.expiration import NEVER
from engine.constraint_queries.pairs import Ints, Rows
from engine.constraint_queries.solver import ENTRIES, KEPT, PEAK, STORED, Book

LEAST_ROOM = 64


class Store:
    """Events that queries still need, in (t, arrival), with what is known of each.

    `texts` are the texts that occur in compared columns, sorted; `rows.ints[:, :text_slots]` hold their positions. Counters are totals of the query.
    """

    def __init__(self, variables: int, text_slots: int, ints: int, floats: int) -> None:
        self.variables, self.text_slots = variables, text_slots
        self.texts: list[str] = []
        self.rows = _rows(LEAST_ROOM, ints, floats)
        self.book = _book(LEAST_ROOM, variables)
        self.candidates, self.searches, self.solutions = (np.zeros(1, np.int64) for _ in range(3))

    @property
    def stored(self) -> int:
        return int(self.book.size[STORED])

    @property
    def kept(self) -> int:
        """Events whose time is not over (in the form `domains` one for each domain that holds it)."""
        return int(self.book.size[KEPT])

    @property
    def peak(self) -> int:
        return int(self.book.size[PEAK])

    @property
    def untouched(self) -> bool:
        """Whether nothing ever came here, as in all partitions but one."""
        return not (self.stored or self.peak or self.candidates[0] or self.solutions[0])

    def settle(self, now: int, room: int) -> None:
        """Makes room for `room` more; drops what is over before `now` when that is much or the room is needed."""
        keep = np.flatnonzero(self.book.expires[: self.stored] >= now)
        over, have = self.stored - len(keep), len(self.rows.t)
        if self.stored + room <= have and over <= len(keep) // 4:
            return
        wanted = max(LEAST_ROOM, len(keep) + room)
        size = have if have // 4 <= wanted <= have else wanted + wanted // 2
        peak = self.book.size[PEAK]
        self._rebuild(Rows._make(column[keep] for column in self.rows), self.book.expires[keep], size)
        self.book.size[PEAK] = max(peak, self.kept)

    def _rebuild(self, rows: Rows, expires: Ints, room: int) -> None:
        """The state that holds exactly `rows`. Members, counts and heap follow from them."""
        n = len(expires)
        self.rows, self.book = _rows(room, rows.ints.shape[1], rows.floats.shape[1]), _book(room, self.variables)
        for name, values in rows._asdict().items():
            getattr(self.rows, name)[:n] = values
        self.book.expires[:n] = expires
        for i in range(self.variables):
            own = np.flatnonzero((rows.roles >> i) & 1)
            self.book.members[i, : len(own)] = own
            self.book.tails[i] = len(own)
        order = np.argsort(expires, kind="stable")  # A sorted list is a heap.
        self.book.times[:n], self.book.events[:n] = expires[order], order
        self.book.size[[STORED, KEPT, ENTRIES]] = n

    def ranks(self, columns: Sequence[Sequence[str | None]]) -> npt.NDArray[np.int64]:
        """Texts as (columns, rows) positions in `texts`, which takes up new ones and forgets those no longer stored; null becomes -1."""
        used = self.rows.ints[: self.stored, : self.text_slots]
        live = {self.texts[rank] for rank in np.unique(used[used >= 0]).tolist()}
        texts = sorted(live | {text for column in columns for text in column if text is not None})
        position = {text: rank for rank, text in enumerate(texts)}
        moved = np.array([position.get(text, -1) for text in self.texts] + [-1], np.int64)
        self.rows.ints[: self.stored, : self.text_slots] = moved[used]
        self.texts = texts
        return np.array([[-1 if text is None else position[text] for text in column] for column in columns], np.int64)

    # -- bytes --------------------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as plain arrays."""
        rows = {name: column[: self.stored] for name, column in self.rows._asdict().items()}
        counted = [self.peak, *self.candidates, *self.searches, *self.solutions]
        encoded = [text.encode() for text in self.texts]
        return {
            **rows,
            "expires": self.book.expires[: self.stored],
            "counted": np.array(counted, np.int64),
            "text_ends": np.cumsum([0, *map(len, encoded)], dtype=np.int64),
            "texts": np.frombuffer(b"".join(encoded), np.uint8),
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Inverse of `arrays`, for a store of the same query."""
        expires = arrays["expires"]
        self._rebuild(Rows._make(arrays[name] for name in Rows._fields), expires, len(expires) + LEAST_ROOM)
        self.book.size[PEAK], self.candidates[0], self.searches[0], self.solutions[0] = arrays["counted"]
        texts, ends = arrays["texts"].tobytes(), arrays["text_ends"].tolist()
        self.texts = [texts[start:end].decode() for start, end in pairwise(ends)]

    def check(self) -> None:
        rows, book, n = self.rows, self.book, self.stored
        assert self.kept == n - int(book.gone[:n].sum())
        order = list(zip(rows.t[:n].tolist(), rows.seq[:n].tolist(), strict=True))
        assert order == sorted(order)
        assert (rows.roles[:n] & ~rows.unary[:n] == 0).all() and (rows.roles[:n] != 0).all()
        assert (book.expires[:n] >= rows.t[:n]).all()
        assert self.texts == sorted(set(self.texts))
        for i in range(self.variables):
            members = book.members[i, book.heads[i] : book.tails[i]]
            assert (np.diff(members) > 0).all()
            present = np.flatnonzero(((rows.roles[:n] >> i) & 1).astype(bool) & ~book.gone[:n])
            assert np.isin(present, members).all()


def pack(stores: Mapping[str, Store]) -> bytes:
    """Stores by name as bytes; untouched ones take no room."""
    used = {name: store.arrays() for name, store in stores.items() if not store.untouched}
    with io.BytesIO() as file:
        np.savez(file, allow_pickle=False, **{f"{name} {key}": value for name, arrays in used.items() for key, value in arrays.items()})
        return file.getvalue()


def unpack(data: bytes, stores: Mapping[str, Store]) -> None:
    """Fills empty stores with what `pack` made of their like."""
    found: dict[str, dict[str, npt.NDArray[Any]]] = {}
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for name in arrays.files:
            store, _, key = name.partition(" ")
            found.setdefault(store, {})[key] = arrays[name]
    for name, columns in found.items():
        stores[name].restore(columns)


def _rows(room: int, ints: int, floats: int) -> Rows:
    def whole() -> Ints:
        return np.zeros(room, np.int64)

    return Rows(
        whole(), whole(), np.zeros(room, np.int32), np.zeros(room), np.zeros(room), whole(), whole(),
        np.zeros((room, 3)), np.zeros((room, ints), np.int64), np.zeros((room, floats)),
    )  # fmt: skip


def _book(room: int, variables: int) -> Book:
    return Book(
        np.full(room, NEVER, np.int64), np.zeros(room, np.bool_), np.zeros((variables, room), np.int64), np.zeros(variables, np.int64),
        np.zeros(variables, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(4, np.int64),
    )  # fmt: skip
