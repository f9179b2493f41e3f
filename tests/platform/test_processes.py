"""The process manager: keeps processes running, keeps their output, and leaves no process behind,
however it ends.

Each case runs a manager in a separate interpreter, because a manager adopts and reaps
every orphan of its process.
"""

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.platform.test_postgres import wait_until

pytestmark = pytest.mark.services

PRELUDE = """
import sys, os, signal
from pathlib import Path
from webapp.platform.processes import Process, ProcessManager, StartError
LOGS = Path(sys.argv[1])
def shell(name, text, **options):
    return Process(name, ("/bin/sh", "-c", text), **options)
"""


@contextmanager
def manager(folder: Path, program: str) -> Iterator[subprocess.Popen[str]]:
    """An interpreter running `program` after PRELUDE; killed at the end if it is still alive."""
    code = PRELUDE + textwrap.dedent(program)
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def number_in(path: Path) -> int:
    """The first number that a process writes to its log, once it is there."""
    assert wait_until(lambda: path.exists() and re.search(r"^\d+$", path.read_text(), re.MULTILINE) is not None)
    found = re.search(r"^\d+$", path.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[0])


def gone(pid: int) -> bool:
    """Whether no live process has this id."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


NEST = 'sh -c "echo \\$\\$; exec sleep 300" & wait'


def test_a_signal_stops_children_and_grandchildren(tmp_path: Path) -> None:
    program = f"""
        with ProcessManager(LOGS) as manager:
            manager.start(shell("nest", {NEST!r}))
            manager.serve()
    """
    with manager(tmp_path, program) as started:
        grandchild = number_in(tmp_path / "nest.log")
        started.send_signal(signal.SIGTERM)
        assert started.wait(15) == 0
    assert gone(grandchild)


def test_a_process_that_ignores_its_stop_signal_is_killed(tmp_path: Path) -> None:
    program = """
        with ProcessManager(LOGS) as manager:
            manager.start(shell("deaf", "trap '' TERM; echo $$; while :; do sleep 0.2; done", stop_seconds=0.5))
            manager.serve()
    """
    with manager(tmp_path, program) as started:
        deaf = number_in(tmp_path / "deaf.log")
        started.send_signal(signal.SIGINT)
        assert started.wait(15) == 0
    assert gone(deaf)


def test_kill_9_of_the_manager_ends_its_processes(tmp_path: Path) -> None:
    program = """
        with ProcessManager(LOGS) as manager:
            manager.start(Process("plain", (sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(300)")))
            manager.serve()
    """
    with manager(tmp_path, program) as started:
        child = number_in(tmp_path / "plain.log")
        started.kill()
        started.wait(5)
    assert wait_until(lambda: gone(child))


def test_a_grandchild_in_another_session_ends_with_its_worker(tmp_path: Path) -> None:
    """A Spark job is started by the worker in its own process group and
    outlives it: the manager ends it."""
    program = """
        job = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
        worker = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {job!r}], start_new_session=True); time.sleep(300)"
        with ProcessManager(LOGS) as manager:
            manager.start(Process("worker", (sys.executable, "-c", worker), ends_orphans=True))
            manager.serve()
    """
    with manager(tmp_path, program) as started:
        job = number_in(tmp_path / "worker.log")
        assert os.getpgid(job) == job
        started.send_signal(signal.SIGTERM)
        assert started.wait(20) == 0
    ended = gone(job)
    if not ended:
        os.kill(job, signal.SIGKILL)
    assert ended


def test_a_crashed_process_starts_again_and_an_ended_player_does_not(tmp_path: Path) -> None:
    program = """
        with ProcessManager(LOGS) as manager:
            manager.start(shell("crashing", "echo start; exit 3"))
            manager.start(shell("player", "echo done; exit 0", restart="on-failure"))
            import time
            until = time.monotonic() + 4
            while time.monotonic() < until:
                manager.pump(0.1)
    """
    with manager(tmp_path, program) as started:
        assert started.wait(20) == 0
        assert started.stderr is not None
        output = started.stderr.read()
    # At 0, 0.5, 1.5 and 3.5 seconds: the delay doubles.
    assert 3 <= (tmp_path / "crashing.log").read_text().count("start") <= 4
    assert "crashing ended with status 3; starts again in 0.5 s" in output
    assert "starts again in 1 s" in output
    assert (tmp_path / "player.log").read_text() == "done\n"


def test_output_is_kept_whole_and_shown_with_the_name(tmp_path: Path) -> None:
    program = """
        with ProcessManager(LOGS, echo=True) as manager:
            manager.run("talker", ["/bin/sh", "-c", "seq 1 20000; printf 'no newline'"])
    """
    with manager(tmp_path, program) as started:
        output, _ = started.communicate(timeout=20)
    wanted = [*map(str, range(1, 20001)), "no newline"]
    assert (tmp_path / "talker.log").read_text().splitlines() == wanted
    assert output.splitlines() == [f"    talker | {line}" for line in wanted]


def test_a_failed_preparation_shows_its_output_and_stops_the_others(tmp_path: Path) -> None:
    program = """
        try:
            with ProcessManager(LOGS) as manager:
                manager.start(shell("server", "echo $$; exec sleep 300"))
                manager.wait_ready("server", lambda: (LOGS / "server.log").read_text() != "", timeout=10)
                manager.run("migrate", ["/bin/sh", "-c", "echo no such table; exit 1"])
        except StartError as error:
            print(error)
    """
    (tmp_path / "migrate.log").write_text("of an earlier run\n")
    with manager(tmp_path, program) as started:
        output, _ = started.communicate(timeout=20)
    assert "migrate ended with status 1" in output
    assert "of an earlier run" not in output
    assert "no such table" in output
    assert gone(number_in(tmp_path / "server.log"))
