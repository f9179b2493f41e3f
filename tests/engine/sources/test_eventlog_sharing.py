"""The event log shared by processes and readers: no row is lost, duplicated or incomplete, even if
a process dies or reads meanwhile."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from engine.failpoints import VARIABLE
from engine.sources.eventlog import EventLog, RowsDropped
from tests.engine.sources.log_rows import rows, times

ROOT = Path(__file__).resolve().parents[3]

WRITER = r"""
import os, sys, threading
import pyarrow as pa
from engine.sources.eventlog import EventLog
log, name, count = EventLog(sys.argv[1], "f"), sys.argv[2], int(sys.argv[3])

def work(thread):
    for i in range(count):
        t = pa.array([i * 2, i * 2 + 1], pa.int64())
        rows = pa.table({"event": pa.array(["position"] * 2), "entity": pa.array([f"{name}{thread}"] * 2), "t": t})
        answer = log.append(rows, key=f"{name}-{thread}-{i}" if "keys" in sys.argv[5:] else None)
        os.write(1, f"{thread} {i} {answer.first_seq}\n".encode())  # one write, so that threads do not mix their lines

threads = [threading.Thread(target=work, args=(n,)) for n in range(int(sys.argv[4]))]
[t.start() for t in threads]; [t.join() for t in threads]
"""


def start_writer(folder: Path, name: str, count: int, threads: int = 1, failpoints: str = "", keys: bool = True) -> subprocess.Popen[str]:
    environment = {**os.environ, VARIABLE: failpoints, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITER, str(folder), name, str(count), str(threads), "keys" if keys else "no keys"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def check_acknowledged(log: EventLog, name: str, acknowledged: list[str]) -> None:
    """Every acknowledged append is in the log, complete and at its reported position."""
    kept = pa.concat_tables(log.read())
    assert kept["seq"].to_pylist() == list(range(kept.num_rows))
    entities, ts = kept["entity"].to_pylist(), kept["t"].to_pylist()
    for line in acknowledged:
        thread, i, first = (int(part) for part in line.split())
        assert entities[first : first + 2] == [f"{name}{thread}"] * 2
        assert ts[first : first + 2] == [i * 2, i * 2 + 1]


def test_two_processes_with_threads_share_a_log(tmp_path: Path) -> None:
    writers = {name: start_writer(tmp_path, name, 40, threads=3) for name in "ab"}
    lines = {name: writer.communicate(timeout=60)[0].splitlines() for name, writer in writers.items()}
    log = EventLog(tmp_path, "f")
    assert log.end[0] == 2 * 2 * 3 * 40
    for name in "ab":
        assert len(lines[name]) == 120
        check_acknowledged(log, name, lines[name])
        for thread in range(3):
            mine = log.tail(0, entities=[f"{name}{thread}"])["t"].to_pylist()
            assert mine == list(range(80))


@pytest.mark.parametrize("place", ["log.before_rename", "log.after_rename"])
def test_a_writer_killed_at_a_failpoint_stores_its_key_once(tmp_path: Path, place: str) -> None:
    killed = start_writer(tmp_path, "w", 10, failpoints=f"{place}=kill@4")
    acknowledged = killed.communicate(timeout=60)[0].splitlines()
    assert (killed.returncode, len(acknowledged)) == (-signal.SIGKILL, 3)
    log = EventLog(tmp_path, "f")
    assert log.end[0] == (6 if place == "log.before_rename" else 8)
    again = start_writer(tmp_path, "w", 10)
    check_acknowledged(log, "w", acknowledged + again.communicate(timeout=60)[0].splitlines())
    assert log.tail(0, entities=["w0"])["t"].to_pylist() == list(range(20))
    assert list(log.tmp.iterdir()) == []


@pytest.mark.slow
def test_a_writer_killed_at_random_stores_every_row_once(tmp_path: Path) -> None:
    """Kill -9 in a loop while another process writes and this one compacts and reads."""
    chance = random.Random(7)
    log = EventLog(tmp_path, "f")
    # Without keys: those need their segments to stay until they are settled, and here any segment
    # is compacted at any time.
    steady = start_writer(tmp_path, "s", 400, keys=False)
    acknowledged: list[str] = []
    for _ in range(12):
        writer = start_writer(tmp_path, "w", 100_000, threads=2, keys=False)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.25))
        writer.kill()
        acknowledged += [line for line in [first, *writer.stdout.read().splitlines(keepends=True)] if line.endswith("\n")]
        writer.wait()
        log.compact(chance.randrange(log.end[0]))
        check_acknowledged(log, "w", [])
    steady_lines = steady.communicate(timeout=60)[0].splitlines()
    check_acknowledged(log, "w", [line for line in acknowledged if line.strip()])
    check_acknowledged(log, "s", steady_lines)
    assert log.tail(0, entities=["s0"])["t"].to_pylist() == list(range(800))


def test_readers_see_every_row_once_while_segments_move(tmp_path: Path) -> None:
    log, stop, faults = EventLog(tmp_path, "f"), threading.Event(), []

    def read() -> None:
        own = EventLog(tmp_path, "f")
        while not stop.is_set():
            end = own.end[0]
            found = times(own)
            if found[:end] != list(range(end)) or own.end[0] < end:
                faults.append((end, found))

    def compact() -> None:
        while not stop.is_set():
            end = log.end[0]
            log.compact(end - 3)

    threads = [threading.Thread(target=read), threading.Thread(target=read), threading.Thread(target=compact)]
    log.append(rows(0))
    for thread in threads:
        thread.start()
    for t in range(1, 300):
        log.append(rows(t))
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert times(log) == list(range(300))


def test_a_reader_continues_when_its_files_are_compacted(tmp_path: Path) -> None:
    log = EventLog(tmp_path, "f")
    for t in range(6):
        # A different column each time, so that tables are not joined.
        log.append(rows(t, **{f"c{t}": 1}))
    reader = log.read()
    first = next(reader)["t"].to_pylist()
    log.compact(5)
    assert first + [t for table in reader for t in table["t"].to_pylist()] == list(range(6))


def test_a_reader_gets_an_error_when_its_rows_are_dropped(tmp_path: Path) -> None:
    log = EventLog(tmp_path, "f")
    for t in range(6):
        log.append(rows(t, **{f"c{t}": 1}))
    reader = log.read()
    next(reader)
    log.compact(3)
    log.compact(4)
    log.compact(5)
    log.drop_before(5)
    with pytest.raises(RowsDropped):
        list(reader)
