"""Signed changes of answers: what operators emit and everything downstream
stores, pushes and writes.

Law: the weights of equal rows summed up to any moment give the answer computed from
scratch on the input up to then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.batch import EntityDictionary

EVIDENCE_ITEM = pa.struct(
    [
        pa.field("variable", pa.string()),
        pa.field("entity", pa.string()),
        pa.field("t", pa.int64()),
        pa.field("x", pa.float64()),
        pa.field("y", pa.float64()),
        pa.field("seq", pa.int64()),
    ]
)
DERIVED_SEQ = 2**61
"""Evidence from this `seq` on is no row of the feed but an answer of another query (specification
5.9): after all rows of its time."""
CHANGES = pa.schema(
    [
        pa.field("query", pa.int32(), nullable=False),  # position in the index's `queries`
        pa.field("kind", pa.string(), nullable=False),
        pa.field("entities", pa.list_(pa.string()), nullable=False),
        pa.field("value", pa.string()),  # a fluent's value
        pa.field("score", pa.float64()),  # a motion query's score
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64()),  # null while it holds
        pa.field("evidence", pa.list_(EVIDENCE_ITEM)),
        pa.field("weight", pa.int8(), nullable=False),
    ]
)
ANSWERS = pa.schema(
    [
        pa.field("query", pa.string(), nullable=False),  # RegisteredQuery.id
        pa.field("version", pa.int32(), nullable=False),
        *list(CHANGES)[1:],
    ]
)
"""CHANGES as they leave the evaluator: the query by its id and version."""
NO_CHANGES: pa.Table = CHANGES.empty_table()

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Evidence items in CSR form: change i owns the items `offsets[i]` to `offsets[i + 1]`.

    `entity` are codes; `t`, `x`, `y`, `seq` repeat the event's own (NaN position: the event has
    none, becomes null). `variable` is null for all items or an array of strings.
    """

    offsets: Ints
    entity: Ints
    t: Ints
    x: Floats
    y: Floats
    seq: Ints
    variable: pa.Array | None = None

    def to_arrow(self, names: pa.Array) -> pa.ListArray:
        """`names` are those of `entity`."""
        items = pa.StructArray.from_arrays(
            [
                self.variable if self.variable is not None else pa.nulls(len(self.t), pa.string()),
                names,
                pa.array(self.t, pa.int64()),
                pa.array(self.x, pa.float64(), from_pandas=True),
                pa.array(self.y, pa.float64(), from_pandas=True),
                pa.array(self.seq, pa.int64()),
            ],
            fields=list(EVIDENCE_ITEM),
        )
        return pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), items)


def changes(
    dictionary: EntityDictionary,
    *,
    query: Ints,
    kind: pa.Array,
    entities: Ints,
    start: Ints,
    end: pa.Array | Ints,
    entity_offsets: Ints | None = None,
    evidence: Evidence | None = None,
    value: pa.Array | None = None,
    score: Floats | None = None,
    weight: Ints | None = None,
) -> pa.Table:
    """A table of CHANGES from columns of equal length n.

    `entities` are codes: one for each change, or CSR with `entity_offsets` (n + 1). `weight`
    defaults to +1 throughout.
    """
    n = len(query)
    offsets = np.arange(n + 1) if entity_offsets is None else entity_offsets
    names = dictionary.decode(entities)
    if evidence is None:
        items = pa.nulls(n, CHANGES.field("evidence").type)
    else:
        items = evidence.to_arrow(names if evidence.entity is entities else dictionary.decode(evidence.entity))
    columns = [
        pa.array(query, pa.int32()),
        kind.cast(pa.string()),
        pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names),
        pa.nulls(n, pa.string()) if value is None else value,
        pa.nulls(n, pa.float64()) if score is None else pa.array(score, pa.float64(), from_pandas=True),
        pa.array(start, pa.int64()),
        end if isinstance(end, pa.Array) else pa.array(end, pa.int64()),
        items,
        pa.array(np.ones(n, np.int8) if weight is None else weight, pa.int8()),
    ]
    return pa.Table.from_arrays(columns, schema=CHANGES)


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    """All changes in order, not copied."""
    return pa.concat_tables([NO_CHANGES, *(table for table in tables if table.num_rows)])


def answers(changes: pa.Table, ids: pa.Array, versions: pa.Array) -> pa.Table:
    """Changes of an index as ANSWERS: position i of the index's queries is `ids[i]`
    (string), `versions[i]` (int32)."""
    position = changes.column(0)
    columns = [ids.take(position), versions.take(position), *changes.columns[1:]]
    return pa.Table.from_arrays(columns, schema=ANSWERS)
