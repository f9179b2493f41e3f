"""Final answers into a file: signed changes summed, sorted, written as Parquet, CSV or JSON
lines (specification 6 and 7).

Changes are kept as sorted runs, on disk when they are many, retractions too: in the sorted rows the
changes of one fact follow each other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.external_sort import ExternalSort
from engine.model.changes import ANSWERS, EVIDENCE_ITEM

ITEM = pa.struct([field for field in EVIDENCE_ITEM if field.name != "seq"])
"""One evidence event in an answer file: its position in the feed is internal to the engine."""
_SORT = ("query", "start", "$end", "$entities", "kind", "$value", "$evidence", "version")
"""Together they identify a fact, so the changes of one are next to each other."""
_NO_END = 2**63 - 1
FORMATS = (".parquet", ".csv", ".jsonl")


class UnbalancedRetraction(RuntimeError):
    """Something was retracted that had not been asserted: an operator broke
    the law of signed changes."""


class AnswerFile:
    """Collects changes of the ANSWERS schema and writes their sum at the end.

    The file appears under its name when it is complete.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix.lower() not in FORMATS:
            raise ValueError(f"{path}: answers are written as {', '.join(FORMATS)}; the name must end in one of them")
        self.path = path
        self._sort = ExternalSort(_SORT)
        self._scores = self._texts = False
        self.written: Counter[str] = Counter()

    def __enter__(self) -> AnswerFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._sort.close()

    def add(self, changes: pa.Table, detected_at: int) -> None:
        """Takes changes that were found at `detected_at` (processing time, milliseconds)."""
        if not changes.num_rows:
            return
        rows = _keyed(changes).append_column("detected_at", pa.array(np.full(changes.num_rows, detected_at), pa.int64()))
        self._scores |= rows.column("score").null_count < rows.num_rows
        self._texts |= rows.column("value").null_count < rows.num_rows
        self._sort.add(rows)

    def close(self) -> int:
        """Writes the file; the number of answers. Raises OSError and UnbalancedRetraction."""
        value = pa.float64() if self._scores and not self._texts else pa.string()
        temporary = self.path.with_name(f".{self.path.name}.part")
        try:
            with _writer(temporary, self.path.suffix.lower(), _schema(value)) as writer:
                for rows in self._remaining():
                    for found in pc.value_counts(rows.column("query")).to_pylist():
                        self.written[found["values"]] += found["counts"]
                    writer.write(_shown(rows, value))
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)
        return self.written.total()

    def _remaining(self) -> Iterator[pa.Table]:
        """Facts asserted and not retracted, sorted. Raises UnbalancedRetraction."""
        waiting: list[pa.Table] = []
        for rows in self._sort.sorted():
            waiting.append(rows)
            whole = pa.concat_tables(waiting).combine_chunks()
            # The last fact's changes may go on in the next piece.
            last = _first_rows(whole)[-1]
            yield _summed(whole.slice(0, last))
            waiting = [whole.slice(last)]
        if waiting:
            yield _summed(waiting[0])


def _first_rows(rows: pa.Table) -> npt.NDArray[np.int64]:
    """Of sorted rows, those that begin another fact."""
    begins = np.zeros(rows.num_rows, np.bool_)
    begins[:1] = True
    for name in _SORT:
        column = rows.column(name)
        begins[1:] |= pc.not_equal(column[1:], column[:-1]).to_numpy()
    return np.flatnonzero(begins)


def _summed(rows: pa.Table) -> pa.Table:
    """As many rows of each fact as its weights' sum; of those that asserted it, the last ones.
    Raises UnbalancedRetraction."""
    weights = rows.column("weight").to_numpy()
    if (weights == 1).all():
        return rows
    first = _first_rows(rows)
    sums = np.add.reduceat(weights, first, dtype=np.int64)
    if (sums < 0).any():
        raise UnbalancedRetraction(f"{-sums[sums < 0].sum()} retracted facts had not been asserted")
    asserted = np.repeat(np.arange(len(weights)), np.maximum(weights, 0))
    fact = np.searchsorted(first, asserted, side="right") - 1
    later = np.cumsum(np.bincount(fact, minlength=len(first)))[fact] - 1 - np.arange(len(asserted))
    return rows.take(pa.array(asserted[later < sums[fact]]))


def _keyed(changes: pa.Table) -> pa.Table:
    """The changes as one chunk with flat columns to sort and compare by."""
    rows = changes.combine_chunks()
    entities = _joined(rows.column("entities").combine_chunks())
    value = pc.coalesce(rows.column("value"), rows.column("score").cast(pa.string()), pa.scalar("", pa.string()))
    return (
        rows.append_column("$end", pc.fill_null(rows.column("end"), _NO_END))
        .append_column("$entities", entities)
        .append_column("$value", value)
        .append_column("$evidence", _evidence_key(rows.column("evidence")))
    )


def _joined(entities: pa.ListArray) -> pa.Array:
    """The entities as one text; an event that was made of an answer without entities has none."""
    names = pa.ListArray.from_arrays(entities.offsets, pc.fill_null(entities.values, ""))
    return pc.binary_join(names, "\x00")


def _evidence_key(evidence: pa.ChunkedArray) -> pa.Array:
    """The events' positions in the feed, as text: two facts with the same ones are the same."""
    lists = pa.concat_arrays(evidence.chunks) if evidence.num_chunks else pa.array([], ANSWERS.field("evidence").type)
    seqs = pc.struct_field(lists.flatten(), "seq").cast(pa.string())
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    return pc.fill_null(pc.binary_join(pa.ListArray.from_arrays(offsets, pc.fill_null(seqs, "")), ","), "")


def _schema(value: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            ("query", pa.string()),
            ("kind", pa.string()),
            ("entities", pa.list_(pa.string())),
            ("value", value),
            ("start", pa.int64()),
            ("end", pa.int64()),
            ("evidence", pa.list_(ITEM)),
            ("weight", pa.int8()),
            ("detected_at", pa.int64()),
        ]
    )


def _shown(rows: pa.Table, value: pa.DataType) -> pa.Table:
    """The rows in the columns of an answer file."""
    shown = {
        "value": rows.column("score") if value == pa.float64() else pc.coalesce(rows.column("value"), rows.column("score").cast(pa.string())),
        "evidence": _without_seq(rows.column("evidence")),
        "weight": pa.array(np.ones(rows.num_rows, np.int8)),
    }
    schema = _schema(value)
    return pa.table([shown[name] if name in shown else rows.column(name) for name in schema.names], schema=schema)


def _without_seq(evidence: pa.ChunkedArray) -> pa.Array:
    lists = pa.concat_arrays(evidence.chunks) if evidence.num_chunks else pa.array([], ANSWERS.field("evidence").type)
    items = lists.flatten()
    fields = [pc.struct_field(items, field.name) for field in ITEM]
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    bare = pa.StructArray.from_arrays(fields, fields=list(ITEM))
    return pa.ListArray.from_arrays(offsets, bare, mask=pc.is_null(lists))


class Writer(Protocol):
    """Writes tables of one schema into a file."""

    def write(self, table: pa.Table) -> None: ...

    def __enter__(self) -> Writer: ...

    def __exit__(self, *_: object) -> None: ...


class _Parquet:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(path, schema)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


class _Csv:
    """Lists and objects as JSON text in their fields."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.csv as pv

        self._nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        flat = pa.schema([pa.field(field.name, pa.string() if field.name in self._nested else field.type) for field in schema])
        self._schema = flat
        self._writer = pv.CSVWriter(path, flat, write_options=pv.WriteOptions(quoting_style="needed"))

    def write(self, table: pa.Table) -> None:
        columns = [_as_json(table.column(name)) if name in self._nested else table.column(name) for name in table.column_names]
        self._writer.write(pa.table(columns, schema=self._schema))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


class _JsonLines:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, table: pa.Table) -> None:
        self._file.writelines(_json(row) + "\n" for row in table.to_pylist())

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _as_json(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if value is None else _json(value) for value in column.to_pylist()], pa.string())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_WRITERS: Mapping[str, Callable[[Path, pa.Schema], Writer]] = {".parquet": _Parquet, ".csv": _Csv, ".jsonl": _JsonLines}


def _writer(path: Path, suffix: str, schema: pa.Schema) -> Writer:
    return _WRITERS[suffix](path, schema)


def table_writer(path: Path, schema: pa.Schema) -> Writer:
    """A writer for a file of any of FORMATS. Raises ValueError for another name."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path}: the name must end in one of {', '.join(FORMATS)}")
    return _writer(path, path.suffix.lower(), schema)
