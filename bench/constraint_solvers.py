"""General solvers for scale: one problem for each event that may complete a solution,
over the same stored events.

They are no dependencies (OR-Tools would hold protobuf back for all of us):
`pip install --target FOLDER python-constraint2==2.9 ortools==9.15.6755` and `PYTHONPATH=FOLDER`
give their rows; without them the rows report this.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench import Layer, Row
from bench.constraint_worlds import MEASURED, SEA, Kernel

REACH, SIZE = 300.0, 1_000.0
Place = tuple[float, float]
Solver = Callable[[Sequence[Place], Sequence[Place], Place], bool]
CHAIN: dict[str, Any] = {
    "family": "constraint",
    "variables": {f"V{i + 1}": {"where": [["sst", ">=", i], ["sst", "<", i + 1]]} for i in range(3)},
    "constraints": [
        {"between": ["V1", "V2"], "dt": [0, 1_000]},
        {"between": ["V2", "V3"], "dt": [1, 1_000]},
        {"between": ["V1", "V2", "V3"], "distance": {"max": REACH}},
    ],
    "report": "first",
}


def rows(quick: bool) -> Iterator[Row]:
    """Microseconds for each event with `stored` candidates of each of two other variables."""
    for stored in (5, 20):
        completing = 40 if quick else 200
        places = np.random.default_rng(stored).uniform(0, SIZE, (2 * stored + completing, 2))
        firsts, seconds, lasts = (part.tolist() for part in np.split(places, [stored, 2 * stored]))
        ours, expected = _ours(places, stored, 1 if quick else 5)
        each, facts = {}, {"solved": float(np.mean(expected))}
        shown: dict[str, float | str] = dict(facts)
        for name, module, solver in (("python-constraint2", "constraint", _with_python_constraint), ("OR-Tools CP-SAT", "ortools", _with_or_tools)):
            if importlib.util.find_spec(module) is None:
                shown[name] = f"not installed: {module}"
                continue
            solver(firsts, seconds, tuple(lasts[0]))  # Imported once.
            began = time.perf_counter()
            found = [solver(firsts, seconds, tuple(last)) for last in lasts]
            each[name] = (time.perf_counter() - began) / completing * 1e6
            assert found == expected, f"{name} answers otherwise"
        yield Row(f"one search, {stored} values in each domain", Layer.KERNEL, ours, "us", each, facts=shown)


def _ours(places: np.ndarray, stored: int, repeats: int) -> tuple[float, list[bool]]:
    """Microseconds an event, and which of the completing events are solved: for the whole
    kernel, filters included."""
    n = len(places)
    role = np.repeat([0, 1, 2], [stored, stored, n - 2 * stored])
    table = pa.table(
        {
            "t": pa.array(np.where(role == 2, 1, 0)),
            "x": pa.array(places[:, 0]),
            "y": pa.array(places[:, 1]),
            **{name: pa.array(role + 0.5) for name in MEASURED},
        }
    )
    times: list[float] = []
    solved: list[bool] = []
    for _ in range(repeats + 1):
        kernel = Kernel([CHAIN], SEA)
        columns = kernel.columns(table)
        kernel.take(columns.slice(0, 2 * stored))
        rest = columns.slice(2 * stored, n)
        began = time.perf_counter()
        found = kernel.take(rest)
        times.append((time.perf_counter() - began) / (n - 2 * stored) * 1e6)
        complete = {event for _, events in found for event in events.tolist()}
        solved = [event in complete for event in range(n - 2 * stored)]
    return float(np.median(times[1:])), solved


def _near(one: Sequence[float], other: Sequence[float]) -> bool:
    return math.hypot(one[0] - other[0], one[1] - other[1]) <= REACH


def _with_python_constraint(firsts: Sequence[Place], seconds: Sequence[Place], last: Place) -> bool:
    constraint: Any = importlib.import_module("constraint")
    problem = constraint.Problem()
    problem.addVariable("V1", [tuple(one) for one in firsts])
    problem.addVariable("V2", [tuple(one) for one in seconds])
    problem.addConstraint(lambda one: _near(one, last), ["V1"])
    problem.addConstraint(lambda one: _near(one, last), ["V2"])
    problem.addConstraint(_near, ["V1", "V2"])
    return problem.getSolution() is not None


def _with_or_tools(firsts: Sequence[Place], seconds: Sequence[Place], last: Place) -> bool:
    cp_model: Any = importlib.import_module("ortools.sat.python.cp_model")
    one = [k for k, place in enumerate(firsts) if _near(place, last)]
    other = [k for k, place in enumerate(seconds) if _near(place, last)]
    pairs = [(a, b) for a in one for b in other if _near(firsts[a], seconds[b])]
    model = cp_model.CpModel()
    variables = [model.new_int_var(0, max(len(firsts) - 1, 0), "V1"), model.new_int_var(0, max(len(seconds) - 1, 0), "V2")]
    model.add_allowed_assignments(variables, pairs)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return bool(solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE))
