"""State snapshots on disk: each one file with its digest inside, written beside and renamed, so that it is there whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from engine.failpoints import failpoint

MAGIC = b"vedette-state-1\n"
DIGEST_BYTES = 32


class SnapshotUnusable(RuntimeError):
    """A snapshot that is missing, cut off or altered; the text says which. Its state has to be rebuilt from the log."""


@dataclass(frozen=True)
class Snapshot:
    """`data` is the evaluator's own; `facts` says what it belongs to (position, queries)."""

    facts: Mapping[str, Any]
    data: bytes


class Snapshots:
    """The snapshots of one feed in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, snapshot: Snapshot) -> None:
        """On disk under `name` when this returns. Raises OSError; nothing is visible then."""
        head = json.dumps(snapshot.facts).encode() + b"\n"
        digest = blake2b(head, digest_size=DIGEST_BYTES)
        digest.update(snapshot.data)
        temporary = self.folder / f".{name}.tmp"
        with temporary.open("wb") as file:
            # Piece by piece: a state may be a hundred megabytes, and a batch waits.
            file.writelines([MAGIC, digest.digest(), head, snapshot.data])
            file.flush()
            os.fsync(file.fileno())
        failpoint("snapshot.before_rename")
        temporary.replace(self.folder / name)
        _sync(self.folder)

    def read(self, name: str) -> Snapshot:
        """The snapshot `name`. Raises SnapshotUnusable."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError as error:
            raise SnapshotUnusable(f"snapshot {name}: {error.strerror}") from error
        start = len(MAGIC) + DIGEST_BYTES
        body = content[start:]
        if content[: len(MAGIC)] != MAGIC or blake2b(body, digest_size=DIGEST_BYTES).digest() != content[len(MAGIC) : start]:
            raise SnapshotUnusable(f"snapshot {name} is cut off or altered")
        head, _, data = body.partition(b"\n")
        return Snapshot(json.loads(head), data)

    def keep_only(self, names: Collection[str]) -> None:
        """Removes all others, and what an interrupted write left."""
        for path in self.folder.iterdir():
            if path.name not in names:
                path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
