"""An event log on shared storage: any number of processes on any machines append to it and read it (decision 26).

A database keeps the order: a row for each segment, and one for each feed that says where its log ends. Files lie in a local folder, or in a store of
S3's protocol; no folder is listed, and no file is renamed or locked.

A writer puts a file that is stamped for the place where the log ends when it looks; then, in one short transaction that locks the feed's row, takes
that place if it is still free. If another was faster, it judges and stamps its rows again, and puts them while it holds the lock. A file that no row
names was left behind by a writer that lost its place, or died: nobody reads it.
"""

from __future__ import annotations

import io
import os
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import fs

from engine.failpoints import failpoint
from engine.sources.buckets import write_rows
from engine.sources.eventlog import End, EventLog, _Judged, _Waiting
from engine.sources.segments import WHOLE_BYTES, Segment, sync


@dataclass(frozen=True)
class Place:
    """The end of a log: the next row's number, the clock, and for how many milliseconds it has stood there."""

    next_seq: int = 0
    max_t: int | None = None
    silent_ms: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Ordered:
    """A segment in its place: rows from `first_seq` on, the clock after them, the file that has them, with its check sum."""

    first_seq: int
    rows: int
    max_t: int
    file: str
    crc: int


class Turn(Protocol):
    """The log's end, while nobody else can move it."""

    place: Place

    def add(self, segment: Ordered) -> None:
        """The segment stands at `place` when the turn has ended."""


class Order(Protocol):
    """One feed's segments in order, in a database."""

    def place(self) -> Place:
        """Where the log ends."""

    def turn(self) -> AbstractContextManager[Turn]:
        """One transaction. Whatever breaks it off leaves nothing behind."""

    def beyond(self, seq: int) -> Sequence[Ordered]:
        """The segments that end beyond row `seq`, in order."""

    def waiting_since(self, seq: int) -> float | None:
        """When the first segment beyond row `seq` took its place, in seconds since the epoch."""


class Files:
    """Where segments lie: a folder of any file system that pyarrow knows. What has been put is whole, and stays."""

    def __init__(self, system: fs.FileSystem, folder: str) -> None:
        self.system, self.folder = system, folder

    def put(self, name: str, content: pa.Buffer) -> None:
        """The file is there, on disk or in the store, when this returns. Raises OSError."""
        path = f"{self.folder}/{name}"
        if isinstance(self.system, fs.LocalFileSystem):
            return _put_locally(Path(path), content)
        with self.system.open_output_stream(path) as stream:
            stream.write(content)
        return None

    def open(self, name: str) -> pa.NativeFile:
        """For reading. Raises FileNotFoundError."""
        return self.system.open_input_file(f"{self.folder}/{name}")

    def remove(self, name: str) -> None:
        with suppress(OSError):
            self.system.delete_file(f"{self.folder}/{name}")


def _put_locally(path: Path, content: pa.Buffer) -> None:
    """Synced with its name. No other file has it, and nobody looks for it before it is ordered."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync(path.parent)


@dataclass(frozen=True)
class SharedSegment(Segment):
    """A segment in `files`."""

    files: Files | None = None

    @property
    def feed(self) -> str:
        return self.path.parent.name

    def _verified(self) -> Any:
        """Small files are read at once and compared with their check sum; of larger ones each page has its own."""
        assert self.files is not None
        try:
            file = self.files.open(str(self.path))
        except FileNotFoundError:
            # A file goes after its row: no reader that looks again would find it elsewhere.
            raise self.damaged("the file is missing") from None
        if file.size() > WHOLE_BYTES:
            return file
        with file:
            content = file.read_buffer()
        self.expect(zlib.crc32(content))
        return pa.BufferReader(content)


class SharedLog(EventLog):
    """One feed's log. Written and read like any other; one object may be shared by threads."""

    def __init__(self, order: Order, files: Files, feed: str) -> None:
        super().__init__(Path(), feed)
        self.order, self.files = order, files

    # -- writing ------------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        yield

    def _commit(self, group: Sequence[_Waiting]) -> None:
        place = self.order.place()
        judged, segment = self._put(group, place)
        failpoint("log.before_order")
        # Whatever breaks the transaction off: its row may be there or not, so the file stays. Whoever asks again with the same key learns it.
        with self.order.turn() as turn:
            if turn.place != place:
                self._discard(segment)
                judged, segment = self._put(group, turn.place)
            if segment is not None:
                turn.add(segment)
            failpoint("log.before_order_commit")
        failpoint("log.after_order")
        judged.answer(group)

    def _put(self, group: Sequence[_Waiting], place: Place) -> tuple[_Judged, Ordered | None]:
        """The group's rows in a file that is stamped for `place`; no file when none are left of them."""
        judged = self._judged(group, place.next_seq, End(place.max_t, place.silent_ms))
        if not judged.entries:
            return judged, None
        stamped, max_t = judged.stamped(place.max_t)
        buffer = io.BytesIO()
        write_rows(buffer, stamped)
        content = pa.py_buffer(buffer.getvalue())
        crc = zlib.crc32(content)
        # A name that no other writer has, also not with the same rows for the same place.
        facts = Segment.name(place.next_seq, stamped.num_rows, max_t, crc).removesuffix(".parquet")
        name = f"{self.folder.name}/{facts}.{uuid.uuid4().hex}.parquet"
        self.files.put(name, content)
        return judged, Ordered(place.next_seq, stamped.num_rows, max_t, name, crc)

    def _discard(self, segment: Ordered | None) -> None:
        if segment is not None:
            self.files.remove(segment.file)

    # -- what is there ------------------------------------------------------------------------------------------------------------

    @property
    def end(self) -> tuple[int, int | None]:
        place = self.order.place()
        return place.next_seq, place.max_t

    def grown_since(self, look_ns: int) -> bool:
        return True

    def segments(self) -> list[Segment]:
        return self._beyond(-1)

    def waiting_since(self, seq: int) -> float | None:
        return self.order.waiting_since(seq + 1)

    def _beyond(self, seq: int) -> list[Segment]:
        return [SharedSegment(one.first_seq, one.rows, one.max_t, Path(one.file), one.crc, self.files) for one in self.order.beyond(seq)]

    def _live_beyond(self, seq: int) -> list[Segment]:
        return self._beyond(seq)
