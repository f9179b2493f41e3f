"""Constraint queries after [CCQ] 5: throughput and stored events against verbosity, number of
queries and length of the windows.

Processor times of one thread; kernel rows from columns in memory to solutions, engine rows through
both stages, from Arrow rows to answers. The made stream (`constraint_worlds.py`) has 900,000
measurements of 70 buoys; queries are graphs of three variables, half in order and half symmetric,
tuned to the wanted verbosity: the share of events that complete a solution. Baselines
(`constraint_baselines.py`) run over the first events of the stream, where their answers are
compared with ours; their rates do not depend on how long the stream is. An event is stored once for
all queries, in the form `domains` once for each domain.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench import Figure, Layer, Row, Size, compared
from bench.constraint_baselines import Columns, by_brute_force, by_loops, by_windows, in_python, plan_of
from bench.constraint_solvers import rows as general_solvers
from bench.constraint_worlds import MEASURED, SEA, Kernel, Search, Shape, calibrated, completions, measurements, shapes, with_length
from engine.model.events import row_schema
from engine.operator import RegisteredQuery
from engine.sources.eventlog import EventLog
from engine.specification import check

FORMS = ("tight", "loose", "domains")
LENGTHS = (2, 25)
REACHES = (500.0, 1_500.0)
FIGURES = {
    "5a": Figure("[CCQ] fig. 5a: throughput and verbosity (5 queries)", "alerts, % of events and queries", log_x=True),
    "5b": Figure("[CCQ] fig. 5b: stored events and verbosity (5 queries)", "alerts, % of events and queries", log_x=True, log_y=False),
    "6a": Figure("[CCQ] fig. 6a: throughput and number of queries (1 %)", "queries", log_x=True),
    "6b": Figure("[CCQ] fig. 6b: stored events and number of queries (1 %)", "queries", log_x=True),
    "7a": Figure("[CCQ] fig. 7a: throughput and length of windows (1 %)", "length, reports of a buoy"),
    "7b": Figure("[CCQ] fig. 7b: stored events and length of windows (1 %)", "length, reports of a buoy", log_y=False),
}


def rows(size: Size) -> Iterator[Row]:
    quick = size is Size.QUICK
    stream = measurements(8_000 if quick else 900_000)
    tuning = stream.slice(0, 2_000 if quick else 6_000)
    made = shapes(5 if quick else 100, (3,), MEASURED, LENGTHS, 1, REACHES)

    def tuned(some: Sequence[Shape], verbosity: float) -> list[dict[str, Any]]:
        return calibrated(some, verbosity, tuning, SEA, MEASURED)

    hundred = tuned(made, 0.01)
    yield from _against_baselines(hundred, stream, quick)
    yield from general_solvers(quick)
    yield from _long_windows(quick)
    for percent in (1.0,) if quick else (0.1, 1.0, 5.0):
        yield from _forms(f"5 queries, verbosity {percent:g} %", tuned(made[:5], percent / 100), stream, "5", percent, quick)
    if quick:
        return
    for queries in (5, 25, 100):
        yield from _forms(f"{queries} queries, verbosity 1 %", hundred[:queries], stream, "6", queries, quick)
    for length in (5, 10, 25):
        yield from _forms(f"5 queries, windows of {length}", tuned(with_length(made[:5], length), 0.01), stream, "7", length, quick)


def spark_rows(size: Size) -> Iterator[Row]:
    """The whole stream from the log through a stream of Spark; answers are discarded."""
    stream = measurements(200_000 if size is Size.QUICK else 900_000)
    made = shapes(100, (3,), MEASURED, LENGTHS, 1, REACHES)
    documents = calibrated(made, 0.01, stream.slice(0, 6_000), SEA, MEASURED)
    rates, answers = through_spark(stream, documents, 1, 100_000) if size is Size.QUICK else through_spark(stream, documents, 2, 400_000)
    yield Row("100 queries, verbosity 1 %, in Spark", Layer.SPARK, rates, "events/s", less_is_better=False, facts={"alerts": answers})


def through_spark(stream: pa.Table, documents: Sequence[dict[str, Any]], rounds: int, batch_rows: int) -> tuple[float, int]:
    """Events a second from the end of the first batch on, the median of some runs after one that
    warms up; answers of one."""
    from bench.spark_overhead import run, shared_session
    from engine.runtime.processor import FeedProcessor

    queries = [RegisteredQuery(str(i), 1, check(dict(one), SEA)) for i, one in enumerate(documents)]
    with tempfile.TemporaryDirectory(prefix="vedette-bench-") as folder:
        log = EventLog(Path(folder), SEA.name)
        for begin in range(0, len(stream), 50_000):
            log.append(_as_rows(stream.slice(begin, 50_000)))
        found = [run(shared_session(), FeedProcessor, log, queries, 1, feed=SEA, batch_rows=batch_rows) for _ in range(rounds + 1)]
    return statistics.median(one.rows_per_s() for one in found[1:]), found[-1].answers


def _as_rows(table: pa.Table) -> pa.Table:
    """Measurements as rows of the feed that are not stamped yet."""
    wanted = row_schema(SEA)
    table = table.append_column("event", pa.array(["position"]).take(pa.array(np.zeros(len(table), np.int64))))
    names = set(table.column_names)
    return pa.Table.from_arrays(
        [table.column(field.name) if field.name in names else pa.nulls(len(table), field.type) for field in wanted], schema=wanted
    )


def _against_baselines(documents: list[dict[str, Any]], stream: pa.Table, quick: bool) -> Iterator[Row]:
    """Columns in, completing events out: ours over the whole stream, the
    baselines over its beginning."""
    plans = [plan_of(one) for one in documents]
    kernel = Kernel(documents, SEA)
    whole, ranges = kernel.columns(stream), kernel.index.ranges
    compiled, plain = whole.slice(0, 2_000 if quick else 20_000), stream.slice(0, 500 if quick else 4_000).to_pylist()
    expected = kernel.completions(compiled)
    assert sorted(by_brute_force(compiled, ranges.names, plans)) == expected, "brute force answers otherwise"
    assert sorted(by_windows(compiled, ranges.names, plans)) == expected, "brute force in implied windows answers otherwise"
    assert sorted(by_loops(compiled, ranges, plans)) == expected, "compiled loops answer otherwise"
    assert in_python(plain, plans) == [one for one in expected if one[1] < len(plain)], "the solver in plain Python answers otherwise"
    assert Search(documents, SEA).completions(stream.slice(0, len(compiled.t))) == expected, "the operator answers otherwise"
    for form in ("domains", "tight"):
        times: dict[str, list[float]] = {"ours": [], "brute": [], "windows": [], "loops": [], "python": []}
        alerts = 0
        for _ in range(1 if quick else 5):
            kernel = Kernel([{**one, "expiration": form} for one in documents], SEA)
            seconds, found = _timed(partial(kernel.take, whole))
            alerts = sum(len(queries) for queries, _ in found)
            times["ours"].append(len(whole.t) / seconds)
            times["brute"].append(len(compiled.t) / _timed(lambda: by_brute_force(compiled, ranges.names, plans))[0])
            times["windows"].append(len(compiled.t) / _timed(lambda: by_windows(compiled, ranges.names, plans))[0])
            times["loops"].append(len(compiled.t) / _timed(lambda: by_loops(compiled, ranges, plans))[0])
            times["python"].append(len(plain) / _timed(lambda: in_python(plain, plans))[0])
        rates = {name: statistics.median(values) for name, values in times.items()}
        yield Row(
            f"{len(documents)} queries, verbosity 1 %, {form}", Layer.KERNEL, rates["ours"], "events/s",
            {
                "domain solver in Python": rates["python"], "compiled brute force": rates["brute"],
                "the same in our closed graph's windows": rates["windows"], "and behind our filters": rates["loops"],
            },
            {"domain solver in Python": 30.0, "compiled brute force": 12.0}, 500_000.0, less_is_better=False,
            facts={"alerts": alerts, "% of events and queries": 100 * alerts / len(whole.t) / len(documents)},
        )  # fmt: skip


def _long_windows(quick: bool) -> Iterator[Row]:
    """Pairs close to each other over long windows: domains looked up in cells, scanned, and
    compiled loops over all events of the window."""
    count, window = (9_000, 4_000) if quick else (60_000, 20_000)
    chance = np.random.default_rng(9)
    document = {
        "family": "constraint", "variables": {name: {"where": [["sst", ">=", 0], ["sst", "<=", 1]]} for name in ("V1", "V2")},
        "constraints": [{"between": ["V1", "V2"], "dt": [1, window], "distance": {"max": 1.0}}], "report": "first",
    }  # fmt: skip
    x, y = chance.uniform(0, 200, (2, count))
    columns = Columns(np.arange(count), x, y, np.full((1, count), 0.5))

    def run(cells: bool) -> list[tuple[int, int]]:
        kernel = Kernel([document], SEA)
        if not cells:
            kernel.store.graphs.side[:] = -1.0
        return kernel.completions(columns)

    ranges, plans = Kernel([document], SEA).index.ranges, [plan_of(document)]
    methods = {"ours": lambda: run(True), "scanned": lambda: run(False), "compiled loops": lambda: sorted(by_loops(columns, ranges, plans))}
    times = compared(methods, list)
    rates = {name: count / seconds for name, seconds in times.items()}
    yield Row(f"one query, windows of {window:,} events", Layer.KERNEL, rates.pop("ours"), "events/s", rates, less_is_better=False)


def _forms(title: str, documents: list[dict[str, Any]], stream: pa.Table, figure: str, x: float, quick: bool) -> Iterator[Row]:
    """Events a second and stored events of the three forms, whose answers are equal."""
    forms = {form: [{**one, "expiration": form} for one in documents] for form in FORMS}
    rates: dict[str, list[float]] = {form: [] for form in FORMS}
    peaks: dict[str, float] = {}
    expected: list[tuple[int, int]] | None = None
    for _ in range(1 if quick else 2):
        for form in FORMS:
            search = Search(forms[form], SEA)
            seconds, found = _timed(partial(search.take, stream))
            rates[form].append(len(stream) / seconds)
            peaks[form] = float(search.peak)
            answers = completions(found)
            assert expected in (None, answers), f"{form} answers otherwise"
            expected = answers
    assert expected is not None
    middle = {form: statistics.median(values) for form, values in rates.items()}
    facts = {"% of events and queries": 100 * len(expected) / len(stream) / len(documents)}
    ours = middle.pop("tight")
    yield Row(title, Layer.ENGINE, ours, "events/s", middle, less_is_better=False, facts=facts, figure=f"{figure}a", x=x)
    tight, most = peaks.pop("tight"), {} if quick else {"loose": 1 / 0.95}
    yield Row(f"{title}: stored at most", Layer.ENGINE, tight, "events", peaks, most, figure=f"{figure}b", x=x)


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of one run, and its result."""
    began = time.thread_time()
    found = run()
    return time.thread_time() - began, found
