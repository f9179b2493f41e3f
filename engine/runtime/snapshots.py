"""Snapshots of states: files in a folder, or in a store that all machines reach (decision 40),
each with its digest inside.

A process gives its files names that no other has, and puts each whole. What makes a file
count is that the head of the feed names it, in a transaction; a file that no head names is an
orphan of a process that died.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from engine.sources.store import Files, StoreUnavailable

MAGIC = b"vedette-state-1\n"
DIGEST_BYTES = 32


class SnapshotUnusable(RuntimeError):
    """A snapshot that is missing, cut off or altered; the text states which. Its state has to be
    rebuilt from the log."""


@dataclass(frozen=True)
class Snapshot:
    """`data` is the evaluator's own; `facts` has what it belongs to (position), and the files of
    its parts if it has some elsewhere."""

    facts: Mapping[str, Any]
    data: bytes

    @property
    def parts(self) -> list[str]:
        """The names of its `StateFiles`."""
        return list(self.facts.get("parts", ()))


class StateFiles:
    """The files of one feed's states in one folder, among them those of this process, which
    have its mark in their names."""

    def __init__(self, files: Files) -> None:
        self.files, self._mark = files, uuid.uuid4().hex
        self._adopted: set[str] = set()

    def named(self, what: str) -> str:
        """A name that no other process has given a file."""
        return f"{what}.{self._mark}"

    def adopt(self, names: Iterable[str]) -> None:
        """Files of an earlier start from which this one continues belong to it."""
        self._adopted.update(name for name in names if name and not self._has_mark(name))

    def keep_only(self, names: Collection[str]) -> None:
        """Removes all others of this process, and what its tasks left."""
        gone = self._adopted.difference(names)
        self.files.remove_all([*gone, *(name for name in self.files.names() if self._has_mark(name) and name not in names)])
        self._adopted -= gone

    def left_behind(self, names: Collection[str]) -> list[str]:
        """The files of other starts that are not in `names`: a later one's too, if there is one by
        now."""
        return [name for name in self.files.names() if not self._has_mark(name) and name not in names]

    def remove(self, names: Iterable[str]) -> None:
        self.files.remove_all(names)

    def _has_mark(self, name: str) -> bool:
        return self._mark in name


class Snapshots(StateFiles):
    """The snapshots of one feed in one folder."""

    def write(self, name: str, snapshot: Snapshot) -> None:
        """There, on disk or in the store, under `name` when this returns. Raises OSError."""
        head = json.dumps(snapshot.facts).encode() + b"\n"
        digest = blake2b(head, digest_size=DIGEST_BYTES)
        digest.update(snapshot.data)
        self.files.put_with_retries(name, MAGIC, digest.digest(), head, snapshot.data)

    def read(self, name: str) -> Snapshot:
        """The snapshot `name`. Raises SnapshotUnusable, StoreUnavailable."""
        if not name:
            raise SnapshotUnusable("there is no snapshot yet")
        try:
            return parsed(name, self.files.read(name))
        except StoreUnavailable:
            raise
        except OSError as error:
            raise SnapshotUnusable(f"snapshot {name}: {error}") from error


def parsed(name: str, content: bytes) -> Snapshot:
    """The snapshot whose file is `content`. Raises SnapshotUnusable."""
    start = len(MAGIC) + DIGEST_BYTES
    body = content[start:]
    if content[: len(MAGIC)] != MAGIC or blake2b(body, digest_size=DIGEST_BYTES).digest() != content[len(MAGIC) : start]:
        raise SnapshotUnusable(f"snapshot {name} is cut off or altered")
    head, _, data = body.partition(b"\n")
    return Snapshot(json.loads(head), data)
