"""The processor time of each process of a running system, to find the cost of each step of a
row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress

import psutil

PARTS = {"daphne": "web", "run_job": "job", "publish": "publisher", "ingest": "ingest", "connect": "connectors", "celery": "workers"}
"""Part of the system by a word of its command line."""
SERVERS = {"java": "jvm", "valkey-server": "redis", "redis-server": "redis", "postgres": "postgres"}
"""And by its name."""


def spent(port: int) -> dict[str, float]:
    """Seconds of processor time so far, by part, of the system whose web server listens at `port`
    on this machine; its servers included."""
    seconds: dict[str, float] = defaultdict(float)
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            part = _part(process, port)
            if part:
                times = process.cpu_times()
                # Sessions of PostgreSQL come and go: those that ended count at the server.
                seconds[part] += times.user + times.system + times.children_user + times.children_system
    return seconds


def _part(process: psutil.Process, port: int) -> str:
    """What the process belongs to; empty for others."""
    name, words = process.name(), process.cmdline()
    own = process
    if name == "postgres" and "-D" not in words and (server := process.parent()) is not None:
        # A session writes what it does over its environment.
        own = server
    if own.environ().get("VEDETTE_PORT") != str(port):
        return ""
    if name in SERVERS:
        return SERVERS[name]
    return next((part for word, part in PARTS.items() if word in words), "spark workers" if "pyspark.daemon" in words else "")


def a_million(before: Mapping[str, float], after: Mapping[str, float], rows: int) -> dict[str, float]:
    """Seconds of processor time for a million rows, by part, the most expensive first."""
    each = {part: round((after[part] - before.get(part, 0.0)) / rows * 1e6, 2) for part in after}
    return dict(sorted(((part, seconds) for part, seconds in each.items() if seconds), key=lambda one: -one[1]))
