"""The stored events of all queries of a partition, each once, and the domains that refer to them;
the store grows, shrinks and is serialised."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.constraint_queries.expiration import DOMAINS, NEVER, most_alive
from engine.constraint_queries.pairs import SPAN, ConstraintEvents, Graphs, Ints
from engine.constraint_queries.pool import Pool, allocate_found, allocate_pool
from engine.constraint_queries.rings import BITS, EVENT, UNTIL, DomainRings, alive, corners_of, empty_rings, latest_ends, move_events

LEAST_ROOM = 64
_DOMAIN = ("member", "until", "bits")
STATE_VERSION = 4
"""Version of the serialised form."""


@dataclass(frozen=True)
class Slots:
    """The compared columns: `texts` and `wholes` (int, bool) are the rows of `Events.ints`,
    `doubles` the rows of `Events.floats`."""

    texts: tuple[str, ...] = ()
    wholes: tuple[str, ...] = ()
    doubles: tuple[str, ...] = ()

    @property
    def numbers(self) -> dict[str, int]:
        """The slot of each column; ~slot for a double."""
        return {column: slot for slot, column in enumerate((*self.texts, *self.wholes))} | {column: ~slot for slot, column in enumerate(self.doubles)}


class EventStore:
    """Events that queries still need, in (t, arrival), and for each variable
    the events that it may take.

    `texts` are the texts that occur in compared columns, sorted; `events.ints[: len(slots.texts)]`
    hold their positions. `count`: events in the table; some may have expired. `peak`: the greatest
    number stored at a time; an event counts once for all queries that share it, and once for each
    domain of a query of the form `domains`. `kept_at_most` bounds the present number. `work`:
    totals of candidates, searches and solutions; `filtered`: totals of events, and of those that
    some variable might take, counted once for each query.
    """

    def __init__(self, graphs: Graphs, slots: Slots) -> None:
        self.graphs, self.slots = graphs, slots
        self.variables = len(graphs.side)
        self.texts: list[str] = []
        self.count, self.now = 0, int(NEVER)
        self.peak = self.kept_at_most = 0
        self.work, self.filtered = np.zeros(3, np.int64), np.zeros(2, np.int64)
        self.events = self._table(LEAST_ROOM)
        self.rings = empty_rings(np.zeros(self.variables, np.int64), np.zeros(self.variables + 1, np.int64))
        self._widest = int(np.diff(graphs.variables).max(initial=0))
        self._pool = allocate_pool(0, self._widest)
        self.found = allocate_found(LEAST_ROOM, self._widest)
        self._least_settled = LEAST_ROOM
        self.single = np.repeat(graphs.form != DOMAINS, np.diff(graphs.variables))

    # -- room --------------------------------------------------------------------------------------

    def reserve(self, now: int, events: int, rows: Ints) -> None:
        """Makes room for `events` more from time `now` on, of which each
        variable takes at most `rows`."""
        self.now = max(self.now, now)
        if self.count + events > len(self.events.t) or bool((self.rings.tails + rows > self.rings.ends).any()):
            self._rebuild(events, rows)

    def settle(self, now: int) -> None:
        """Drops the events that expired before `now`, if they are probably many."""
        self.now = max(self.now, now)
        if self.count > 2 * self._least_settled:
            self._rebuild(0, np.zeros(self.variables, np.int64))

    def _rebuild(self, events: int, rows: Ints) -> None:
        old, used = self.rings, np.zeros(self.count, np.bool_)
        counts = alive(old.ints, old.heads, old.tails, self.now, used)
        capacities = counts + rows + counts // 2
        new = empty_rings(capacities, corners_of(old, capacities, counts, self.graphs.side))
        move_events(old, self.now, np.cumsum(used) - 1, new, self.graphs.side)
        keep = np.flatnonzero(used)
        table = self._table(max(LEAST_ROOM, len(keep) + events + max(len(keep), events) // 2))
        for name, source in self.events._asdict().items():
            getattr(table, name)[..., : len(keep)] = source[..., keep]
        self.events, self.rings, self.count = table, new, len(keep)
        self._least_settled = max(LEAST_ROOM, self.count)

    def _table(self, capacity: int) -> ConstraintEvents:
        ints, floats = len(self.slots.texts) + len(self.slots.wholes), len(self.slots.doubles)
        t, seq, x, y = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity), np.empty(capacity)
        return ConstraintEvents(
            t, seq, np.empty(capacity, np.int32), x, y, np.empty((3, capacity)), np.empty((ints, capacity), np.int64), np.empty((floats, capacity))
        )

    def append(self, events: ConstraintEvents) -> int:
        """Appends new events; they come after all others in (t, arrival).
        Returns the number of the first."""
        first, self.count = self.count, self.count + len(events.t)
        for name, values in events._asdict().items():
            getattr(self.events, name)[..., first : self.count] = values
        return first

    @property
    def pool(self) -> Pool:
        """Room for all events of any query."""
        capacities = np.concatenate([[0], np.cumsum(self.rings.ends - self.rings.begins)])
        wanted = int(np.diff(capacities[self.graphs.variables]).max(initial=0)) + 1
        if wanted > self._pool.ints.shape[1]:
            self._pool = allocate_pool(wanted + wanted // 2, self._widest)
        return self._pool

    def grow_found(self) -> None:
        """Doubles the room for solutions."""
        self.found = allocate_found(2 * len(self.found.query), self._widest)

    # -- counting ----------------------------------------------------------------------------------

    def update_peak(self, since: Ints, before: Ints) -> None:
        """Updates `peak` after rows were processed. `since` and `before`: the domains' heads
        and tails before these rows."""
        self.kept_at_most += int((self.rings.tails - before).sum())
        if self.kept_at_most > self.peak:
            begun, ends = self._intervals(since)
            self.peak = max(self.peak, most_alive(self.events.t[: self.count], begun, ends))
            self.kept_at_most = int((ends >= self.now).sum())

    def _intervals(self, since: Ints) -> tuple[Ints, Ints]:
        """The number of intervals of being stored that begin with each event, and the
        sorted last times of all."""
        until, begun = np.full(self.count, NEVER, np.int64), np.zeros(self.count, np.int64)
        ends = np.empty(self.count + int((self.rings.tails - since).sum()), np.int64)
        total = latest_ends(self.rings.ints, since, self.rings.tails, self.single, until, begun, ends)
        return begun, np.sort(ends[:total])

    @property
    def kept(self) -> int:
        """The number of events that have not expired; a query of the form `domains` counts one for
        each domain that holds it."""
        _, ends = self._intervals(self.rings.heads)
        return int((ends >= self.now).sum())

    # -- texts -------------------------------------------------------------------------------------

    def ranks(self, columns: Sequence[pa.Array]) -> list[Ints]:
        """Texts as positions in `texts`. Adds new texts there and removes those no
        longer stored; null becomes -1."""
        used = self.events.ints[: len(self.slots.texts), : self.count]
        live = {self.texts[rank] for rank in np.unique(used[used >= 0]).tolist()}
        encoded = [column.dictionary_encode() for column in columns]
        names = [one.dictionary.to_pylist() for one in encoded]
        texts = sorted(live.union(*names))
        position = {text: rank for rank, text in enumerate(texts)}
        moved_to = np.array([position.get(text, -1) for text in self.texts] + [-1], np.int64)
        self.events.ints[: len(self.slots.texts), : self.count] = moved_to[used]
        self.texts = texts
        ranked = [np.array([position[text] for text in own] + [-1], np.int64) for own in names]
        return [rank[pc.fill_null(one.indices, -1).to_numpy(zero_copy_only=False)] for rank, one in zip(ranked, encoded, strict=True)]

    # -- bytes -------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        self._rebuild(0, np.zeros(self.variables, np.int64))
        encoded = [text.encode() for text in self.texts]
        arrays = {
            **{name: column[..., : self.count] for name, column in self.events._asdict().items()},
            **self.domains(),
            "version": np.array([STATE_VERSION], np.int64),
            "counted": np.array([self.now, self.peak, self.kept_at_most, *self.filtered, *self.work], np.int64),
            "text_ends": np.cumsum([0, *map(len, encoded)], dtype=np.int64),
            "texts": np.frombuffer(b"".join(encoded), np.uint8),
        }
        with io.BytesIO() as file:
            np.savez(file, allow_pickle=False, **arrays)
            return file.getvalue()

    def domains(self) -> dict[str, Ints]:
        """The domains, by variable: `lengths`, and concatenated the numbers of events,
        their last times and filters."""
        lengths = self.rings.tails - self.rings.heads
        at = np.repeat(self.rings.heads - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        return {"lengths": lengths, **dict(zip(_DOMAIN, self.rings.ints[:, at][[EVENT, UNTIL, BITS]], strict=True))}

    def load(self, data: bytes) -> None:
        """Inverse of `dump`, for a new store of the same queries. Raises ValueError if the
        bytes are of another version."""
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            if "version" not in arrays.files or arrays["version"][0] != STATE_VERSION:
                raise ValueError(f"the stored events are not of version {STATE_VERSION}")
            columns = {name: arrays[name] for name in arrays.files}
        self.restore(ConstraintEvents._make(columns[name] for name in ConstraintEvents._fields), columns)
        self.now, self.peak, self.kept_at_most = int(columns["counted"][0]), int(columns["counted"][1]), int(columns["counted"][2])
        self.filtered[:], self.work[:] = columns["counted"][3:5], columns["counted"][5:]
        texts, ends = columns["texts"].tobytes(), columns["text_ends"].tolist()
        self.texts = [texts[start:end].decode() for start, end in pairwise(ends)]

    def restore(self, events: ConstraintEvents, domains: Mapping[str, npt.NDArray[Any]]) -> None:
        """Sets the events, and the domains in the form of `domains()`."""
        self.events, self.count = ConstraintEvents._make(np.ascontiguousarray(column) for column in events), len(events.t)
        member = domains["member"]
        tails = np.cumsum(domains["lengths"])
        heads = tails - domains["lengths"]
        ints = np.stack([member, self.events.t[member], domains["until"], domains["bits"]])
        none = np.zeros(self.variables + 1, np.int64)
        place = np.ascontiguousarray(self.events.place[:, member])
        self.rings = DomainRings(ints, place, heads.copy(), heads, tails.copy(), tails, np.empty(0, np.int64), np.empty(0, np.int64), none)
        self._rebuild(0, none[1:])

    def check(self) -> None:
        rings, n = self.rings, self.count
        order = list(zip(self.events.t[:n].tolist(), self.events.seq[:n].tolist(), strict=True))
        assert order == sorted(set(order))
        assert self.texts == sorted(set(self.texts))
        for v in range(self.variables):
            own = slice(rings.heads[v], rings.tails[v])
            assert rings.begins[v] <= rings.heads[v] <= rings.tails[v] <= rings.ends[v]
            member, t, until, _ = rings.ints[:, own]
            assert (np.diff(member) > 0).all() and (member < n).all()
            assert (t == self.events.t[member]).all() and (rings.place[:, own] == self.events.place[:, member]).all()
            assert (until >= t).all() and (until <= t + self.graphs.roles[v, SPAN]).all()
        assert self.kept <= self.kept_at_most
        assert self.kept <= self.peak


def merge_stores(graphs: Graphs, slots: Slots, parts: Sequence[tuple[EventStore, Ints, Ints]]) -> EventStore:
    """A new store made of parts (store, old, new): the variables `old` of the store become the
    variables `new` of the new one.

    An event that several stores hold becomes one event; a compared column is copied
    from the stores that have it.
    """
    stores = [store for store, _, _ in parts]
    found = EventStore(graphs, slots)
    found.now = max([found.now, *(store.now for store in stores)])
    found.work = np.sum([found.work, *(store.work for store in stores)], axis=0)
    found.filtered = np.sum([found.filtered, *(store.filtered for store in stores)], axis=0)
    found.texts = sorted({text for store in stores for text in store.texts})
    shares = [_share(*part, found.now) for part in parts]
    numbers = _numbers(shares)
    table = found._table(max((int(own.max(initial=-1)) + 1 for own in numbers), default=0))
    for share, own in zip(shares, numbers, strict=True):
        _fill(found, table, share.store, share.used, own)
    found.restore(table, _domains(found.variables, shares, numbers))
    found.kept_at_most = found.kept
    found.peak = max([found.kept_at_most, *(store.peak for store in stores)])
    return found


@dataclass(frozen=True)
class _Share:
    """The part of a store that goes into a joined one: the rows of its domains that have not
    expired, and the events they refer to.

    `used`: numbers of the events in `store`, ascending. By row, `variable`: its number in the
    joined store; `position`: the event's in `used`.
    """

    store: EventStore
    used: Ints
    variable: Ints
    position: Ints
    until: Ints
    bits: Ints


def _share(store: EventStore, old: Ints, new: Ints, now: int) -> _Share:
    own = store.domains()
    becomes = np.full(store.variables, -1, np.int64)
    becomes[old] = new
    variable = becomes[np.repeat(np.arange(store.variables), own["lengths"])]
    live = (variable >= 0) & (own["until"] >= now)
    used, position = np.unique(own["member"][live], return_inverse=True)
    return _Share(store, used, variable[live], position, own["until"][live], own["bits"][live])


def _numbers(shares: Sequence[_Share]) -> list[Ints]:
    """For each share its events' numbers among all events in (t, arrival); equal arrival
    numbers are the same event."""
    t, seq = (_concat([getattr(share.store.events, name)[share.used] for share in shares]) for name in ("t", "seq"))
    _, first, which = np.unique(seq, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.lexsort((seq[first], t[first]))] = np.arange(len(first))
    ends = np.cumsum([0, *(len(share.used) for share in shares)]).tolist()
    return [number[which[begin:end]] for begin, end in pairwise(ends)]


def _domains(variables: int, shares: Sequence[_Share], numbers: Sequence[Ints]) -> dict[str, Ints]:
    """The domains of all shares in the form of `EventStore.domains`; `numbers`:
    those of each share's events."""
    variable, until, bits = (_concat([getattr(share, name) for share in shares]) for name in ("variable", "until", "bits"))
    member = _concat([own[share.position] for share, own in zip(shares, numbers, strict=True)])
    order = np.lexsort((member, variable))
    return {"lengths": np.bincount(variable, minlength=variables), "member": member[order], "until": until[order], "bits": bits[order]}


def _concat(pieces: Sequence[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *pieces])


def _fill(found: EventStore, table: ConstraintEvents, store: EventStore, used: Ints, at: Ints) -> None:
    """Writes the events `used` of one store to the rows `at`, with the compared
    columns that both stores have."""
    for name, column in table._asdict().items():
        if name not in ("ints", "floats"):
            column[..., at] = getattr(store.events, name)[..., used]
    rank = {text: position for position, text in enumerate(found.texts)}
    ranks = np.array([rank[text] for text in store.texts] + [-1], np.int64)
    old = store.slots.numbers
    for name, slot in found.slots.numbers.items():
        if name in old and slot < 0:
            table.floats[~slot, at] = store.events.floats[~old[name], used]
        elif name in old:
            values = store.events.ints[old[name], used]
            table.ints[slot, at] = ranks[values] if name in found.slots.texts else values
