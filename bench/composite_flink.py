"""Flink CEP compared with the operator: patterns of two parts, one CEP operator each, the same
events in memory, equal answers.

Flink is no dependency: `pip install --no-deps --target FOLDER apache-flink-libraries==2.3.0` and
`PYTHONPATH=FOLDER` give its rows, with a `javac` of Java 17 on the path; without them the rows
report this. `FlinkPatterns.java` holds the patterns: SEQUENCE with a bound as `followedByAny`
within it, INTERVAL as either cell first; of the pairs that end with one event the one that starts
last is the detection. Flink's time is that of the third pass of one JVM, from its first event on,
wall-clock or processor time, whichever is less; ours is processor time from Arrow rows to answers.
Flink runs with parallelism 1; each of its operators is given only the events of its two cells.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import Layer, Row
from bench.composite_worlds import FEED, HOT, OPERATOR, SLOT, SLOTS, SPAN, Cells, events, stepped
from engine.complex_events.search import Ints
from engine.operator import RegisteredQuery
from engine.specification import check

EVENTS, QUICK_EVENTS, RATE, PASSES = 500_000, 20_000, 100_000, 3
BUSY = Cells("busy", 10, 10)
_OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.time", "java.lang.invoke", "java.net", "java.nio")
_SOURCE = Path(__file__).parent / "FlinkPatterns.java"
Patterns = npt.NDArray[np.void]
_PATTERN = np.dtype([("ordered", ">i8"), ("first", ">i8"), ("second", ">i8"), ("span", ">i8")])


def rows(quick: bool) -> Iterator[Row]:
    for cells, counts in ((HOT, (1, 10, 50)), (BUSY, (1, 10))):
        for count in counts[:1] if quick else counts:
            yield _measured(cells, count, QUICK_EVENTS if quick else EVENTS)


def _measured(cells: Cells, count: int, rows: int) -> Row:
    rng = np.random.default_rng(count)
    patterns = np.zeros(count, _PATTERN)
    patterns["ordered"] = np.arange(count) % 2 == 0
    patterns["span"] = SLOT * rng.integers(1, SPAN + 1, count)
    drawn = np.array([rng.choice(cells.readers * cells.groups, 2, replace=False) for _ in range(count)])
    patterns["first"], patterns["second"] = drawn.T
    given = events(rng, rows, RATE, cells)
    seconds, answers = ours(queries(patterns, cells), given)
    rates = {}
    facts: dict[str, float | str] = {"detections": len(answers) / rows}
    classes = _class_path()
    if classes is None:
        facts["Flink CEP"] = "not installed"
    else:
        theirs, found = flink(classes, patterns, given, cells)
        assert np.array_equal(found, answers), f"Flink CEP gives {len(found)} answers that differ from {len(answers)}"
        rates["Flink CEP"] = rows / theirs
    title = f"{count} patterns of two parts, {cells.name} cells"
    return Row(title, Layer.ENGINE, rows / seconds, "events/s", rates, less_is_better=False, facts=facts)


def queries(patterns: Patterns, cells: Cells) -> list[RegisteredQuery]:
    found = []
    for number, one in enumerate(patterns):
        places = {"A": divmod(int(one["first"]), cells.groups), "B": divmod(int(one["second"]), cells.groups)}
        primitives = {
            name: {"where": [["reader", "=", f"r{reader}"]], "prefix": {"entity": f"g{group}."}} for name, (reader, group) in places.items()
        }
        span = int(one["span"])
        pattern = f"A :[0,{span}] B" if one["ordered"] else f"A ;[{span}] B"
        document = {"family": "composite", "pattern": pattern, "primitives": primitives, "within": SLOT * SLOTS}
        found.append(RegisteredQuery(f"q{number}", 1, check(document, FEED)))
    return found


def ours(queries: Sequence[RegisteredQuery], given: pa.RecordBatch) -> tuple[float, Ints]:
    """Processor seconds of the last pass, and its answers (query, start, end)."""
    index = OPERATOR.compile(queries, FEED)
    for _ in range(PASSES):
        steps = list(stepped(index, given))
        asserted, took = [changes for changes, _ in steps if changes is not None], sum(seconds for _, seconds in steps)
    return took, _in_form(np.concatenate([np.column_stack([one.column(name) for name in ("query", "start", "end")]) for one in asserted]))


def flink(classes: str, patterns: Patterns, given: pa.RecordBatch, cells: Cells) -> tuple[float, Ints]:
    """The same of Flink."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run(["javac", "-nowarn", "-cp", classes, "-d", place, str(_SOURCE)], check=True, capture_output=True)
        reader = np.array([int(one[1:]) for one in given.column("reader").to_pylist()])
        group = np.array([int(one[1:].split(".")[0]) for one in given.column("entity").to_pylist()])
        rows_by_group = np.column_stack([given.column("t"), reader * cells.groups + group])
        (folder / "events").write_bytes(np.append(len(rows_by_group), rows_by_group.reshape(-1)).astype(">i8").tobytes())
        (folder / "patterns").write_bytes(np.array([len(patterns)], ">i8").tobytes() + patterns.tobytes())
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
        files = [str(folder / name) for name in ("events", "patterns", "answers")]
        command = ["java", "-Xmx4g", *opened, "-cp", f"{classes}:{place}", "FlinkPatterns", *files, str(PASSES)]
        subprocess.run(command, check=True, capture_output=True)
        found = np.frombuffer((folder / "answers").read_bytes(), ">i8").astype(np.int64)
    return float(found[:2].min()) / 1e9, _in_form(found[3:].reshape(-1, 3))


def _in_form(asserted: Ints) -> Ints:
    return asserted[np.lexsort(asserted.T[::-1])]


def _class_path() -> str | None:
    """Null where Flink or a Java compiler is missing."""
    found = importlib.util.find_spec("pyflink")
    if found is None or shutil.which("javac") is None:
        return None
    return f"{next(iter(found.submodule_search_locations or []))}/lib/*"
