"""How an unknown file is written, and its first rows."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.messages import Message
from engine.sources.files import UnreadableFile
from engine.sources.formats import Chunk, FileFormat, InvalidLine, Layout, head_of, kind_of, open_bytes, read_chunks
from engine.sources.formats.delimited_text import guess_layout, lines_not_utf8
from engine.sources.guessing.columns import guess
from engine.sources.guessing.samples import SHOWN_FAULTS, described
from engine.sources.reading import reading_of

SAMPLE_ROWS = 5_000
LOOKED_THROUGH_BYTES = 64_000_000
"""How much of a text is searched for signs of another encoding: a third of a second."""


def inspect(path: Path, name: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The content of the file, read as `chosen` defines and otherwise as guessed. Raises
    UnreadableFile, Refused."""
    reading_of(chosen)
    layout = _layout(path, name, chosen)
    raw, lines, broken = _sample(read_chunks(path, layout))
    broken = [*broken, *_further_on(path, layout, {one.line for one in broken})]
    reading = guess(raw, layout, name, {**_of_metadata(path, layout, chosen), **chosen})
    return {"reading": reading.to_json(), "sheets": _sheets(path, layout), **described(raw, lines, broken, reading)}


def _layout(path: Path, name: str, chosen: Mapping[str, Any]) -> Layout:
    head = head_of(path)
    kind = FileFormat(chosen["kind"]) if chosen.get("kind") in list(FileFormat) else kind_of(head, name)
    layout = guess_layout(head) if kind is FileFormat.CSV else Layout(kind)
    options = {key: chosen[key] for key in ("encoding", "delimiter", "header", "sheet") if key in chosen}
    if kind is FileFormat.EXCEL and not options.get("sheet"):
        from engine.sources.formats.typed import filled_sheet

        options["sheet"] = filled_sheet(path)
    return replace(layout, **options)


def _sheets(path: Path, layout: Layout) -> list[str]:
    if layout.kind is not FileFormat.EXCEL:
        return []
    from engine.sources.formats.typed import sheets_of

    return sheets_of(path)


def _further_on(path: Path, layout: Layout, known: set[int]) -> list[InvalidLine]:
    """Lines after the sample with another encoding: the user must see them
    before the file is loaded."""
    if layout.kind is not FileFormat.CSV or layout.encoding.lower() not in ("utf-8", "utf-8-sig"):
        return []
    try:
        with open_bytes(path) as stream:
            return list(islice((one for one in lines_not_utf8(stream, LOOKED_THROUGH_BYTES) if one.line not in known), SHOWN_FAULTS))
    except (OSError, EOFError, zlib.error):
        # Reading it reports why.
        return []


def _of_metadata(path: Path, layout: Layout, chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """The reading of places from the metadata of a file with types, unless others were chosen."""
    if layout.kind not in (FileFormat.PARQUET, FileFormat.ARROW) or not {"x", "y", "place_format"}.isdisjoint(chosen):
        return {}
    from engine.sources.formats.typed import geometry_of

    return geometry_of(path, layout.kind)


def _sample(chunks: Iterable[Chunk]) -> tuple[pa.Table, npt.NDArray[np.int64], Sequence[InvalidLine]]:
    """The first rows of a file: as many as its first piece, at most SAMPLE_ROWS."""
    first = next(iter(chunks), None)
    if first is None or not (first.table.num_rows or first.broken):
        raise UnreadableFile(Message("There are no rows in the file."))
    if first.table.num_rows and not first.table.num_columns:
        raise UnreadableFile(Message("The rows of the file hold no values."))
    # Without columns Arrow does not count the rows of a slice.
    return first.table.slice(0, min(SAMPLE_ROWS, first.table.num_rows)), first.lines[:SAMPLE_ROWS], list(islice(first.broken, SAMPLE_ROWS))
