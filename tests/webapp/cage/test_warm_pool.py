"""Processes kept ready for previews: loaded in advance, forked for each request, ended with the
requesting process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from engine.model.events import row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.sources.eventlog import EventLog
from tests.webapp.conftest import BORDER
from webapp.cage import warm_pool as pool_module
from webapp.cage.warm_pool import READY, CageRequest, TookTooLong, WarmPool, start

FEED = Feed("yard", Crs.PLANAR, TimeUnit.MS)
MEMORY = 3 * 2**30


def work(request: dict[str, Any], seconds: float, memory: int) -> CageRequest:
    return CageRequest("webapp.queries.preview", request, seconds, memory, read=[request["log_root"]])


@pytest.fixture
def warm_pool() -> Iterator[WarmPool]:
    made = WarmPool("engine")
    yield made
    made.retire()


@pytest.fixture
def request_of(tmp_path: Path) -> dict[str, Any]:
    rows = [{"event": "position", "entity": "a", "t": t, "x": x, "y": 5.0} for t, x in ((1000, -5.0), (2000, 5.0), (3000, 50.0))]
    EventLog(tmp_path, "yard").append(pa.Table.from_pylist(rows, schema=row_schema(FEED)))
    return {"log_root": str(tmp_path), "feed": FEED.to_json(), "specification": BORDER, "period": {"span": 60_000}, "above": {}}


def test_a_warm_worker_answers_sooner_than_a_process_that_is_started_for_it(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    started = time.monotonic()
    cold = warm_pool.ask(work(request_of, 60, MEMORY))
    took_cold = time.monotonic() - started
    (waiting,) = warm_pool._waiting
    started = time.monotonic()
    warm = warm_pool.ask(work(request_of, 60, MEMORY))
    took_warm = time.monotonic() - started
    assert warm == cold and warm[0] == 0 and b'"kind": "in"' in warm[1]
    sys.stdout.write(f"a preview takes {took_cold:.2f} s without and {took_warm:.2f} s with a process kept ready\n")
    assert took_warm < took_cold / 2
    assert warm_pool._waiting == [waiting], "it waits for the next one"


def test_concurrent_requests_get_separate_processes_of_which_few_are_kept(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: warm_pool.ask(work(request_of, 60, MEMORY)), range(4)))
    assert answers[0][0] == 0 and answers == [answers[0]] * 4
    assert 1 <= len(warm_pool._waiting) <= pool_module.MOST_WAITING


def test_a_request_that_breaks_off_leaves_the_worker_waiting(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    warm_pool.ask(work(request_of, 60, MEMORY))
    (waiting,) = warm_pool._waiting
    status, answer = warm_pool.ask(work(request_of, 60, 1_000_000))
    assert status != 0 and answer == b""
    assert warm_pool.ask(work(request_of, 60, MEMORY))[0] == 0
    assert warm_pool._waiting == [waiting]


def test_a_worker_that_takes_too_long_is_ended(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    with pytest.raises(TookTooLong):
        warm_pool.ask(work(request_of, 0.001, MEMORY))
    assert warm_pool._waiting == []


def test_an_unused_worker_is_ended(warm_pool: WarmPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "IDLE_S", 0.2)
    warm_pool.prepare()
    (process,) = warm_pool._waiting
    process.wait(10)
    assert warm_pool._waiting == []


def test_a_worker_that_died_while_idle_is_replaced(warm_pool: WarmPool, request_of: dict[str, Any]) -> None:
    warm_pool.prepare()
    (process,) = warm_pool._waiting
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert warm_pool.ask(work(request_of, 60, MEMORY))[0] == 0


WASTER = """
import sys, time, types
from webapp.cage import child
waster = types.ModuleType("waster")
def run(request, data):
    print("begun", end="", flush=True)
    time.sleep(300)
waster.run = run
waster.warm_up = lambda: None
sys.modules["waster"], child.KINDS = waster, {"engine": child.Kind(("waster",), (), "waster", reads=True)}
child.main("engine")
"""


def test_an_idle_worker_ends_with_the_process_that_started_it() -> None:
    process = start("engine")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


def test_a_busy_worker_ends_when_its_caller_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", WASTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(CageRequest("waster", {}, seconds=100, memory=4_000_000_000).message())
    process.stdin.flush()
    assert process.stdout.readline() == READY and process.stdout.read(5) == b"begun"
    (fork,) = psutil.Process(process.pid).children()
    process.stdin.close()
    process.wait(10)
    fork.wait(10)
    process.stdout.close()
