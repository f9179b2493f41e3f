"""Converts rows of a feed to the rows of a program's inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.event_calculus.arrivals import InputRows
from engine.event_calculus.intervals import Bools, Ints
from engine.event_calculus.program import EVENT, INTERVALS
from engine.event_calculus.syntax import Indicator
from engine.event_calculus.tables import Column, Symbols

VALUE = "value"
"""Column of a fluent's value; `true` if it is null or absent."""


@dataclass(frozen=True)
class InputSpec:
    """The columns of an input's arguments in a row. `kind` is EVENT, POINTS or INTERVALS."""

    name: str
    columns: tuple[str, ...]
    kind: str = EVENT

    @property
    def indicator(self) -> Indicator:
        return (self.name, len(self.columns))


def default_columns(arity: int) -> tuple[str, ...]:
    """entity, entity2, ...: the arguments of an undeclared input."""
    return tuple("entity" if place == 0 else f"entity{place + 1}" for place in range(arity))


def read_rows(rows: pa.RecordBatch, arrived: Ints, specs: Sequence[InputSpec], symbols: Symbols, tick: int) -> dict[Indicator, InputRows]:
    """The rows of each input, in the order of `rows`, without rows of other events and
    rows without an identifier.

    `arrived`: for each row the feed's clock after its arrival. An interval that has not ended at a
    query time has not arrived yet.
    """
    names = rows.column("event") if "event" in rows.schema.names else pa.array(["position"] * rows.num_rows)
    encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    known = {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}
    cache: dict[str, Column] = {}
    found = {}
    for spec in specs:
        if spec.name not in known:
            continue
        mine = np.flatnonzero(codes == known[spec.name])
        part = _read(rows, mine, arrived, spec, symbols, tick, cache)
        if len(part):
            found[spec.indicator] = part
    return found


def _read(rows: pa.RecordBatch, mine: Ints, arrived: Ints, spec: InputSpec, symbols: Symbols, tick: int, cache: dict[str, Column]) -> InputRows:
    columns = [_column(rows, name, symbols, cache)[mine] for name in spec.columns]
    t = np.asarray(rows.column("t").cast(pa.int64()))[mine]
    end = t + tick
    came = arrived[mine]
    if spec.kind != EVENT:
        columns.append(_values(rows, symbols, cache)[mine])
        # A fluent's arguments and value are names, even if the feed has numbers.
        columns = [symbols.encode_numbers(column) if column.dtype == np.float64 else column for column in columns]
    if spec.kind == INTERVALS:
        if "t_end" in rows.schema.names:
            ends = rows.column("t_end")
            known = np.asarray(pc.fill_null(ends.cast(pa.int64()), -1))[mine]
            end = np.where(np.asarray(ends.is_valid())[mine], known, end)
        came = np.maximum(came, end)
    x, y = (_coordinate(rows, name, cache)[mine] for name in ("x", "y"))
    read = InputRows(tuple(columns), t, end, came, x, y)
    named: Bools = np.ones(len(mine), np.bool_)
    for column in columns:
        if column.dtype == np.int64:
            named &= column >= 0
    return read if named.all() else read.take(named)


def _column(rows: pa.RecordBatch, name: str, symbols: Symbols, cache: dict[str, Column]) -> Column:
    if name not in cache:
        if name not in rows.schema.names:
            cache[name] = np.full(rows.num_rows, -1, np.int64)
        else:
            column = rows.column(name)
            number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            if number and not name.startswith("entity"):
                cache[name] = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")))
            else:
                cache[name] = symbols.encode(column)
    return cache[name]


def _values(rows: pa.RecordBatch, symbols: Symbols, cache: dict[str, Column]) -> Column:
    key = "#" + VALUE
    if key not in cache:
        column = _column(rows, VALUE, symbols, cache)
        codes = symbols.encode_numbers(column) if column.dtype == np.float64 else column
        cache[key] = np.where(codes < 0, symbols.code("true"), codes)
    return cache[key]


def _coordinate(rows: pa.RecordBatch, name: str, cache: dict[str, Column]) -> Column:
    key = "#" + name
    if key not in cache:
        column = rows.column(name) if name in rows.schema.names else pa.nulls(rows.num_rows, pa.float64())
        cache[key] = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")))
    return cache[key]
