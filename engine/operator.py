"""The one contract each query family fulfils.

An operator evaluates ALL registered queries of its family on one feed together. It is a pure
machine: no I/O, no clock, no randomness, no call back into the runtime; the runtime calls it. It
has one or two **stages**:

    rows --partition by entity--> keyed stage --emitted rows, partition by route--> relational stage
                                      |                                                  |
                                      +--------------------- changes --------------------+

The keyed stage sees every row of the entities of its partition (any number of partitions
gives the same answer). What needs several entities is passed on as rows with a `route`: a
query, a space cell, a pair. A family without that has one stage. A query whose rows cost more
to send on than to read (`Operator.is_broadcast`) has both stages in one partition, which sees
every row of all entities.

**Watermark.** `step(..., watermark)`: every row that is still to come has t >= watermark and, where
t is equal, a greater seq than all rows given so far. So an ORDERED stage receives rows with t <=
watermark sorted by (t, seq), each step after the one before; a timer with due time d fires once
watermark > d, before any row with t > d and after all rows with t <= d. At the end of input the
runtime steps once more with an empty batch that is marked as the end (`Batch.ended`) and watermark
= last accepted t + 1. An ARRIVAL stage
receives accepted rows as they arrive, sorted by seq; its batch may hold rows beyond the watermark,
and it may state answers early and revise them: changes are signed.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.batch import Batch
from engine.model.changes import NO_CHANGES
from engine.model.feed import Feed
from engine.model.messages import Message

if TYPE_CHECKING:
    from engine.derive import Source

Index = TypeVar("Index")
State = TypeVar("State")

ROUTE = "route"
"""Column (int64) of emitted rows that names the relational partition: rows with equal
route meet in one partition."""


def relational_partitions(routes: npt.NDArray[np.int64], partitions: int) -> npt.NDArray[np.int64]:
    """The relational partition of each route."""
    mixed = routes.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    home: npt.NDArray[np.int64] = ((mixed >> np.uint64(32)) % np.uint64(partitions)).astype(np.int64)
    return home


def states_by_query(parts: Iterable[tuple[Sequence[RegisteredQuery], Sequence[State]]]) -> dict[tuple[str, int], State]:
    """By query, its state in the first part that knows it; for parts that keep each
    query's state separately."""
    by_query: dict[tuple[str, int], State] = {}
    for queries, states in parts:
        for query, state in zip(queries, states, strict=True):
            by_query.setdefault(query.key, state)
    return by_query


class Delivery(Enum):
    """How a keyed stage wants its rows (see the module's text)."""

    ORDERED = "ordered"
    ARRIVAL = "arrival"


@dataclass(frozen=True)
class RegisteredQuery:
    """A checked query: `id` names it in answers, (`id`, `version`) identifies it, `specification`
    is its family's own type.

    `sources`: whose answers are events of it; they name queries by their ids.
    """

    id: str
    version: int
    specification: Any
    sources: tuple[Source, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        return (self.id, self.version)

    @property
    def route(self) -> int:
        """For `ROUTE`; depends on the query alone, so that it stays in its partition when others
        are added and removed."""
        return zlib.crc32(f"{self.id} {self.version}".encode())


@dataclass(frozen=True)
class Output(Generic[State]):
    """The result of a step: the state after it, signed changes (CHANGES schema) and rows
    for the relational stage.

    `emitted` has the int64 columns `t`, `seq`, `route` and those that the family needs;
    null when there are no rows.
    """

    state: State
    changes: pa.Table = field(default_factory=lambda: NO_CHANGES)
    emitted: pa.RecordBatch | None = None


class QueryStopped(ValueError):
    """One query would exceed its limits; the others continue without it. Raised by a stage's
    `step`; `reason` holds the figure.

    The state passed to that step is lost: the runtime continues from an older one, without the
    query. `key` is RegisteredQuery.key.
    """

    def __init__(self, key: tuple[str, int], reason: str) -> None:
        super().__init__(f"query {key[0]!r}: {reason}")
        self.key, self.reason = key, reason


class OperatorFailed(RuntimeError):
    """An operator failed with an error that no query caused: a fault of the program.
    `name` is its first family."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name, self.reason = name, reason


class Stage(ABC, Generic[Index, State]):
    """One partition's worth of a family's work. Stateless itself: everything
    lives in index and state.

    `ordered`: whether a relational stage needs its rows sorted by (t, seq); if not, those of one
    entity come in the order they were emitted.
    """

    ordered: ClassVar[bool] = True

    @abstractmethod
    def initial(self, index: Index) -> State:
        """State before any row."""

    @abstractmethod
    def step(self, index: Index, state: State, batch: Batch, watermark: int) -> Output[State]:
        """Take the rows of `batch`, fire the timers below `watermark`.

        May reuse the memory of `state` (its ownership passes to this call) but never that of
        `index` or `batch`. The relational stage gets a Batch of emitted rows of its partition,
        sorted by (t, seq) if it is `ordered`, over a separate dictionary.
        """

    @abstractmethod
    def migrate(self, index: Index, parts: Sequence[tuple[Index, State]]) -> State:
        """State for `index` from states of other indexes over the same feed, all at the
        same position of the log.

        Each query of `index` (by RegisteredQuery.key) takes its own state from the part that knows
        it; what belongs to the stream and not to a query comes from the parts together; queries no
        part knows start here, as if the stream's past had been seen without them; states of removed
        queries are dropped. Frees the parts' memory.
        """

    @abstractmethod
    def dump(self, index: Index, state: State) -> bytes:
        """The state as bytes (Arrow IPC or plain arrays; never pickle). Entity codes are kept as
        they are: the runtime stores the partition's dictionary with them."""

    @abstractmethod
    def load(self, index: Index, data: bytes) -> State:
        """Inverse of `dump` under an index compiled from the same queries."""

    def check(self, index: Index, state: State) -> None:
        """Assert the state's invariants; called by tests after each step."""

    def counters(self, index: Index, state: State) -> Mapping[str, int]:
        """Work done so far for `--stats`: the counters of the family's paper, plus `events_kept`;
        `name@query id` counts for one query alone."""
        return {}


class Operator(ABC, Generic[Index]):
    """One or more query families on one feed that share an index (`border` and `transition` do)."""

    families: ClassVar[tuple[str, ...]]
    delivery: ClassVar[Delivery] = Delivery.ORDERED
    keyed: Stage[Index, Any]
    relational: Stage[Index, Any] | None = None

    @abstractmethod
    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> Index:
        """An immutable index over all `queries`; position i of the
        result's answers is `queries[i]`.

        `queries` are checked: compile does not find faults.
        """

    def recompile(self, old: Index, queries: Sequence[RegisteredQuery], feed: Feed) -> Index:
        """As `compile`, when the list has changed since `old`, an index over the same feed that
        stays as it is: a family may keep what is equal."""
        return self.compile(queries, feed)

    def spread(self, index: Index, feed: Feed, partitions: int) -> Index:
        """The index for this many partitions: a family may then divide its work between its stages
        differently. Its answers are the same."""
        return index

    def is_broadcast(self, query: RegisteredQuery) -> bool:
        """Whether one of several partitions evaluates the query over the rows of all entities;
        otherwise its rows are partitioned."""
        return False

    def parts(self, query: RegisteredQuery) -> Mapping[str, Any]:
        """Which parts of a query are evaluated where over several partitions, for `--stats`; empty
        where a query has no parts."""
        return {}

    def horizon(self, query: RegisteredQuery) -> int | None:
        """How far back in event time a new query must read so that its answers are as if it had
        always run; null: the whole log."""
        return None

    def refusal(self, query: RegisteredQuery, feed: Feed, recent: Callable[[], pa.Table]) -> Message | None:
        """Why a new query would exceed a limit, with the figure and a remedy; null
        when no limit is in sight.

        `recent` reads the feed's newest accepted rows, stamped and in order of arrival; none
        when there is no history.
        """
        return None
