"""The operator of the family: rows are routed by query to the partition that keeps its windows.

The keyed stage drops rows that no program reads and stamps the others with the feed's clock at arrival. Query times are the windows' own
timers: a window is evaluated when the clock has passed its end, with the rows that had arrived by then.

With several partitions a program is divided ([dRTEC] 3): the keyed stage evaluates the fluents of one entity (`nonrelational.py`) and sends its
lists; the relational stage merges them, pairs entities and evaluates the rest. With one partition that would double the work.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.event_calculus.answers import NEVER, Change
from engine.event_calculus.conditions import LimitExceeded
from engine.event_calculus.inputs import VALUE, read_rows
from engine.event_calculus.intervals import INF
from engine.event_calculus.local_results import LocalResults, Message
from engine.event_calculus.nonrelational import EntityState, NonRelational
from engine.event_calculus.partitioning import Partitioning, Relation, partitioning_of, relation_of
from engine.event_calculus.sharing import Share, Sharing, sharing_of
from engine.event_calculus.specification import CalculusSpecification
from engine.event_calculus.state import WindowState
from engine.event_calculus.storage import dump_state, load_state
from engine.event_calculus.synopsis import AREA, COURSE, FIRST_SEQ, HEADING, SPEED, SynopsisState, indicators, synopsis_step
from engine.event_calculus.tables import Symbols
from engine.event_calculus.windows import Decision, Windows
from engine.model import messages as words
from engine.model.batch import CLOCK, EVENT, SEQ, TIME, TIME_END, Batch, X, Y
from engine.model.changes import CHANGES, concat
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.model.messages import message_of
from engine.operator import ROUTE, Delivery, Operator, Output, QueryStopped, RegisteredQuery, Stage, homes, states_by_query

ARRIVED = "arrived"
"""Column (int64) of emitted rows: the feed's clock after the row had arrived."""
LISTS = "lists"
"""Column (binary) of emitted rows: lists of the keyed stage at the query time `t`; the row's `event` shows whether the clock has passed it."""
_SETTLED, _AHEAD = "settled", "ahead"
_SMALLEST, _GREATEST = -(1 << 62), 1 << 62


@dataclass(frozen=True)
class Compiled:
    """One query ready to run; `route` is the same in every index that holds the query.

    `names`: names of the rows it reads; `passed`: of those that the relational stage reads; `first`: its windows in the keyed stage, if it is
    divided. `routes`: routes of the shares of its pairs, its own first; each gets all passed rows.
    """

    query: RegisteredQuery
    specification: CalculusSpecification
    windows: Windows
    route: int
    names: pa.Array
    passed: pa.Array
    first: NonRelational | None = None
    routes: tuple[int, ...] = ()

    def to_shares(self, parts: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Emitted rows for each share."""
        if len(self.routes) < 2:
            return list(parts)
        place = [part.schema.get_field_index(ROUTE) for part in parts]
        return [
            part.set_column(at, part.schema.field(at), pa.array(np.full(len(part), route)))
            for route in self.routes
            for part, at in zip(parts, place, strict=True)
        ]

    def take(self, state: WindowState, rows: pa.RecordBatch) -> None:
        """Adds emitted rows of this query to its windows; a row without an event has only the clock."""
        if state.local_results is not None:
            lists = rows.column(LISTS).is_valid()
            self._take_local_results(state.local_results, rows.filter(lists))
            rows = rows.filter(pc.invert(lists))
        arrived = np.asarray(rows.column(ARRIVED))
        seq, t = np.asarray(rows.column(SEQ)), np.asarray(rows.column(TIME))
        real = np.flatnonzero(np.asarray(rows.column(EVENT).is_valid()))
        # Made events do not advance the feed's clock: they become certain later than they happened.
        given = seq < FIRST_SEQ
        clock = int(arrived[given].max()) if given.any() else NEVER
        # What holds initially does not wait for a row that a rule reads.
        starting = np.flatnonzero(given) if self.windows.plan.program.initially else real
        first = int(t[starting[np.argmin(seq[starting])]]) if len(starting) else NEVER
        read = read_rows(rows, arrived, self.specification.inputs, state.symbols, self.windows.settings.tick)
        self.windows.take(state, read, first, clock, t[given], arrived[given])

    @staticmethod
    def _take_local_results(local_results: LocalResults, rows: pa.RecordBatch) -> None:
        kinds = rows.column(EVENT).to_pylist()
        columns = (rows.column(TIME).to_pylist(), (np.asarray(rows.column(SEQ)) - FIRST_SEQ).tolist(), rows.column(LISTS).to_pylist())
        messages = [Message(*message) for message in zip(*columns, strict=True)]
        local_results.take(*([one for one, its in zip(messages, kinds, strict=True) if its == kind] for kind in (_SETTLED, _AHEAD)))


@dataclass(frozen=True)
class CalculusIndex:
    """All calculus queries of a feed. `schema`: that of emitted rows, the columns that some query reads and those added here."""

    queries: tuple[Compiled, ...]
    schema: pa.Schema
    lateness: int


@dataclass
class KeyedState:
    """`clock`: the greatest t seen by this partition, for feeds whose rows carry no clock; `earliest`: the least.

    `synopses`: of the queries that have one, by route.
    `entities`: of the divided queries, by route."""

    clock: int = _SMALLEST
    earliest: int = _GREATEST
    synopses: dict[int, SynopsisState] = field(default_factory=dict)
    entities: dict[int, EntityState] = field(default_factory=dict)


class RoutingStage(Stage[CalculusIndex, KeyedState]):
    """Emits the rows that a query reads, with its route, and one row for each query that has only the clock."""

    def initial(self, index: CalculusIndex) -> KeyedState:
        return KeyedState()

    def step(self, index: CalculusIndex, state: KeyedState, batch: Batch, watermark: int) -> Output[KeyedState]:
        arrived = _arrivals(batch, state) if len(batch) else np.empty(0, np.int64)
        parts = []
        # Rows with an earlier time than all before may be needed (`Windows.needs_first_row`), even if no rule reads them.
        least = np.minimum.accumulate(np.append(state.earliest, batch.t))
        begins = np.flatnonzero(least[1:] < least[:-1])
        state.earliest = int(least[-1])
        for compiled in index.queries:
            own = [] if compiled.specification.synopsis is None else self._critical_points(index, state, compiled, batch, watermark)
            if len(batch):
                own += self._emit(index, state, compiled, batch, watermark, arrived, begins)
            else:
                own += self._lists(index, state, compiled, watermark, silent=True)
            parts += compiled.to_shares(own)
        if not parts:
            return Output(state)
        return Output(state, emitted=parts[0] if len(parts) == 1 else pa.concat_batches(parts))

    def _emit(
        self,
        index: CalculusIndex,
        state: KeyedState,
        compiled: Compiled,
        batch: Batch,
        watermark: int,
        arrived: npt.NDArray[np.int64],
        begins: npt.NDArray[np.int64],
    ) -> list[pa.RecordBatch]:
        """The batch's rows and lists of keyed windows for the relational stage of a query."""
        picked = np.flatnonzero(_relevant(batch, compiled.names, compiled))
        lists = []
        if compiled.specification.arrival is not None:
            given = pc.fill_null(batch.column(compiled.specification.arrival).cast(pa.int64()), _SMALLEST)
            arrived = np.maximum(arrived, np.asarray(given))
        if compiled.first is not None:
            self._take(state, compiled, batch, picked, arrived)
            lists = self._lists(index, state, compiled, watermark, silent=False)
            # Every partition needs the first row, because query times begin with it.
            passed = _relevant(batch, compiled.passed, compiled)
            passed[picked[:1]] = True
            picked = np.flatnonzero(passed)
        return [*lists, _with_clock(index, batch, picked, arrived, compiled.route, begins if compiled.windows.needs_first_row else begins[:0])]

    @staticmethod
    def _take(state: KeyedState, compiled: Compiled, batch: Batch, picked: npt.NDArray[np.int64], arrived: npt.NDArray[np.int64]) -> None:
        """Adds the picked rows to the keyed windows of a divided query."""
        if not len(picked):
            return
        assert compiled.first is not None
        own = state.entities.setdefault(compiled.route, EntityState())
        specification = compiled.specification
        specs = [spec for spec in specification.inputs if spec.indicator in compiled.first.partitioning.keyed.inputs]
        rows = batch.rows if len(picked) == len(batch) else batch.rows.take(pa.array(picked))
        read = read_rows(rows, arrived[picked], specs, own.windows.symbols, specification.settings.tick)
        compiled.first.take(own, read, int(batch.seq[picked[0]]), np.asarray(batch.t)[picked], arrived[picked])

    @staticmethod
    def _lists(index: CalculusIndex, state: KeyedState, compiled: Compiled, watermark: int, *, silent: bool) -> list[pa.RecordBatch]:
        """The messages of the keyed windows with the clock at `watermark`; `silent`: the input may have ended."""
        own = state.entities.get(compiled.route)
        if compiled.first is None or own is None:
            return []
        try:
            settled = compiled.first.advance(own, watermark + index.lateness)
            ahead = compiled.first.ahead(own) if silent else []
        except LimitExceeded as error:
            raise QueryStopped(compiled.query.key, message_of(error)) from error
        messages = [*settled, *ahead]
        columns = {
            EVENT: pa.array([_SETTLED] * len(settled) + [_AHEAD] * len(ahead), pa.string()),
            TIME: pa.array([message.query_time for message in messages], pa.int64()),
            SEQ: pa.array([FIRST_SEQ + message.partition for message in messages], pa.int64()),
            LISTS: pa.array([message.lists for message in messages], pa.binary()),
        }
        return [_to_schema(index, columns, len(messages), compiled.route)] if messages else []

    @staticmethod
    def _critical_points(index: CalculusIndex, state: KeyedState, compiled: Compiled, batch: Batch, watermark: int) -> list[pa.RecordBatch]:
        """The critical points that have become certain."""
        synopsis = compiled.specification.synopsis
        assert synopsis is not None
        own = state.synopses.setdefault(compiled.route, SynopsisState())
        mine = _relevant(batch, pa.array([synopsis.event]), compiled) if len(batch) else np.empty(0, np.bool_)
        found = synopsis_step(synopsis, own, batch, mine, watermark, index.lateness)
        return [] if found is None else [_to_schema(index, {name: found.column(name) for name in found.schema.names}, found.num_rows, compiled.route)]

    def migrate(self, index: CalculusIndex, parts: Sequence[tuple[CalculusIndex, KeyedState]]) -> KeyedState:
        routes = {compiled.route for compiled in index.queries}
        known = {route: own for _, state in reversed(parts) for route, own in state.synopses.items() if route in routes}
        entities = {route: own for _, state in reversed(parts) for route, own in state.entities.items() if route in routes}
        clock = max((state.clock for _, state in parts), default=_SMALLEST)
        # A query registered since then has not received the beginning of time.
        old = {compiled.route for before, _ in parts for compiled in before.queries}
        earliest = min((state.earliest for _, state in parts), default=_GREATEST) if routes <= old else _GREATEST
        return KeyedState(clock, earliest, known, entities)

    def dump(self, index: CalculusIndex, state: KeyedState) -> bytes:
        parts = {f"synopsis {route}": np.frombuffer(own.dump(), np.uint8) for route, own in state.synopses.items()}
        for route, entities in state.entities.items():
            parts[f"windows {route}"] = np.frombuffer(dump_state([entities.windows]), np.uint8)
            parts[f"sent {route}"] = np.frombuffer(entities.partition.to_bytes(8, "little", signed=True) + entities.sent, np.uint8)
        with io.BytesIO() as file:
            np.savez(file, allow_pickle=False, clock=np.array([state.clock, state.earliest]), **parts)
            return file.getvalue()

    def load(self, index: CalculusIndex, data: bytes) -> KeyedState:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            clock, earliest = arrays["clock"].tolist()
            state = KeyedState(clock, earliest)
            for name in arrays.files:
                kind, _, route = name.partition(" ")
                if kind == "synopsis":
                    state.synopses[int(route)] = SynopsisState.load(arrays[name].tobytes())
                elif kind == "windows":
                    sent = arrays[f"sent {route}"].tobytes()
                    windows = load_state(arrays[name].tobytes())[0]
                    state.entities[int(route)] = EntityState(windows, int.from_bytes(sent[:8], "little", signed=True), sent[8:])
            return state

    def counters(self, index: CalculusIndex, state: KeyedState) -> Mapping[str, int]:
        return {"events_kept": sum(own.windows.rows_kept for own in state.entities.values())}


def _relevant(batch: Batch, wanted: pa.Array, compiled: Compiled) -> npt.NDArray[np.bool_]:
    """Which rows have one of the wanted names and satisfy the query's conditions; a row without a name is a position."""
    names = batch.column(EVENT)
    if pa.types.is_null(names.type):
        found = np.full(len(batch), "position" in wanted.to_pylist())
    else:
        found = np.asarray(pc.is_in(names, value_set=wanted).fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
    return found & compiled.specification.where.mask(batch) if compiled.specification.where else found


def _arrivals(batch: Batch, state: KeyedState) -> npt.NDArray[np.int64]:
    """The feed's clock after each row had arrived: the greatest t up to and including it."""
    t = np.asarray(batch.t)
    if batch.has(CLOCK):
        clock = np.asarray(pc.fill_null(batch.column(CLOCK).cast(pa.int64()), _SMALLEST))
    else:
        clock = np.maximum.accumulate(np.concatenate((np.array([state.clock]), t)))[:-1]
    arrived = np.maximum(clock, t)
    state.clock = max(state.clock, int(arrived.max()))
    return np.asarray(arrived, np.int64)


def _with_clock(
    index: CalculusIndex,
    batch: Batch,
    picked: npt.NDArray[np.int64],
    arrived: npt.NDArray[np.int64],
    route: int,
    begins: npt.NDArray[np.int64],
) -> pa.RecordBatch:
    """The picked rows, then rows with only a beginning of time if this batch has any, and last a row with only the clock."""
    empty = [*begins.tolist(), int(np.argmax(arrived))]
    n = len(picked) + len(empty)
    positions = pa.array(np.append(picked, [0] * len(empty)), mask=np.arange(n) >= len(picked))
    columns = {name: batch.rows.column(name).take(positions) for name in index.schema.names if batch.has(name)}
    rows = np.append(picked, empty)
    columns[TIME], columns[SEQ], columns[ARRIVED] = pa.array(batch.t[rows]), pa.array(batch.seq[rows]), pa.array(arrived[rows])
    if EVENT not in columns:
        columns[EVENT] = pa.array(["position"] * len(picked) + [None] * len(empty), pa.string())
    return _to_schema(index, columns, n, route)


def _to_schema(index: CalculusIndex, columns: Mapping[str, pa.Array], n: int, route: int) -> pa.RecordBatch:
    """Columns in the schema of emitted rows; missing columns are null."""
    present = {**columns, ROUTE: pa.array(np.full(n, route))}
    arrays = [present[one.name].cast(one.type) if one.name in present else pa.nulls(n, one.type) for one in index.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=index.schema)


class WindowStage(Stage[CalculusIndex, list[WindowState]]):
    """The windows of the queries routed to this partition; `state[i]` belongs to `index.queries[i]`."""

    ordered: ClassVar[bool] = False

    def initial(self, index: CalculusIndex) -> list[WindowState]:
        return [compiled.windows.initial() for compiled in index.queries]

    def step(self, index: CalculusIndex, state: list[WindowState], batch: Batch, watermark: int) -> Output[list[WindowState]]:
        found = []
        routes = np.asarray(batch.rows.column(ROUTE)) if len(batch) else np.empty(0, np.int64)
        silent = bool((batch.seq >= FIRST_SEQ).all())
        for position, (compiled, own) in enumerate(zip(index.queries, state, strict=True)):
            mine = np.flatnonzero(routes == compiled.route if len(compiled.routes) == 1 else np.isin(routes, compiled.routes))
            try:
                decided: list[Decision] = []
                if len(mine):
                    own.share = compiled.routes.index(routes[mine[0]])
                    compiled.take(own, batch.rows if len(mine) == len(batch) else batch.rows.take(pa.array(mine)))
                    decided += compiled.windows.advance(own)
                if silent and watermark > own.clock != NEVER:
                    # No partition had a row in this step, so the input has ended (or only its clock advanced): no earlier row will come.
                    decided += compiled.windows.conclude(own, watermark - 1)
            except LimitExceeded as error:
                raise QueryStopped(compiled.query.key, message_of(error)) from error
            if own.local_results is not None:
                own.local_results.ahead = []
            found += [changes_of(position, change, own.symbols) for decision in decided for change in decision.changes]
        return Output(state, changes=concat(found).combine_chunks())

    def migrate(self, index: CalculusIndex, parts: Sequence[tuple[CalculusIndex, list[WindowState]]]) -> list[WindowState]:
        known = states_by_query(([compiled.query for compiled in old.queries], state) for old, state in parts)
        return [known.get(compiled.query.key) or compiled.windows.initial() for compiled in index.queries]

    def dump(self, index: CalculusIndex, state: list[WindowState]) -> bytes:
        return dump_state(state)

    def load(self, index: CalculusIndex, data: bytes) -> list[WindowState]:
        states = load_state(data)
        if any(compiled.windows.shares and own.share < 0 for compiled, own in zip(index.queries, states, strict=True)):
            raise ValueError("all pairs were in one partition when the state was written")
        return states

    def check(self, index: CalculusIndex, state: list[WindowState]) -> None:
        assert len(state) == len(index.queries)
        for own in state:
            for table in own.answers.values():
                table.check()

    def counters(self, index: CalculusIndex, state: list[WindowState]) -> Mapping[str, int]:
        return {
            "windows": sum(own.windows for own in state),
            "pairs_examined": sum(own.pairs_examined for own in state),
            "groundings": sum(own.groundings for own in state),
            "events_kept": sum(own.rows_kept for own in state),
        }


def changes_of(position: int, change: Change, symbols: Symbols) -> pa.Table:
    """CHANGES rows of one output: the arguments are the entities, the last key of a fluent is its value."""
    n = len(change.s)
    names = pa.array(symbols.names, pa.string())
    keys = change.keys if change.e is None else change.keys[:-1]
    flat = np.ascontiguousarray(keys.T).reshape(-1)
    end = change.s if change.e is None else change.e
    columns = [
        pa.array(np.full(n, position), pa.int32()),
        pa.array([change.name] * n, pa.string()),
        pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * len(keys), pa.int32()), names.take(pa.array(flat))),
        pa.nulls(n, pa.string()) if change.e is None else names.take(pa.array(change.keys[-1])),
        pa.nulls(n, pa.float64()),
        pa.array(change.s, pa.int64()),
        pa.array(end, pa.int64(), mask=end == INF),
        pa.nulls(n, CHANGES.field("evidence").type),
        pa.array(change.weight, pa.int8()),
    ]
    return pa.Table.from_arrays(columns, schema=CHANGES)


class CalculusOperator(Operator[CalculusIndex]):
    """Family `calculus` ([dRTEC]; specification 5.6)."""

    families: ClassVar[tuple[str, ...]] = ("calculus",)
    delivery: ClassVar[Delivery] = Delivery.ARRIVAL
    keyed = RoutingStage()
    relational = WindowStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> CalculusIndex:
        return self._index(tuple(_compiled(query) for query in queries), feed)

    def spread(self, index: CalculusIndex, feed: Feed, partitions: int) -> CalculusIndex:
        """Divides distributed programs and shares out their pairs; other programs, and relations that cannot be distributed, stay in one
        partition."""
        return self._index(tuple(_with_shares(compiled, partitions) for compiled in index.queries), feed)

    def is_broadcast(self, query: RegisteredQuery) -> bool:
        return not query.specification.distributed

    def parts(self, query: RegisteredQuery) -> Mapping[str, Any]:
        if not query.specification.distributed:
            return {}
        plan = query.specification.plan
        parts, sharing = _parts(query.specification)
        keyed = set() if parts is None or not _may_have_keyed_windows(query.specification) else {relation_of(node) for node in parts.keyed.nodes}
        computed = {relation_of(node) for node in plan.nodes} | {Relation(True, *one.fluent.indicator) for one in plan.program.spatial}
        left = computed - keyed if not sharing.keys else set[Relation]()
        whole = dict.fromkeys(left, _reason_whole(query.specification)) | dict(sharing.undistributed)
        return {
            "by_entity": sorted({relation.name for relation in keyed}),
            "by_pair": sorted({relation.name for relation in sharing.keys if relation in computed}),
            "in_each_partition": sorted({relation.name for relation in computed - keyed - sharing.keys.keys() - whole.keys()}),
            "in_one_partition": {relation.name: reason for relation, reason in sorted(whole.items())},
        }

    @staticmethod
    def _index(compiled: tuple[Compiled, ...], feed: Feed) -> CalculusIndex:
        columns = {EVENT, TIME_END, VALUE, X, Y}
        for one in compiled:
            columns |= {column for spec in one.specification.inputs for column in spec.columns}
        own = {TIME: pa.int64(), SEQ: pa.int64(), ARRIVED: pa.int64(), ROUTE: pa.int64()}
        if any(one.first is not None for one in compiled):
            own[LISTS] = pa.binary()
        made = {AREA: pa.string(), SPEED: pa.float64(), COURSE: pa.float64(), HEADING: pa.float64()}
        types = {one.name: one.type for one in stamped_schema(feed)} | {EVENT: pa.string()} | made
        schema = pa.schema([(name, types[name]) for name in sorted(columns - own.keys()) if name in types] + list(own.items()))
        return CalculusIndex(compiled, schema, feed.lateness)


def _compiled(query: RegisteredQuery) -> Compiled:
    specification: CalculusSpecification = query.specification
    made = indicators(specification.inputs) if specification.synopsis is not None else frozenset()
    windows = Windows(specification.plan, specification.settings, specification.outputs, specification.areas, made)
    digest = hashlib.blake2b(f"{query.version}:{query.id}".encode(), digest_size=7).digest()
    names = pa.array([spec.name for spec in specification.inputs], pa.string())
    route = int.from_bytes(digest, "big")
    return Compiled(query, specification, windows, route, names, names, routes=(route,))


def _with_partitioning(compiled: Compiled, parts: Partitioning | None) -> Compiled:
    """The query with its non-relational part in the keyed stage, if it can be separated."""
    one = compiled.specification
    if parts is None or not _may_have_keyed_windows(one):
        return compiled
    first = NonRelational(parts, Windows(one.plan, one.settings, one.outputs, parts=parts, keyed=True))
    windows = Windows(one.plan, one.settings, one.outputs, one.areas, parts=parts)
    passed = pa.array([spec.name for spec in one.inputs if spec.indicator in parts.relational.inputs], pa.string())
    return replace(compiled, windows=windows, passed=passed, first=first)


def _may_have_keyed_windows(one: CalculusSpecification) -> bool:
    """Whether the keyed stage may have windows.

    It may not with recorded arrivals, because then the clock may be ahead of the partitions' common watermark, nor with critical points, which count
    only when the watermark has passed them.
    """
    return one.arrival is None and one.synopsis is None


def _parts(one: CalculusSpecification) -> tuple[Partitioning | None, Sharing]:
    """The non-relational part of a program, and how the rest is distributed."""
    parts = partitioning_of(one.plan, one.inputs, one.outputs, one.settings.dialect)
    return parts, sharing_of(one.plan, parts, one.outputs, computed=_may_have_keyed_windows(one))


def _reason_whole(one: CalculusSpecification) -> str:
    """Why a program without pairs to share out stays in one partition (decisions 11 and 24)."""
    if one.synopsis is not None:
        return words.Message(
            "critical points count when they are certain, at the end of the input immediately, and only the last stage knows when the input ends"
        )
    if one.arrival is not None:
        return words.Message("the rows themselves say when they arrived, so no partition knows how far the others are")
    return words.Message("positions, constants, what holds initially and complements of all that is declared are not cut off")


def _with_shares(compiled: Compiled, partitions: int) -> Compiled:
    """A distributed query divided in two, with a share of its pairs for each partition, as far as they can be separated."""
    if not compiled.specification.distributed:
        return compiled
    parts, sharing = _parts(compiled.specification)
    compiled = _with_partitioning(compiled, parts)
    if not sharing.keys:
        return compiled
    shares = [Share(sharing, number, partitions) for number in range(partitions)]
    return replace(compiled, windows=compiled.windows.with_shares(shares), routes=_routes(compiled.route, partitions))


def _routes(first: int, partitions: int) -> tuple[int, ...]:
    """Routes from a query's own on, each to a different partition."""
    found: dict[int, int] = {}
    route = first
    while len(found) < partitions:
        found.setdefault(int(homes(np.array([route]), partitions)[0]), route)
        route += 1
    return tuple(found.values())
