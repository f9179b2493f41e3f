"""The keyed stage: it drops rows that no program reads, stamps the others with the feed's clock at
arrival, and routes them by query.

It also has the windows over one entity's rows of divided programs, and the
trajectories of synopses.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.event_calculus.compiled_query import AHEAD, ARRIVED, LISTS, SETTLED, CalculusIndex, CompiledQuery
from engine.event_calculus.conditions import LimitExceeded
from engine.event_calculus.inputs import read_rows
from engine.event_calculus.nonrelational import EntityState
from engine.event_calculus.storage import dump_state, load_state
from engine.event_calculus.synopsis import FIRST_SEQ, SynopsisState, synopsis_step
from engine.model.batch import CLOCK, EVENT, SEQ, TIME, Batch
from engine.model.messages import message_of
from engine.operator import Output, QueryStopped, Stage

_SMALLEST, _GREATEST = -(1 << 62), 1 << 62


@dataclass
class KeyedState:
    """`clock`: the greatest t seen by this partition, for feeds whose rows carry no
    clock; `earliest`: the least.

    `synopses`: of the queries that have one, by route.
    `entities`: of the divided queries, by route."""

    clock: int = _SMALLEST
    earliest: int = _GREATEST
    synopses: dict[int, SynopsisState] = field(default_factory=dict)
    entities: dict[int, EntityState] = field(default_factory=dict)


class RoutingStage(Stage[CalculusIndex, KeyedState]):
    """Emits the rows that a query reads, with its route, and one row for each
    query that has only the clock."""

    def initial(self, index: CalculusIndex) -> KeyedState:
        return KeyedState()

    def step(self, index: CalculusIndex, state: KeyedState, batch: Batch, watermark: int) -> Output[KeyedState]:
        arrived = _arrivals(batch, state) if len(batch) else np.empty(0, np.int64)
        parts = []
        # Rows with an earlier time than all before may be needed (`Windows.needs_first_row`),
        # even if no rule reads them.
        least = np.minimum.accumulate(np.append(state.earliest, batch.t))
        begins = np.flatnonzero(least[1:] < least[:-1])
        state.earliest = int(least[-1])
        for compiled in index.queries:
            own = [] if compiled.specification.synopsis is None else self._critical_points(index, state, compiled, batch, watermark)
            if len(batch):
                own += self._emit(index, state, compiled, batch, watermark, arrived, begins)
            else:
                own += self._lists(index, state, compiled, watermark, ended=batch.ended)
            parts += compiled.to_shares(own)
        if not parts:
            return Output(state)
        return Output(state, emitted=parts[0] if len(parts) == 1 else pa.concat_batches(parts))

    def _emit(
        self,
        index: CalculusIndex,
        state: KeyedState,
        compiled: CompiledQuery,
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
            lists = self._lists(index, state, compiled, watermark, ended=False)
            # Every partition needs the first row, because query times begin with it.
            passed = _relevant(batch, compiled.passed, compiled)
            passed[picked[:1]] = True
            picked = np.flatnonzero(passed)
        return [*lists, _with_clock(index, batch, picked, arrived, compiled.route, begins if compiled.windows.needs_first_row else begins[:0])]

    @staticmethod
    def _take(state: KeyedState, compiled: CompiledQuery, batch: Batch, picked: npt.NDArray[np.int64], arrived: npt.NDArray[np.int64]) -> None:
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
    def _lists(index: CalculusIndex, state: KeyedState, compiled: CompiledQuery, watermark: int, *, ended: bool) -> list[pa.RecordBatch]:
        """The messages of the keyed windows with the clock at `watermark`; `ended`:
        those of the end of the input too."""
        own = state.entities.get(compiled.route)
        if compiled.first is None or own is None:
            return []
        try:
            settled = compiled.first.advance(own, watermark + index.lateness)
            ahead = compiled.first.ahead(own) if ended else []
        except LimitExceeded as error:
            raise QueryStopped(compiled.query.key, message_of(error)) from error
        messages = [*settled, *ahead]
        columns = {
            EVENT: pa.array([SETTLED] * len(settled) + [AHEAD] * len(ahead), pa.string()),
            TIME: pa.array([message.query_time for message in messages], pa.int64()),
            SEQ: pa.array([FIRST_SEQ + message.partition for message in messages], pa.int64()),
            LISTS: pa.array([message.lists for message in messages], pa.binary()),
        }
        return [index.emit(columns, len(messages), compiled.route)] if messages else []

    @staticmethod
    def _critical_points(index: CalculusIndex, state: KeyedState, compiled: CompiledQuery, batch: Batch, watermark: int) -> list[pa.RecordBatch]:
        """The critical points that have become certain."""
        synopsis = compiled.specification.synopsis
        assert synopsis is not None
        own = state.synopses.setdefault(compiled.route, SynopsisState())
        mine = _relevant(batch, pa.array([synopsis.event]), compiled) if len(batch) else np.empty(0, np.bool_)
        found = synopsis_step(synopsis, own, batch, mine, watermark, index.lateness)
        return [] if found is None else [index.emit({name: found.column(name) for name in found.schema.names}, found.num_rows, compiled.route)]

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


def _relevant(batch: Batch, wanted: pa.Array, compiled: CompiledQuery) -> npt.NDArray[np.bool_]:
    """Which rows have one of the wanted names and satisfy the query's conditions; a row
    without a name is a position."""
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
    """The picked rows, then rows with only a beginning of time if this batch has any, and last
    a row with only the clock."""
    empty = [*begins.tolist(), int(np.argmax(arrived))]
    n = len(picked) + len(empty)
    positions = pa.array(np.append(picked, [0] * len(empty)), mask=np.arange(n) >= len(picked))
    columns = {name: batch.rows.column(name).take(positions) for name in index.schema.names if batch.has(name)}
    rows = np.append(picked, empty)
    columns[TIME], columns[SEQ], columns[ARRIVED] = pa.array(batch.t[rows]), pa.array(batch.seq[rows]), pa.array(arrived[rows])
    if EVENT not in columns:
        columns[EVENT] = pa.array(["position"] * len(picked) + [None] * len(empty), pa.string())
    return index.emit(columns, n, route)
