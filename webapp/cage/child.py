"""The program of a caged process: `python -m webapp.cage.child KIND`. It loads its kind's code,
drops the permissions that it does not need, and answers requests.

It reads requests on standard input (a line of JSON, then the number of bytes given in it) and
writes one line of JSON for each. A kind that forks answers each request in a fork of itself, which
has no data of earlier requests, and writes FAILED and its exit status if the fork broke off. It
ends when standard input closes.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from engine.families import FAMILIES
from webapp.cage import kernel
from webapp.cage.confinement import confine
from webapp.cage.warm_pool import FAILED, FAULT, READY


@dataclass(frozen=True)
class Kind:
    """What a process loads in advance, which modules' `run(request, data)` may be called, and
    whether it forks for each request.

    A fork opens no file, unless its kind `reads` files that requests name. A kind that does not
    fork reads one recording, piece by piece. A module named by `warm` has a function `warm_up()`:
    first calls read files and compiled code that are not to be read later.
    """

    programs: Sequence[str]
    loads: Sequence[str]
    warm: str
    forks: bool = True
    reads: bool = False


_FORMATS = (
    "engine.sources.formats.delimited_text", "engine.sources.formats.json_text", "engine.sources.formats.nmea",
    "engine.sources.formats.typed", "engine.sources.formats.xml_tracks", "openpyxl", "pyproj",
)  # fmt: skip
KINDS = {
    "engine": Kind(
        programs=(
            "webapp.queries.preview", "webapp.queries.occupancy", "webapp.queries.progress", "webapp.queries.sandbox", "webapp.queries.verdicts",
        ),
        loads=(
            *sorted({f"{family.package}.operator" for family in FAMILIES.values()}),
            "engine.runtime.evaluator", "engine.runtime.derived", "engine.sources.eventlog", "engine.specification",
            "engine.sinks.answer_rows", "engine.motion_patterns.progress", "engine.occupancy.course", "engine.event_calculus.sandbox",
        ),
        warm="webapp.queries.engine_warmth",
        reads=True,
    ),
    "parsers": Kind(
        programs=("webapp.feeds.region_files", "webapp.alerts.shift_calendars"), loads=("icalendar", "recurring_ical_events"),
        warm="webapp.feeds.region_files",
    ),
    # Uploaded files may have any size: they are read in place, in pieces. Inspecting one takes a
    # fraction of the time of loading the code, and happens at each change of a form.
    "inspections": Kind(programs=("webapp.feeds.uploads.reader",), loads=_FORMATS, warm="webapp.feeds.uploads.reader", reads=True),
    "recordings": Kind(programs=("webapp.feeds.uploads.reader",), loads=_FORMATS, warm="webapp.feeds.uploads.reader", forks=False),
}  # fmt: skip
OWN_FILES = 64
"""Python files that a parsing child may have open."""
CRASHES = (signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS)
"""A fork that ends like this may have been an attempt to guess memory addresses: the
next one gets another layout."""
RELAYED_BYTES, ENDING_MS = 1 << 16, 10
_STDIN, _STDOUT = 0, 1


@dataclass(frozen=True)
class Request:
    """The work to be done, in the form of `CageRequest`."""

    header: dict[str, Any]
    data: bytes


def main(name: str) -> NoReturn:
    """One answer for each request, within limits of the operating system."""
    kind = KINDS[name]
    for module in kind.loads:
        import_module(module)
    import_module(kind.warm).warm_up()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Loaded objects are excluded from garbage collection, so that forks share their memory.
    gc.freeze()
    _leave(partial(_serve_by_forks if kind.forks else _serve, kind))


# -- one process for all pieces of a recording -----------------------------------------------------


def _serve(kind: Kind) -> None:
    _write(READY)
    request = _read()
    if request is None:
        return
    # The files that it may read are known only now; confinement applies to
    # threads started afterwards.
    confine(read=map(Path, request.header["read"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    threading.Thread(target=_wait_for_end_of_input, daemon=True).start()
    while request is not None:
        _answer(kind, request)
        _write(READY)
        request = _read()


def _wait_for_end_of_input() -> None:
    """Ends the process as soon as standard input closes."""
    hang_up = select.poll()
    hang_up.register(_STDIN, 0)
    hang_up.poll()
    os._exit(1)


# -- a fork for each request -----------------------------------------------------------------------


def _serve_by_forks(kind: Kind) -> None:
    """The process itself reads no request, opens no file of others, and alone writes to standard
    output, so a fork cannot affect another one."""
    confine(read=[Path("/")] if kind.reads else (), processes=True)
    kernel.refuse_attachment()
    parent = os.getpid()
    while True:
        _write(READY)
        if not _wait_for_input():
            return
        answers, answer = os.pipe()
        child = os.fork()
        if not child:
            os.close(answers)
            _leave(partial(_serve_in_fork, kind, answer, parent))
        os.close(answer)
        is_whole = _relay(answers)
        os.close(answers)
        status = _end_of(child)
        if -status in CRASHES or _waits_for_input():
            # The pending bytes are not a request: a request was not read to its end, or
            # something else wrote them.
            raise SystemExit(1)
        _write(b"\n" if status == 0 and is_whole else FAILED + f"{status or 1}\n".encode())


def _wait_for_input() -> bool:
    """False if standard input is closed instead."""
    waits = select.poll()
    waits.register(_STDIN, select.POLLIN)
    return bool(waits.poll()[0][1] & select.POLLIN)


def _waits_for_input() -> bool:
    waits = select.poll()
    waits.register(_STDIN, select.POLLIN)
    return bool(waits.poll(0))


def _relay(answers: int) -> bool:
    """Passes on a fork's output without the end of the line; returns whether it was exactly one
    line."""
    buffer, is_whole = bytearray(RELAYED_BYTES), False
    try:
        waits = select.poll()
        waits.register(answers, select.POLLIN)
        waits.register(_STDIN, 0)
        while True:
            if any(source == _STDIN for source, _ in waits.poll()):
                os._exit(1)
            count = os.readv(answers, [buffer])
            if not count:
                return is_whole
            end = buffer.find(b"\n", 0, count)
            if is_whole or 0 <= end < count - 1 or buffer.find(FAILED, 0, count) >= 0:
                return False
            is_whole = end >= 0
            piece = memoryview(buffer)[: count - is_whole]
            while piece:
                piece = piece[os.write(_STDOUT, piece) :]
    finally:
        # The forks to come see the memory of this process.
        buffer[:] = bytes(len(buffer))


def _end_of(child: int) -> int:
    """The exit status of a fork that has written its answer. Waits at most as long as the parent
    process waits for this one."""
    lease = select.poll()
    lease.register(_STDIN, 0)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if lease.poll(ENDING_MS):
            os._exit(1)


def _serve_in_fork(kind: Kind, answer: int, parent: int) -> None:
    kernel.die_with_parent()
    if os.getppid() != parent:
        raise SystemExit(1)
    request = _read()
    # From now on there is nothing to read, and the answer is this request's own.
    nothing, end = os.pipe()
    os.close(end)
    os.dup2(nothing, _STDIN)
    os.dup2(answer, _STDOUT)
    os.close(nothing)
    os.close(answer)
    if request is None:
        raise SystemExit(1)
    confine(read=map(Path, request.header["read"]) if kind.reads else ())
    if not kind.reads:
        # Where the kernel cannot restrict which files may be opened, no file or socket can be
        # opened; standard input and output stay open.
        files = OWN_FILES if kernel.restricts_files() else 0
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _answer(kind, request)


# -- both ------------------------------------------------------------------------------------------


def _read() -> Request | None:
    """The next request; null at the end of standard input."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return None
    header = json.loads(line)
    data = sys.stdin.buffer.read(header["data"])
    return Request(header, data) if len(data) == header["data"] else None


def _answer(kind: Kind, request: Request) -> None:
    if request.header["program"] not in kind.programs:
        raise SystemExit(f"{request.header['program']} is none of {', '.join(kind.programs)}")
    _limit(request.header["seconds"], request.header["memory"], for_good=kind.forks)
    answer = import_module(request.header["program"]).run(request.header["request"], request.data)
    _write(json.dumps(answer).encode() + b"\n")


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _limit(seconds: float, memory: int, *, for_good: bool) -> None:
    """Limits the process to `memory` bytes of address space, and from now on to twice `seconds` of
    processor time.

    `for_good`: it cannot raise them again.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime + 2 * seconds) + 1
    for kind, most, beyond in ((resource.RLIMIT_AS, memory, 0), (resource.RLIMIT_CPU, cpu, 1)):
        resource.setrlimit(kind, (most, most + beyond if for_good else resource.getrlimit(kind)[1]))


def _leave(work: Callable[[], None]) -> NoReturn:
    """Ends the process with the result of `work`, even if other threads still run: one of them may
    be waiting for standard input."""
    status = 1
    try:
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except Exception as error:
        status = 1 if isinstance(error, MemoryError) else FAULT
        # To a file nothing can be written any more.
        with suppress(OSError):
            traceback.print_exc()
    finally:
        # A library's warning must not cost the answer.
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
