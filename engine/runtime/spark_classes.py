"""Spark's classes as a JVM takes them over at once: `make setup` has one read and verify them, and
write what came of it to a file.

From a start to the first micro-batch a job's JVM takes 11.5 s of processor time, and 7.2 s with the
file (4.0 s with the first compiler alone). A JVM that did not write the file (another version), or
whose class path is another, prints a warning and starts without it.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(sys.prefix)
ARCHIVE = "spark.jsa", "-XX:ArchiveClassesAtExit={}", "-XX:SharedArchiveFile={}"
CACHE = "spark.aot", "-XX:AOTCacheOutput={}", "-XX:AOTCache={}"
FIRST_WITH_CACHE = 25
"""The version of Java that writes a cache in one run. Older ones write archives, if they came with
one of Java's own classes."""


def writing(version: int) -> tuple[Path, str]:
    """The file of a JVM of this version, and the option that has it written when the JVM ends."""
    name, option, _ = CACHE if version >= FIRST_WITH_CACHE else ARCHIVE
    return FOLDER / name, option.format(FOLDER / name)


def reading() -> list[str]:
    """Options of a JVM, none where set-up has written no file."""
    return [option.format(FOLDER / name) for name, _, option in (ARCHIVE, CACHE) if (FOLDER / name).is_file()]


def forget() -> None:
    for name, _, _ in (ARCHIVE, CACHE):
        (FOLDER / name).unlink(missing_ok=True)
