"""Operations that a caged process cannot perform, tried from inside by a hostile program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from webapp.cage import confinement
from webapp.cage.warm_pool import FAILED, READY, CageRequest, TookTooLong, WarmPool, start

TRIES = """
import ctypes, os, resource, socket, subprocess, sys, threading, types
from webapp.cage import child
from webapp.queries import engine_warmth

def call(number, *arguments):
    if os.uname().machine != "x86_64":
        raise OSError("not tried here")
    done = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if done < 0:
        raise OSError(ctypes.get_errno())

def outcome_of(attempt):
    try:
        return str(attempt())
    except Exception as error:
        return f"refused: {type(error).__name__}"

def run(request, data):
    if request.get("allocate"):
        bytearray(request["allocate"])
    if request.get("whisper"):
        # It appends to its answer what the waiting process would write, and an answer to the next
        # request.
        os.write(1, b'{"mine": 1}\\n' + request["whisper"].encode())
        os._exit(0)
    if request.get("raise limits"):
        bounds = {name: resource.getrlimit(getattr(resource, name)) for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE")}
        return {"remembered": len(seen), "bounded": all(soft + 1 >= hard >= 0 for soft, hard in bounds.values())}
    if request.get("nothing whole"):
        os.write(1, b'{"a": 1' + bytes(1) + b'x}\\n')
        os._exit(0)
    if request.get("warn"):
        import logging
        logging.getLogger("a library").warning("something may be wrong")
        return {"warned": True}
    if request.get("crash"):
        ctypes.string_at(0)
    if request.get("linger"):
        os.write(1, b'{"mine": 1}\\n')
        os.close(1)
        next_request = os.read(0, 1 << 16)
        import time
        time.sleep(600 if not next_request else 0)
    if request.get("spin"):
        while True:
            pass
    kept, here = [], request["folder"]
    tries = {
        "environment": lambda: dict(os.environ),
        "its own folder": lambda: len(os.listdir(here)),
        "passwords of the system": lambda: open("/etc/passwd").read(),
        "the parent's environment": lambda: open(f"/proc/{os.getppid()}/environ").read(),
        "the parent's memory": lambda: open(f"/proc/{os.getppid()}/mem", "rb").read(1),
        "the project's var": lambda: os.listdir(request["var"]),
        "a new file": lambda: open(here + "/new", "w"),
        "the network": lambda: socket.create_connection(("127.0.0.1", 9)),
        "a pair of sockets": lambda: socket.socketpair(),
        "a program": lambda: subprocess.run(["/bin/true"]),
        "a process": lambda: os.fork() or os._exit(0),
        "another group of processes": lambda: os.setsid(),
        "the waiting process's input": lambda: open(f"/proc/{os.getppid()}/fd/0", "wb", buffering=0),
        "the waiting process's output": lambda: open(f"/proc/{os.getppid()}/fd/1", "wb", buffering=0),
        "a signal to a thread of the parent": lambda: call(234, os.getppid(), os.getppid(), 0),
        "limits of the parent": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (64, 64)),
        "to outlive the parent": lambda: call(157, 1, 0),
        "modes of its own file": lambda: os.chmod(here, 0o700),
        "times of its own file": lambda: os.utime(here),
        "to empty a file": lambda: os.open(here, os.O_RDONLY | os.O_TRUNC),
        "a signal to the parent": lambda: os.kill(os.getppid(), 0),
        "a thread": lambda: threading.Thread(target=kept.append, args=(1,)).start(),
    }
    return {name: outcome_of(attempt) for name, attempt in tries.items()} | {"remembered": len(seen)} | ({} if seen.append(1) else {})

seen = []
tries = types.ModuleType("tries")
tries.run, tries.warm_up = run, lambda: None
sys.modules["tries"] = tries
child.KINDS = {
    "engine": child.Kind(("tries",), (), "tries", reads=True),
    "parsers": child.Kind(("tries",), (), "tries"),
    "inspections": child.Kind(("tries",), (), "tries", reads=True),
    "recordings": child.Kind(("tries",), (), "tries", forks=False),
}
child.main(sys.argv[1])
"""
WALLED = not confinement.gaps()


def start_of(kind: str, errors: Any = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A child of this kind, running the hostile program."""
    return subprocess.Popen(
        [sys.executable, "-c", TRIES, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=confinement.child_environment(),
        cwd=confinement.ROOT,
        start_new_session=True,
    )


def ask(
    kind: str, *requests: dict[str, Any], seconds: float = 20, memory: int = 1 << 30, errors: Any = subprocess.DEVNULL
) -> tuple[list[dict[str, Any]], int]:
    """The answers of a child of this kind to consecutive requests, and the exit
    status of the last request."""
    process = start_of(kind, errors)
    assert process.stdin is not None and process.stdout is not None
    answers, status = [], 0
    with process, process.stdin:
        # Standard input stays open meanwhile: the child ends when it is closed.
        for one in requests:
            process.stdout.readline()
            process.stdin.write(CageRequest("tries", one, seconds, memory, read=[one["folder"]]).message())
            process.stdin.flush()
            answer, _, failure = process.stdout.readline().partition(FAILED)
            status = int(failure or 0) if answer or failure else process.wait()
            answers += [json.loads(answer)] if answer else []
    return answers, status


@pytest.fixture
def request_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("SECRET_KEY", "of the server")
    (tmp_path / "log").mkdir()
    (tmp_path / "var").mkdir()
    return {"folder": str(tmp_path / "log"), "var": str(tmp_path / "var")}


@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections"])
def test_a_warning_costs_no_answer_where_errors_go_to_a_file(kind: str, request_of: dict[str, Any], tmp_path: Path) -> None:
    with (tmp_path / "errors.log").open("ab") as errors:
        assert ask(kind, {**request_of, "warn": True}, errors=errors) == ([{"warned": True}], 0)


@pytest.mark.skipif(not WALLED, reason="this system has no Landlock or no seccomp")
@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections", "recordings"])
def test_a_child_reaches_only_its_input(kind: str, request_of: dict[str, Any]) -> None:
    (answer,), status = ask(kind, request_of)
    assert status == 0
    assert "SECRET" not in answer.pop("environment") and answer.pop("remembered") == 0
    reads = answer.pop("its own folder")
    assert reads.startswith("refused") if kind == "parsers" else reads == "0", "what it reads is sent to it"
    thread = answer.pop("a thread")
    assert thread if kind == "parsers" else thread == "None"
    assert all(said.startswith("refused") for said in answer.values()), answer
    assert len(answer) == 19


def test_without_kernel_support_a_parser_opens_no_file_and_no_socket(request_of: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its limits, as on a system with neither Landlock nor seccomp."""
    without = "from webapp.cage import kernel\nkernel.restricts_files = kernel.refuses_calls = lambda: False\n"
    monkeypatch.setitem(globals(), "TRIES", without + TRIES)
    (answer,), _ = ask("parsers", request_of)
    assert all(
        answer[name].startswith("refused") for name in ("passwords of the system", "the network", "a new file", "the parent's memory", "a program")
    )


@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections"])
def test_each_request_gets_a_fresh_process(kind: str, request_of: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    answers, _ = ask(kind, request_of, {**request_of, "folder": str(tmp_path / "other")}, request_of)
    assert [answer["remembered"] for answer in answers] == [0, 0, 0]
    if kind != "parsers":
        assert [answer["its own folder"] for answer in answers] == ["0", "1", "0"], "each has the folder that it was asked about"


@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections", "recordings"])
def test_exceeding_memory_or_time_ends_only_the_request(kind: str, request_of: dict[str, Any]) -> None:
    answers, status = ask(kind, {**request_of, "allocate": 2 << 30})
    assert not answers and status != 0
    answers, status = ask(kind, {**request_of, "spin": True}, seconds=0.2)
    assert not answers and status != 0
    if kind != "recordings":
        answers, status = ask(kind, {**request_of, "allocate": 2 << 30}, request_of)
        assert len(answers) == 1 and status == 0, "the next request is answered"


def test_children_start_with_an_empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    for kind in ("engine", "parsers", "inspections", "recordings"):
        process = start(kind)
        try:
            names = {entry.split(b"=")[0] for entry in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0") if entry}
            assert names <= {name.encode() for name in ("LANG", *confinement._WITHOUT_THREADS, *confinement.KEPT)}
            assert process.stdout is not None and process.stdout.readline() == READY
            assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 1, "walls hold only for threads that are started behind them"
        finally:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections"])
def test_a_fork_answers_only_its_own_request(kind: str, request_of: dict[str, Any]) -> None:
    forged = READY.decode() + json.dumps({"remembered": "forged"}) + "\n"
    answers, status = ask(kind, {**request_of, "whisper": forged}, request_of)
    assert [answer.get("remembered") for answer in answers] == [0] and status == 0, "what follows the line is no answer to anybody"


@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections"])
def test_an_answer_marked_as_failure_is_a_failure(kind: str, request_of: dict[str, Any]) -> None:
    answers, status = ask(kind, {**request_of, "nothing whole": True})
    assert status == 1 and answers == []


@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections"])
def test_a_child_cannot_raise_its_limits(kind: str, request_of: dict[str, Any]) -> None:
    (answer,), _ = ask(kind, {**request_of, "raise limits": True})
    assert answer["bounded"]


@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections"])
def test_after_a_crash_the_next_request_has_another_memory_layout(kind: str, request_of: dict[str, Any]) -> None:
    """Otherwise addresses could be guessed, crash by crash."""
    process = start_of(kind)
    with process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(CageRequest("tries", {**request_of, "crash": True}, 20, 1 << 30, read=[request_of["folder"]]).message())
        process.stdin.flush()
        assert process.stdout.read() == READY and process.wait(20) == 1


@pytest.mark.parametrize("kind", ["engine", "parsers", "inspections"])
def test_a_fork_that_does_not_end_cannot_reach_the_next_request(kind: str, request_of: dict[str, Any]) -> None:
    process = start_of(kind)
    pool = WarmPool(kind)
    pool._waiting.append(process)
    with pytest.raises(TookTooLong):
        pool.ask(CageRequest("tries", {**request_of, "linger": True}, 1, 1 << 30, read=[request_of["folder"]]))
    pool.retire()
    time.sleep(0.2)
    assert not [one for one in psutil.process_iter() if one.status() != psutil.STATUS_ZOMBIE and os.getpgid(one.pid) == process.pid]


def test_all_kernels_of_the_engine_are_loaded_before_a_request() -> None:
    """A fork may not write cached kernels next to the modules, which numba tries when a module is
    loaded."""
    program = """
import sys
from importlib import import_module
from pathlib import Path
from webapp.cage.child import KINDS
for name in KINDS["engine"].loads:
    import_module(name)
import_module(KINDS["engine"].warm).warm_up()
for path in sorted(Path("engine").rglob("*.py")):
    name = ".".join(path.with_suffix("").parts)
    if "numba import" in path.read_text() and path.name != "__init__.py" and name not in sys.modules:
        print(name)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=confinement.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_a_kernel_that_a_request_compiles_is_not_kept() -> None:
    """Other processes would load it as code."""
    program = """
from numba.core.caching import Cache, FunctionCache
before = Cache.save_overload
from webapp.queries.engine_warmth import warm_up
warm_up()
print(Cache.save_overload is before, FunctionCache.save_overload is before)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=confinement.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
