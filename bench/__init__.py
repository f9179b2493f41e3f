"""Measurements: each family's module gives rows, `python -m bench` runs them all.

A module named in `MODULES` has

    def rows(size: Size) -> Iterator[Row]         its measurements, in the order of the table
    def spark_rows(size: Size) -> Iterator[Row]   optional: not with `--quick`, `--no-spark`
    FIGURES: dict[str, Figure] optional: the plots to which rows belong

and adds itself by one line below. Guarantees for every row:
- `compared` has found the answers of all methods equal before any of them is timed;
- a baseline is compiled or vectorised as well as its idea allows;
- `Layer` defines what a time includes; rows of different layers never form a ratio;
- ratios are of one run: methods alternate, and medians are used.

`Size.QUICK` is a smoke run: the same code, the same comparisons, inputs that take a second or
two for the whole module.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

import engine  # noqa: F401 -- before numba, which reads once where kernels are kept

MODULES: dict[str, str] = {
    "border": "bench.border",
    "calculus": "bench.calculus",
    "composite": "bench.composite",
    "constraint": "bench.constraint",
    "forms": "bench.forms",
    "motion": "bench.motion",
    "pairs": "bench.pairs",
    "scale": "bench.scale",
    "spread": "bench.spread",
}
"""Family -> module, imported when it is needed."""


class Size(Enum):
    QUICK = "quick"
    FULL = "full"


class Layer(Enum):
    """What a time includes: arrays in a kernel; Arrow rows to answers in one
    process; the same in a Spark job."""

    KERNEL = "kernel"
    ENGINE = "engine"
    SPARK = "spark"


@dataclass(frozen=True)
class Row:
    """One workload: our value, those of the baselines in the same unit, and our targets.

    `less_is_better`: times and bytes; else rates. A baseline's ratio is how many times
    better we are. `at_least`: the target ratio against a baseline; `limit`: our worst value that
    still meets the target. A row is a point at `x` of the plot `figure`; rows of one `series` are
    joined.
    """

    workload: str
    layer: Layer
    ours: float
    unit: str
    baselines: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    limit: float | None = None
    less_is_better: bool = True
    facts: Mapping[str, float | str] = field(default_factory=dict)
    figure: str | None = None
    x: float | None = None
    series: str | None = None

    def ratio(self, baseline: str) -> float:
        """How many times better ours is than the baseline.

        >>> Row("w", Layer.KERNEL, 2.0, "ns", {"heap": 9.0}).ratio("heap")
        4.5
        """
        better, worse = (self.baselines[baseline], self.ours) if self.less_is_better else (self.ours, self.baselines[baseline])
        return better / worse if worse else float("inf")

    @property
    def missed(self) -> list[str]:
        """The missed targets, as text."""
        found = [f"{self.ratio(name):.3g}x of {least:g}x {name}" for name, least in self.at_least.items() if self.ratio(name) < least]
        if self.limit is not None and (self.ours > self.limit if self.less_is_better else self.ours < self.limit):
            found.append(f"{self.ours:.3g} of {self.limit:g} {self.unit}")
        return found


@dataclass(frozen=True)
class Figure:
    """A plot of the rows that name it: `x_label` with its unit; one line for ours
    and one for each baseline."""

    title: str
    x_label: str
    log_x: bool = False
    log_y: bool = True


@dataclass(frozen=True)
class Times:
    """Seconds of one method, medians: processor time of the thread, of all threads, and wall-clock
    time."""

    thread: float
    processor: float
    wall: float


def compared(methods: Mapping[str, Callable[[], Any]], in_form: Callable[[Any], Any], *, repeats: int = 3) -> dict[str, float]:
    """Seconds of processor time of each method: `Times.thread` of `timed`."""
    return {name: times.thread for name, times in timed(methods, in_form, repeats=repeats).items()}


def timed(methods: Mapping[str, Callable[[], Any]], in_form: Callable[[Any], Any], *, repeats: int = 3) -> dict[str, Times]:
    """Seconds of each method, the median of runs that take turns, after one that warms up.

    `in_form` brings what a method returns into a form to compare, outside the clock. Raises
    AssertionError, before anything is timed, when a method's answers differ from the first one's.

    >>> sorted(timed({"a": lambda: [1, 2], "b": lambda: [2, 1]}, sorted))
    ['a', 'b']
    """
    expected = None
    for name, method in methods.items():
        found = in_form(method())
        expected = found if expected is None else expected
        assert np.array_equal(found, expected), f"{name} gives {len(found)} answers that differ from {len(expected)}"
    runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in methods}
    for _ in range(repeats):
        for name, method in methods.items():
            begin = _clocks()
            method()
            thread, processor, wall = (end - start for start, end in zip(begin, _clocks(), strict=True))
            runs[name].append((thread, processor, wall))
    return {name: Times(*(statistics.median(values) for values in zip(*taken, strict=True))) for name, taken in runs.items()}


def _clocks() -> tuple[float, float, float]:
    return time.thread_time(), time.process_time(), time.perf_counter()
