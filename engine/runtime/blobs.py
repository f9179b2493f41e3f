"""Named byte strings in one, and Arrow rows as bytes: the forms in which states are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa


def pack(parts: Mapping[str, bytes]) -> bytes:
    """All parts in one byte string: a line of JSON with names and lengths, then their bytes.

    >>> unpack(pack({"a": b"12", "b": b""}))
    {'a': b'12', 'b': b''}
    """
    head = json.dumps([[name, len(data)] for name, data in parts.items()]).encode()
    return b"".join([head, b"\n", *parts.values()])


def unpack(data: bytes) -> dict[str, bytes]:
    """Inverse of `pack`. Raises ValueError when the lengths do not add up."""
    head, newline, _ = data.partition(b"\n")
    start = len(head) + len(newline)
    parts = {}
    for name, length in json.loads(head):
        parts[name] = data[start : start + length]
        start += length
    if start != len(data):
        raise ValueError("the state is cut off or has grown")
    return parts


def pack_rows(rows: pa.RecordBatch) -> bytes:
    """Rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def unpack_rows(data: bytes) -> pa.RecordBatch:
    """Inverse of `pack_rows`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
