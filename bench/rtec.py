"""RTEC itself, for comparison: its CAVIAR example, over the given windows, with its answers and its
times.

`RTEC_HOME` names a copy of RTEC (2025, commit d7215f4; its `dependency_graph_flag` for caviar in
`execution scripts/defaults.toml` set to false, or graphviz installed); SWI-Prolog's `swipl` is on
the path. Nothing of RTEC is part of this project.

References: RTEC's manual, "Running RTEC"; CAVIAR definitions, README ("golden").
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

Fact = tuple[int, str, tuple[str, ...], str, int, int]
"""Query time, fluent, its arguments, its value, start, end: an interval clipped to [Q - W + 1,
Q + 1), as RTEC prints it."""

_FILES = Path("..") / "examples" / "caviar" / "dataset" / "csv"
_TIME = re.compile(r"Recognition Time \(ms\)\s*:\s*(\d+)")
_FACT = re.compile(r"recognitions\(\w+,(\w+),\[\[([^]]*)],(\w+)],\[(.*)]\)\.")
_INTERVAL = re.compile(r"\((\d+),(\d+)\)")


class NotRun(Exception):
    """RTEC is configured but gave no answers; the text gives the reason."""


@dataclass(frozen=True)
class Recognised:
    """RTEC's output: processor milliseconds of each window's recognition, in order, and
    the facts of all windows."""

    times: list[float]
    facts: set[Fact]


def caviar(window: int, step: int, *, read_only: bool = False) -> Recognised | None:
    """RTEC's CAVIAR example over windows of these milliseconds; null if RTEC_HOME is not set.

    `read_only`: it is given only the rows its rules read, without orientation and appearance, which
    are half of the stream. Raises NotRun where RTEC_HOME is set and RTEC or SWI-Prolog is not
    there, or RTEC's output is not as expected.
    """
    home = os.environ.get("RTEC_HOME")
    if not home:
        return None
    scripts = Path(home) / "execution scripts"
    if not (scripts / "run_rtec.sh").is_file():
        raise NotRun(f"RTEC_HOME={home} has no 'execution scripts/run_rtec.sh'")
    if shutil.which("swipl") is None:
        raise NotRun("SWI-Prolog's swipl is not on the path")
    with tempfile.TemporaryDirectory(prefix="vedette-rtec-") as results:
        command = ["bash", "./run_rtec.sh", "--app=caviar", f"--window-size={window}", f"--step={step}", f"--results-directory={results}"]
        if read_only:
            command += [f"--input={_events(scripts, Path(results))}", f"--input={_FILES / 'movementB.csv'}"]
        run = subprocess.run(command, cwd=scripts, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        times = [float(time) for time in _TIME.findall(run.stdout)]
        files = list(Path(results).glob("*recognised-intervals.txt"))
        if not times or len(files) != 1:
            raise NotRun(f"RTEC_HOME={home} printed no recognition times; its last words: {_last_words(run)!r}")
        facts = set(_facts(files[0].read_text(), step))
    return Recognised(times, facts)


def _events(scripts: Path, folder: Path) -> Path:
    """A file with what rules read of RTEC's file of appearances: the events."""
    source, copy = scripts / _FILES / "appearance.csv", folder / "events.csv"
    if not source.is_file():
        raise NotRun(f"{source} is not there")
    with source.open() as rows:
        copy.write_text("".join(row for row in rows if row.startswith(("appear|", "disappear|"))))
    return copy


def _last_words(run: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for text in (run.stderr, run.stdout) for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error|not found|no such", line, re.IGNORECASE)]
    return (errors or lines or [f"none, exit status {run.returncode}"])[-1]


def _facts(text: str, step: int) -> Iterator[Fact]:
    """RTEC's file of intervals: the windows one after another, an empty line after each."""
    query_time = step
    for line in text.splitlines():
        if not line:
            query_time += step
            continue
        fact = _FACT.fullmatch(line)
        if fact is None:
            raise NotRun(f"its answers have a line that is not understood: {line[:100]!r}")
        fluent, arguments, value, intervals = fact.groups()
        for start, end in _INTERVAL.findall(intervals):
            yield query_time, fluent, tuple(arguments.split(",")), value, int(start), int(end)


def check_equal(ours: Collection[Fact], theirs: Collection[Fact]) -> None:
    """Raises AssertionError, with counts for each fluent that differs, unless both have found the
    same intervals in the same windows.

    RTEC's time begins at 0: in a window that begins before, its complements begin at 0 and ours, as
    specified, at the window's first tick.
    """
    mine = {(query_time, fluent, arguments, value, max(start, 0), end) for query_time, fluent, arguments, value, start, end in ours}
    differing = {(fluent, value) for _, fluent, _, value, _, _ in mine ^ set(theirs)}
    counts = [Counter((fluent, value) for _, fluent, _, value, _, _ in facts) for facts in (mine, theirs)]
    words = [f"{fluent}={value} ours {counts[0][fluent, value]} RTEC {counts[1][fluent, value]}" for fluent, value in sorted(differing)]
    assert not words, f"intervals differ from those of RTEC at RTEC_HOME (the rules here are of 2025, d7215f4): {'; '.join(words)}"
