"""Files of events: Parquet, CSV and JSON lines, plain or compressed, one file or a folder
of them, in bounded memory.

Which files they are, which of their columns are read, and what all formats share.
`file_rows.py` reads them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc

from engine.model.columns import ENTITY, TIME
from engine.model.events import CheckedRows, DeadLetter, Reason, row_schema
from engine.model.faults import unknown_name
from engine.model.feed import ColumnType, Feed
from engine.model.messages import Message

PARQUET, CSV, TSV, JSON_LINES = "parquet", "csv", "tsv", "jsonl"
FORMATS: Mapping[str, str] = {
    ".parquet": PARQUET, ".pq": PARQUET, ".csv": CSV, ".tsv": TSV, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES, ".json": JSON_LINES,
}  # fmt: skip
COMPRESSIONS = (".gz", ".zst", ".zstd")
PLUS, JOINT = "+", "/"
SHOWN = 1_000
"""Characters of a text that is no row which its dead letter shows."""


def zstd_stream(path: Path) -> BinaryIO:
    """The unpacked bytes of a file packed by Zstandard."""
    # Arrow's own stream cannot read by lines.
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))))


class UnreadableFile(ValueError):
    """A file that cannot be read as events; the text names it and the remedy."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are read as which of the feed's: `--map`. `extra` is read too,
    for the order of delivery.

    A name such as `scene+id` that the file has no column of means its columns `scene` and `id`,
    their texts joined by JOINT; where one is missing the result is missing.
    """

    feed: Feed
    renamed: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None

    def __post_init__(self) -> None:
        for name in self.renamed:
            if name not in self.feed.types:
                raise UnreadableFile(f"--map: {unknown_name(name, self.feed.types, what=Message('column of the feed'))}")
            if PLUS in self.renamed[name] and self.feed.types[name] is not ColumnType.STRING:
                raise UnreadableFile(
                    f"--map: {self.renamed[name]!r}: only columns of text can be joined, and {name!r} is of type {self.feed.types[name]}"
                )

    @property
    def sources(self) -> dict[str, str]:
        """The feed's column to the file's."""
        return {name: self.renamed.get(name, name) for name in self.feed.types}

    def present(self, names: Sequence[str], separator: str | None = None) -> dict[str, str]:
        """`sources` as far as a file has them, whose columns are `names`. Raises UnreadableFile if
        it lacks entity, t or one that was named.

        `separator` is what the header was taken apart at.
        """
        for name in (ENTITY, TIME, *self.renamed):
            for source in parts_of(self.sources[name], names):
                if source not in names:
                    hint = "" if name in self.renamed else f"; name the one to be read as it with --map {name}=..."
                    raise UnreadableFile(f"{unknown_name(source, names, what=Message('column'))}{hint}")
        if self.extra is not None and self.extra not in names:
            raise UnreadableFile(unknown_name(self.extra, names, what=Message("column")))
        return {name: source for name, source in self.sources.items() if all(part in names for part in parts_of(source, names))}

    def needed(self, present: Mapping[str, str], names: Sequence[str]) -> list[str]:
        """The file's own columns behind `present`, and the extra one."""
        extra = [self.extra] if self.extra is not None else []
        return sorted({*extra, *(part for source in present.values() for part in parts_of(source, names))})


def parts_of(source: str, names: Sequence[str]) -> list[str]:
    """The columns that `source` names in a file whose columns are `names`."""
    return [source] if source in names or PLUS not in source else source.split(PLUS)


def with_joined(table: pa.Table, sources: Iterable[str]) -> pa.Table:
    """`table` with the columns among `sources` that are made of several."""
    for source in set(sources) - set(table.column_names):
        texts = [table.column(part).cast(pa.string()) for part in source.split(PLUS)]
        table = table.append_column(source, pc.binary_join_element_wise(*texts, JOINT))
    return table


@dataclass(frozen=True)
class CheckedChunk:
    """Some rows of a file: the events among them and, when there was an extra column, its values
    for them; and the refused ones."""

    rows: pa.Table
    read: int
    dead: Callable[[], list[DeadLetter]]
    extra: pa.ChunkedArray | None = None

    @classmethod
    def of(cls, checked: CheckedRows, dead: Callable[[], list[DeadLetter]], extra: pa.ChunkedArray | None = None, *, broken: int = 0) -> CheckedChunk:
        """Checked rows, with all values of the extra column, and as many
        `broken` ones that are none."""
        if extra is not None and checked.dead_count:
            extra = extra.filter(pa.array(checked.fault == 0))
        return cls(checked.good(), checked.table.num_rows + broken, dead, extra)

    @classmethod
    def joined(cls, pieces: Sequence[CheckedChunk], feed: Feed) -> CheckedChunk:
        """All rows of the pieces, in their order."""
        return cls(
            pa.concat_tables([row_schema(feed).empty_table(), *(piece.rows for piece in pieces)]),
            sum(piece.read for piece in pieces),
            lambda: [letter for piece in pieces if piece.dead_count for letter in piece.dead()],
            _joined([piece.extra for piece in pieces]),
        )

    @property
    def dead_count(self) -> int:
        return self.read - int(self.rows.num_rows)


def _joined(columns: Sequence[pa.ChunkedArray | None]) -> pa.ChunkedArray | None:
    """The columns concatenated, if they are given; as numbers if all are, else as texts."""
    present = [column for column in columns if column is not None]
    if not present:
        return None
    kinds = {column.type for column in present}
    kind = kinds.pop() if len(kinds) == 1 else pa.string() if pa.string() in kinds else pa.float64()
    return pa.chunked_array([chunk for column in present for chunk in column.cast(kind).chunks], kind)


def malformed(problem: Message, text: str, line: int | None = None) -> DeadLetter:
    """The dead letter of an unparsable row: shows how its text begins."""
    return DeadLetter(Reason.MALFORMED, problem, {"text": text.rstrip("\r")[:SHOWN]}, line)


def find_files(path: Path) -> list[Path]:
    """`path` itself, or the files of events below the folder in name order. Raises UnreadableFile.

    A `.json` file counts only when it is named itself: in a folder it is more likely
    a document about the data.
    """
    if not path.exists():
        raise UnreadableFile(f"{path}: there is no such file or folder")
    if path.is_file():
        format_of(path)
        return [path]
    files = sorted(one for one in path.rglob("*") if one.is_file() and _belongs(one))
    if not files:
        raise UnreadableFile(f"{path}: the folder holds no file of events ({', '.join(FORMATS)})")
    return files


def _belongs(path: Path) -> bool:
    return _format(path) is not None and ".json" not in path.suffixes and not path.name.startswith((".", "_"))


def format_of(path: Path) -> str:
    """The format by the file's name. Raises UnreadableFile."""
    name = _format(path)
    if name is None:
        kinds = f"{', '.join(FORMATS)}, with {' or '.join(COMPRESSIONS)} if compressed"
        raise UnreadableFile(Message("{name}: unknown kind of file; the name must end in one of {kinds}", name=path.name, kinds=kinds))
    return name


def _format(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None
