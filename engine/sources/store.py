"""Where the files of a shared log lie: a folder, or a store of S3's protocol, behind one URL.

`s3://bucket/prefix?endpoint_override=host:port&scheme=http&region=...`, `file:///folder` or `/folder`. Keys come from `AWS_ACCESS_KEY_ID` and
`AWS_SECRET_ACCESS_KEY`, from what the machine is allowed to, or stand in the URL.
"""

from __future__ import annotations

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from engine.sources.segments import sync

AT_ONCE = 8
PATIENCE_S, PAUSE_S = 10.0, 0.2
"""A reader tries again for so long: a store that starts again ends no job."""


class StoreAway(OSError):
    """A file cannot be reached now; that says nothing about the file."""


class StoreError(ValueError):
    """The URL names no store; the text says what is wrong."""


class Files:
    """A folder of any file system that pyarrow knows. What has been put is whole, and stays."""

    def __init__(self, system: fs.FileSystem, folder: str, url: str = "") -> None:
        self.system, self.folder, self.url = system, folder.rstrip("/"), url

    @property
    def title(self) -> str:
        """The store's name without its keys."""
        return f"{self.system.type_name}://{self.folder}"

    def put(self, name: str, content: pa.Buffer) -> None:
        """The file is there, on disk or in the store, when this returns. Raises OSError."""
        path = f"{self.folder}/{name}"
        if isinstance(self.system, fs.LocalFileSystem):
            return _put_locally(Path(path), content)
        with self.system.open_output_stream(path) as stream:
            stream.write(content)
        return None

    def open(self, name: str) -> pa.NativeFile:
        """For reading. Waits a while for a store that is away. Raises FileNotFoundError, StoreAway."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.system.open_input_file(f"{self.folder}/{name}")
            except FileNotFoundError:
                raise
            except OSError as error:
                if time.monotonic() > give_up:
                    raise StoreAway(f"the store does not answer: {error}") from error
            time.sleep(PAUSE_S)

    def remove(self, name: str) -> None:
        with suppress(OSError):
            self.system.delete_file(f"{self.folder}/{name}")

    def older_than(self, folder: str, seconds: float) -> list[str]:
        """The names of the files below `folder` that were put at least so long ago."""
        oldest = time.time() - seconds
        found = self.system.get_file_info(fs.FileSelector(f"{self.folder}/{folder}", allow_not_found=True, recursive=True))
        return [one.path.removeprefix(f"{self.folder}/") for one in found if one.is_file and one.mtime_ns / 1e9 <= oldest]

    def remove_folder(self, folder: str) -> None:
        with suppress(OSError):
            self.system.delete_dir(f"{self.folder}/{folder}")
        # Some gateways refuse to delete many files with one request.
        with ThreadPoolExecutor(AT_ONCE) as hands, suppress(OSError):
            list(hands.map(self.remove, self.older_than(folder, -math.inf)))


def files_of(url: str) -> Files:
    """The store at `url`. Raises StoreError."""
    return _files_of(url, os.getpid())


@cache
def _files_of(url: str, pid: int) -> Files:
    # A process for itself: connections do not survive a fork.
    try:
        system, folder = fs.FileSystem.from_uri(url if urlsplit(url).scheme else Path(url).resolve().as_uri())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(f"VEDETTE_LOG_STORE names no store ({error}): give a folder, or s3://bucket/prefix?endpoint_override=host:port") from error
    return Files(system, folder, url)


def _put_locally(path: Path, content: pa.Buffer) -> None:
    """Synced with its name. No other file has it, and nobody looks for it before it is ordered."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync(path.parent)
