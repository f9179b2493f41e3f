"""Runs all tests in two pytest processes at the same time: `python -m tests.side_by_side`, which is what `make test` does.

Tests of whole processes (crashes, pages in a browser, the platform) mostly wait, the others compute: side by side they take two cores hardly
more time than the longer half. Each half has services, ports, Spark and folders of its own (see conftest.py). One half is everything that the
other does not name, so no folder of tests is in both or in neither.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from webapp.platform.folders import ROOT
from webapp.platform.processes import tied_to_parent

PROCESSES = ("tests/browser", "tests/crash", "tests/platform")
HALVES = {"processes": PROCESSES, "computing": ("tests", *(f"--ignore={folder}" for folder in PROCESSES))}
GIVEN = ("DATABASE_URL", "REDIS_URL")
"""Services that are given are not the halves' own: then one half runs after the other."""


def run(name: str) -> int:
    """One half to its end; its lines are told as they come, each with the half's name. The exit status."""
    began = time.monotonic()
    # A cache of its own, or the half that ends last would overwrite what the other remembers of its failures.
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{name}", "--durations=40", "--durations-min=4", *HALVES[name]]
    tied = tied_to_parent(command, signal_number=signal.SIGINT)
    with subprocess.Popen(tied, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            tell(name, line)
    tell(name, f"ended with status {process.returncode} after {time.monotonic() - began:.0f} s\n")
    return process.returncode


def tell(name: str, line: str) -> None:
    sys.stdout.write(f"{name:9} | {line}")
    sys.stdout.flush()


def main() -> int:
    """0 if both halves passed; a half in which no test was found has not."""
    at_a_time = 1 if any(os.environ.get(name) for name in GIVEN) else len(HALVES)
    with ThreadPoolExecutor(at_a_time) as threads:
        statuses = dict(zip(HALVES, threads.map(run, HALVES), strict=True))
    failed = [name for name, status in statuses.items() if status]
    sys.stdout.write(f"FAILED: {', '.join(failed)}\n" if failed else "All tests passed.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
