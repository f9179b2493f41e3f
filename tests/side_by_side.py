"""Runs all tests in four pytest processes at the same time: `python -m tests.side_by_side`, which
is what `make test` does.

Tests of whole processes (crashes, pages in a browser, the platform, Spark, live sources) wait
much, so four parts keep two cores busy. Each part has separate services, ports, Spark and
folders (see conftest.py). One part is everything that the others do not name, so no folder of
tests is in two or in none.

A few failures may come from the load alone: up to `REPEATED` tests of a part run once more,
alone, when all parts have ended. The run fails when one of them fails again, or when there are
more. What failed the first time is printed at the end either way, with its traceback, because the
cause still has to be fixed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from webapp.platform.folders import ROOT
from webapp.platform.processes import tied_to_parent

NAMED = {
    "processes": ("tests/platform", "tests/engine/sources", "tests/webapp/live", "tests/webapp/config", "tests/webapp/jobs"),
    "crashes": ("tests/crash", "tests/webapp/feeds", "tests/webapp/demo"),
    "site": (
        "tests/browser",
        *(f"tests/webapp/{app}" for app in ("accounts", "alerts", "audit", "cage", "detections", "entities", "overlays", "queries")),
    ),
}
PARTS = {**NAMED, "computing": ("tests", *(f"--ignore={folder}" for folders in NAMED.values() for folder in folders))}
GIVEN = ("DATABASE_URL", "REDIS_URL")
"""External services are shared by the parts: then one part runs after the other."""
REPEATED = 4
"""More failures than this in one part are not attributed to the load."""
SOME_FAILED = 1
"""Pytest's exit status when tests failed; others mean that it was ended, or could not collect
tests."""
SECTION = re.compile(r"^=+ (?P<title>[\w ]+) =+$")
FAILURE = re.compile(r"(FAILED|ERROR) \S+\.py(::|\s|$)")
"""A line of pytest's summary; captured logs have lines that begin with ERROR too."""
SHOWN_LINES = 300


@dataclass(frozen=True)
class Outcome:
    """How one pytest process ended; `report` is what it printed of failures and its summary."""

    status: int
    failures: int
    report: str


def run(name: str, *arguments: str, folder: Path = ROOT) -> Outcome:
    """One part to its end; its lines are printed as they come, each with the part's name."""
    began = time.monotonic()
    # A cache for each part, or the one that ends last would overwrite the recorded failures of the
    # others.
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{name}", *arguments, *PARTS[name]]
    lines = []
    tied = tied_to_parent(command, signal_number=signal.SIGINT)
    with subprocess.Popen(tied, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            show(name, line)
            lines.append(line)
    show(name, f"ended with status {process.returncode} after {time.monotonic() - began:.0f} s\n")
    return Outcome(process.returncode, sum(FAILURE.match(line) is not None for line in lines), failures_of(lines))


def failures_of(lines: list[str]) -> str:
    """The sections of pytest's output about failures, at most `SHOWN_LINES` lines."""
    kept: list[str] = []
    inside = False
    for line in lines:
        section = SECTION.match(line.rstrip())
        if section:
            inside = section["title"] in ("FAILURES", "ERRORS", "short test summary info")
        if inside:
            kept.append(line)
    return "".join(kept[-SHOWN_LINES:])


def show(name: str, line: str) -> None:
    sys.stdout.write(f"{name:9} | {line}")
    sys.stdout.flush()


def repeated(name: str, first: Outcome, folder: Path = ROOT) -> Outcome:
    """Runs the failed tests of this part again, alone, if they are few."""
    if first.status != SOME_FAILED or first.failures > REPEATED:
        return first
    show(name, f"repeating what failed beside the other parts: {first.failures}\n")
    return run(name, "--last-failed", "--last-failed-no-failures=none", folder=folder)


def main() -> int:
    """0 if all parts passed; a part in which no test was found has not."""
    at_a_time = 1 if any(os.environ.get(name) for name in GIVEN) else len(PARTS)
    with ThreadPoolExecutor(at_a_time) as threads:
        first = dict(zip(PARTS, threads.map(lambda name: run(name, "-p", "tests.processor_time"), PARTS), strict=True))
    last = {name: repeated(name, outcome) for name, outcome in first.items()}
    for name, outcome in first.items():
        if outcome.status:
            verdict = "FAILED" if last[name].status else "UNSTEADY (passed when repeated alone)"
            sys.stdout.write(f"\n{verdict}, {name}:\n{outcome.report}")
    failed = [name for name, outcome in last.items() if outcome.status]
    sys.stdout.write(f"FAILED: {', '.join(failed)}\n" if failed else "All tests passed.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
