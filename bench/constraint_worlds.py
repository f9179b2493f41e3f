"""Measurements like those of the TAO buoys, and constraint queries of a wanted verbosity over any
measurements, after [CCQ] 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.constraint_baselines import Columns, all_located
from engine.constraint_queries.operator import ConstraintOperator, search_batch
from engine.constraint_queries.pairs import ConstraintEvents, Ints
from engine.constraint_queries.plan import ConstraintIndex
from engine.constraint_queries.ranges import passing_events
from engine.constraint_queries.store import EventStore
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.specification import check

Floats = npt.NDArray[np.float64]
OPERATOR = ConstraintOperator()
BATCH, CHUNK = 65_536, 11_264
"""Events of a batch of the operator, and of the kernel: about as many as make the rows that the
operator takes at a time (100 queries at 1 %)."""
BUOYS = 70
MEASURED = ("sst", "air", "humidity", "zon_wind", "mer_wind")
SEA = Feed("sea", Crs.PLANAR, TimeUnit.TICKS, columns=dict.fromkeys(MEASURED, ColumnType.FLOAT), dedupe=False)
"""A plane in kilometres; a tick is the time from one report of a buoy to its next."""
STEPS, LEAST_SHARE, MOST_SHARE = 7, 0.002, 0.6
"""Bisections, by ratio: wide filters are tried only where narrow ones are not enough."""


def measurements(count: int, seed: int = 8) -> pa.Table:
    """`count` stamped rows: BUOYS buoys moored 2 degrees of latitude and 15 of
    longitude apart report once a tick; each value drifts back to its buoy's own mean
    (first-order autoregression)."""
    chance = np.random.default_rng(seed)
    ticks = -(-count // BUOYS)
    x0, y0 = (np.arange(BUOYS) // 7) * 1_665.0, (np.arange(BUOYS) % 7) * 222.0
    columns: dict[str, Floats] = {}
    for name in MEASURED:
        value = np.empty((ticks, BUOYS))
        own, now = chance.normal(0, 1, BUOYS), chance.normal(0, 1, BUOYS)
        for tick in range(ticks):
            now = 0.9 * now + chance.normal(0, 0.44, BUOYS)
            value[tick] = own + now
        columns[name] = value.reshape(-1)[:count]
    names = pa.array([f"buoy {i:02}" for i in range(BUOYS)])
    at = np.arange(count)
    table = {
        "entity": names.take(pa.array(at % BUOYS)),
        "t": pa.array(at // BUOYS),
        "x": pa.array(x0[at % BUOYS] + chance.normal(0, 5, count)),
        "y": pa.array(y0[at % BUOYS] + chance.normal(0, 5, count)),
    }
    return pa.table({**table, **{name: pa.array(column) for name, column in columns.items()}, "seq": pa.array(at)})


@dataclass(frozen=True)
class Shape:
    """A query without the width of its filters: variable i takes the `share` of values of
    `columns[i]` that begins at quantile `starts[i]` of what is left. All variables lie
    within `reach` of each other and `length` of time, one after the other or,
    `symmetric`, in any order."""

    columns: tuple[str, ...]
    starts: tuple[float, ...]
    symmetric: bool
    length: int
    step: int
    reach: float

    def document(self, share: float, sorted_values: Mapping[str, Floats], **more: Any) -> dict[str, Any]:
        """The query; `more` are further members of the document."""
        names = [f"V{i + 1}" for i in range(len(self.columns))]
        variables = {}
        for name, column, start in zip(names, self.columns, self.starts, strict=True):
            low, high = (_quantile(sorted_values[column], start * (1 - share) + part) for part in (0.0, share))
            variables[name] = {"where": [[column, ">=", low], [column, "<=", high]]}
        constraints: list[dict[str, Any]] = [{"between": names, "distance": {"max": self.reach}}]
        if self.symmetric:
            constraints.append({"between": names, "dt": [-self.length, self.length]})
        else:
            # As in the paper's figure 1b: one after the other; the bounds between the first and the
            # last are inferred.
            each = self.length // (len(names) - 1)
            constraints += [{"between": [one, other], "dt": [self.step, each]} for one, other in pairwise(names)]
        groups = [names] if self.symmetric else []
        return {"family": "constraint", "variables": variables, "constraints": constraints, "symmetric": groups, **more}


def _quantile(values: Floats, part: float) -> float:
    return float(values[min(len(values) - 1, int(part * len(values)))])


def sorted_columns(table: pa.Table, columns: Sequence[str]) -> dict[str, Floats]:
    """The known values of each column in order."""
    found = {name: table.column(name).to_numpy().astype(np.float64) for name in columns}
    return {name: np.sort(values[~np.isnan(values)]) for name, values in found.items()}


def shapes(
    count: int, variables: Sequence[int], columns: Sequence[str], lengths: tuple[int, int], step: int, reaches: tuple[float, float], seed: int = 3
) -> list[Shape]:
    """`count` queries, in order and symmetric in turn, with the numbers of variables in
    `variables`, in turn."""
    chance = np.random.default_rng(seed)
    found = []
    for n in range(count):
        m, symmetric = variables[n // 2 % len(variables)], n % 2 == 1
        own = chance.choice(columns, m)
        starts = chance.uniform(0, 1, m)
        if symmetric:
            own[:], starts[:] = own[0], starts[0]
        length = step * int(chance.integers(max(lengths[0], m), max(lengths[1], m) + 1))
        found.append(Shape(tuple(own.tolist()), tuple(starts.tolist()), symmetric, length, step, float(chance.uniform(*reaches))))
    return found


def with_length(found: Sequence[Shape], length: int) -> list[Shape]:
    return [replace(one, length=length * one.step) for one in found]


def calibrated(found: Sequence[Shape], verbosity: float, sample: pa.Table, feed: Feed, columns: Sequence[str], **more: Any) -> list[dict[str, Any]]:
    """Documents of the shapes with the share at which about `verbosity` of the sample's rows
    complete a solution, by bisection."""
    values = sorted_columns(sample, columns)
    low, high = np.full(len(found), LEAST_SHARE), np.full(len(found), MOST_SHARE)
    for _ in range(STEPS):
        middle = np.sqrt(low * high)
        documents = [one.document(share, values, report="first") for one, share in zip(found, middle.tolist(), strict=True)]
        alerts = np.zeros(len(found), np.int64)
        for query, _seq in Search(documents, feed).completions(sample):
            alerts[query] += 1
        much = alerts > verbosity * len(sample)
        low, high = np.where(much, low, middle), np.where(much, middle, high)
    return [one.document(share, values, report="first", **more) for one, share in zip(found, np.sqrt(low * high).tolist(), strict=True)]


class Kernel:
    """The work of the operator's two stages on a batch, from columns to solutions as arrays: the
    same functions without Arrow."""

    def __init__(self, documents: Sequence[Mapping[str, Any]], feed: Feed) -> None:
        self.index = compiled(documents, feed)
        self.store = EventStore(self.index.graphs, self.index.slots)

    def columns(self, table: pa.Table) -> Columns:
        t, x, y = (np.array(table.column(name)) for name in ("t", "x", "y"))
        return Columns(t, x, y, np.stack([np.array(table.column(name)) for name in self.index.ranges.names]))

    def take(self, columns: Columns) -> list[tuple[Ints, Ints]]:
        """(queries, completing events) of the solutions of each portion of events."""
        found = []
        for begin in range(0, len(columns.t), CHUNK):
            part = columns.slice(begin, begin + CHUNK)
            n = len(part.t)
            rows, queries, bits = passing_events(*self.index.ranges[2:], part.values, all_located(self.index.ranges, n), n)
            if not len(rows):
                continue
            used = np.zeros(n, np.bool_)
            used[rows] = True
            kept = np.flatnonzero(used)
            place = np.stack([part.x[kept], part.y[kept], np.zeros(len(kept))])
            none = np.empty((0, len(kept)), np.int64), np.empty((0, len(kept)))
            events = ConstraintEvents(part.t[kept], begin + kept, np.zeros(len(kept), np.int32), place[0], place[1], place, *none)
            for query, members in search_batch(self.index, self.store, events, (np.cumsum(used) - 1)[rows], queries, bits):
                first = self.index.graphs.variables
                ends = np.cumsum(np.diff(first)[query])
                # The completing event is the latest: the one with the greatest number.
                latest = np.maximum.reduceat(members, np.concatenate([[0], ends[:-1]]))
                found.append((query.copy(), self.store.events.seq[latest]))
        return found

    def completions(self, columns: Columns) -> list[tuple[int, int]]:
        """(query, number of the completing event) of each solution, sorted."""
        return sorted((q, e) for queries, events in self.take(columns) for q, e in zip(queries.tolist(), events.tolist(), strict=True))


def compiled(documents: Sequence[Mapping[str, Any]], feed: Feed) -> ConstraintIndex:
    return OPERATOR.compile([RegisteredQuery(str(i), 1, check(dict(one), feed)) for i, one in enumerate(documents)], feed)


class Search:
    """The operator, from Arrow rows to answers."""

    def __init__(self, documents: Sequence[Mapping[str, Any]], feed: Feed) -> None:
        self.index = compiled(documents, feed)
        self.state, self.dictionary = OPERATOR.keyed.initial(self.index), EntityDictionary()

    def take(self, table: pa.Table) -> list[pa.RecordBatch]:
        """The changes after all rows of a stamped table, batch by batch."""
        found = []
        for rows in table.combine_chunks().to_batches(max_chunksize=BATCH):
            batch = Batch(rows, self.dictionary)
            found.append(OPERATOR.keyed.step(self.index, self.state, batch, int(batch.t[-1])).changes)
        return found

    def completions(self, table: pa.Table) -> list[tuple[int, int]]:
        """(query, seq of the event that completes) of each answer."""
        return completions(self.take(table))

    @property
    def peak(self) -> int:
        """Events stored at most at a time."""
        return int(OPERATOR.keyed.counters(self.index, self.state)["peak_events"])


def completions(found: Sequence[pa.Table]) -> list[tuple[int, int]]:
    """(query, seq of the latest event) of each answer, sorted. `seq` is in (t, arrival) here."""
    answers = []
    for changes in (batch for table in found for batch in table.to_batches()):
        evidence = changes.column("evidence")
        ends = evidence.offsets.to_numpy()
        seqs = evidence.flatten().field("seq").to_numpy()
        latest = np.maximum.reduceat(seqs, ends[:-1]) if len(seqs) else seqs
        answers += list(zip(changes.column("query").to_pylist(), latest.tolist(), strict=True))
    return sorted((int(query), seq) for query, seq in answers)
