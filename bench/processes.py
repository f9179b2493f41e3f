"""The processes of a running system, found by the port of its web server: their cost
is measured from outside."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

COMMANDS = {"daphne": "web", "ingest": "ingest", "connect": "connectors", "run_job": "job"}


def processes_of(port: int) -> dict[str, psutil.Process]:
    """By name; those that a process started for its work belong to it."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            name = next((name for word, name in COMMANDS.items() if word in words), None)
            if name is not None and process.environ().get("VEDETTE_PORT") == str(port):
                found[name] = process
    return found


def with_children(process: psutil.Process) -> list[psutil.Process]:
    """The process and all its running descendants."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def own_bytes(processes: Iterable[psutil.Process]) -> int:
    """Memory that is theirs alone to free: anonymous pages, and shared memory. Pages of files that
    they read are the kernel's cache."""
    total = 0
    for process in processes:
        with suppress(OSError, psutil.Error):
            lines = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
            total += sum(1024 * int(lines[name].split()[0]) for name in ("RssAnon", "RssShmem") if name in lines)
    return total


def resident_bytes(processes: Iterable[psutil.Process]) -> int:
    """All of their memory that is resident: also pages of files that they have mapped."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
