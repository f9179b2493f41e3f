"""Set-up compiles kernels again: those of another release are removed."""

from __future__ import annotations

from pathlib import Path

from engine.families import FAMILIES, family_of
from engine.model.events import Stamper, check_rows
from engine.runtime.derived import GraphEvaluator
from webapp.demo.kernels import AT_MS, LONGEST_FIRST, MINUTE_MS, MINUTES, forget, queries_of
from webapp.demo.simulation.scenarios import read_scenario
from webapp.demo.simulation.worlds import WORLDS


def test_compiled_kernels_are_removed_and_nothing_else(tmp_path: Path) -> None:
    inner = tmp_path / "motion" / "__pycache__"
    inner.mkdir(parents=True)
    for name in ("sweep.step-1.py311.nbi", "sweep.step-1.py311.1.nbc", "sweep.cpython-311.pyc"):
        (inner / name).touch()
    forget(tmp_path)
    assert [path.name for path in inner.iterdir()] == ["sweep.cpython-311.pyc"]


def test_every_query_of_the_demo_is_evaluated_for_its_kernels() -> None:
    for name in WORLDS:
        scenario = read_scenario(name)
        compiled = {query.id for family in LONGEST_FIRST for query in queries_of(scenario, family)}
        assert compiled == {query["name"] for query in scenario.queries}


def test_while_kernels_are_compiled_each_family_of_the_demo_answers() -> None:
    """A kernel that makes an answer is compiled with the first one: a job would do this while users
    wait."""
    asked, answered = set(), set()
    for name in WORLDS:
        scenario = read_scenario(name)
        feed, queries = scenario.engine_feed(), scenario.registered()
        families = {query.id: id(family_of(query.specification)) for query in queries}
        evaluator, stamper = GraphEvaluator.local(feed, queries), Stamper()
        for minute in range(MINUTES):
            start = AT_MS + minute * MINUTE_MS
            rows, _ = check_rows(scenario.world.rows(start, start + MINUTE_MS), feed)
            answered |= {families[query] for query in set(evaluator.process(stamper.stamp(rows)).changes.column("query").to_pylist())}
        asked |= set(families.values())
    assert len(asked) >= len(FAMILIES) - 1, "transition and border have one specification"
    assert asked == answered
