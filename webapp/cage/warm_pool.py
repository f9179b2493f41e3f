"""Caged processes that are started before they are needed: they have loaded their kind's
code, and wait for requests.

A request runs in a fork of such a process, which no other request has touched: its memory, damage
and unfinished work end with it. Loading the engine takes five seconds of processor time, a fork a
hundredth of one. A process's standard input is its lease: it ends when that closes, because the
requesting process has ended. A warm worker costs about 300 MB, so the first one is started when
someone begins to write a query, and unused ones are ended. At most this many work at the same time:
each may take gigabytes, and one caller with many requests must not use the whole machine.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from webapp.cage.confinement import ROOT, child_environment, gaps
from webapp.cage.slots import Slots

log = logging.getLogger(__name__)

IDLE_S = 600.0
MOST_WAITING = 2
"""The greatest number of waiting processes of a kind: this many concurrent
requests need no new process."""
LOADING_S = 60.0
"""How long a process may load its code, in addition to the time of a request."""
READY = b"ready\n"
"""A process that waits writes this."""
FAILED = b"\0"
"""No answer contains it. It comes before the exit status of a request that failed,
perhaps after part of an answer."""
FAULT = 70
"""Exit status of a program that ended with an exception other than lack of memory (`EX_SOFTWARE` of
sysexits.h)."""
ANSWER_BYTES = 60_000_000
"""A longer answer is invalid."""


class TookTooLong(RuntimeError):
    """The request was not answered in time; its process has been ended."""


@dataclass(frozen=True)
class CageRequest:
    """A request to the module `program`, which may take `memory` bytes of addresses and `seconds`;
    `data` goes along as it is.

    `read`: folders of files that it may read.
    """

    program: str
    request: Mapping[str, Any]
    seconds: float
    memory: int
    data: bytes = b""
    read: Sequence[str] = ()

    def message(self) -> bytes:
        """A line with all other fields, then `data`."""
        header = {"program": self.program, "request": self.request, "seconds": self.seconds, "memory": self.memory}
        return json.dumps({**header, "data": len(self.data), "read": list(self.read)}).encode() + b"\n" + self.data


@dataclass
class WarmPool:
    """Warm workers of a kind: waiting processes (see `child.py`). Thread-safe."""

    kind: str
    slots: Slots = field(default_factory=Slots)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _retirement: threading.Timer | None = None

    def prepare(self) -> None:
        """A request will probably come soon. Returns immediately; the processes are ended
        after IDLE_S without a call."""
        with self._lock:
            self._waiting = [process for process in self._waiting if process.poll() is None]
            if not self._waiting:
                self._waiting.append(start(self.kind))
            if self._retirement is not None:
                self._retirement.cancel()
            self._retirement = threading.Timer(IDLE_S, self.retire)
            self._retirement.daemon = True
            self._retirement.start()

    def retire(self) -> None:
        """Ends the processes that wait."""
        with self._lock:
            ended, self._waiting = self._waiting, []
            if self._retirement is not None:
                self._retirement.cancel()
        for process in ended:
            _end(process)

    def ask(self, work: CageRequest) -> tuple[int, bytes]:
        """The exit status and the answer of the program.

        Raises TookTooLong after its time; the time that a process started only now takes to load is
        not counted. Raises Busy when too many are at work, or too many for the user who asks.
        """
        with self.slots.slot():
            return self._asked(work)

    def _asked(self, work: CageRequest) -> tuple[int, bytes]:
        process = self._take() or start(self.kind)
        waits = False
        try:
            with _killed_after(LOADING_S, process):
                if _line(process) != READY:
                    return process.wait() or 1, b""
            with _killed_after(work.seconds, process):
                answer = _exchange(process, work.message())
                goes_on = answer.endswith(b"\n")
                answer, _, failure = answer.partition(FAILED)
                status = int(failure or 0) if goes_on else process.wait() or 1
            waits = goes_on and self._return(process)
        finally:
            if not waits:
                _end(process)
        self.prepare()
        return status, answer

    def _return(self, process: subprocess.Popen[bytes]) -> bool:
        """Keeps the process waiting; false if enough others wait."""
        with self._lock:
            if len(self._waiting) >= MOST_WAITING:
                return False
            self._waiting.append(process)
            return True

    def _take(self) -> subprocess.Popen[bytes] | None:
        """A waiting process: the one that worked last, because most of it is
        still in the machine's caches."""
        with self._lock:
            while self._waiting:
                process = self._waiting.pop()
                if process.poll() is None:
                    return process
                _end(process)
        return None


@cache
def _warn_of_gaps() -> None:
    """Logs once which restrictions this system does not support."""
    for gap in gaps():
        log.warning("Child processes keep %s: this system cannot take it from them (docs/decisions, the cage).", gap)


@contextmanager
def _killed_after(seconds: float, process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ends the process, and raises TookTooLong, when what is done inside takes longer."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(seconds, give_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        # A timer that has started must not end the process later, when it works on another request.
        timer.join()
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
        _kill(process)
    return answer


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline(ANSWER_BYTES)


def start(kind: str) -> subprocess.Popen[bytes]:
    """A new interpreter with an empty environment, in the project's folder."""
    _warn_of_gaps()
    return subprocess.Popen(
        [sys.executable, "-m", "webapp.cage.child", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_environment(),
        cwd=ROOT,
        start_new_session=True,
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The process with its forks, which cannot leave its group."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


ENGINE = WarmPool("engine")
"""For previews and checks of queries."""
PARSERS = WarmPool("parsers")
"""For readers of untrusted files."""
INSPECTIONS = WarmPool("inspections")
"""For the inspection of uploaded recordings."""
