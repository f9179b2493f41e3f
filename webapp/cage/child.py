"""The program of a caged process: `python -m webapp.cage.child KIND`. It loads its kind's code, gives up what it does not need, and answers requests.

It reads a request on standard input (a line of JSON, then as many bytes as that says) and writes one line of JSON. The first request that does
not say `again` is the last. A kind that forks answers each request in a fork of itself, which knows nothing of requests before.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn

from webapp.cage import kernel
from webapp.cage.confinement import confine, kernel_caches
from webapp.cage.warm_pool import READY


@dataclass(frozen=True)
class Kind:
    """What a process loads before it is asked, which modules' `run(request, data)` it may be asked for, and whether it forks for each request.

    A fork opens no file at all, unless its kind `reads` files that requests name.
    A module named by `warm` has a function `warm_up()`: first calls read files and compiled code that are not to be read later.
    A child that `writes` keeps kernels that it compiled.
    """

    programs: Sequence[str]
    loads: Sequence[str]
    warm: str
    forks: bool = False
    reads: bool = False
    writes: bool = False


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
            "engine.runtime.evaluator", "engine.sources.eventlog", "engine.specification", "engine.border_monitoring.operator",
            "engine.constraint_queries.operator", "engine.motion_patterns.operator", "engine.motion_patterns.progress",
            "engine.occupancy.course", "engine.encounter.operator", "engine.arrival.operator",
            "engine.event_calculus.operator", "engine.event_calculus.sandbox", "engine.sinks.facts",
        ),
        warm="webapp.queries.engine_warmth",
        writes=True,
    ),
    "parsers": Kind(
        programs=("webapp.feeds.region_files", "webapp.alerts.shift_calendars"), loads=("icalendar", "recurring_ical_events"),
        warm="webapp.feeds.region_files", forks=True,
    ),
    # Uploaded files are as large as they like: they are read from where they lie, piece by piece. To look into one takes a fraction of what loading
    # the code takes, and is asked for at each change of a form.
    "inspections": Kind(programs=("webapp.feeds.uploads.reader",), loads=_FORMATS, warm="webapp.feeds.uploads.reader", forks=True, reads=True),
    "recordings": Kind(programs=("webapp.feeds.uploads.reader",), loads=_FORMATS, warm="webapp.feeds.uploads.reader"),
}  # fmt: skip
OWN_FILES = 64
"""Files of its own code that a child which parses may have open."""
WRITTEN_BYTES = 64_000_000
"""The greatest file that a child of the engine may write: a compiled kernel."""


@dataclass(frozen=True)
class Request:
    """What is to be done, as `Work` says it."""

    header: dict[str, Any]
    data: bytes

    @property
    def again(self) -> bool:
        return bool(self.header["again"])


def main(name: str) -> NoReturn:
    """One answer for each request, within limits of the operating system."""
    kind = KINDS[name]
    for module in kind.loads:
        import_module(module)
    import_module(kind.warm).warm_up()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _leave(partial(_serve_by_forks if kind.forks else _serve, kind))


# -- children that read files named in their request ---------------------------------------------------------------------------------


def _serve(kind: Kind) -> None:
    _write(READY)
    request = _read()
    if request is None:
        return
    # Which files it may read is known only now; walls hold for threads that are started behind them.
    confine(read=map(Path, request.header["read"]), write=kernel_caches() if kind.writes else ())
    most = WRITTEN_BYTES if kind.writes else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    requests: SimpleQueue[Request] = SimpleQueue()
    threading.Thread(target=_hand_over, args=(requests,), daemon=True).start()
    _answer(kind, request)
    while request.again:
        _write(READY)
        request = requests.get()
        _answer(kind, request)


def _hand_over(requests: SimpleQueue[Request]) -> None:
    """Passes requests on, and ends the process when standard input closes, whatever it does."""
    while (request := _read()) is not None:
        requests.put(request)
    os._exit(0)


# -- children that parse ------------------------------------------------------------------------------------------------------------


def _serve_by_forks(kind: Kind) -> None:
    """The process itself never looks at what it is sent, and opens no file of others; it ends like the fork that did."""
    confine(read=[Path("/")] if kind.reads else (), processes=True)
    while True:
        _write(READY)
        request = _read()
        if request is None:
            return
        child = os.fork()
        if not child:
            _leave(partial(_parse, kind, request))
        _, status = os.waitpid(child, 0)
        if status or not request.again:
            raise SystemExit(os.waitstatus_to_exitcode(status) & 0xFF)


def _parse(kind: Kind, request: Request) -> None:
    kernel.die_with_parent()
    if kind.reads:
        confine(read=map(Path, request.header["read"]))
    else:
        kernel.refuse_calls(processes=False)
        # Where the kernel does not say which files may be opened, none can be, and no socket: what was open is standard input and output.
        files = OWN_FILES if kernel.restricts_files() else 0
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _answer(kind, request)


# -- both -----------------------------------------------------------------------------------------------------------------------------


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
    _limit(request.header["seconds"], request.header["memory"])
    answer = import_module(request.header["program"]).run(request.header["request"], request.data)
    _write(json.dumps(answer).encode() + b"\n")


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _limit(seconds: float, memory: int) -> None:
    """Limits what the process may have altogether to `memory` bytes of addresses, and from now on to twice `seconds` of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime + 2 * seconds) + 1
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, cpu)):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def _leave(work: Callable[[], None]) -> NoReturn:
    """Ends the process with what comes of `work`, whatever other threads do: one of them may be waiting for standard input."""
    status = 1
    try:
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
