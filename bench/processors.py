"""Which processes of a running system spend how much processor time: where a row's way costs what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import psutil

PARTS = {"daphne": "web", "run_job": "job", "publish": "publisher", "ingest": "ingest", "celery": "workers"}
"""Part of the system by a word of its command line."""


def spent(port: int) -> Counter[str]:
    """Seconds of processor time so far, by part, of the system whose web server listens at `port` on this machine; its servers included."""
    seconds: Counter[str] = Counter()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            part = _part(process, port)
            if part:
                times = process.cpu_times()
                seconds[part] += times.user + times.system
    return seconds


def _part(process: psutil.Process, port: int) -> str:
    """What the process belongs to; empty for others. Sessions of PostgreSQL end with what they have spent: long ones are what counts."""
    name = process.name()
    if name == "postgres":
        return "postgres"
    if process.environ().get("VEDETTE_PORT") != str(port):
        return ""
    if name in ("java", "valkey-server", "redis-server"):
        return "jvm" if name == "java" else "redis"
    words = process.cmdline()
    return next((part for word, part in PARTS.items() if word in words), "spark workers" if "pyspark.daemon" in words else "")


def a_million(before: Mapping[str, float], after: Mapping[str, float], rows: int) -> dict[str, float]:
    """Seconds of processor time for a million rows, by part, the dearest first."""
    each = {part: round((after[part] - before.get(part, 0.0)) / rows * 1e6, 2) for part in after}
    return dict(sorted(((part, seconds) for part, seconds in each.items() if seconds), key=lambda one: -one[1]))
