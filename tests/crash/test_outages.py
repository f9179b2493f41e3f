"""A hanging server and a full disk are reported as such, within seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.test import Client

from tests.crash.test_supervision import roots, start_worker
from tests.crash.world import World
from tests.webapp.answers import a_user
from webapp.accounts.models import Scope
from webapp.accounts.services import token_create
from webapp.jobs.models import Job
from webapp.platform.folders import PortReservation
from webapp.platform.health import healthy
from webapp.platform.postgres import EmbeddedPostgres
from webapp.platform.web_server import web_command
from webapp.supervisor.reconciler import SILENT, SUSPECT

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROW = b'{"entity":"w1","t":99000000,"x":1,"y":1}\n'


@contextmanager
def standing_still(server: EmbeddedPostgres) -> Iterator[None]:
    """Inside, PostgreSQL and all its processes are stopped: the kernel accepts
    connections, but nothing answers."""
    assert server.pid is not None
    main = psutil.Process(server.pid)
    processes = [main, *main.children(recursive=True)]
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            # One that was ending when it was stopped is gone.
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


def asked(address: str, data: bytes | None = None, token: str = "") -> tuple[int, Any, str, float]:
    """Status, Retry-After, body, and the time it took."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"} if token else {}
    began = time.monotonic()
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, headers), timeout=30) as answer:
            return answer.status, None, answer.read().decode(), time.monotonic() - began
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Retry-After"], error.read().decode(), time.monotonic() - began


def test_a_database_that_hangs_is_reported_within_seconds(own_server: EmbeddedPostgres, world: World) -> None:
    token = token_create(user=a_user(), name="sender", scopes=[Scope.INGEST]).text
    reservation = PortReservation()
    reservation.release()
    base = f"http://127.0.0.1:{reservation.port}"
    world.start(*web_command(reservation.port), name="web")

    world.wait(lambda: healthy(reservation.port), 120, "the web server answers")
    events = f"{base}/api/v1/feeds/yard/events"
    assert asked(events, ROW, token)[0] == 202
    with standing_still(own_server):
        for address, data in ((f"{base}/healthz", None), (events, ROW), (f"{base}/healthz", None), (events, ROW)):
            status, retry, body, taken = asked(address, data, token if data else "")
            sys.stdout.write(f"{address}: {status} after {taken:.1f} s: {body}\n")
            assert (status, bool(retry)) == (503, True)
            assert body == '{"database": false}' if data is None else "The database does not answer" in body
            assert taken < 4, "about two seconds, and as much again on a machine that is busy"
    world.wait(lambda: healthy(reservation.port), 30, "it answers again")
    assert asked(events, ROW, token)[0] == 202


@pytest.mark.spark
def test_everything_continues_when_a_hung_database_resumes(own_server: EmbeddedPostgres, world: World, redis_url: str) -> None:
    """By the same processes: none was ended for its silence; nothing is lost or stored twice."""
    world.redis_url = redis_url
    inbox = world.folder / "inbox" / "yard"
    inbox.mkdir(parents=True)
    world.append()
    children = [
        start_worker(world, "one", beat=True),
        world.start(sys.executable, "manage.py", "publish", name="publisher"),
        world.start(sys.executable, "manage.py", "ingest", name="ingest"),
    ]
    world.wait_caught_up()
    before = roots()
    with standing_still(own_server):
        world.append()
        (inbox / "row.jsonl").write_text('{"entity":"w1","t":99000,"x":1,"y":1}\n')
        os.utime(inbox / "row.jsonl", (1, 1))
        # Longer than the reconciler waits for a heartbeat.
        time.sleep(SILENT.total_seconds() + 5)
    lease = Job.objects.get().lease_until
    world.wait((inbox / "done" / "row.jsonl").exists, what="the dropped file is taken")
    world.wait_caught_up()
    world.wait(lambda: Job.objects.get().lease_until != lease, what="the reconciler continues")
    # By now it would have replaced a job that stays silent.
    time.sleep(SUSPECT.total_seconds() + 1)
    assert [child.poll() for child in children] == [None, None, None]
    assert (len(before), roots(), Job.objects.get().epoch) == (1, before, 1)
    world.check()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here (needs root): {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def test_a_full_disk_is_reported_as_a_full_disk(world: World, small_disk: Path, settings: Any) -> None:
    settings.EVENT_LOG_ROOT = small_disk
    token = token_create(user=a_user(), name="sender", scopes=[Scope.INGEST]).text

    def post(rows: int) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        return Client(headers=headers).post("/api/v1/feeds/yard/events", ROW * rows, content_type="application/x-ndjson")

    assert post(1).status_code == 202
    filler = small_disk / "filler"
    with filler.open("wb") as file, pytest.raises(OSError, match="No space left"):
        while True:
            os.write(file.fileno(), b"x" * 4096)
    answer = post(1)
    assert (answer.status_code, bool(answer.headers["Retry-After"])) == (503, True)
    assert "disk of the event log is full" in answer.json()["faults"][0]["message"]
    filler.unlink()
    assert post(1).status_code == 202
