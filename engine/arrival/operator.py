"""Predicted arrivals: one keyed stage, each entity separately. Each query's state is separate, by
its position in the index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.arrival.contacts import first_contacts
from engine.arrival.kernels import NEVER, OPEN, SENT, Course, Ints, bases, followed
from engine.arrival.specification import ArrivalSpecification
from engine.border_monitoring.passes import Moves
from engine.model.arrays import pack_arrays, unpack_arrays
from engine.model.batch import Batch, EntityDictionary
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Crs, Feed
from engine.operator import Operator, Output, RegisteredQuery, Stage, states_by_query

Floats = npt.NDArray[np.float64]
_RECORD = ("hits", "false_alarms", "misses", "lead_of_hits")
_VARIABLES = pa.array(["from", "at", "expected", "entered"])


class Samples(NamedTuple):
    """Rows of columns."""

    entity: npt.NDArray[np.int32]
    t: Ints
    seq: Ints
    x: Floats
    y: Floats

    def take(self, rows: npt.NDArray[Any]) -> Samples:
        return Samples(*(column[rows] for column in self))


class Predictions(NamedTuple):
    """Rows of an answer's evidence: the sample `from` which the course is made good, the one it is
    made `at`, and what is `expected`."""

    t: Ints  # (n, 3): from, at, expected
    seq: Ints
    x: Floats
    y: Floats

    def take(self, rows: npt.NDArray[Any]) -> Predictions:
        return Predictions(*(column[rows] for column in self))


_NO_SAMPLES = Samples(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
_NO_COURSE = Course(np.full(0, NEVER), np.full(0, NEVER), np.empty(0, np.bool_))


def _predictions(n: int) -> Predictions:
    return Predictions(np.zeros((n, 3), np.int64), np.zeros((n, 3), np.int64), np.zeros((n, 3)), np.zeros((n, 3)))


def _joined(parts: Sequence[Samples]) -> Samples:
    return Samples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@dataclass(frozen=True)
class ArrivalIndex:
    """The queries of a feed."""

    queries: tuple[RegisteredQuery, ...]
    geographic: bool

    @property
    def specifications(self) -> Iterator[ArrivalSpecification]:
        return (query.specification for query in self.queries)


@dataclass
class Arriving:
    """State of one query: samples from which later courses may be made good, unexpired tuples, and
    by entity code what holds.

    `sent[e]` was asserted of an entity that is arriving. `work`: lines drawn, lines that
    touch. `record` as _RECORD.
    """

    kept: Samples = _NO_SAMPLES
    waiting: Samples = _NO_SAMPLES
    course: Course = _NO_COURSE
    sent: Predictions = field(default_factory=lambda: _predictions(0))
    work: Ints = field(default_factory=lambda: np.zeros(2, np.int64))
    record: Ints = field(default_factory=lambda: np.zeros(len(_RECORD), np.int64))

    def reserve(self, entities: int) -> None:
        """Makes room for this many entities."""
        have = len(self.course.last)
        if entities > have:
            more = max(entities, 2 * have) - have
            wider = Course(np.full(more, NEVER), np.full(more, NEVER), np.zeros(more, np.bool_))
            self.course = Course(*(np.concatenate(pair) for pair in zip(self.course, wider, strict=True)))
            self.sent = Predictions(*(np.concatenate(pair) for pair in zip(self.sent, _predictions(more), strict=True)))


class ArrivalStage(Stage[ArrivalIndex, list[Arriving]]):
    """The keyed stage."""

    def initial(self, index: ArrivalIndex) -> list[Arriving]:
        return [Arriving() for _ in index.queries]

    def step(self, index: ArrivalIndex, state: list[Arriving], batch: Batch, watermark: int) -> Output[list[Arriving]]:
        advanced = [_advanced(q, specification, state[q], batch, watermark, index.geographic) for q, specification in enumerate(index.specifications)]
        return Output(state, concat([one for one in advanced if one is not None]))

    def migrate(self, index: ArrivalIndex, parts: Sequence[tuple[ArrivalIndex, list[Arriving]]]) -> list[Arriving]:
        known = states_by_query((old.queries, state) for old, state in parts)
        return [known.get(query.key) or Arriving() for query in index.queries]

    def dump(self, index: ArrivalIndex, state: list[Arriving]) -> bytes:
        arrays: dict[str, npt.NDArray[Any]] = {}
        for q, query_state in enumerate(state):
            for name, columns in _tuples_of(query_state).items():
                arrays |= {f"{q} {name} {column}": values for column, values in columns._asdict().items()}
            arrays |= {f"{q} work": query_state.work, f"{q} record": query_state.record}
        return pack_arrays(arrays)

    def load(self, index: ArrivalIndex, data: bytes) -> list[Arriving]:
        arrays = unpack_arrays(data)

        def read(q: int, name: str, kind: Any) -> Any:
            return kind(*(arrays[f"{q} {name} {column}"] for column in kind._fields))

        return [
            Arriving(
                read(q, "kept", Samples), read(q, "waiting", Samples), read(q, "course", Course), read(q, "sent", Predictions),
                arrays[f"{q} work"], arrays[f"{q} record"],
            )
            for q in range(len(index.queries))
        ]  # fmt: skip

    def check(self, index: ArrivalIndex, state: list[Arriving]) -> None:
        for query_state, specification in zip(state, index.specifications, strict=True):
            arriving = np.flatnonzero(query_state.course.start != NEVER)
            assert not query_state.course.inside[arriving].any()
            assert (query_state.course.start[arriving] <= query_state.sent.t[arriving, 1]).all()
            assert (query_state.sent.t[arriving, 1] == query_state.course.last[arriving]).all()
            assert (query_state.kept.t > query_state.course.last[query_state.kept.entity] - specification.over).all()

    def counters(self, index: ArrivalIndex, state: list[Arriving]) -> Mapping[str, int]:
        totals = {"events_kept": 0, "lines_drawn": 0, "lines_that_touch": 0, "arriving": 0}
        for query, query_state in zip(index.queries, state, strict=True):
            totals["events_kept"] += len(query_state.kept.t) + len(query_state.waiting.t)
            totals["lines_drawn"] += int(query_state.work[0])
            totals["lines_that_touch"] += int(query_state.work[1])
            totals["arriving"] += int((query_state.course.start != NEVER).sum())
            totals |= {f"{name}@{query.id}": int(count) for name, count in zip(_RECORD, query_state.record, strict=True)}
        return totals


def _tuples_of(query_state: Arriving) -> dict[str, Any]:
    return {"kept": query_state.kept, "waiting": query_state.waiting, "course": query_state.course, "sent": query_state.sent}


def _advanced(
    q: int, specification: ArrivalSpecification, query_state: Arriving, batch: Batch, watermark: int, geographic: bool
) -> pa.RecordBatch | None:
    """The query's changes when all times before the watermark are decided."""
    new = _decided(query_state, _tuples(specification, batch), watermark)
    query_state.reserve(int(new.entity.max(initial=-1)) + 1)
    base, samples = _with_bases(specification, query_state, new)
    inside, predictions, predicts = _predicted(specification, query_state, samples, base, geographic)
    course = followed(samples.entity, samples.t, inside, predicts, query_state.course, specification.gap, watermark, query_state.record)
    *facts, by = course
    who, _, _, made, _, _ = facts
    asserted = None
    if len(who):
        sent = made == SENT
        shown = _predictions(len(who))
        for column, old, fresh in zip(shown, query_state.sent, predictions, strict=True):
            column[sent], column[~sent] = old[who[sent]], fresh[made[~sent]]
        asserted = _changes(q, batch.entities, facts, shown, samples)
    revised = np.flatnonzero((by != SENT) & (query_state.course.start != NEVER))
    for old, fresh in zip(query_state.sent, predictions, strict=True):
        old[revised] = fresh[by[revised]]
    return asserted


def _tuples(specification: ArrivalSpecification, batch: Batch) -> Samples:
    """The rows that are tuples of the query."""
    mask = specification.where.mask(batch) & ~np.isnan(batch.x) & ~np.isnan(batch.y)
    return Samples(batch.entity, batch.t, batch.seq, batch.x, batch.y).take(np.flatnonzero(mask))


def _decided(query_state: Arriving, new: Samples, watermark: int) -> Samples:
    """The samples whose time is over, by entity and time; the others wait: of equal times
    the last in arrival counts."""
    rows = _joined([query_state.waiting, new])
    over = rows.t < watermark
    query_state.waiting, rows = rows.take(~over), rows.take(over)
    rows = rows.take(np.lexsort((rows.seq, rows.t, rows.entity)))
    if not len(rows.t):
        return rows
    return rows.take(np.append((rows.t[1:] != rows.t[:-1]) | (rows.entity[1:] != rows.entity[:-1]), True))


def _with_bases(specification: ArrivalSpecification, query_state: Arriving, new: Samples) -> tuple[Samples, Samples]:
    """(the samples from which the courses of the new ones are made good: a sample itself if it has
    none, the new ones); updates the state."""
    moving = np.zeros(len(query_state.course.last), np.bool_)
    moving[new.entity] = True
    again = moving[query_state.kept.entity]
    rows = _joined([query_state.kept.take(again), new])
    fresh = np.arange(len(rows.t)) >= len(rows.t) - len(new.t)
    order = np.lexsort((rows.t, rows.entity))
    rows, fresh = rows.take(order), fresh[order]
    base = bases(rows.entity, rows.t, specification.over)
    base = np.where(base < 0, np.arange(len(base)), base)[fresh]
    # The next course begins after the last sample's.
    last = np.full(len(moving), NEVER)
    last[rows.entity] = rows.t
    query_state.kept = _joined([query_state.kept.take(~again), rows.take(rows.t > last[rows.entity] - specification.over)])
    return rows.take(base), rows.take(fresh)


def _predicted(
    specification: ArrivalSpecification, query_state: Arriving, samples: Samples, base: Samples, geographic: bool
) -> tuple[npt.NDArray[np.bool_], Predictions, npt.NDArray[np.bool_]]:
    """(which samples are inside, what each predicts, which predict anything)."""
    inside = specification.region.contains(samples.x, samples.y)
    predicts = np.zeros(len(inside), np.bool_)
    shown = _predictions(len(inside))
    rows = np.flatnonzero(~inside & (base.t < samples.t))
    lines = _lines(specification, samples.take(rows), base.take(rows), geographic)
    if geographic:
        real = (np.abs(lines.q[:, 0] - lines.p[:, 0]) <= 180.0) & (np.abs(lines.q[:, 1]) <= 90.0)
        rows, lines = rows[real], lines.take(np.flatnonzero(real))
    touched, at = first_contacts(specification.region, lines, geographic)
    query_state.work += (len(rows), int(touched.sum()))
    rows, lines, at = rows[touched], lines.take(np.flatnonzero(touched)), at[touched]
    predicts[rows] = True
    place = lines.p + (lines.q - lines.p) * ((at - lines.t0) / specification.within)[:, None]
    if geographic:
        place[:, 0] = np.where(place[:, 0] > 180.0, place[:, 0] - 360.0, np.where(place[:, 0] < -180.0, place[:, 0] + 360.0, place[:, 0]))
    here, since = samples.take(rows), base.take(rows)
    shown.t[rows] = np.column_stack([since.t, here.t, at])
    shown.seq[rows] = np.column_stack([since.seq, here.seq, here.seq])
    shown.x[rows] = np.column_stack([since.x, here.x, place[:, 0]])
    shown.y[rows] = np.column_stack([since.y, here.y, place[:, 1]])
    return inside, shown, predicts


def _lines(specification: ArrivalSpecification, samples: Samples, base: Samples, geographic: bool) -> Moves:
    """Straight on from each sample by the course and speed made good."""
    dx, dy = samples.x - base.x, samples.y - base.y
    if geographic:
        dx = np.where(dx > 180.0, dx - 360.0, np.where(dx < -180.0, dx + 360.0, dx))
    times = specification.within / (samples.t - base.t)
    p = np.column_stack([samples.x, samples.y])
    return Moves(p, p + np.column_stack([dx, dy]) * times[:, None], samples.t, samples.t + specification.within)


def _changes(q: int, dictionary: EntityDictionary, facts: Sequence[Any], shown: Predictions, samples: Samples) -> pa.Table:
    who, start, end, _, entered, weight = facts
    n = len(who)
    # Each fact has three items, or four where it ended with a sample inside.
    came = np.flatnonzero(entered >= 0)
    fact = np.concatenate([np.repeat(np.arange(n), 3), came])
    order = np.argsort(fact, kind="stable")
    t, seq, x, y = (
        np.concatenate([old.ravel(), fresh[entered[came]]])[order]
        for old, fresh in zip(shown, (samples.t, samples.seq, samples.x, samples.y), strict=True)
    )
    variable = np.concatenate([np.tile(np.arange(3), n), np.full(len(came), 3)])[order]
    offsets = np.concatenate([[0], np.cumsum(3 + (entered >= 0))])
    return changes(
        dictionary,
        query=np.full(n, q, np.int32),
        kind=pa.array(["arriving"] * n, pa.string()),
        entities=who,
        start=start,
        end=pa.array(end, pa.int64(), mask=end == OPEN),
        score=shown.t[:, 2].astype(np.float64),
        evidence=Evidence(offsets, who[fact[order]], t, x, y, seq, _VARIABLES.take(pa.array(variable))),
        weight=weight,
    )


class ArrivalOperator(Operator[ArrivalIndex]):
    """Family `arrival`."""

    families: ClassVar[tuple[str, ...]] = ("arrival",)
    keyed = ArrivalStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> ArrivalIndex:
        return ArrivalIndex(tuple(queries), feed.crs is Crs.GEOGRAPHIC)
