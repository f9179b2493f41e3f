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
from engine.operator import RegisteredQuery
from engine.runtime.derived import GraphEvaluator, with_upstream
from engine.runtime.evaluator import Evaluator
from webapp.demo.simulation.scenarios import Scenario, read_scenario
from webapp.demo.simulation.worlds import WORLDS

AT_MS = 1_763_700_000_000
MINUTE_MS, MINUTES = 60_000, 10
"""The time until a query of each family has answered: the kernels that produce answers are compiled
with the first one."""


LONGEST_FIRST = ("motion", "constraint", "composite", "calculus", "encounter", "border", "transition", "occupancy", "arrival")
"""The families in the order of the time that their kernels take. Processes that compile at
the same time get different families: for the same one, both would compile most of its kernels."""


def compile_for(family: str) -> float:
    """Compiles every kernel that the demo's queries of a family need, by evaluating some minutes of
    their feeds, with restarts after the first and in the middle. Returns how many seconds it took.
    """
    began = time.monotonic()
    for name in WORLDS:
        scenario = read_scenario(name)
        queries = queries_of(scenario, family)
        if queries:
            _evaluate(scenario, queries)
    return time.monotonic() - began


def queries_of(scenario: Scenario, family: str) -> list[RegisteredQuery]:
    """Those of a family, and those from which they derive."""
    known, families = scenario.registered(), {query["name"]: query["specification"]["family"] for query in scenario.queries}
    return with_upstream([query for query in known if families[query.id] == family], known)


def _evaluate(scenario: Scenario, queries: list[RegisteredQuery]) -> None:
    feed, stamper = scenario.engine_feed(), Stamper()
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
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(LONGEST_FIRST)), get_context("spawn")) as processes:
        for family, seconds in zip(LONGEST_FIRST, processes.map(compile_for, LONGEST_FIRST), strict=True):
            sys.stderr.write(f"kernels of {family}: {seconds:.1f} s\n")


if __name__ == "__main__":
    main()
