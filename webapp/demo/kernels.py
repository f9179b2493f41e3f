"""Compiles the engine's kernels once, at set-up: `python -m webapp.demo.kernels`. They are kept
next to their modules, or in NUMBA_CACHE_DIR.

Otherwise the first job after set-up would compile them while users wait.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from engine.kernel_cache import ENGINE
from engine.model.events import Stamper, check_rows
from engine.runtime.derived import GraphEvaluator
from engine.runtime.evaluator import Evaluator
from webapp.demo.simulation.scenarios import read_scenario
from webapp.demo.simulation.worlds import WORLDS

AT_MS = 1_763_700_000_000
MINUTE_MS, MINUTES = 60_000, 10
"""The time until a query of each family has answered: the kernels that produce answers are compiled
with the first one."""


def compile_for(name: str) -> None:
    """Every kernel that the demo feed `name` needs, by evaluating some minutes of it, with restarts
    after the first and in the middle."""
    scenario = read_scenario(name)
    feed, queries, stamper = scenario.engine_feed(), scenario.registered(), Stamper()
    evaluator = GraphEvaluator.local(feed, queries)
    for minute in range(MINUTES):
        start = AT_MS + minute * MINUTE_MS
        rows, _ = check_rows(scenario.world.rows(start, start + MINUTE_MS), feed)
        evaluator.process(stamper.stamp(rows))
        if minute in (0, MINUTES // 2):
            evaluator = GraphEvaluator.load(feed, queries, evaluator.dump(), lambda plain, data: Evaluator.load(feed, plain, data))
    evaluator.finish()


def forget(folder: Path) -> None:
    """Removes compiled kernels below a folder: those of another release are not used any more."""
    for pattern in ("*.nbi", "*.nbc"):
        for path in folder.rglob(pattern):
            path.unlink(missing_ok=True)


def main() -> None:
    forget(ENGINE)
    if "NUMBA_CACHE_DIR" in os.environ:
        forget(Path(os.environ["NUMBA_CACHE_DIR"]))
    # Spawned, not forked: Arrow already has threads.
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(WORLDS)), get_context("spawn")) as processes:
        for name, seconds in zip(WORLDS, processes.map(_timed, WORLDS), strict=True):
            sys.stderr.write(f"kernels for {name}: {seconds:.1f} s\n")


def _timed(name: str) -> float:
    began = time.monotonic()
    compile_for(name)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
