"""A running instance's data in one file, and back: the database, the log of events, the state of
the feeds and the plans, as of one moment.

The moment is a snapshot of the database. The log is taken up to its end at that moment; its
segments never change, so links to them are enough to hold them while they are copied, and neither
ingest nor jobs wait. Spark's checkpoints are not included: they may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from engine.runtime.snapshots import SnapshotUnusable, parsed
from engine.sources.compaction import LOCK
from engine.sources.eventlog import EventLog
from engine.sources.segments import list_segments
from webapp.platform.postgres import program

FORMAT = 1
DATABASE, MANIFEST, LOG = "database.dump", "manifest.json", "log"
TRIES = 20
"""Retries when a state snapshot was replaced between reading the database and the folder."""
HEAD_LINES = 40
NEW_SETTINGS = {b"SET transaction_timeout = 0;\n"}
"""The first line of a script by pg_restore of PostgreSQL 17 and newer; without
it the effect is the same."""


class BackupError(RuntimeError):
    """A backup could not be made or restored; the text gives the reason and the remedy."""


def environment(server: Mapping[str, Any]) -> dict[str, str]:
    """How PostgreSQL's own programs reach the database; no password on a command line."""
    settings_of = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
    ssl = {f"PG{name.upper()}": str(value) for name, value in (server.get("OPTIONS") or {}).items() if name.startswith("ssl")}
    return {**os.environ, **ssl, **{variable: str(server[name]) for variable, name in settings_of.items() if server.get(name)}}


class InstanceFolders:
    """The folders of an instance."""

    def __init__(self, var: Path, log: Path, checkpoints: Path, media: Path) -> None:
        self.var, self.log, self.checkpoints, self.media = var, log, checkpoints, media

    def feeds(self) -> list[str]:
        return sorted(path.name for path in self.log.iterdir() if path.is_dir()) if self.log.is_dir() else []


@contextmanager
def held(places: InstanceFolders) -> Iterator[None]:
    """No segment is compacted or dropped inside."""
    with ExitStack() as stack:
        for feed in places.feeds():
            stack.enter_context(EventLog(places.log, feed).locked(LOCK))
        yield


def link_logs(places: InstanceFolders, target: Path) -> None:
    """Links to the files of all logs in `target`."""
    for feed in places.feeds():
        log = EventLog(places.log, feed)
        for folder in (log.history, log.live):
            for segment in list_segments(folder):
                _link(segment.path, target / feed / folder.name / segment.path.name)


def link_moment(places: InstanceFolders, states: Mapping[str, str], staging: Path) -> bool:
    """Links to states and plans of this moment in `staging`; False when a state snapshot
    has been replaced meanwhile."""
    try:
        for feed, name in states.items():
            if name:
                _link_state(places.checkpoints / feed / "state", name, staging / "state" / feed)
    except FileNotFoundError:
        return False
    if places.media.is_dir():
        for path in places.media.rglob("*"):
            if path.is_file():
                _link(path, staging / "media" / path.relative_to(places.media))
    return True


def _link_state(folder: Path, name: str, target: Path) -> None:
    """The snapshot with its parts."""
    _link(folder / name, target / name)
    try:
        parts = parsed(name, (target / name).read_bytes()).parts
    except SnapshotUnusable:
        # A restored installation builds the state from the log, as a job does here.
        return
    for part in parts:
        _link(folder / part, target / part)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        # Another file system, or one without links.
        shutil.copy2(source, target)


def dump(server: Mapping[str, Any], snapshot: str, target: Path) -> None:
    """The database as of `snapshot`. Raises BackupError."""
    command = [program("pg_dump"), "--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={target}"]
    done = subprocess.run(command, env=environment(server), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BackupError(f"pg_dump failed: {done.stderr[-2000:]}")


def pack(staging: Path, target: Path, facts: Mapping[str, Any]) -> None:
    """One tar file of everything in `staging`, with the checksum of each file; it appears only when
    it is complete. Raises OSError."""
    files = sorted(path for path in staging.rglob("*") if path.is_file())
    sums = {str(path.relative_to(staging)): _digest(path) for path in files}
    (staging / MANIFEST).write_text(json.dumps({"format": FORMAT, **facts, "files": sums}, indent=1))
    part = target.with_name(target.name + ".part")
    # Of an attempt that was broken off, perhaps of others: its mode would stay.
    part.unlink(missing_ok=True)
    part.touch(mode=0o600, exist_ok=False)
    with part.open("wb") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(staging / MANIFEST, MANIFEST)
            for path in files:
                archive.add(path, str(path.relative_to(staging)))
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)


def unpack(source: Path, staging: Path) -> dict[str, Any]:
    """The manifest, after everything was put into `staging` and compared with its
    checksums. Raises BackupError."""
    if not source.is_file():
        raise BackupError(f"there is no file {source.resolve()}")
    try:
        with tarfile.open(source) as archive:
            for member in archive:
                _extract(archive, member, staging)
        manifest: dict[str, Any] = json.loads((staging / MANIFEST).read_text())
    except (tarfile.TarError, OSError, ValueError) as error:
        raise BackupError(f"{source} is no whole backup: {error}") from error
    if manifest.get("format") != FORMAT:
        raise BackupError(f"{source} has the format {manifest.get('format')}; this release reads {FORMAT}")
    for name, digest in manifest["files"].items():
        if not (staging / name).is_file() or _digest(staging / name) != digest:
            raise BackupError(f"{source}: {name} is damaged; take an older backup")
    return manifest


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, staging: Path) -> None:
    """A file of the archive, to below `staging`. Raises BackupError for anything else."""
    # `extractall(filter=)` is of Python 3.11.4; Debian 12 has 3.11.2.
    target = staging / member.name
    content = archive.extractfile(member) if member.isreg() else None
    if content is None or not target.resolve().is_relative_to(staging.resolve()):
        raise BackupError(f"{member.name} is nothing that a backup holds")
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("wb") as file:
        shutil.copyfileobj(content, file)


def load(server: Mapping[str, Any], source: Path) -> None:
    """The dump into an empty database, of a server that may be older than our pg_restore. Raises
    BackupError; then nothing was restored."""
    reads = [program("pg_restore"), "--no-owner", "--no-privileges", "--file=-", str(source)]
    writes = [program("psql"), "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
    with tempfile.TemporaryFile() as errors, subprocess.Popen(reads, stdout=subprocess.PIPE, stderr=errors) as reading:
        with subprocess.Popen(writes, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, env=environment(server)) as writing:
            assert reading.stdout is not None and writing.stdin is not None
            try:
                _copy_script(reading.stdout, writing.stdin)
                if reading.wait() != 0:
                    # At the end of a truncated input psql would commit what it has read.
                    writing.kill()
                writing.stdin.close()
            except BrokenPipeError:
                reading.kill()
        if reading.returncode != 0 or writing.returncode != 0:
            errors.seek(0)
            raise BackupError(f"the database was not restored: {errors.read().decode(errors='replace')[-2000:]}")


def _copy_script(script: IO[bytes], target: IO[bytes]) -> None:
    """The script as it is, without the settings at its head that servers before
    PostgreSQL 17 do not know."""
    for _ in range(HEAD_LINES):
        line = script.readline()
        if line not in NEW_SETTINGS:
            target.write(line)
    shutil.copyfileobj(script, target)
    target.flush()


def check_empty(places: InstanceFolders) -> None:
    """Raises BackupError when the target of a restore is not empty."""
    for folder in (places.log, places.checkpoints, places.media):
        if folder.is_dir() and any(folder.iterdir()):
            raise BackupError(f"{folder} is not empty: restore into a new VEDETTE_VAR")


def place(staging: Path, places: InstanceFolders) -> None:
    """Moves the files to the instance's folders."""
    for name, target in ((LOG, places.log), ("media", places.media)):
        if (staging / name).is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(staging / name, target, dirs_exist_ok=True)
    if (staging / "state").is_dir():
        for path in (staging / "state").iterdir():
            shutil.copytree(path, places.checkpoints / path.name / "state", dirs_exist_ok=True)


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A temporary folder on the file system of `target`."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=target) as name:
        yield Path(name)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
