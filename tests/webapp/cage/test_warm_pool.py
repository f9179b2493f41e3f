"""Processes kept ready for previews: loaded before they are asked, used once, gone with the process that asked."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from engine.model.events import row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.sources.eventlog import EventLog
from tests.webapp.conftest import BORDER
from webapp.cage import warm_pool as waiting
from webapp.cage.warm_pool import READY, TookTooLong, WarmPool, Work, start

FEED = Feed("yard", Crs.PLANAR, TimeUnit.MS)
MEMORY = 3 * 2**30


def work(request: dict[str, Any], seconds: float, memory: int, again: bool = False) -> Work:
    return Work("webapp.queries.preview", request, seconds, memory, read=[request["log_root"]], again=again)


@pytest.fixture
def warm_pool() -> Iterator[WarmPool]:
    made = WarmPool("engine")
    yield made
    made.retire()


@pytest.fixture
def request_of(tmp_path: Path) -> dict[str, Any]:
    rows = [{"event": "position", "entity": "a", "t": t, "x": x, "y": 5.0} for t, x in ((1000, -5.0), (2000, 5.0), (3000, 50.0))]
    EventLog(tmp_path, "yard").append(pa.Table.from_pylist(rows, schema=row_schema(FEED)))
    return {"log_root": str(tmp_path), "feed": FEED.to_json(), "specification": BORDER, "span": 60_000, "above": {}}


def loaded(process: subprocess.Popen[bytes]) -> None:
    """Waits until the process reads its standard input: it uses no processor time any more."""
    program, used = psutil.Process(process.pid), -1.0
    while (now := sum(program.cpu_times()[:2])) != used or now < 0.2:
        used = now
        time.sleep(0.3)


def test_a_warm_worker_answers_sooner_than_a_process_that_is_started_for_it(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    started = time.monotonic()
    cold = warm_pool.ask(work(request_of, 60, MEMORY))
    took_cold = time.monotonic() - started
    assert warm_pool._waiting is not None, "the next one is started"
    first = warm_pool._waiting.process.pid
    loaded(warm_pool._waiting.process)
    started = time.monotonic()
    warm = warm_pool.ask(work(request_of, 60, MEMORY))
    took_warm = time.monotonic() - started
    assert warm == cold and warm[0] == 0 and b'"kind": "in"' in warm[1]
    sys.stdout.write(f"a preview takes {took_cold:.2f} s without and {took_warm:.2f} s with a process kept ready\n")
    assert took_warm < took_cold / 2
    assert not psutil.pid_exists(first), "each is used once"


def test_what_is_asked_often_does_not_wait_for_another_to_load(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    answers = []
    pids = set()
    for _ in range(3):
        answers.append(warm_pool.ask(work(request_of, 60, MEMORY, again=True)))
        assert warm_pool._waiting is not None
        pids.add(warm_pool._waiting.process.pid)
    assert len(pids) == 1 and answers[0][0] == 0 and answers == [answers[0]] * 3
    assert warm_pool.ask(work(request_of, 60, MEMORY)) == answers[0]
    assert not psutil.pid_exists(pids.pop()), "what is tried once ends with its process"


def test_one_that_breaks_off_is_not_asked_again(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    status, _ = warm_pool.ask(work(request_of, 60, 1_000_000, again=True))
    assert status != 0
    assert warm_pool.ask(work(request_of, 60, MEMORY, again=True))[0] == 0


def test_one_that_is_too_slow_is_not_asked_again(warm_pool: WarmPool, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = WASTER.replace('print("begun", flush=True)', "pass")
    command = [sys.executable, "-c", silent]
    monkeypatch.setattr(waiting, "start", lambda kind: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    with pytest.raises(TookTooLong):
        warm_pool.ask(Work("waster", {}, seconds=0.2, memory=MEMORY, again=True))
    assert warm_pool._waiting is None


def test_one_that_takes_too_long_is_ended(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    with pytest.raises(TookTooLong):
        warm_pool.ask(work(request_of, 0.01, MEMORY))
    assert warm_pool._waiting is None


def test_one_that_needs_too_much_memory_breaks_off_alone(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    status, _ = warm_pool.ask(work(request_of, 60, 1_000_000))
    assert status != 0
    assert warm_pool.ask(work(request_of, 60, MEMORY))[0] == 0


def test_one_that_nobody_uses_is_ended(warm_pool: WarmPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "IDLE_S", 0.2)
    warm_pool.prepare()
    assert warm_pool._waiting is not None
    process = warm_pool._waiting.process
    process.wait(10)
    assert warm_pool._waiting is None


def test_one_that_died_while_it_waited_is_replaced(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    warm_pool.prepare()
    assert warm_pool._waiting is not None
    warm_pool._waiting.process.send_signal(signal.SIGKILL)
    warm_pool._waiting.process.wait()
    assert warm_pool.ask(work(request_of, 60, MEMORY))[0] == 0


def test_one_that_has_given_up_other_files_is_not_asked(warm_pool: WarmPool, request_of: dict[str, Any], tmp_path: Path) -> None:
    first = warm_pool.ask(work(request_of, 60, MEMORY, again=True))
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    shutil.copytree(tmp_path, elsewhere)
    assert warm_pool.ask(work({**request_of, "log_root": str(elsewhere)}, 60, MEMORY)) == first


WASTER = """
import sys, time, types
from webapp.cage import child
waster = types.ModuleType("waster")
def run(request, data):
    print("begun", flush=True)
    time.sleep(300)
waster.run = run
waster.warm_up = lambda: None
sys.modules["waster"], child.KINDS = waster, {"engine": child.Kind(("waster",), (), "waster")}
child.main("engine")
"""


def test_one_that_waits_ends_when_who_started_it_is_gone() -> None:
    process = start("engine")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


def test_one_that_works_ends_when_who_asked_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", WASTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(Work("waster", {}, seconds=100, memory=4_000_000_000).message())
    process.stdin.flush()
    assert [process.stdout.readline() for _ in range(2)] == [READY, b"begun\n"]
    process.stdin.close()
    process.wait(10)
    process.stdout.close()
