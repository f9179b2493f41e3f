"""File storage that several machines reach: a folder, or a store with the S3
protocol, behind one URL.

`s3://bucket/prefix?endpoint_override=host:port&scheme=http&region=...`, `file:///folder` or
`/folder`. Keys come from `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, from the machine's role,
or from the URL.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from engine.failpoints import failpoint
from engine.sources.segments import sync

AT_ONCE = 8
TIMEOUT_S, PAUSE_S = 10.0, 0.2
"""How long operations are retried: a restart of the store must not end a job."""
CONNECT_S, ANSWER_S = 2.0, 5.0
"""How long a store may be silent while it connects and answers. It is asked three times."""
REFUSALS = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "INVALID_CLIENT_TOKEN_ID", "SIGNATURE_DOES_NOT_MATCH")
"""In messages of stores that refuse the keys."""

Found = TypeVar("Found")


class StoreUnavailable(OSError):
    """A file cannot be reached now, which does not mean that it is damaged."""


class StoreError(ValueError):
    """The URL names no store; the text gives the reason."""


class Files:
    """A folder of any file system that pyarrow knows. A file has been put whole, or is not there.

    In a message to another process it is its URL, and is opened there.
    """

    def __init__(self, system: fs.FileSystem, folder: str, url: str = "", below: str = "") -> None:
        """`url` is that of the folder, `below` the part added by `within`."""
        self.system, self.url, self.below = system, url, below
        self.folder = folder.rstrip("/")

    def __reduce__(self) -> tuple[Callable[[str, str], Files], tuple[str, str]]:
        return _opened, (self.url, self.below)

    def within(self, name: str) -> Files:
        """The folder `name` in this one."""
        return Files(self.system, f"{self.folder}/{name}", self.url, f"{self.below}/{name}".lstrip("/"))

    @property
    def title(self) -> str:
        """The folder's name without keys."""
        return f"{self.system.type_name}://{self.folder}"

    @property
    def _is_local(self) -> bool:
        return isinstance(self.system, fs.LocalFileSystem)

    def put(self, name: str, *content: pa.Buffer | bytes) -> None:
        """The file is there, on disk or in the store, when this returns. Raises OSError."""
        path = f"{self.folder}/{name}"
        if self._is_local:
            return _put_locally(Path(path), content, True)
        with self.system.open_output_stream(path) as stream:
            for piece in content:
                stream.write(piece)
        return None

    def put_with_retries(self, name: str, *content: pa.Buffer | bytes, lasting: bool = True) -> None:
        """The same. Retries if the store is unavailable. Unless it is `lasting`, a folder's file
        may go with the machine. Raises OSError."""
        if self._is_local:
            return _put_locally(Path(self.folder, name), content, lasting)
        return _with_retries(lambda: self.put(name, *content))

    def open(self, name: str) -> pa.NativeFile:
        """For reading. Retries if the store is unavailable. Raises
        FileNotFoundError, StoreUnavailable."""
        return _with_retries(lambda: self.system.open_input_file(f"{self.folder}/{name}"))

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        """So many bytes of it, or all. Retries if the store is unavailable. Raises
        FileNotFoundError, StoreUnavailable; what a local file raises."""

        def read() -> bytes:
            with self.system.open_input_file(f"{self.folder}/{name}") as file:
                return bytes(file.read_at(file.size() - offset if size is None else size, offset))

        return read() if self._is_local else _with_retries(read)

    def check_reachable(self) -> None:
        """Raises StoreUnavailable when the store's bucket or folder is not there: files that are
        missing then are not lost."""
        top = self.folder.removesuffix(f"/{self.below}") if self._is_local else self.folder.split("/")[0]
        if _with_retries(lambda: self.system.get_file_info(top)).type == fs.FileType.NotFound:
            place = f"{self.system.type_name}://{top}"
            raise StoreUnavailable(f"{place} does not exist (is VEDETTE_LOG_STORE right, and its disk mounted?)")

    def remove(self, name: str) -> None:
        with suppress(OSError):
            self.system.delete_file(f"{self.folder}/{name}")

    def remove_all(self, names: Iterable[str]) -> None:
        """Several at a time: some gateways refuse to delete many files with one request."""
        names = list(names)
        if len(names) < 2 or self._is_local:
            for name in names:
                self.remove(name)
            return
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self.remove, names))

    def existing(self, names: Iterable[str]) -> set[str]:
        """Those of the files that are there: each is asked for, unlike with
        `names`. Raises StoreUnavailable."""
        paths = [f"{self.folder}/{name}" for name in names]
        return {one.base_name for one in _with_retries(lambda: self.system.get_file_info(paths)) if one.is_file}

    def names(self) -> list[str]:
        """The files directly in the folder; some gateways leave out others while one is
        removed. Raises StoreUnavailable."""
        entries = _with_retries(lambda: self.system.get_file_info(fs.FileSelector(self.folder, allow_not_found=True)))
        return [one.base_name for one in entries if one.is_file]

    def older_than(self, folder: str, seconds: float) -> list[str]:
        """The names of the files below `folder` that were stored at least this long ago."""
        oldest = time.time() - seconds
        entries = self.system.get_file_info(fs.FileSelector(f"{self.folder}/{folder}", allow_not_found=True, recursive=True))
        return [one.path.removeprefix(f"{self.folder}/") for one in entries if one.is_file and one.mtime_ns / 1e9 <= oldest]

    def remove_folder(self, folder: str) -> None:
        with suppress(OSError):
            self.system.delete_dir(f"{self.folder}/{folder}")
        with suppress(OSError):
            self.remove_all(self.older_than(folder, -math.inf))


def files_of(url: str | Path) -> Files:
    """The store at `url`. Raises StoreError."""
    return _files_of(str(url), os.getpid())


@cache
def _files_of(url: str, pid: int) -> Files:
    # A process for itself: connections do not survive a fork.
    try:
        system, folder = fs.FileSystem.from_uri(url if urlsplit(url).scheme else Path(url).resolve().as_uri())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(f"VEDETTE_LOG_STORE names no store ({error}): give a folder, or s3://bucket/prefix?endpoint_override=host:port") from error
    return Files(_with_timeouts(system) if isinstance(system, fs.S3FileSystem) else system, folder, url)


def _with_timeouts(system: fs.S3FileSystem) -> fs.S3FileSystem:
    """The same store, whose requests fail soon. One made from a URL has no options for that: it
    asks a store that hangs 31 times, which takes 100 s."""
    make, (options,) = system.__reduce__()
    return make({**options, "connect_timeout": CONNECT_S, "request_timeout": ANSWER_S})


def _opened(url: str, below: str) -> Files:
    files = files_of(url)
    return files.within(below) if below else files


def _with_retries(act: Callable[[], Found]) -> Found:
    """The result of `act`. Retries while the store is unavailable. Raises
    FileNotFoundError, StoreUnavailable."""
    give_up = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return act()
        except FileNotFoundError:
            raise
        except OSError as error:
            if time.monotonic() > give_up:
                raise StoreUnavailable(f"{_what_failed(error)}: {error}") from error
        time.sleep(PAUSE_S)


def _what_failed(error: OSError) -> str:
    if any(code in str(error) for code in REFUSALS):
        return "the store refuses access (are the keys of VEDETTE_LOG_STORE right?)"
    return "the store does not answer"


def _put_locally(path: Path, content: Iterable[pa.Buffer | bytes], lasting: bool) -> None:
    """Writes a file next to it, and renames it; synced to disk if it is `lasting`."""
    _make(path.parent)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with part.open("xb") as file:
            # Piece by piece: a state may be a hundred megabytes, and a batch waits.
            file.writelines(content)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        failpoint("files.before_rename")
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    if lasting:
        sync(path.parent)


def _make(folder: Path) -> None:
    """The folder, its name on disk."""
    if not folder.exists():
        _make(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)
        sync(folder.parent)
