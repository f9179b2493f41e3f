"""The results of the non-relational stage in a window, sent to the relational stage: whole lists,
which replace the earlier ones.

One message has the lists of one keyed partition at one query time. It is sent only if it differs
from the one before, so without a message a partition is unchanged. A message consists of integers
and names: codes are the sender's, and their names are in the message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.event_calculus.intervals import Intervals, Ints
from engine.event_calculus.levels import Node
from engine.event_calculus.partitioning import Partitioning, Relation, relation_of
from engine.event_calculus.sharing import Share
from engine.event_calculus.syntax import Indicator
from engine.event_calculus.tables import SYMBOL, FluentTable, Symbols, Table, concat_tables, empty_fluent, stack

if TYPE_CHECKING:
    from engine.event_calculus.evaluation import Evaluation

_HEAD = 8


@dataclass(frozen=True)
class LocalLists:
    """Tables of the nodes and inputs that the keyed stage sends, members of domains, and rows read;
    `without_rows`: the window had no rows."""

    fluents: Mapping[Node, FluentTable]
    events: Mapping[Node, Table]
    inputs: Mapping[Indicator, FluentTable]
    domains: Mapping[Indicator, Table]
    work: int
    without_rows: bool

    def restrict_to(self, share: Share, symbols: Symbols) -> LocalLists:
        fluents = {node: share.filter_fluent(relation_of(node), table, symbols) for node, table in self.fluents.items()}
        inputs = {indicator: share.filter_fluent(Relation(True, *indicator), table, symbols) for indicator, table in self.inputs.items()}
        return replace(self, fluents=fluents, inputs=inputs)

    def copy_to(self, evaluation: Evaluation) -> None:
        """Sets the tables in an evaluation as if it had computed them."""
        evaluation.fluents.update(self.fluents)
        evaluation.inputs.update(self.inputs)
        evaluation.kb.events.update({(node.name, node.arity): table for node, table in self.events.items()})


def encode_lists(partitioning: Partitioning, evaluation: Evaluation, *, without_rows: bool) -> bytes:
    """The message about an evaluated window; `read` is the inverse."""
    kb = evaluation.kb
    fluents: list[tuple[list[Any], FluentTable]] = []
    events: list[tuple[list[Any], Table]] = []
    for node in partitioning.sent:
        if node.kind == "event":
            events.append((list(node), kb.events[node.name, node.arity]))
        else:
            fluents.append((list(node), evaluation.fluents[node]))
    inputs = [(list(indicator), evaluation.inputs[indicator]) for indicator in partitioning.lists if indicator in evaluation.inputs]
    domains = [(list(domain), kb.facts[domain]) for domain in sorted(evaluation.plan.domains) if domain in kb.facts]
    arrays = [array for _, table in [*fluents, *inputs] for array in (table.keys, *table.lists)]
    for _, relation in [*events, *domains]:
        times = np.empty(0, np.int64) if relation.t is None else relation.t
        arrays += [stack(relation.columns, relation.n), times]
    named = [table.keys.reshape(-1) for _, table in [*fluents, *inputs]]
    named += [column for _, relation in [*events, *domains] for column in relation.columns]
    codes = np.unique(np.concatenate([np.empty(0, np.int64), *named]))
    described = {
        "names": [kb.symbols.names[code] for code in codes.tolist()],
        "fluents": [key for key, _ in fluents],
        "inputs": [key for key, _ in inputs],
        "events": [key for key, _ in events],
        "domains": [key for key, _ in domains],
        "shapes": [array.shape for array in arrays],
        "work": kb.work,
        "quiet": without_rows,
    }
    text = json.dumps(described).encode()
    return b"".join([len(text).to_bytes(_HEAD, "little"), text, *(np.ascontiguousarray(array).tobytes() for array in [codes, *arrays])])


def read(message: bytes, symbols: Symbols) -> LocalLists:
    """The lists of a message, in the receiver's codes."""
    start = _HEAD + int.from_bytes(message[:_HEAD], "little")
    described = json.loads(message[_HEAD:start])
    # A copy, because kernels are compiled for writable arrays.
    flat = np.frombuffer(message[start:], np.int64).copy()
    codes = flat[: len(described["names"])]
    own = np.array([symbols.code(name) for name in described["names"]], np.int64)
    arrays, at = [], len(codes)
    for shape in described["shapes"]:
        size = int(np.prod(shape))
        arrays.append(flat[at : at + size].reshape(shape))
        at += size
    parts = iter(arrays)

    def recoded(keys: Ints) -> Ints:
        return own[np.searchsorted(codes, keys)] if keys.size else keys

    def fluent() -> FluentTable:
        return FluentTable(recoded(next(parts)), Intervals(next(parts), next(parts), next(parts)))

    def table() -> Table:
        columns, t = recoded(next(parts)), next(parts)
        return Table(tuple(columns), (SYMBOL,) * len(columns), columns.shape[1], t)

    return LocalLists(
        {Node(*key): fluent() for key in described["fluents"]},
        inputs={(name, arity): fluent() for name, arity in described["inputs"]},
        events={Node(*key): table() for key in described["events"]},
        domains={(name, arity): table() for name, arity in described["domains"]},
        work=described["work"],
        without_rows=described["quiet"],
    )


class LocalMessage(NamedTuple):
    """The lists of a keyed partition at a query time. Partitions are named by the seq of the
    first row that they read."""

    query_time: int
    partition: int
    lists: bytes


@dataclass
class LocalResults:
    """The messages of all keyed partitions.

    `now`: by partition the current lists; `later`: messages of later query times, in order;
    `ahead`: messages of the query time that the clock has not passed yet, valid for one step
    only, in case it is the last.
    """

    now: dict[int, bytes] = field(default_factory=dict)
    later: list[LocalMessage] = field(default_factory=list)
    ahead: list[LocalMessage] = field(default_factory=list, compare=False)
    _read: dict[int, tuple[bytes, LocalLists]] = field(default_factory=dict, repr=False, compare=False)
    _together: tuple[list[bytes], LocalLists] | None = field(default=None, repr=False, compare=False)
    _counting: dict[int, bytes] = field(default_factory=dict, repr=False, compare=False)

    def take(self, settled: Sequence[LocalMessage], ahead: Sequence[LocalMessage]) -> None:
        """Adds the messages of a step; all messages of a query time come before it is decided."""
        self.later = sorted([*self.later, *settled])
        self.ahead = list(ahead)

    def pending_query_times(self) -> list[int]:
        """The first query time at which something changes."""
        return [self.later[0].query_time] if self.later else []

    def advance(self, query_time: int) -> None:
        """Advances to a query time."""
        while self.later and self.later[0].query_time <= query_time:
            message = self.later.pop(0)
            self.now[message.partition] = message.lists
        self._counting = self.now | {message.partition: message.lists for message in self.ahead if message.query_time <= query_time}

    def lists(self, partitioning: Partitioning, symbols: Symbols, share: Share | None = None) -> LocalLists:
        """The lists of all partitions at the current query time; for a share
        only those that it needs."""
        counting = list(self._counting.values())
        if self._together is None or self._together[0] != counting:
            parts = []
            for partition, message in self._counting.items():
                known = self._read.get(partition)
                if known is None or known[0] is not message:
                    known = self._read[partition] = (message, read(message, symbols))
                parts.append(known[1])
            together = _concat(partitioning, parts)
            self._together = (counting, together if share is None else together.restrict_to(share, symbols))
        return self._together[1]

    @property
    def without_rows(self) -> bool:
        """Whether no partition has rows in the window."""
        return self._together is None or self._together[1].without_rows


def _concat(partitioning: Partitioning, parts: Sequence[LocalLists]) -> LocalLists:
    """The lists of all parts, concatenated, because each entity is in one partition."""
    nodes = {fluent: [node for node in partitioning.sent if (node.kind != "event") == fluent] for fluent in (True, False)}
    domains = {domain for part in parts for domain in part.domains}
    return LocalLists(
        {node: _fluents([part.fluents[node] for part in parts], node.arity) for node in nodes[True]},
        {node: _tables([part.events[node] for part in parts], node.arity) for node in nodes[False]},
        {one: _fluents([part.inputs[one] for part in parts if one in part.inputs], one[1]) for one in partitioning.lists},
        {domain: _tables([part.domains[domain] for part in parts if domain in part.domains], domain[1]) for domain in domains},
        sum(part.work for part in parts),
        all(part.without_rows for part in parts),
    )


def _fluents(parts: Sequence[FluentTable], arity: int) -> FluentTable:
    filled = [part for part in parts if part.n]
    return concat_tables(filled) if filled else empty_fluent(arity + 1)


def _tables(parts: Sequence[Table], arity: int) -> Table:
    columns = [np.concatenate([np.empty(0, np.int64), *(part.columns[place] for part in parts)]) for place in range(arity)]
    t = np.concatenate([np.empty(0, np.int64), *(part.t for part in parts if part.t is not None)])
    return Table(tuple(columns), (SYMBOL,) * arity, sum(part.n for part in parts), t)
