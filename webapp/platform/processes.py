"""A small process manager: starts named processes, keeps their output, restarts crashed ones,
and leaves no process behind.

One thread and one selector loop. Every process gets a separate session, so Ctrl-C in the terminal
reaches only the manager, which then stops the processes in the reverse order of their start. The
manager adopts orphaned grandchildren (PR_SET_CHILD_SUBREAPER): a Spark job whose Celery worker is
gone is reaped here, and ended when the manager ends.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Literal

import psutil

from webapp.platform.child import prctl

PR_SET_CHILD_SUBREAPER = 36
CHILD = Path(__file__).with_name("child.py")
LOG_BYTES = 10_000_000
"""A log file that has grown beyond this is renamed to `.1` at the next start of its process."""
STABLE_SECONDS = 60.0
"""A process that has run this long starts again without delay."""


def tied_to_parent(command: Sequence[str], *, signal_number: int = signal.SIGTERM, user: str | None = None, keep_search: bool = False) -> list[str]:
    """The command that runs `command` so that it gets `signal_number` when this process dies in any
    way.

    `user` and `keep_search` are those of `child.become`: for servers that refuse to run as root.
    """
    options = [*(["--user", user] if user else []), *(["--keep-search"] if keep_search else [])]
    return [sys.executable, "-S", "-E", str(CHILD), *options, str(os.getpid()), str(int(signal_number)), *command]


@dataclass(frozen=True)
class Process:
    """A command and how to treat it."""

    name: str
    command: tuple[str, ...]
    restart: Literal["always", "on-failure", "never"] = "always"
    stop_signal: int = signal.SIGTERM
    stop_seconds: float = 10.0
    user: str | None = None
    keep_search: bool = False
    before_start: Callable[[], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    ends_orphans: bool = False
    """Stopping it also ends the adopted grandchildren: for the worker, whose Spark
    jobs otherwise outlive it."""


class StartError(RuntimeError):
    """A process ended, or did not get ready, while others waited for it."""


class _Running:
    """One process: its current incarnation, its log, and when it may start again."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process = process
        self.log_path = log
        self.popen: subprocess.Popen[bytes] | None = None
        self.output: BinaryIO | None = None
        self.log: BinaryIO | None = None
        self.begin = 0
        self.pending = b""
        self.started = 0.0
        self.failures = 0
        self.start_at: float | None = None
        self.exit_status: int | None = None

    @property
    def alive(self) -> bool:
        return self.popen is not None and self.popen.returncode is None

    def written(self) -> str:
        """The output of this incarnation; earlier ones, and earlier runs, are before it in the
        log."""
        with self.log_path.open("rb") as file:
            file.seek(self.begin)
            return file.read().decode(errors="replace")


def _last(entry: _Running, lines: int = 20) -> str:
    return "\n".join(entry.written().splitlines()[-lines:])


class ProcessManager:
    """Runs processes until asked to stop. Use as a context manager: leaving it stops everything."""

    def __init__(self, log_folder: Path, *, environment: Mapping[str, str] | None = None, echo: bool = False) -> None:
        """`environment` is added to this process's own; with `echo` every line
        also goes to standard output."""
        self.log_folder = log_folder
        self.environment = dict(environment or {})
        self.echo = echo
        self.stopping = False
        self._interrupts = 0
        self._entries: dict[str, _Running] = {}
        self._selector = selectors.DefaultSelector()
        self._old_handlers: dict[int, object] = {}
        log_folder.mkdir(parents=True, exist_ok=True)
        # Logs contain names and addresses; the folder may be of an earlier release.
        log_folder.chmod(0o700)

    # -- life --------------------------------------------------------------------------------------

    def __enter__(self) -> "ProcessManager":
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._old_handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop_all()
        finally:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)  # type: ignore[arg-type]
            prctl(PR_SET_CHILD_SUBREAPER, 0)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True
        self._interrupts += 1

    # -- starting ----------------------------------------------------------------------------------

    def start(self, process: Process) -> None:
        """Starts `process` and keeps it running according to its `restart`. Raises ValueError for a
        name in use."""
        if process.name in self._entries:
            raise ValueError(f"a process named {process.name} is running already")
        entry = _Running(process, self.log_folder / f"{process.name}.log")
        self._entries[process.name] = entry
        self._spawn(entry)

    def run(self, name: str, command: Sequence[str], *, timeout: float = 300.0) -> str:
        """Runs `command` to its end while the others continue; returns its output. Raises
        StartError with its last lines when it fails or takes longer."""
        self.start(Process(name, tuple(command), restart="never"))
        entry = self._entries[name]
        deadline = time.monotonic() + timeout
        while entry.alive and time.monotonic() < deadline and not self.stopping:
            self.pump(0.1)
        finished = not entry.alive
        if not finished:
            self._end(entry)
        del self._entries[name]
        if entry.exit_status != 0 or not finished:
            raise StartError(f"{name} {'ended with status ' + str(entry.exit_status) if finished else 'was stopped'}:\n{_last(entry)}")
        return entry.written()

    def wait_ready(self, name: str, ready: Callable[[], bool], *, timeout: float) -> None:
        """Waits until `ready()` is true. Raises StartError when the process fails, the time is
        over, or a stop was requested."""
        entry = self._entries[name]
        deadline = time.monotonic() + timeout
        while not ready():
            if self.stopping or time.monotonic() > deadline or (not entry.alive and entry.start_at is None):
                late = f" within {timeout:.0f} s" if time.monotonic() > deadline else ""
                raise StartError(f"{name} did not get ready{late}. Its last lines:\n{_last(entry)}")
            self.pump(0.1)

    def serve(self) -> None:
        """Keeps everything running until SIGINT, SIGTERM or SIGHUP."""
        while not self.stopping:
            self.pump(0.5)

    @property
    def interrupted(self) -> bool:
        """Whether a signal asked for the stop."""
        return self._interrupts > 0

    def pid(self, name: str) -> int | None:
        """The process id of the current incarnation, None if it does not run."""
        popen = self._entries[name].popen
        return popen.pid if popen is not None and popen.returncode is None else None

    def _spawn(self, entry: _Running) -> None:
        process = entry.process
        entry.start_at = None
        if process.before_start is not None:
            process.before_start()
        if entry.log is None:
            if entry.log_path.exists() and entry.log_path.stat().st_size > LOG_BYTES:
                entry.log_path.replace(entry.log_path.with_suffix(".log.1"))
            entry.log = entry.log_path.open("ab")
            entry.begin = entry.log.tell()
        command = tied_to_parent(process.command, signal_number=process.stop_signal, user=process.user, keep_search=process.keep_search)
        entry.popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self.environment, **process.environment},
            start_new_session=True,
        )
        entry.output = entry.popen.stdout  # type: ignore[assignment]
        assert entry.output is not None
        os.set_blocking(entry.output.fileno(), False)
        self._selector.register(entry.output, selectors.EVENT_READ, entry)
        entry.started = time.monotonic()
        entry.exit_status = None

    # -- the loop ----------------------------------------------------------------------------------

    def pump(self, seconds: float) -> None:
        """Passes output on for at most `seconds`, reaps ended processes,
        restarts those that are due."""
        if self._selector.get_map():
            for key, _ in self._selector.select(seconds):
                self._read(key.data)
        else:
            time.sleep(seconds)
        self._reap()
        now = time.monotonic()
        for entry in list(self._entries.values()):
            if not self.stopping and entry.start_at is not None and entry.start_at <= now:
                self._spawn(entry)

    def _read(self, entry: _Running) -> None:
        assert entry.output is not None and entry.log is not None
        # None: nothing there yet, the pipe does not block.
        data: bytes | None = entry.output.read(65536)
        if data is None:
            return
        if data == b"":
            self._close_output(entry)
            return
        *lines, entry.pending = (entry.pending + data).split(b"\n")
        for line in lines:
            self._write_line(entry, line)
        entry.log.flush()

    def _write_line(self, entry: _Running, line: bytes) -> None:
        assert entry.log is not None
        entry.log.write(line + b"\n")
        if self.echo:
            sys.stdout.write(f"{entry.process.name:>10} | {line.decode(errors='replace')}\n")
            sys.stdout.flush()

    def _close_output(self, entry: _Running) -> None:
        if entry.output is None:
            return
        if entry.pending:
            self._write_line(entry, entry.pending)
            entry.pending = b""
        self._selector.unregister(entry.output)
        entry.output.close()
        entry.output = None
        if entry.log is not None:
            entry.log.close()
            entry.log = None

    def _reap(self) -> None:
        """Collects every ended child, the adopted ones too, and plans restarts."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            entry = next((e for e in self._entries.values() if e.popen is not None and e.popen.pid == pid), None)
            if entry is not None:
                self._ended(entry, os.waitstatus_to_exitcode(status))

    def _ended(self, entry: _Running, exit_status: int) -> None:
        assert entry.popen is not None
        entry.popen.returncode = entry.exit_status = exit_status
        if entry.output is not None:
            self._read(entry)
        # A grandchild may hold the pipe open; a reader would wait for it.
        self._close_output(entry)
        restarts = entry.process.restart == "always" or (entry.process.restart == "on-failure" and exit_status != 0)
        if self.stopping or not restarts:
            return
        if time.monotonic() - entry.started > STABLE_SECONDS:
            entry.failures = 0
        delay = min(30.0, 0.5 * 2.0**entry.failures)
        entry.failures += 1
        entry.start_at = time.monotonic() + delay
        print(f"{entry.process.name} ended with status {exit_status}; starts again in {delay:g} s. Its last lines:", file=sys.stderr)
        print(_last(entry, 10), file=sys.stderr, flush=True)

    # -- stopping ----------------------------------------------------------------------------------

    def stop_all(self) -> None:
        """Stops the processes in the reverse order of their start, and all their
        leftovers; may be called twice."""
        self.stopping = True
        for name in reversed(list(self._entries)):
            entry = self._entries[name]
            self._end(entry)
            if entry.process.ends_orphans:
                # Now, because they still need the servers that were started before their parent.
                self._end_adopted()
            del self._entries[name]
        self._end_adopted()

    def stop(self, name: str) -> None:
        """Stops one process and forgets it; the others continue."""
        self._end(self._entries[name])
        self._entries.pop(name)

    def _end(self, entry: _Running) -> None:
        entry.start_at = None
        if entry.alive:
            assert entry.popen is not None
            group = entry.popen.pid
            # Only the root process gets the signal: a JVM that gets the signal with its Python
            # driver ends first and turns a clean stop into errors.
            _signal(entry.popen.pid, entry.process.stop_signal)
            self._pump_until(lambda: not entry.alive, entry.process.stop_seconds)
            self._kill_group(group)
            self._pump_until(lambda: not entry.alive, 5.0)
        elif entry.popen is not None:
            self._kill_group(entry.popen.pid)
        self._close_output(entry)

    def _pump_until(self, done: Callable[[], bool], seconds: float) -> None:
        """Waits while passing output on; a second Ctrl-C ends the waiting. The entry being
        stopped is never started again."""
        deadline = time.monotonic() + seconds
        before, self.stopping = self.stopping, True
        while not done() and time.monotonic() < deadline and self._interrupts < 2:
            self.pump(0.05)
        self.stopping = before

    def _kill_group(self, group: int) -> None:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def _adopted(self) -> list[psutil.Process]:
        managed = {entry.popen.pid for entry in self._entries.values() if entry.popen is not None}
        return [child for child in psutil.Process().children() if child.pid not in managed and child.status() != psutil.STATUS_ZOMBIE]

    def _end_adopted(self) -> None:
        """Ends the grandchildren that lost their parent: TERM to each root, KILL for whatever is
        left of its tree after ten seconds."""
        orphans = self._adopted()
        if not orphans:
            return
        trees = [tree for orphan in orphans for tree in (orphan, *_descendants(orphan))]
        for orphan in orphans:
            _signal(orphan.pid, signal.SIGTERM)
        self._pump_until(lambda: not any(_lives(process) for process in trees), 10.0)
        for process in trees:
            if _lives(process):
                _signal(process.pid, signal.SIGKILL)
        self._pump_until(lambda: not self._adopted(), 5.0)


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
