"""Ten million rows in the browser's upload: how much the page, the web server and the
loading process grow meanwhile.

    make up
    python -m bench.upload --password ... [--url http://127.0.0.1:8000] [--rows 10000000]
        [--form csv|jsonl|parquet|arrow] [--shuffled]
                           [--pictures FOLDER]

Writes a file of a fleet, chooses it on the page *New feed* of a real Chromium, accepts every guess,
loads it as history, and waits until all rows are in the log. Measures the memory every half second:
of the page (the renderer's process, and the heap of its JavaScript), of the browser's main process,
of the web server, and of the process that loads files with its caged readers; counted are the
memory that is their own, and all that is resident, with the pages of files that they have mapped.
Fails when the page or one of the server's processes grew by more than 300 MB in either way. The
server should have been used before: work of first calls is not caused by the file.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from bench.first_steps import Pictures, logged_in
from bench.processes import own_bytes, processes_of, resident_bytes, with_children

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

MOST_BYTES = 300_000_000
THINGS, LOOK_S, TIMEOUT_S = 1_000, 0.5, 3_600.0
PIECE = 500_000
BEGIN_MS, STEP_MS = 1_767_348_000_000, 1_000
BOUND = [f"{part}{measure}" for part in ("page", "web", "ingest") for measure in ("", ", resident")]
"""The processes that may not grow by more than MOST_BYTES."""


SCHEMA = pa.schema([("ship", pa.string()), ("time", pa.timestamp("ms")), ("lon", pa.float64()), ("lat", pa.float64()), ("speed", pa.float64())])


class _JsonLines:
    """Rows as an object a line each."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("w")

    def __enter__(self) -> _JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write_table(self, rows: pa.Table) -> None:
        texts = rows.set_column(1, "time", pc.strftime(rows.column("time"), "%Y-%m-%dT%H:%M:%SZ"))
        self._file.writelines(json.dumps(row) + "\n" for row in texts.to_pylist())


WRITERS = {"csv": csv.CSVWriter, "jsonl": _JsonLines, "parquet": pq.ParquetWriter, "arrow": pa.ipc.new_file}


def write_fleet(path: Path, rows: int, *, shuffled: bool) -> None:
    """A thousand ships that report once a second: in the order of time, or in none."""
    chance = np.random.default_rng(17)
    order = chance.permutation(rows) if shuffled else np.arange(rows)
    with WRITERS[path.suffix[1:]](path, SCHEMA) as writer:
        for begin in range(0, rows, PIECE):
            n = order[begin : begin + PIECE]
            ship, second = n % THINGS, n // THINGS
            columns = [
                pa.array([f"ship-{one}" for one in ship]),
                pa.array(BEGIN_MS + second * STEP_MS + ship, pa.timestamp("ms")),
                pa.array(np.round(10 + ship / 500 + second / 1e5, 5)),
                pa.array(np.round(54 + ship % 50 / 50 + chance.normal(0, 1e-4, len(n)), 5)),
                pa.array(np.round(chance.uniform(0, 20, len(n)), 1)),
            ]
            writer.write_table(pa.table(columns, schema=SCHEMA))


@dataclass
class Memory:
    """The memory of each part at first, and at most."""

    parts: dict[str, list[psutil.Process]]
    session: CDPSession
    first: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        alive = {name: with_children(processes[0]) if name != "page" else processes for name, processes in self.parts.items()}
        now = {name: own_bytes(processes) for name, processes in alive.items()}
        now |= {f"{name}, resident": resident_bytes(processes) for name, processes in alive.items()}
        with suppress(StopIteration):
            metrics = self.session.send("Performance.getMetrics")["metrics"]
            now["page's JavaScript"] = int(next(one["value"] for one in metrics if one["name"] == "JSHeapUsedSize"))
        for name, value in now.items():
            self.first.setdefault(name, value)
            self.most[name] = max(self.most.get(name, 0), value)

    def growth(self, name: str) -> int:
        return self.most[name] - self.first[name]


def measure(options: argparse.Namespace, file: Path) -> Memory:
    pictures = Pictures(options.pictures)
    with logged_in(options.url, options.user, options.password) as page:
        page.set_default_timeout(TIMEOUT_S * 1_000)
        page.goto(f"{options.url}/feeds/new")
        page.get_by_text("Drop a recording here").wait_for()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        session.send("HeapProfiler.collectGarbage")
        memory = Memory(_parts(int(options.url.rpartition(":")[2])), session)
        memory.look()

        def until(selector: str, what: str) -> None:
            begun, shown = time.monotonic(), page.locator(selector).first
            while not shown.is_visible():
                assert time.monotonic() - begun < TIMEOUT_S, f"not within {TIMEOUT_S:g} s: {what}"
                memory.look()
                page.wait_for_timeout(LOOK_S * 1_000)
            print(f"{what} after {time.monotonic() - begun:.0f} s", flush=True)
            pictures.take(page, what.replace(" ", "-"))

        page.locator("#wizard-file").set_input_files(file)
        until("text=The first rows, as they are in the file", "uploaded and looked into")
        page.get_by_role("button", name="Make the feed and load the file").click()
        until(".wizard-load:not([data-state=reading])", "read")
        until(".wizard-load[data-state=done]", "loaded")
        words = page.locator(".wizard-load").inner_text()
        assert f"{options.rows:,} of {options.rows:,} rows" in words, words
        memory.look()
    return memory


def _parts(port: int) -> dict[str, list[psutil.Process]]:
    """The server's processes, and those of the browser that this one started."""
    browser = [one for one in psutil.Process().children(recursive=True) if "chrom" in one.name()]
    # One page is open, and each page has a renderer; the spare one that the
    # browser keeps ready has little.
    renderers = [one for one in browser if "--type=renderer" in one.cmdline()]
    main = next(one for one in browser if not any(word.startswith("--type=") for word in one.cmdline()))
    return {"page": renderers, "browser": [main], **{name: [process] for name, process in processes_of(port).items() if name != "connectors"}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--form", choices=list(WRITERS), default="csv")
    parser.add_argument("--shuffled", action="store_true", help="the rows are in no order")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"fleet-{time.time():.0f}.{options.form}"
        write_fleet(file, options.rows, shuffled=options.shuffled)
        print(f"{options.rows:,} rows in {file.stat().st_size / 1e6:,.0f} MB; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        memory = measure(options, file)
    for name, first in memory.first.items():
        print(f"{name:20} {first / 1e6:7,.0f} MB at first, at most {memory.growth(name) / 1e6:6,.0f} MB more")
    print(f"load {os.getloadavg()[0]:.1f}")
    grown: list[Any] = [name for name in BOUND if memory.growth(name) > MOST_BYTES]
    if grown:
        print(f"grew by more than {MOST_BYTES / 1e6:.0f} MB: {', '.join(grown)}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
