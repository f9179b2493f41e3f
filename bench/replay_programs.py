"""A program over real positions through the whole running system: stored intervals against
`backtest`, and how soon an edited rule answers.

    python bench/replay_programs.py --url http://127.0.0.1:8000 --user analyst --password ...
        --data ../shared/data [northsea us]

For each recording of plain AIS: a feed and the maritime program with its synopsis are created by
the API, the rows posted as Arrow streams in order of time as fast as ingest takes them, and when
the job has processed them all the stored intervals are compared with those of the command, fact by
fact, in both directions. A last row of a separate vessel, long after the others, moves the feed's
clock past every window that holds anything. Then a threshold of the program is changed by the API,
as the rule editor does, and the time is taken until the first detection of the new version is
stored; the job must not have been started again for it.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.latency import Client
from bench.plain_ais import COLUMNS, ROOT, document, positions
from bench.replay import ROWS_A_POST, send, wait

FOLDERS = {"northsea": "ais_northsea_2022", "us": "ais_us_2022"}
WINDOW_S, STEP_S = 7_200, 600
LAST_VESSEL = "999999999"
EDITED = ("threshold(coastalSpeed, 5.0).", "threshold(coastalSpeed, 4.0).")
"""A rule's line before and after the edit."""
Fact = tuple[str, tuple[str, ...], str | None, int, int | None]


def feed(name: str) -> dict[str, Any]:
    return {"name": f"{name}-program", "crs": "geographic", "time": "ticks", "tick": 1, "lateness": 60, "columns": COLUMNS}


def last_row(rows: pa.Table, after: int) -> pa.Table:
    """One report `after` seconds after the others, of a vessel that no other row is of."""
    values = {"entity": LAST_VESSEL, "t": pc.max(rows["t"]).as_py() + after, "x": 0.0, "y": 0.0, "cog": 0.0, "sog": 0.0, "heading": 0.0}
    return pa.table({name: pa.array([values[name]], rows.schema.field(name).type) for name in rows.column_names})


def post(client: Client, name: str, token: str, rows: pa.Table, key: str) -> None:
    for first in range(0, len(rows), ROWS_A_POST):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows.slice(first, ROWS_A_POST))
        send(client, name, token, sink.getvalue(), f"{key}-{first}")


def backtested(name: str, rows: pa.Table, query: dict[str, Any], folder: Path) -> set[Fact]:
    """The answers of the command on the same rows."""
    (folder / "feed.json").write_text(json.dumps(feed(name)))
    (folder / "query.json").write_text(json.dumps(query))
    pq.write_table(rows, folder / "rows.parquet")
    command = [sys.executable, "manage.py", "backtest", "--feed", str(folder / "feed.json"), "--events", str(folder / "rows.parquet")]
    subprocess.run([*command, "--query", str(folder / "query.json"), "--out", str(folder / "out.parquet")], check=True, cwd=ROOT)
    return facts_of(pq.read_table(folder / "out.parquet", columns=["kind", "entities", "value", "start", "end"]).to_pylist())


def stored(client: Client, name: str) -> set[Fact]:
    text = client.opener.open(f"{client.url}/api/v1/detections/export?feed={name}&format=jsonl").read()
    return facts_of([json.loads(line) for line in text.splitlines()])


def facts_of(rows: list[dict[str, Any]]) -> set[Fact]:
    """Facts of all vessels but the last row's."""
    found = [(row["kind"], tuple(row["entities"]), row["value"], row["start"], row["end"]) for row in rows if LAST_VESSEL not in row["entities"]]
    assert len(set(found)) == len(found), "a fact is there twice"
    return set(found)


def edited(client: Client, number: int, query: dict[str, Any]) -> float:
    """Seconds from the change of a rule to the first stored detection of the new version."""
    changed = query | {"program": query["program"].replace(*EDITED)}
    assert changed != query
    began = time.monotonic()
    client.call("PATCH", f"queries/{number}/", {"specification": changed})
    version = client.call("GET", f"queries/{number}/")["version"]
    while time.monotonic() - began < 300:
        found = client.call("GET", f"detections/?query={number}&limit=1&version={version}")["results"]
        if any(row["version"] == version for row in found):
            return time.monotonic() - began
        time.sleep(0.1)
    raise RuntimeError("the edited query did not answer within 300 s")


def processes(client: Client) -> dict[str, Any]:
    """When every job was started, and how often again."""
    return {job["name"]: (job["started_at"], job["restarts"]) for job in client.call("GET", "jobs/")}


def replay(client: Client, name: str, data: Path) -> dict[str, Any]:
    rows, facts = positions(data / FOLDERS[name])
    rows = pa.concat_tables([rows, last_row(rows, 2 * WINDOW_S + 2 * STEP_S)])
    query, own = document(facts, WINDOW_S, STEP_S), feed(name)["name"]
    client.call("POST", "feeds/", feed(name) | {"title": own, "wall_clock": False, "retention_hours": 87_840})
    number = client.call("POST", "queries/", {"feed": own, "name": "maritime", "specification": query, "alert_kinds": []})["id"]
    token = client.call("POST", "tokens/", {"name": f"replay {own}", "scopes": ["ingest"]})["token"]
    began = time.monotonic()
    post(client, own, token, rows, own)
    sent = time.monotonic()
    counters = wait(client, own)["counters"]
    done = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = backtested(name, rows, query, Path(folder))
    live = stored(client, own)
    pids = processes(client)
    edit = edited(client, number, query)
    return {
        "recording": own, **counters, "stored": len(live), "backtest": len(command), "stored = backtest": live == command,
        "ingest s": round(sent - began, 1), "all processed s": round(done - began, 1), "edited rule answers after s": round(edit, 1),
        "the job ran on": processes(client) == pids,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", default=list(FOLDERS))
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    client = Client(arguments.url)
    client.login(arguments.user, arguments.password)
    wrong = False
    for name in arguments.recordings:
        found = replay(client, name, arguments.data)
        print(json.dumps(found), flush=True)
        wrong = wrong or not found["stored = backtest"]
    sys.exit(wrong)


if __name__ == "__main__":
    main()
