"""Named byte strings in one, for snapshots: a header in JSON, then the parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_LENGTH_BYTES = 8


def pack(facts: Mapping[str, Any], parts: Mapping[str, bytes]) -> bytes:
    """`facts` (anything JSON holds) and `parts` as one byte string.

    >>> unpack(pack({"n": 1}, {"a": b"12", "b": b""}))
    ({'n': 1}, {'a': b'12', 'b': b''})
    """
    header = json.dumps({"facts": facts, "parts": {name: len(data) for name, data in parts.items()}}).encode()
    return b"".join([len(header).to_bytes(_LENGTH_BYTES, "little"), header, *parts.values()])


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Inverse of `pack`. Raises ValueError when the string is cut off."""
    at = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    header = json.loads(data[_LENGTH_BYTES:at])
    parts = {}
    for name, size in header["parts"].items():
        parts[name] = data[at : at + size]
        at += size
    if at != len(data):
        raise ValueError(f"the state is {len(data)} bytes long instead of {at}")
    return header["facts"], parts


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream; to compress it takes longer than to move it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def table_from(data: bytes) -> pa.Table:
    """Inverse of `table_bytes`."""
    return pa.ipc.open_stream(data).read_all()
