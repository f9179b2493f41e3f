"""Processes that are started before they are needed: one has loaded the engine, and waits for a request of somebody who tries a query.

Run as a program (`python -m webapp.queries.spare`) it reads one JSON request on standard input, writes one JSON answer and ends: what a request
allocates, breaks or never finishes ends with it. Only a request that says so leaves it waiting `again`: to load the engine takes many times as long
as what a page asks every few seconds. Its standard input is its lease: when that closes, because who asked is gone, so is it.
A spare costs about 150 MB, so the first one is started when somebody begins to write a query, and one that nobody used for a while is ended.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from queue import SimpleQueue
from typing import Any

IDLE_S = 120.0
LOADING_S = 60.0
"""How long a process may load the engine, beside the time that a request may take."""
READY = b"ready\n"
PROGRAMS = ("webapp.queries.preview", "webapp.queries.progress", "webapp.queries.sandbox")
"""Modules with a `run(request)` that a spare may be asked for."""
ENGINE = (
    "engine.runtime.evaluator", "engine.sources.eventlog", "engine.specification", "engine.border_monitoring.operator",
    "engine.constraint_queries.operator", "engine.motion_patterns.operator", "engine.motion_patterns.progress",
    "engine.event_calculus.operator", "engine.event_calculus.sandbox", "webapp.detections.facts",
)  # fmt: skip


class TookTooLong(RuntimeError):
    """The request was not answered in time; its process has been ended."""


class Spares:
    """At most one process that waits. Safe to be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: subprocess.Popen[bytes] | None = None
        self._retirement: threading.Timer | None = None

    def prepare(self) -> None:
        """Somebody will probably ask soon. Returns at once; the process is ended after IDLE_S without a call."""
        with self._lock:
            if self._waiting is None or self._waiting.poll() is not None:
                self._waiting = _start()
            if self._retirement is not None:
                self._retirement.cancel()
            self._retirement = threading.Timer(IDLE_S, self.retire)
            self._retirement.daemon = True
            self._retirement.start()

    def retire(self) -> None:
        """Ends the process that waits."""
        waiting = self._take()
        if waiting is not None:
            _end(waiting)

    def ask(self, program: str, request: dict[str, Any], *, seconds: float, memory: int, again: bool = False) -> tuple[int, bytes]:
        """The exit status and the answer of `program`, which may take `memory` bytes of addresses.

        `again`: the process then waits for the next request, unless another one waits by then; for what is asked often and keeps nothing.
        Raises TookTooLong after `seconds`; the time that a process started only now takes to load is not counted.
        """
        process = self._take() or _start()
        message = json.dumps({"program": program, "request": request, "seconds": seconds, "memory": memory, "again": again}).encode() + b"\n"
        waits = False
        try:
            assert process.stdin is not None and process.stdout is not None
            with _killed_after(LOADING_S, process):
                process.stdout.readline()
            with _killed_after(seconds, process):
                answer = _exchange(process, message)
                goes_on = again and answer.endswith(b"\n")
                status = 0 if goes_on else process.wait()
            waits = goes_on and self._return(process)
        finally:
            if not waits:
                _end(process)
        self.prepare()
        return status, answer

    def _return(self, process: subprocess.Popen[bytes]) -> bool:
        """Lets the process wait; false where another one does."""
        with self._lock:
            if self._waiting is not None and self._waiting.poll() is None:
                return False
            self._waiting = process
            return True

    def _take(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            process, self._waiting = self._waiting, None
        if process is not None and process.poll() is not None:
            _end(process)
            return None
        return process


@contextmanager
def _killed_after(seconds: float, process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ends the process, and raises TookTooLong, when what is done inside takes longer."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, give_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if late.is_set():
        raise TookTooLong


def _exchange(process: subprocess.Popen[bytes], message: bytes) -> bytes:
    """The line that the process answers; nothing, or a part of one, when it has ended."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(message)
        process.stdin.flush()
    except BrokenPipeError:
        return b""
    return process.stdout.readline()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "webapp.queries.spare"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


SPARES = Spares()


# -- the program ------------------------------------------------------------------------------------------------------------------


def main() -> None:
    """One answer for each request, within limits of the operating system; the first request that does not say `again` is the last."""
    for name in ENGINE:
        import_module(name)
    _warm_up()
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_hand_over, args=(requests,), daemon=True).start()
    again = True
    while again:
        _write(READY.decode())
        asked = json.loads(requests.get())
        again = asked.get("again", False)
        _limit(asked["seconds"], asked["memory"])
        if asked["program"] not in PROGRAMS:
            raise SystemExit(f"{asked['program']} is none of {', '.join(PROGRAMS)}")
        _write(json.dumps(import_module(asked["program"]).run(asked["request"])) + "\n")


def _hand_over(requests: SimpleQueue[str]) -> None:
    """Passes requests on, and ends the process when standard input closes, whatever it does."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _limit(seconds: float, memory: int) -> None:
    """Limits what the process may have altogether to `memory` bytes of addresses, and from now on to twice `seconds` of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime + 2 * seconds) + 1
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, cpu)):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def _warm_up() -> None:
    """Kernels are read from their cache at their first call: a row through the commonest families does it now."""
    import pyarrow as pa

    from engine.model.events import Stamper, row_schema
    from engine.model.feed import Crs, Feed, TimeUnit
    from engine.operator import RegisteredQuery
    from engine.runtime.evaluator import Evaluator
    from engine.specification import check
    from webapp.detections.facts import facts_of

    square = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
    own: list[dict[str, Any]] = [
        {"family": "border"},
        {"family": "transition", "within": 3, "types": ["passed", "returned", "stayed_in", "stayed_out"]},
    ]
    for crs in Crs:
        feed = Feed("warm", crs, TimeUnit.TICKS)
        documents = [{"version": 1, "region": region, **one} for one in own for region in (square, {"center": [1, 1], "radius": 1})]
        queries = [RegisteredQuery(str(i), 1, check(document, feed, {})) for i, document in enumerate(documents)]
        rows = [{"event": "position", "entity": "a", "t": t, "x": x, "y": 1.0} for t, x in enumerate((-1.0, 1.0, 1.5, 5.0, 1.0))]
        evaluator = Evaluator.start(feed, queries)
        facts_of(evaluator.process(Stamper().stamp(pa.Table.from_pylist(rows, schema=row_schema(feed)))).changes)
        facts_of(evaluator.finish().changes)


if __name__ == "__main__":
    main()
