"""Event calculus: recognition time of a window, the whole command, windows and entities as in the
paper's experiments.

Rows over recordings need them: `VEDETTE_DATA` names their folder (default: `shared/data` next to
the project); without them only the generated fleet is measured. RTEC's times are those recorded
with the recordings (SWI-Prolog 9.0.4, one thread, processor time of recognition without loading):
from another machine. Where `RTEC_HOME` names a copy of RTEC and `swipl` is on the path, its own
CAVIAR example is measured too (`bench.rtec`): both answers are compared before a time is shown.

References: [dRTEC] 4, figures 3 and 4.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from bench import Figure, Layer, Row, Size, rtec
from engine.event_calculus.operator import CalculusOperator
from engine.event_calculus.replay import WindowReplay
from engine.model.batch import CLOCK, SEQ, Batch, EntityDictionary
from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.sources.eventlog import EventLog
from engine.specification import check

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("VEDETTE_DATA", ROOT.parent / "shared" / "data"))
PROGRAMS = ROOT / "fixtures" / "programs"
FIGURES = {
    "figure_3": Figure("CAVIAR enlarged 40 times, 10 entities: time of a window", "window, s"),
    "figure_3_entities": Figure("CAVIAR enlarged 40 times, 20 entities: time of a window", "window, s"),
    "figure_4": Figure("Maritime: time of a window, 6,425 vessels", "window, h"),
}
HOUR = 3600


def rows(size: Size) -> Iterator[Row]:
    """The rows of the paper's experiments; see the module's text."""
    if (DATA / "caviar" / "sde.csv.gz").exists():
        yield from _caviar(size)
        yield _command(size)
        yield from _enlarged(size)
    yield from _maritime(size)


def spark_rows(size: Size) -> Iterator[Row]:
    """CAVIAR enlarged, 20 entities, through a streaming job of Spark's without its store: on the
    driver and on executors, with one and two cores.

    Two queries where there are two cores. Over two executors a program is divided into its two
    stages (decision 11), but for the second one, which is RTEC's first version.
    """
    if not (DATA / "caviar" / "sde.csv.gz").exists():
        return
    from bench.spark_overhead import run, shared_session
    from engine.runtime.executors import ExecutorsProcessor
    from engine.runtime.processor import FeedProcessor

    feed = Feed.from_json(_feed("caviar") | {"tick": 1})
    variants = ("rtec_2025_allpairs", "rtec_v1_allpairs")
    checked = [check(_document("caviar", one, window=10_000, step=10_000), feed) for one in variants]
    queries = [RegisteredQuery(name, 1, one) for name, one in zip(variants, checked, strict=True)]
    with tempfile.TemporaryDirectory(prefix="vedette-bench-") as folder:
        log = EventLog(Path(folder), feed.name)
        table = _frames(20, 120_000 if size is Size.QUICK else 340_000).drop_columns([SEQ, CLOCK])
        for first in range(0, len(table), SEGMENT_ROWS):
            log.append(table.slice(first, SEGMENT_ROWS))
        for cores in (1, 2):
            for placed, asked in itertools.product((FeedProcessor, ExecutorsProcessor), (queries[:1], queries)[:cores]):
                spark = shared_session(cores, separate=placed is ExecutorsProcessor)
                # As the product: one partition on the driver, one a core on executors.
                partitions = cores if placed is ExecutorsProcessor else 1
                rates = [run(spark, placed, log, asked, partitions, feed=feed, batch_rows=SEGMENT_ROWS).rows_per_s() for _ in range(2)][1:]
                where = "executors" if placed is ExecutorsProcessor else "driver"
                asks = f"{len(asked)} quer{'y' if len(asked) == 1 else 'ies'}"
                title = f"CAVIAR enlarged, 20 entities, {asks}, {where}, {cores} core{'s' * (cores > 1)}"
                yield Row(title, Layer.SPARK, statistics.median(rates), "rows/s", less_is_better=False)


SEGMENT_ROWS = 200_000


# -- measuring -------------------------------------------------------------------------------------


class Recognition:
    """The time to decide the windows of a query over rows that have all arrived,
    without reading and indexing."""

    def __init__(self, document: Mapping[str, Any], feed: Feed, stamped: pa.Table) -> None:
        operator = CalculusOperator()
        self.index = operator.compile([RegisteredQuery("q", 1, check(dict(document), feed))], feed)
        emitted = operator.keyed.step(self.index, operator.keyed.initial(self.index), Batch(_batch(stamped), EntityDictionary()), 0).emitted
        assert emitted is not None
        self.emitted = emitted
        self.pairs = self.answers = 0

    def once(self) -> list[float]:
        """Processor milliseconds of each window, in order."""
        compiled = self.index.queries[0]
        state = compiled.windows.initial()
        compiled.take(state, self.emitted)
        last, times, self.answers = state.clock, [], 0
        decisions = compiled.windows.conclude(state, last)
        while True:
            began = time.thread_time()
            decision = next(decisions, None)
            if decision is None:
                break
            times.append((time.thread_time() - began) * 1e3)
            self.answers += sum(len(change.s) for change in decision.changes)
        self.pairs = state.pairs_examined
        return times

    def window_ms(self, repeats: int) -> list[float]:
        """Milliseconds of each window: the median of repeated runs, after one that compiles."""
        self.once()
        return [statistics.median(times) for times in zip(*(self.once() for _ in range(repeats)), strict=True)]


def _batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


def _document(folder: str, variant: str, **changed: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((PROGRAMS / folder / f"query-{variant}.json").read_text()) | changed
    return document


def _feed(folder: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((PROGRAMS / folder / "feed.json").read_text())
    return document


@cache
def _recorded(data_set: str) -> dict[tuple[str, int, int], float]:
    """RTEC's mean milliseconds a window, by (run, window, step)."""
    times: dict[tuple[str, int, int], list[float]] = {}
    with (DATA / data_set / "golden" / "baseline_rtec.csv").open() as file:
        for row in csv.DictReader(file):
            times.setdefault((row["run"], int(row["window"]), int(row["step"])), []).append(float(row["recognition_cpu_ms"]))
    return {run: statistics.mean(values) for run, values in times.items()}


# -- CAVIAR ----------------------------------------------------------------------------------------


@cache
def _activities() -> pa.Table:
    """The recording, checked and stamped."""
    kinds = pacsv.ConvertOptions(column_types={"value": pa.string(), "entity": pa.string()}, strings_can_be_null=True)
    table = pacsv.read_csv(DATA / "caviar" / "sde.csv.gz", convert_options=kinds)
    table = table.rename_columns(["event" if name == "name" else name for name in table.column_names])
    good, _ = check_rows(table, Feed.from_json(_feed("caviar")))
    return Stamper().stamp(good)


def _caviar(size: Size) -> Iterator[Row]:
    feed = Feed.from_json(_feed("caviar"))
    for window, step in ((100_000, 100_000), (10_000, 10_000), (110_000, 10_000)):
        document = _document("caviar", "rtec_2025", window=window, step=step)
        run = Recognition(document, feed, _activities())
        rtec_runs = _InstalledRtec(document, feed) if size is Size.FULL else None
        rounds = []
        for _ in range(rtec_runs.rounds if rtec_runs else 1):
            rounds.append(run.window_ms(2 if size is Size.QUICK else 25))
            if rtec_runs:
                rtec_runs.once()
        times = [statistics.median(taken) for taken in zip(*rounds, strict=True)]
        yield Row(
            f"CAVIAR, window {window // 1000} s, step {step // 1000} s", Layer.ENGINE, statistics.mean(times), "ms/window",
            {"RTEC (recorded)": _recorded("caviar")["caviar_original_40ms", window, step]} | (rtec_runs.times if rtec_runs else {}),
            {"RTEC (recorded)": 40.0} if window == step == 100_000 else {},
            facts={"windows": len(times), "worst ms": max(times), "changes": run.answers} | (rtec_runs.notes if rtec_runs else {}),
        )  # fmt: skip
        if size is Size.QUICK:
            return


class _InstalledRtec:
    """RTEC over the windows of a document, alternating with ours; nothing where it is not
    installed. `notes` gives the reason if it should be.

    Answers are compared before a time is kept; raises AssertionError where they differ.
    """

    def __init__(self, document: Mapping[str, Any], feed: Feed) -> None:
        self._document, self._feed = document, feed
        self._taken: dict[str, list[float]] = {}
        self.notes: dict[str, float | str] = {}
        self.rounds = 3 if os.environ.get("RTEC_HOME") else 1

    def once(self) -> None:
        if self.notes.get("RTEC not run"):
            return
        for name, read_only in (("RTEC", False), ("RTEC, rows its rules read", True)):
            try:
                found = rtec.caviar(self._document["window"], self._document["step"], read_only=read_only)
            except rtec.NotRun as reason:
                self.notes["RTEC not run"] = str(reason)
                return
            if found is None:
                return
            rtec.check_equal(self._facts, found.facts)
            self.notes["intervals equal"] = len(found.facts)
            self._taken.setdefault(name, []).append(statistics.mean(found.times))

    @property
    def times(self) -> dict[str, float]:
        """Milliseconds a window, the median of the rounds."""
        return {name: statistics.median(taken) for name, taken in self._taken.items()}

    @cached_property
    def _facts(self) -> set[rtec.Fact]:
        replay = WindowReplay(RegisteredQuery("q", 1, check(dict(self._document), self._feed)), self._feed)
        facts: set[rtec.Fact] = set()
        for table in (*replay.take(_batch(_activities())), *replay.finish()):
            columns = (table[name].to_pylist() for name in ("query_time", "kind", "entities", "value", "start", "end"))
            facts |= {(moment, kind, tuple(entities), value, start, end) for moment, kind, entities, value, start, end in zip(*columns, strict=True)}
        return facts


def _command(size: Size) -> Row:
    """Wall time of the command: process start, compiling the program, reading, windows, answers."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "manage.py", "backtest", "--query", str(PROGRAMS / "caviar" / "query-rtec_2025.json")]
        command += ["--feed", str(PROGRAMS / "caviar" / "feed.json"), "--events", str(DATA / "caviar" / "sde.csv.gz"), "--map", "event=name"]
        times = []
        for _ in range(1 if size is Size.QUICK else 4):
            began = time.monotonic()
            subprocess.run([*command, "--out", f"{folder}/out.csv"], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
            times.append(time.monotonic() - began)
    return Row("CAVIAR, whole backtest of 182,504 rows", Layer.ENGINE, min(times), "s", limit=5.0)


def _enlarged(size: Size) -> Iterator[Row]:
    """The paper's stress stream: each frame 40 times, tick 1; with 20 entities a second copy starts
    half a recording later."""
    windows = (10, 110) if size is Size.QUICK else (10, 30, 50, 70, 90, 110)
    feed = Feed.from_json(_feed("caviar") | {"tick": 1})
    longest: dict[int, float] = {}
    for entities in (10, 20):
        stamped = _frames(entities, 120_000 if size is Size.QUICK else 340_000)
        for seconds in windows:
            run = Recognition(_document("caviar", "rtec_2025_allpairs", window=seconds * 1000, step=seconds * 1000), feed, stamped)
            full = run.window_ms(1 if size is Size.QUICK else 3)[: 340 // seconds]
            ours = longest[entities] = statistics.mean(full)
            theirs = _recorded("caviar").get(("caviar_enlarged_1ms_10ids", seconds * 1000, seconds * 1000)) if entities == 10 else None
            yield Row(
                f"CAVIAR enlarged, {entities} entities, window {seconds} s", Layer.ENGINE, ours, "ms/window",
                {} if theirs is None else {"RTEC (recorded)": theirs}, limit=100.0 if (entities, seconds) == (20, 110) else None,
                facts={"SDEs a window": len(stamped) * seconds / (120 if size is Size.QUICK else 340)},
                figure="figure_3" if entities == 10 else "figure_3_entities", x=float(seconds),
            )  # fmt: skip
    yield Row("CAVIAR enlarged, 110 s: 20 entities over 10", Layer.ENGINE, longest[20] / longest[10], "times", limit=4.5)


def caviar_crowd(casts: int, until: int) -> tuple[Feed, dict[str, Any], pa.Table]:
    """RTEC's CAVIAR text over this many copies at once; each starts the recording at another
    moment; windows of 30 s every 5 s."""
    table, every = _read_activities(), 1_006_840 // 40 // casts * 40
    parts = []
    for cast in range(casts):
        later = pa.array((np.asarray(table["t"]) + cast * every) % 1_006_840 + 40)
        names = pc.binary_join_element_wise(f"cast {cast}", table["entity"], " ")
        part = table.set_column(1, "entity", names).set_column(2, "t", later)
        parts.append(part.filter(pc.less(part["t"], until)))
    stream = pa.concat_tables(parts).sort_by("t").combine_chunks()
    return Feed.from_json(_feed("caviar")), _document("caviar", "rtec_2025", window=30_000, step=5_000), Stamper().stamp(stream)


def _read_activities() -> pa.Table:
    """The part of the recording that the rules read."""
    table = _activities().select(["event", "entity", "t", "x", "y"])
    return table.filter(pc.invert(pc.is_in(table["event"], pa.array(["orientation", "appearance"]))))


def _frames(entities: int, until: int) -> pa.Table:
    table = _read_activities()
    if entities == 20:
        later = pa.array((np.asarray(table["t"]) + 503_480) % 1_006_840 + 40)
        others = pc.binary_join_element_wise("second ", table["entity"], "")
        table = pa.concat_tables([table, table.set_column(1, "entity", others).set_column(2, "t", later)])
    table = table.filter(pc.less(table["t"], until)).combine_chunks()
    copies = table.take(pa.array(np.repeat(np.arange(len(table)), 40)))
    t: npt.NDArray[np.int64] = np.asarray(copies["t"]) + np.tile(np.arange(40), len(table))
    order = np.argsort(t, kind="stable")
    return Stamper().stamp(copies.set_column(2, "t", pa.array(t)).take(pa.array(order)).combine_chunks())


# -- maritime --------------------------------------------------------------------------------------

NEAR = """
spatial(near(V1, V2)=true, proximity(coord, 1000, 600)).
grounding(near(V1, V2)=true) :- V1 @< V2.
holdsFor(together(V1, V2)=true, I) :-
    holdsFor(near(V1, V2)=true, In), holdsFor(lowSpeed(V1)=true, I1), holdsFor(lowSpeed(V2)=true, I2), intersect_all([In, I1, I2], I).
"""
"""Two slow vessels within a kilometre, so that there are pairs to find."""
VESSELS = 6_425


def _maritime(size: Size) -> Iterator[Row]:
    """dRTEC's events for a generated fleet as large as the paper's, 285,000 SDEs a day, and pairs
    from positions."""
    hours, vessels = ((1, 2), 600) if size is Size.QUICK else ((1, 2, 4, 8, 16, 24), VESSELS)
    document = _document("maritime", "aminess_rtec_2025")
    document["program"] += NEAR
    document["outputs"] = [*document["outputs"], "together"]
    feed = Feed.from_json(_feed("maritime") | {"lateness": 0})
    stamped = fleet(vessels, max(hours), feed)
    for span in hours:
        query = document | {"window": span * HOUR, "step": span * HOUR, "origin": 0}
        run = Recognition(query, feed, stamped)
        times = run.window_ms(1 if size is Size.QUICK else 3)
        share = run.pairs / len(times) / (vessels * (vessels - 1) / 2)
        yield Row(
            f"maritime, {vessels:,} vessels, window {span} h", Layer.ENGINE, statistics.mean(times), "ms/window",
            limit=250.0 if (span, vessels) == (24, VESSELS) else None,
            facts={"SDEs a window": len(stamped) / len(times), "changes": run.answers, "% of pairs examined": 100 * share},
            figure="figure_4", x=float(span),
        )  # fmt: skip
    yield Row(f"maritime, {max(hours)} h: share of pairs examined", Layer.ENGINE, 100 * share, "%", limit=0.1)


def fleet(vessels: int, hours: int, feed: Feed, seed: int = 4) -> pa.Table:
    """A generated day: each critical point has its coord and velocity, as in the paper; 44.4 rows a
    vessel in 24 h. Seeded, in order of time."""
    chance = np.random.default_rng(seed)
    n = int(vessels * 44.36 * hours / 24 / 3)
    who, t = chance.integers(0, vessels, n), np.sort(chance.integers(1, hours * HOUR + 1, n))
    lon0, lat0 = chance.uniform(19.0, 29.0, vessels), chance.uniform(34.0, 41.0, vessels)
    x, y = lon0[who] + chance.normal(0, 0.05, n), lat0[who] + chance.normal(0, 0.05, n)
    kinds = np.array(["gapStart", "gapEnd", "lowSpeedStart", "lowSpeedEnd", "turn", "speedChange", "inArea", "heading2Vessels", "nearPorts"])
    events = [kinds[chance.integers(0, len(kinds), n)], np.full(n, "coord"), np.full(n, "velocity")]
    names = np.char.add("v", who.astype(str))
    unknown = np.full(n, np.nan)
    columns = {
        "event": np.concatenate(events), "entity": np.tile(names, 3), "t": np.tile(t, 3), "x": np.tile(x, 3), "y": np.tile(y, 3),
        "lon": np.concatenate((unknown, x, unknown)), "lat": np.concatenate((unknown, y, unknown)),
        "speed": np.concatenate((unknown, unknown, chance.uniform(0, 30, n))), "cog": np.concatenate((unknown, unknown, chance.uniform(0, 360, n))),
    }  # fmt: skip
    order = np.argsort(columns["t"], kind="stable")
    good, dead = check_rows(pa.table({name: pa.array(column[order], from_pandas=True) for name, column in columns.items()}), feed)
    assert not dead
    return Stamper().stamp(good)
