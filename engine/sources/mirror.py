"""The newest part of a shared log as a folder, for readers that reach nothing but files."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from engine.sources.compaction import LOCK
from engine.sources.eventlog import EventLog
from engine.sources.segments import Segment, list_segments
from engine.sources.shared_log import SharedLog, SharedSegment

ROWS = 5_000_000
"""A mirror has this many of the newest rows, and the rest of their segment."""
AT_ONCE = 8


def mirror(log: SharedLog, folder: EventLog, rows: int = ROWS) -> None:
    """Brings `folder` up to date with `log`. Its readers are not disturbed: new files are there
    before the replaced ones are removed."""
    with folder.locked(LOCK):
        newest = {_name(segment): segment for segment in log.newest(rows)}
        here = {segment.path.name: segment for segment in list_segments(folder.live)}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda name: _fetch(newest[name], folder.live / name), sorted(newest.keys() - here.keys())))
        for name in sorted(here.keys() - newest.keys()):
            with suppress(FileNotFoundError):
                here[name].path.unlink()


def copy_whole(log: SharedLog, folder: Path) -> None:
    """The whole log as a folder in which an `EventLog` finds it. Raises LogDamaged, OSError."""
    targets = [(segment, folder / segment.path.parent.name / _name(segment)) for segment in log.newest(log.end[0])]
    for parent in {target.parent for _, target in targets}:
        parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda one: _fetch(*one), targets))


def _name(segment: Segment) -> str:
    return Segment.name(segment.first_seq, segment.rows, segment.max_t, segment.crc)


def _fetch(segment: SharedSegment, target: Path) -> None:
    part = target.with_name(f".{target.name}.part")
    with segment.content() as source, part.open("wb") as file:
        shutil.copyfileobj(source, file)
    part.replace(target)
