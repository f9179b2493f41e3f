"""The program of a caged process that reads uploaded files: it inspects one, or returns its rows in
pieces.

Its requests: `{"do": "inspect", "path", "name", "chosen"}` or
`{"do": "read", "path", "reading", "piece"}`. A process that is asked for consecutive pieces
continues where it is; for any other piece it reads the file from its beginning.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from engine.model.faults import Fault, Refused
from engine.model.messages import Message, message_of
from engine.sources.files import UnreadableFile
from engine.sources.formats import Chunk, FileFormat, Layout, read_chunks, table_of
from engine.sources.guessing.columns import guess
from engine.sources.guessing.files import inspect
from engine.sources.guessing.samples import described
from engine.sources.reading import Reading, read_rows, reading_of

KEPT = 1_000
"""At most this many faulty rows of a piece are listed one by one; the others are counted."""
SHOWN = 2_000


def warm_up() -> None:
    """Warms up the code that is slow the first time, with sample rows; not Arrow's file
    readers, which start threads."""
    rows = [{"name": "a", "time": time, "lon": 13.4, "lat": 52.5, "speed": "2.5"} for time in ("2026-01-02 03:04:05", "2026-01-02 03:05")]
    for times in (slice(0, 1), slice(1, 2), slice(0, 2)):
        table = table_of(rows[times])
        for chosen in ({}, {"crs": "EPSG:3857", "zone": "Europe/Athens"}):
            described(table, np.arange(1, table.num_rows + 1), (), guess(table, Layout(FileFormat.JSON), "a.json", chosen))


def run(request: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """The program's work; `faults` when the file as a whole cannot be read."""
    try:
        if request["do"] == "inspect":
            return {"found": inspect(Path(request["path"]), request["name"], request["chosen"])}
        return _piece(Path(request["path"]), reading_of(request["reading"]), request["piece"])
    except Refused as refused:
        return {"faults": [fault.to_json() for fault in refused.faults]}
    except UnreadableFile as fault:
        return {"faults": [Fault("/file", message_of(fault)).to_json()]}
    except OSError:
        # Its text may name files of the server.
        return {"faults": [Fault("/file", Message("The file cannot be read.")).to_json()]}


_open: tuple[Any, int, Iterator[Chunk]] | None = None
"""The source being read, the number of the next piece, and the remaining pieces."""


def _piece(path: Path, reading: Reading, number: int) -> dict[str, Any]:
    global _open
    this = (path, reading)
    if _open is None or _open[:2] != (this, number):
        rest = read_chunks(path, reading.layout)
        for _ in range(number):
            next(rest, None)
    else:
        rest = _open[2]
    chunk = next(rest, None)
    _open = (this, number + 1, rest)
    return {"rows": None} if chunk is None else _answer_of(chunk, reading)


def _answer_of(chunk: Chunk, reading: Reading) -> dict[str, Any]:
    checked = read_rows(chunk.table, reading, reading.feed("upload")).checked
    letters = checked.dead(chunk.lines)[: 10 * KEPT]
    dead = [{"reason": "malformed", "detail": one.problem, "line": one.line, "row": {"text": one.text}} for one in chunk.broken]
    dead += [{"reason": str(one.reason), "detail": one.detail, "line": one.line, "row": _short(one.row)} for one in letters]
    more = Counter(letter["reason"] for letter in dead[KEPT:])
    more.update({"malformed": checked.dead_count - len(letters)})
    sink = pa.BufferOutputStream()
    good = checked.good()
    with pa.ipc.new_stream(sink, good.schema, options=pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)) as writer:
        writer.write_table(good)
    return {
        "rows": base64.b64encode(sink.getvalue()).decode(),
        "read": chunk.table.num_rows + len(chunk.broken),
        "dead": dead[:KEPT],
        "more": {reason: count for reason, count in more.items() if count},
    }


def _short(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if row is None else {name: value[:SHOWN] if isinstance(value, str) else value for name, value in row.items()}
