"""Arrow streams from outside: the decompressed size is computed from a stream's messages before
anything is decompressed.

A few bytes of Arrow can represent any number of rows: columns without values, compressed buffers,
dictionaries, runs and views whose many rows share one text. The counts are in the messages'
metadata, which is a flatbuffer of fixed layout (Message.fbs of the Arrow format).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.messages import Message

COLUMNS = 1_000
BATCHES = 1_000
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3
"""Types of messages (MessageHeader)."""


class StreamRefused(ValueError):
    """The bytes are not an Arrow stream, or have columns of types that are not supported."""


class StreamTooLarge(ValueError):
    """The decompressed stream would exceed a limit."""


@dataclass(frozen=True)
class Limits:
    """The limits of a decompressed stream: rows, values (of all columns, null or not) and bytes."""

    rows: int
    values: int
    unpacked: int


def read_stream(body: bytes, limits: Limits, names: Collection[str]) -> pa.Table:
    """The rows of a stream. Columns of lists and other nested types are left out
    when they are not `names`.

    Raises StreamRefused, StreamTooLarge.
    """
    try:
        _count_messages(body, limits)
        table = pa.ipc.open_stream(body).read_all()
        table.validate()
        if len(set(table.column_names)) < table.num_columns:
            raise StreamRefused(Message("Two columns have the same name."))
        table = _without_nested(table, names)
        _count_shared(table, limits)
        # Offsets that point outside would be followed by the code that reads the rows. This reads
        # each row's text, so the sizes are checked first.
        table.validate(full=True)
        return pa.table({field.name: _plain(column) for field, column in zip(table.schema, table.columns, strict=True)})
    except (pa.ArrowException, OSError, struct.error, OverflowError, UnicodeDecodeError) as error:
        raise StreamRefused(Message("The body is not an Arrow stream: {error}", error=error)) from error


def _count_messages(body: bytes, limits: Limits) -> None:
    """Raises StreamTooLarge by the sizes in the messages' metadata."""
    rows = values = unpacked = batches = 0
    dictionaries: dict[int, int] = {}
    for message in _messages(body):
        meta = _Table.root(memoryview(message.metadata))
        kind, header = meta.byte(1), meta.table(2)
        if header is None or kind not in (_DICTIONARY, _RECORDS):
            continue
        number = header.long(0) if kind == _DICTIONARY else None
        batch = header if number is None else header.table(1)
        if batch is None:
            continue
        held = sum(length for length, _ in batch.pairs(1))
        unpacked += _unpacked(batch, memoryview(message.body) if message.body is not None else memoryview(b""))
        values += held
        if number is None:
            batches += 1
            rows += batch.long(0)
            # Each batch carries all its dictionaries when batches are concatenated.
            values += sum(dictionaries.values())
        else:
            dictionaries[number] = (dictionaries.get(number, 0) if header.byte(2) else 0) + held
        _refuse_above(rows, limits.rows, Message("rows"))
        _refuse_above(values, limits.values, Message("values"))
        _refuse_above(unpacked, limits.unpacked, Message("bytes, unpacked"))
        _refuse_above(batches, BATCHES, Message("record batches"))


def _messages(body: bytes) -> Iterator[pa.Message]:
    reader = pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.type == "schema" and len(pa.ipc.read_schema(message)) > COLUMNS:
            raise StreamTooLarge(Message("The stream has more than {most:,} columns; send those of the feed.", most=COLUMNS))
        yield message


def _unpacked(batch: _Table, body: memoryview) -> int:
    """The decompressed size of the batch's buffers: each begins with that number
    (-1: it is not compressed)."""
    if batch.table(3) is None:
        return 0
    total = 0
    for offset, length in batch.pairs(2):
        if length >= 8:
            total += max(struct.unpack_from("<q", body, offset)[0], 0)
    return total


def _refuse_above(count: int, most: int, what: Message) -> None:
    if count > most or count < 0:
        raise StreamTooLarge(Message("The stream has more than {most:,} {what}; send smaller parts.", most=most, what=what))


def _without_nested(table: pa.Table, names: Collection[str]) -> pa.Table:
    """The columns of plain values. Raises StreamRefused for a wanted one of a nested type."""
    nested = [field.name for field in table.schema if not _is_plain(field.type)]
    for name in nested:
        if name in names:
            kind = table.schema.field(name).type
            raise StreamRefused(
                Message(
                    "The column {name} has the Arrow type {type}; send text, numbers, true and false, or times.",
                    name=repr(name[:100]),
                    type=str(kind)[:100],
                )
            )
    return table.drop_columns(nested) if nested else table


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _is_simple(kind.value_type)
    return _is_view(kind) or _is_simple(kind)


def _is_simple(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind) or _is_view(kind):
        return False
    return not pa.types.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType)


def _count_shared(table: pa.Table, limits: Limits) -> None:
    """Raises StreamTooLarge if rows that share texts would take too much
    memory once each has a copy."""
    total = sum(_shared_bytes(chunk) for column in table.columns for chunk in column.chunks)
    _refuse_above(total, limits.unpacked, Message("bytes, unpacked"))


def _shared_bytes(array: pa.Array) -> int:
    if pa.types.is_dictionary(array.type):
        lengths = pa.array(_lengths(array.dictionary))
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_run_end_encoded(array.type):
        ends = np.minimum(np.asarray(array.run_ends.cast(pa.int64())) - array.offset, len(array))
        runs = np.diff(np.maximum(ends, 0), prepend=0)
        lengths = _lengths(array.values)
        shorter = min(len(runs), len(lengths))
        return int((runs[:shorter] * lengths[:shorter]).sum())
    return int(_lengths(array).sum()) if _is_view(array.type) else 0


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with a separate value for each row: not every function supports dictionaries, runs
    and views."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    elif pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    if _is_view(column.type):
        column = column.cast(pa.string() if pa.types.is_string_view(column.type) else pa.binary())
    return column


def _lengths(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The bytes of each value, 0 for null."""
    if _is_view(array.type):
        _, views, *_ = array.buffers()
        if views is None or not len(array):
            return np.zeros(len(array), np.int64)
        lengths = np.frombuffer(views, np.int32, count=4 * (array.offset + len(array)))[::4][array.offset :].astype(np.int64)
        return np.where(np.asarray(array.is_valid()), lengths, 0)
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return np.asarray(pc.fill_null(pc.binary_length(array), 0).cast(pa.int64()))
    width = 1 if pa.types.is_null(kind) else max(kind.bit_width // 8, 1)
    return np.full(len(array), width, np.int64)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


@dataclass(frozen=True)
class _Table:
    """A flatbuffer's table: fields by their place in the schema. Reading outside the
    buffer raises struct.error."""

    buffer: memoryview
    at: int

    @classmethod
    def root(cls, buffer: memoryview) -> _Table:
        return cls(buffer, struct.unpack_from("<I", buffer, 0)[0])

    def _field(self, place: int) -> int | None:
        """The position of the field's value; null if it has its default."""
        vtable = self.at - struct.unpack_from("<i", self.buffer, self.at)[0]
        if vtable < 0:
            raise struct.error("a table's layout lies outside the message")
        if 4 + 2 * place >= struct.unpack_from("<H", self.buffer, vtable)[0]:
            return None
        offset = struct.unpack_from("<H", self.buffer, vtable + 4 + 2 * place)[0]
        return self.at + offset if offset else None

    def byte(self, place: int) -> int:
        at = self._field(place)
        return 0 if at is None else int(struct.unpack_from("<B", self.buffer, at)[0])

    def long(self, place: int) -> int:
        at = self._field(place)
        return 0 if at is None else int(struct.unpack_from("<q", self.buffer, at)[0])

    def table(self, place: int) -> _Table | None:
        at = self._field(place)
        return None if at is None else _Table(self.buffer, at + struct.unpack_from("<I", self.buffer, at)[0])

    def pairs(self, place: int) -> Iterator[tuple[int, int]]:
        """The structs of two longs in a vector: field nodes (length, nulls) and
        buffers (offset, length)."""
        at = self._field(place)
        if at is None:
            return
        begin = at + struct.unpack_from("<I", self.buffer, at)[0]
        count = struct.unpack_from("<I", self.buffer, begin)[0]
        # Structs of longs begin at a multiple of eight.
        for position in range(count):
            first, second = struct.unpack_from("<qq", self.buffer, begin + 4 + 16 * position)
            if first < 0 or second < 0:
                raise struct.error("a length is negative")
            yield first, second
