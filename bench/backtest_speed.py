"""Rows a second and peak memory of a backtest whose operator does nothing: the cost of reading,
checking, stamping and the gate.

python -m bench.backtest_speed [--rows 5000000] [--format parquet|csv|jsonl] [--lateness MS]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

CHUNK = 500_000
RUN = (
    "import sys; from engine.families import FAMILIES, Family; FAMILIES['echo'] = Family('tests.families.echo', 'EchoOperator');"
    "from engine.backtest.command import main; sys.exit(main(sys.argv[1:]))"
)


def rows(start: int, n: int, rng: np.random.Generator, disorder: int) -> pa.Table:
    """AIS-like rows of 5,000 vessels, 100 rows a second."""
    t = (np.arange(start, start + n) * 10) - (rng.integers(0, disorder + 1, n) if disorder else 0)
    return pa.table(
        {
            "entity": pa.array(rng.integers(200_000_000, 200_005_000, n)).cast(pa.string()),
            "t": pa.array(t, pa.int64()),
            "x": pa.array(rng.uniform(-10, 10, n)),
            "y": pa.array(rng.uniform(40, 60, n)),
            "sog": pa.array(rng.uniform(0, 20, n)),
            "status": pa.array(np.array(["under way", "at anchor", "moored"])[rng.integers(0, 3, n)]),
        }
    )


def write(path: Path, total: int, kind: str, disorder: int) -> None:
    rng = np.random.default_rng(7)
    first = rows(0, 1, rng, disorder)
    if kind == "jsonl":
        with path.open("w") as file:
            for start in range(0, total, CHUNK):
                file.writelines(json.dumps(row) + "\n" for row in rows(start, min(CHUNK, total - start), rng, disorder).to_pylist())
        return
    with pq.ParquetWriter(path, first.schema) if kind == "parquet" else pv.CSVWriter(path, first.schema) as writer:
        for start in range(0, total, CHUNK):
            writer.write_table(rows(start, min(CHUNK, total - start), rng, disorder))


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=5_000_000)
    options.add_argument("--format", default="parquet", choices=("parquet", "csv", "jsonl"))
    options.add_argument("--lateness", type=int, default=0)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events = folder / f"events.{chosen.format}"
        write(events, chosen.rows, chosen.format, chosen.lateness)
        feed = {"name": "speed", "crs": "geographic", "time": "ms", "lateness": chosen.lateness, "columns": {"sog": "float", "status": "string"}}
        (folder / "feed.json").write_text(json.dumps(feed))
        (folder / "quiet.json").write_text(json.dumps({"family": "echo", "mode": "silent"}))
        command = ["--query", folder / "quiet.json", "--feed", folder / "feed.json", "--events", events, "--out", folder / "out.parquet"]
        subprocess.run([sys.executable, "-c", RUN, *map(str, command), "--stats", str(folder / "stats.json")], check=True)
        found = json.loads((folder / "stats.json").read_text())
        print(json.dumps({key: found[key] for key in ("rows_read", "rows_accepted", "rows_per_second", "peak_memory_bytes", "seconds")}))


if __name__ == "__main__":
    main()
