"""The log on shared storage: several processes append to one feed, whoever dies whenever; a folder, and a real server of S3's protocol."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from django.db import connection
from pyarrow import fs

from engine.failpoints import VARIABLE
from engine.sources.eventlog import EventLog
from engine.sources.segments import LogDamaged
from engine.sources.shared_log import Files, SharedLog
from tests.engine.sources.live.brokers import _java, free_port, maven
from tests.webapp.answers import a_feed
from webapp.feeds.log_order import DatabaseOrder
from webapp.feeds.models import LogSegment
from webapp.platform.folders import ROOT
from webapp.platform.postgres import with_database

pytestmark = pytest.mark.django_db(transaction=True)

WRITER = r"""
import os, sys
import django
django.setup()
import pyarrow as pa
import pyarrow.compute as pc
from tests.webapp.feeds.test_shared_log import storage
from engine.sources.shared_log import SharedLog
from webapp.feeds.log_order import DatabaseOrder
from webapp.feeds.models import Feed
log = SharedLog(DatabaseOrder(Feed.objects.get()), storage(sys.argv[1]), "city")
name, done = sys.argv[2], int(sys.argv[3])
for i in range(done, int(sys.argv[4])):
    rows = pa.table({"event": ["position"] * 2, "entity": [name] * 2, "t": pa.array([2 * i, 2 * i + 1], pa.int64())})
    answer = log.append(rows, key=f"{name}-{i}")
    os.write(1, f"{i} {answer.first_seq}\n".encode())
"""


def storage(address: str) -> Files:
    """A folder, or `s3:PORT`."""
    kind, _, port = address.partition(":")
    if kind != "s3":
        return Files(fs.LocalFileSystem(), address)
    return Files(
        fs.S3FileSystem(access_key="test", secret_key="test-secret", endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1"), "log"
    )


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway to S3's protocol over a folder of this machine."""
    folder, port = tmp_path_factory.mktemp("s3"), free_port()
    (folder / "data" / "log").mkdir(parents=True)
    settings = {"endpoint": f"http://127.0.0.1:{port}", "authorization": "aws-v2-or-v4", "identity": "test", "credential": "test-secret"}
    lines = [*(f"s3proxy.{key}={value}" for key, value in settings.items()), "jclouds.provider=filesystem-nio2"]
    (folder / "s3proxy.conf").write_text("\n".join([*lines, f"jclouds.filesystem.basedir={folder}/data"]))
    # Of one of its parts the resolved version is too old, and of two versions in one folder the first would be taken.
    jars = [*maven("com.fasterxml.jackson.core", "jackson-annotations", "2.21").glob("*.jar")]
    jars += [jar for jar in maven("org.gaul", "s3proxy", "3.3.0").glob("*.jar") if not jar.name.startswith("jackson-annotations")]
    command = [_java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars)), "org.gaul.s3proxy.Main"]
    with (folder / "log.txt").open("wb") as output:
        process = subprocess.Popen([*command, "--properties", str(folder / "s3proxy.conf")], stdout=output, stderr=output)
    try:
        stop = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < stop and process.poll() is None, (folder / "log.txt").read_text()[-2_000:]
                time.sleep(0.05)
        yield f"s3:{port}"
    finally:
        process.kill()
        process.wait(30)


def start_writer(address: str, name: str, done: int, until: int, failpoints: str = "") -> subprocess.Popen[str]:
    url = with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"])
    environment = {**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(ROOT), VARIABLE: failpoints}
    return subprocess.Popen([sys.executable, "-c", WRITER, address, name, str(done), str(until)], stdout=subprocess.PIPE, text=True, env=environment)


def rows(*times: int, entity: str = "a") -> pa.Table:
    return pa.table({"event": ["position"] * len(times), "entity": [entity] * len(times), "t": pa.array(times, pa.int64())})


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_it_reads_as_any_log_of_the_same_appends(kind: str, tmp_path: Path, gateway: str) -> None:
    chance = random.Random(7)
    shared = SharedLog(DatabaseOrder(a_feed()), storage(gateway if kind == "s3" else str(tmp_path / "shared")), "city")
    other = EventLog(tmp_path / "other", "city")
    assert shared.end == other.end == (0, None)
    for i in range(12):
        # Large enough once to be put in groups of entities.
        count = 70_000 if i == 5 else chance.randrange(1, 40)
        table = rows(*(chance.randrange(1000) for _ in range(count)), entity=f"e{i % 3}")
        assert shared.append(table, key=f"k{i}") == other.append(table, key=f"k{i}")
    assert shared.append(rows(1), key="k3").repeated
    assert shared.end == other.end
    for begin, stop in [(0, None), (3, 50), (60_000, 70_010)]:
        assert pa.concat_tables(shared.read(begin, stop)).equals(pa.concat_tables(other.read(begin, stop)))
    assert shared.tail(100, 500, lateness=200, entities=["e1"]).equals(other.tail(100, 500, lateness=200, entities=["e1"]))
    assert list(shared.entries()) == list(other.entries())
    assert shared.ahead(-1, 100) == other.ahead(-1, 100)
    assert shared.ahead(shared.end[0] - 1, 100) is None
    ours, theirs = (list(log.parts_between(0, log.end[0], [[0, 1], [5]])) for log in (shared, other))
    assert [(part.to_pylist(), list(whose)) for part, whose in ours] == [(part.to_pylist(), list(whose)) for part, whose in theirs]


def test_a_writer_that_lost_its_place_takes_the_next_with_its_clock(tmp_path: Path) -> None:
    feed, files = a_feed(), storage(str(tmp_path))
    log, other = (SharedLog(DatabaseOrder(feed), files, "city") for _ in range(2))
    met: list[int | None] = []

    def judge(table: pa.Table, end: object) -> tuple[pa.Table, dict[str, int]]:
        met.append(end.clock)  # type: ignore[attr-defined]
        if len(met) == 1:
            other.append(rows(900))
        return table, {}

    assert log.append(rows(5), judge=judge).first_seq == 1
    assert met == [None, 900]
    assert pa.concat_tables(log.read())["clock"].to_pylist()[1] == 900
    assert len(list((tmp_path / "city").iterdir())) == 2, "the file of the place that was lost is gone"


def test_a_file_that_was_altered_is_damage(tmp_path: Path) -> None:
    log = SharedLog(DatabaseOrder(a_feed()), storage(str(tmp_path)), "city")
    log.append(rows(1, 2))
    file = tmp_path / LogSegment.objects.get().file
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(LogDamaged, match="check sum"):
        list(log.read())
    file.unlink()
    with pytest.raises(LogDamaged, match="missing"):
        list(log.all_between(0, 2))


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_two_processes_write_one_feed_while_one_is_killed_again_and_again(kind: str, tmp_path: Path, gateway: str) -> None:
    feed, address = a_feed(), gateway if kind == "s3" else str(tmp_path)
    until, acknowledged = 24, {"b": 0}
    steady = start_writer(address, "a", 0, until)
    places = ["log.before_order", "log.before_order_commit", "log.after_order"]
    for attempt in range(4):
        failpoints = f"{places[attempt]}=kill@{attempt + 3}" if attempt < len(places) else ""
        mortal = start_writer(address, "b", acknowledged["b"], until, failpoints)
        lines = mortal.communicate(timeout=120)[0].splitlines()
        assert mortal.returncode == (-signal.SIGKILL if failpoints else 0)
        # It goes on behind what was answered: the append that was under way is repeated with its key.
        acknowledged["b"] += len(lines)
    assert acknowledged["b"] == until
    assert len(steady.communicate(timeout=120)[0].splitlines()) == until
    log = SharedLog(DatabaseOrder(feed), storage(address), "city")
    kept = pa.concat_tables(log.read())
    assert kept["seq"].to_pylist() == list(range(4 * until))
    for name in "ab":
        assert kept.filter(pc.equal(kept["entity"], name))["t"].to_pylist() == list(range(2 * until))
    t, clock = kept["t"].to_pylist(), kept["clock"].to_pylist()
    assert clock[1:] == [max(t[:i]) for i in range(1, len(t))]
