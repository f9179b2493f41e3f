"""Processor time a million rows of `backtest --runtime spark` compared with that of a running job,
over the same rows and queries.

    python -m bench.backtest_cost --data ../shared/data [beijing northsea] [--times 6]
        [--partitions 2]

A recording with 200 queries, several times one after the other. The command runs over a third of
the rows and over all of them: only the cost of the other two thirds counts, without the start of
Spark. A job does the same two thirds from its log; the cost of ingest for checking the rows and
appending them to the log is measured too, because the command does this itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.replay import few
from bench.scale import Workload, _logged, _spread
from bench.spark_overhead import end_session, shared_session
from engine.model.events import check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.sources.eventlog import EventLog
from engine.specification import check
from tests.recordings.sources import RECORDINGS
from webapp.platform.folders import ROOT

SEGMENT_ROWS = 100_000
QUERIES = 200
LOOK_S = 0.05


def repeated(rows: pa.Table, times: int) -> pa.Table:
    """The rows repeated this many times, each time later."""
    t = rows.column("t")
    span = pc.max(t).as_py() - pc.min(t).as_py() + 1
    at = rows.column_names.index("t")
    return pa.concat_tables([rows.set_column(at, "t", pc.add(t, i * span)) for i in range(times)])


def spent_by(command: Sequence[str]) -> dict[str, float]:
    """Processor seconds of a command that succeeds: of its Python, of its JVMs, and of
    Spark's workers in Python."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    me, seen = psutil.Process(process.pid), dict[tuple[str, int], float]()
    while process.poll() is None:
        time.sleep(LOOK_S)
        try:
            for one in [me, *me.children(recursive=True)]:
                times = one.cpu_times()
                kind = "python" if one.pid == me.pid else "jvms" if one.name() == "java" else "workers"
                seen[kind, one.pid] = times.user + times.system
        except psutil.Error:
            continue
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {kind: sum(seconds for (its, _), seconds in seen.items() if its == kind) for kind in ("python", "jvms", "workers")}


def command_cost(rows: pa.Table, feed: dict[str, Any], documents: Sequence[dict[str, Any]], partitions: int) -> dict[str, float]:
    """Processor seconds of the command per million rows."""
    with tempfile.TemporaryDirectory(prefix="vedette-bench-") as name:
        folder = Path(name)
        (folder / "feed.json").write_text(json.dumps(feed))
        for i, document in enumerate(documents):
            (folder / f"query-{i}.json").write_text(json.dumps(document))
        found = []
        for count in (rows.num_rows // 3, rows.num_rows):
            pq.write_table(rows.slice(0, count), folder / "rows.parquet")
            command = [sys.executable, "manage.py", "backtest", "--feed", str(folder / "feed.json"), "--events", str(folder / "rows.parquet")]
            command += ["--runtime", "spark", "--partitions", str(partitions), "--out", str(folder / "out.parquet")]
            found.append(spent_by([*command, "--query", *map(str, sorted(folder.glob("query-*.json")))]))
    less, more = found
    return {kind: (more[kind] - less[kind]) / (rows.num_rows - rows.num_rows // 3) * 1e6 for kind in more}


def job_cost(rows: pa.Table, feed: Feed, documents: Sequence[dict[str, Any]], partitions: int) -> dict[str, float]:
    """Processor seconds of the job per million rows, filling its log included."""
    seconds = 0.0

    def write(log: EventLog, count: int) -> None:
        nonlocal seconds
        began = time.process_time()
        for first in range(0, count, SEGMENT_ROWS):
            log.append(check_rows(rows.slice(first, SEGMENT_ROWS), feed)[0])
        seconds = time.process_time() - began

    queries = [RegisteredQuery(str(i), 1, check(document, feed, {})) for i, document in enumerate(documents)]
    workload = Workload(feed.name, feed, lambda: queries, write, rows.num_rows)
    with _logged(workload) as log:
        cost = _spread(workload, log, shared_session(partitions, separate=True), partitions)
    end_session()
    return {"python": cost.driver, "jvms": cost.jvm, "workers": cost.workers, "ingest": seconds / rows.num_rows * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", default=["beijing"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--partitions", type=int, default=2)
    arguments = parser.parse_args()
    for name in arguments.recordings:
        recording = RECORDINGS[name]
        read = pq.read_table(recording.path(arguments.data), columns=[*recording.columns.values(), *recording.attributes])
        rows = repeated(read.rename_columns([*recording.columns, *recording.attributes]), arguments.times)
        documents = few(recording, arguments.data, QUERIES)
        job = job_cost(rows, Feed.from_json(recording.feed()), documents, arguments.partitions)
        command = command_cost(rows, recording.feed(), documents, arguments.partitions)
        found = {"rows": rows.num_rows, "partitions": arguments.partitions, "job": rounded(job), "command": rounded(command)}
        print(json.dumps({"recording": name, **found, "times": round(sum(command.values()) / sum(job.values()), 2)}), flush=True)


def rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {kind: round(value, 2) for kind, value in {**seconds, "together": sum(seconds.values())}.items()}


if __name__ == "__main__":
    main()
