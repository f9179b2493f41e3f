"""Processes of jobs: which ones belong to a job, how a job is started, and how
all its processes are ended.

Every process of a job carries the token of its start in its environment, whatever its group or
session (Spark's Python workers make their own group), so none can be overlooked.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from webapp.platform.folders import ROOT, var_folder

JOB, TOKEN = "VEDETTE_JOB", "VEDETTE_JOB_TOKEN"
"""Environment variables of every process of a job: its name, and the token of its start."""
LOG_BYTES = 10_000_000
NORMAL_RECORD = re.compile(r"\S+ (DEBUG|INFO) ")
HELD_BACK = (signal.SIGTERM, signal.SIGINT)
"""Signals that are blocked until the started process can handle them."""


@dataclass(frozen=True)
class JobProcess:
    """A running process of a job. `var` is the installation it belongs to: several may share a
    machine."""

    job: str
    token: str
    process: psutil.Process

    @property
    def pid(self) -> int:
        return int(self.process.pid)


def hostname() -> str:
    return socket.gethostname()


def job_processes() -> list[JobProcess]:
    """All running processes of jobs of this installation (the same `var` folder) on this
    machine."""
    var = str(var_folder())
    processes = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if environment.get("VEDETTE_VAR") == var and environment.get(TOKEN) and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(JobProcess(environment.get(JOB, ""), environment[TOKEN], process))
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError):
            continue
    return processes


def job_command(name: str, epoch: int) -> list[str]:
    """The command of the start `epoch` of a job."""
    return [sys.executable, str(ROOT / "manage.py"), "run_job", name, "--epoch", str(epoch)]


def start_job(name: str, epoch: int, token: str, environment: Mapping[str, str]) -> int:
    """Starts `run_job` in a new interpreter and session, holding no file of this process; its pid.

    It outlives the process that started it: nothing ties it to its parent.
    """
    log_path = var_folder() / "log" / f"job-{name}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if log_path.exists() and log_path.stat().st_size > LOG_BYTES:
        log_path.replace(log_path.with_suffix(".log.1"))
    variables = {**os.environ, **environment, "VEDETTE_VAR": str(var_folder()), JOB: name, TOKEN: token, "PYTHONUNBUFFERED": "1"}
    # A new process inherits this thread's blocked signals.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    try:
        return _start(name, epoch, log_path, variables)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(name: str, epoch: int, log_path: Path, variables: Mapping[str, str]) -> int:
    with log_path.open("ab") as log:
        log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} INFO {__name__}: start number {epoch}\n".encode())
        log.flush()
        popen = subprocess.Popen(
            job_command(name, epoch),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=variables,
            cwd=ROOT,
            start_new_session=True,
            close_fds=True,
        )
    return popen.pid


def last_words(name: str) -> str:
    """The last line that the job printed since its start, unless it is a log record of normal work:
    a killed process leaves no reason."""
    path = Path(var_folder(), "log", f"job-{name}.log")
    try:
        lines = path.read_text(errors="replace")[-4000:].splitlines()
    except FileNotFoundError:
        return ""
    return lines[-1] if lines and not NORMAL_RECORD.match(lines[-1]) else ""


def ask_to_end(processes: Iterable[JobProcess], pid: int | None) -> None:
    """TERM to the root alone: a JVM that got it too would end first and turn
    a clean stop into errors."""
    for process in processes:
        if process.pid == pid:
            _signal(process.process, signal.SIGTERM)


def kill_token(token: str, *, timeout_s: float = 10.0) -> int:
    """Sends KILL to every process with this token until there is none; returns how many there were.
    Stopped processes (SIGSTOP) end too."""
    killed: set[int] = set()
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        alive = [process for process in job_processes() if process.token == token]
        if not alive:
            break
        for process in alive:
            killed.add(process.pid)
            _signal(process.process, signal.SIGKILL)
        time.sleep(0.05)
    return len(killed)


def _signal(process: psutil.Process, number: int) -> None:
    try:
        # psutil also compares the start time: a process that reuses the pid is not killed.
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
