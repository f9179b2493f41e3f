"""Reads files in `var/inbox/<feed>/`: each row of each file once, even if this process dies.

Files are to be renamed into the folder when they are complete. One that someone still has open
for writing, or that has just changed, is not read; hidden ones and `*.part`, `*.tmp` are not read
either. When all of a file is in the log it is moved to `done/`; one that cannot be read goes to
`failed/`, with the reason in a file next to it and among the feed's events: rows that were read
before the fault stay in the log.

A file is sent in chunks, each under an idempotency key made of the file's
identity and the chunk's number.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from engine.failpoints import failpoint
from engine.model.faults import unknown_name
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message, untranslated
from engine.sources.file_rows import read_file as read_rows_of_file
from engine.sources.files import COMPRESSIONS, PARQUET, CheckedChunk, UnreadableFile, format_of
from webapp.feeds.bodies import NamedAsTheFeed
from webapp.feeds.damage import damage_isolated
from webapp.feeds.heads import feed_event_add
from webapp.feeds.ingest import Delivery, ingest
from webapp.feeds.models import Feed
from webapp.jobs.models import JobEvent

log = logging.getLogger(__name__)

CHUNK_ROWS = 10_000
QUIET_S = 1.0
"""A file whose last change is more recent may still be changing."""
BUDGET_S = 0.5
"""A scan yields to other work after about this long; the next one continues."""
IGNORED_SUFFIXES = (".part", ".tmp", ".crdownload")


@dataclass
class Inbox:
    """The folders of all feeds below `root`."""

    root: Path
    chunk_rows: int = CHUNK_ROWS
    quiet_s: float = QUIET_S
    _work: Iterator[None] | None = field(default=None, init=False)
    _unclaimed: set[str] = field(default_factory=set, init=False)
    """Files that no feed takes and that have been reported."""

    def scan(self, feeds: Sequence[Feed], budget_s: float = BUDGET_S) -> None:
        """Takes files, oldest first, for about `budget_s`. Raises OSError and database errors: the
        file is begun again, nothing is doubled."""
        end = time.monotonic() + budget_s
        if self._work is None:
            self._work = self._all(feeds)
        try:
            for _ in self._work:
                if time.monotonic() >= end:
                    return
        except BaseException:
            self._work = None
            raise
        self._work = None

    def _all(self, feeds: Sequence[Feed]) -> Iterator[None]:
        self._report_unclaimed({feed.name for feed in feeds})
        for feed in feeds:
            folder = self.root / feed.name
            folder.mkdir(parents=True, exist_ok=True)
            for path in sorted(waiting(folder), key=lambda one: (one.stat().st_mtime_ns, one.name)):
                if is_complete(path, self.quiet_s):
                    with damage_isolated(feed):
                        yield from self._take(feed, path)

    def _report_unclaimed(self, taken: Set[str]) -> None:
        """Files that no feed takes, once for each folder: they stay until a
        feed has the folder's name."""
        for path in self.root.iterdir() if self.root.is_dir() else ():
            if path.name in taken or path.name in self._unclaimed or not holds_files(path):
                continue
            known = set(Feed.objects.values_list("name", flat=True))
            # A feed that is suspended takes its files later.
            if path.name not in known:
                self._unclaimed.add(path.name)
                where = unknown_name(path.name, known, what=untranslated("feed")) if path.is_dir() else "files belong in the folder of their feed"
                log.warning("%s is not read: %s", path, where)

    def _take(self, feed: Feed, path: Path) -> Iterator[None]:
        """One file into the log, a chunk for each step."""
        identity = file_identity(path)
        schema = feed.engine_feed()
        name = printable(path.name)
        try:
            for number, piece in enumerate(read_file(path, schema, self.chunk_rows)):
                # The digest is the identity: the time to which `ahead` is relative may differ when
                # a chunk is repeated.
                delivery = Delivery(piece.rows, piece.dead(), f"file:{name}", f"file-{identity}-{number}", identity)
                ingest(feed, delivery)
                failpoint("folder.after_chunk")
                yield
        except UnreadableFile as fault:
            failed = move(path, "failed", identity)
            failed.with_name(f"{failed.name}.reason.txt").write_text(f"{printable(str(fault))}\n")
            log.warning("%s/%s: %s", feed.name, name, fault)
            text = Message("The file {file} of the feed's folder is in failed/ now: {why}", file=name, why=printable(str(fault)))
            feed_event_add(feed, JobEvent.Kind.UNREADABLE, text)
        else:
            move(path, "done", identity)
        failpoint("folder.after_move")
        yield


def waiting(folder: Path) -> list[Path]:
    """The files in `folder`."""
    return [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".") and path.suffix not in IGNORED_SUFFIXES]


def holds_files(path: Path) -> bool:
    """Whether it is a file that was put here, or a folder with one, as far as this process may
    see."""
    try:
        return path in waiting(path.parent) if path.is_file() else path.is_dir() and bool(waiting(path))
    except OSError:
        return False


def is_complete(path: Path, quiet_s: float) -> bool:
    """Whether the file is complete: unchanged for a while, and open for
    writing nowhere on this machine."""
    if time.time() - path.stat().st_mtime < quiet_s:
        return False
    with path.open("rb") as file:
        try:
            # The kernel grants a read lease on a file only when no writer has it open.
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            return False
        except OSError:
            # Another user's file, or a file system without leases: being unchanged must be enough.
            return True
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True


def file_identity(path: Path) -> str:
    """The identity of a file as long as it is not rewritten: 32 hexadecimal digits."""
    stat = path.stat()
    text = f"{path.name}|{stat.st_dev}|{stat.st_ino}|{stat.st_mtime_ns}|{stat.st_size}"
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]


def printable(name: str) -> str:
    """The text of a name that may not be UTF-8, as names from archives and old servers are."""
    return os.fsencode(name).decode(errors="backslashreplace")


def move(path: Path, where: str, identity: str) -> Path:
    """Moves it into the neighbouring folder `where`, and returns its new path; a file of the same
    name there is not overwritten."""
    folder = path.parent / where
    folder.mkdir(exist_ok=True)
    target = folder / path.name
    if target.exists():
        target = folder / f"{path.stem}-{identity[:8]}{path.suffix}"
    os.rename(path, target)  # noqa: PTH104 - Path.rename would be the same
    return target


def read_file(path: Path, feed: EngineFeed, rows: int) -> Iterator[CheckedChunk]:
    """The file's rows, checked, in pieces that are the same each time. Raises Unreadable for a file
    that it cannot read."""
    if format_of(path) == PARQUET and path.suffix.lower() in COMPRESSIONS:
        # It would have to be unpacked into memory as a whole.
        raise UnreadableFile(Message("Parquet is compressed in itself: unpack the file."))
    try:
        yield from read_rows_of_file(path, NamedAsTheFeed(feed), rows)
    except (UnreadableFile, OSError):
        raise
    except Exception as error:
        # A fault of the reader: the files after this one would wait forever.
        log.exception("%s", path)
        raise UnreadableFile(Message("Reading the file failed: {error}", error=f"{type(error).__name__}: {error}"[:300])) from error
