"""Caged processes that are started before they are needed: one of each kind has loaded its code, and waits for a request.

A request runs in a process that someone else's request has not touched: what it allocates, breaks or never finishes ends with it. Only a
request that says so leaves its process waiting `again`: to load the engine takes many times as long as what a page asks every few seconds.
A process's standard input is its lease: when that closes, because who asked is gone, so is it.
A warm worker costs about 150 MB, so the first one is started when someone begins to write a query, and one that nobody used for a while is ended.
So many work at once, and no more: each may take gigabytes, and who asks for many at a time is not to take the whole machine.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from webapp.cage.confinement import ROOT, child_environment, gaps
from webapp.cage.places import Places

log = logging.getLogger(__name__)

IDLE_S = 120.0
LOADING_S = 60.0
"""How long a process may load its code, beside the time that a request may take."""
READY = b"ready\n"
"""A process that waits writes this."""
ANSWER_BYTES = 60_000_000
"""A longer answer is none."""


class TookTooLong(RuntimeError):
    """The request was not answered in time; its process has been ended."""


@dataclass(frozen=True)
class Work:
    """A request to the module `program`, which may take `memory` bytes of addresses and `seconds`; `data` goes along as it is.

    `read`: folders of files that it may read. `again`: the process then waits for the next request, unless another one waits by then; for what
    is asked often and keeps nothing.
    """

    program: str
    request: Mapping[str, Any]
    seconds: float
    memory: int
    data: bytes = b""
    read: Sequence[str] = ()
    again: bool = False

    def message(self) -> bytes:
        """A line that says everything else, then `data`."""
        header = {"program": self.program, "request": self.request, "seconds": self.seconds, "memory": self.memory, "again": self.again}
        return json.dumps({**header, "data": len(self.data), "read": list(self.read)}).encode() + b"\n" + self.data


@dataclass
class _Child:
    """A process and the files that it may read; null while it has had no request."""

    process: subprocess.Popen[bytes]
    read: Sequence[str] | None = None


@dataclass
class WarmPool:
    """At most one warm worker of a kind: a process (see `child.py`) that waits. Safe to be used by several threads.

    `forks`: requests run in forks of it, and it gives up no files itself.
    """

    kind: str
    forks: bool = False
    places: Places = field(default_factory=Places)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: _Child | None = None
    _retirement: threading.Timer | None = None

    def prepare(self) -> None:
        """Someone will probably ask soon. Returns at once; the process is ended after IDLE_S without a call."""
        with self._lock:
            if self._waiting is None or self._waiting.process.poll() is not None:
                self._waiting = _Child(start(self.kind))
            if self._retirement is not None:
                self._retirement.cancel()
            self._retirement = threading.Timer(IDLE_S, self.retire)
            self._retirement.daemon = True
            self._retirement.start()

    def retire(self) -> None:
        """Ends the process that waits."""
        with self._lock:
            child, self._waiting = self._waiting, None
        if child is not None:
            _end(child.process)

    def ask(self, work: Work) -> tuple[int, bytes]:
        """The exit status and the answer of the program.

        Raises TookTooLong after its time; the time that a process started only now takes to load is not counted.
        Raises Busy when too many are at work, or too many for the user who asks.
        """
        with self.places.place():
            return self._asked(work)

    def _asked(self, work: Work) -> tuple[int, bytes]:
        child = self._take(work.read) or _Child(start(self.kind))
        process = child.process
        waits = False
        try:
            with _killed_after(LOADING_S, process):
                _line(process)
            with _killed_after(work.seconds, process):
                answer = _exchange(process, work.message())
                goes_on = work.again and answer.endswith(b"\n")
                status = 0 if goes_on else process.wait()
            child.read = None if self.forks else list(work.read)
            waits = goes_on and self._return(child)
        finally:
            if not waits:
                _end(process)
        self.prepare()
        return status, answer

    def _return(self, child: _Child) -> bool:
        """Lets the process wait; false where another one does."""
        with self._lock:
            if self._waiting is not None and self._waiting.process.poll() is None:
                return False
            self._waiting = child
            return True

    def _take(self, read: Sequence[str]) -> _Child | None:
        """The process that waits, unless it is gone or has given up files that are needed now."""
        with self._lock:
            child, self._waiting = self._waiting, None
        if child is not None and (child.process.poll() is not None or child.read not in (None, list(read))):
            _end(child.process)
            return None
        return child


@cache
def _warn_of_gaps() -> None:
    """Says once, in the server's log, what this system cannot take from a child."""
    for gap in gaps():
        log.warning("Child processes keep %s: this system cannot take it from them (docs/decisions, the cage).", gap)


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
    assert process.stdin is not None
    try:
        process.stdin.write(message)
        process.stdin.flush()
    except BrokenPipeError:
        return b""
    answer = _line(process)
    if len(answer) == ANSWER_BYTES and not answer.endswith(b"\n"):
        process.kill()
    return answer


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline(ANSWER_BYTES)


def start(kind: str) -> subprocess.Popen[bytes]:
    """A new interpreter with an environment of its own, in the project's folder."""
    _warn_of_gaps()
    return subprocess.Popen(
        [sys.executable, "-m", "webapp.cage.child", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment(), cwd=ROOT
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


ENGINE = WarmPool("engine")
"""For what tries and checks queries."""
PARSERS = WarmPool("parsers", forks=True)
"""For what reads files of unknown origin."""
INSPECTIONS = WarmPool("inspections", forks=True)
"""For what looks into uploaded recordings."""
