"""The log on shared storage: several processes append to one feed and may die at any time; a
folder, and a real S3 server."""

from __future__ import annotations

import io
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pyarrow import fs

from engine.failpoints import TESTING, VARIABLE
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from engine.sources.segments import LogDamaged
from engine.sources.shared_log import SharedLog
from engine.sources.store import Files, StoreUnavailable, files_of
from tests.webapp.answers import a_feed, a_user
from webapp.detections.models import Detection
from webapp.detections.removal import feed_delete
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.log_order import DatabaseSegmentOrder, Notices
from webapp.feeds.logs import event_log, folder_of_logs
from webapp.feeds.maintenance import feed_maintain
from webapp.feeds.models import Feed, IngestCounter, LogDamage, LogSegment
from webapp.jobs.models import FeedHead
from webapp.platform.folders import ROOT
from webapp.platform.object_store import BUCKET, KEY, ObjectStore
from webapp.platform.postgres import with_database
from webapp.queries.services import query_register
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db]

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
INGEST = r"""
# Reads lines (entity, first, stop, failpoints), and forks a process to send the rows of each: the modules are loaded once.
import os, sys
import django
django.setup()
import pyarrow as pa
from engine.model.events import row_schema
from webapp.feeds.ingest import Delivery, ingest
from webapp.feeds.models import Feed

def send(entity, first, stop):
    feed = Feed.objects.get()
    for i in range(first, stop):
        rows = [{"event": "position", "entity": entity, "t": 20 * i + 10 * j, "x": float((2 * i + j) % 4), "y": 1.0} for j in range(2)]
        ingest(feed, Delivery(pa.Table.from_pylist(rows, schema=row_schema(feed.engine_feed())), key=f"{entity}-{i}"))
        os.write(1, f"{entity} {i}\n".encode())

for line in sys.stdin:
    entity, first, stop, failpoints = line.rstrip("\n").split(" ")
    pid = os.fork()
    if pid == 0:
        os.environ["VEDETTE_FAILPOINTS"] = failpoints
        send(entity, int(first), int(stop))
        os._exit(0)
    if entity != "steady":
        os.write(1, f"ended {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A store with the S3 protocol."""
    server = ObjectStore(tmp_path_factory.mktemp("s3"))
    with server.running():
        yield server


@pytest.fixture
def store(gateway: ObjectStore, tmp_path: Path) -> str:
    """Its URL with a prefix for this test."""
    return gateway.url.replace("/log?", f"/{tmp_path.name}?")


@pytest.fixture
def shared(settings: Any, tmp_path: Path) -> str:
    """All logs are in a shared folder."""
    settings.VAR, settings.VEDETTE_LOG_STORE = tmp_path / "var", str(tmp_path / "shared")
    return str(settings.VEDETTE_LOG_STORE)


def log_in(url: Path | str, feed: Feed | None = None) -> SharedLog:
    return SharedLog(DatabaseSegmentOrder((feed or a_feed()).name), files_of(str(url)), "city")


def rows(*times: int, entity: str = "a") -> pa.Table:
    return pa.table({"event": ["position"] * len(times), "entity": [entity] * len(times), "t": pa.array(times, pa.int64())})


def times(log: EventLog) -> list[int]:
    return [t for table in log.read() for t in table["t"].to_pylist()]


def test_files_are_found_while_others_come_and_go(store: str) -> None:
    """A listing of S3Proxy over a folder leaves out files that are there when it meets one that is
    being removed; a state must not look lost."""
    files, lasting = files_of(store), {f"state-{n}" for n in range(8)}
    for name in lasting:
        files.put(name, b"state")

    def churn() -> None:
        while not ended.is_set():
            names = [f"other-{n}" for n in range(4)]
            for name in names:
                files.put(name, b"")
            files.remove_all(names)

    ended, others = threading.Event(), threading.Thread(target=churn)
    others.start()
    try:
        for _ in range(200):
            assert files.existing([*lasting, "never"]) == lasting
    finally:
        ended.set()
        others.join()


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_shared_log_reads_like_a_local_log(kind: str, tmp_path: Path, store: str) -> None:
    chance = random.Random(7)
    shared = log_in(store if kind == "s3" else tmp_path / "shared")
    other = EventLog(tmp_path / "other", "city")
    assert shared.end == other.end == (0, None)
    for i in range(9):
        # Large enough to be grouped by entities.
        count = 70_000 if i == 5 else chance.randrange(1, 40)
        table = rows(*(chance.randrange(1000) for _ in range(count)), entity=f"e{i % 3}")
        assert shared.append(table, key=f"k{i}") == other.append(table, key=f"k{i}")
    assert shared.append(rows(1), key="k3").repeated
    assert shared.end == other.end
    for begin, stop in [(0, None), (3, 50), (60_000, 70_010)]:
        assert pa.concat_tables(shared.read(begin, stop)).equals(pa.concat_tables(other.read(begin, stop)))
    assert shared.tail(100, 500, lateness=200, entities=["e1"]).equals(other.tail(100, 500, lateness=200, entities=["e1"]))
    assert list(shared.entries()) == list(other.entries()) == list(log_in_again(shared).entries())
    assert shared.ahead(-1, 100) == other.ahead(-1, 100)
    assert shared.ahead(shared.end[0] - 1, 100) is None
    span = shared.ahead(-1, 100_000)
    assert span is not None
    # An executor gets the names of the files: it has no database.
    there = pickle.loads(pickle.dumps(shared.address([span]))).open()
    for log in (shared, there):
        ours, theirs = (list(one.parts_between(0, shared.end[0], [[0, 1], [5]])) for one in (log, other))
        assert [(part.to_pylist(), list(whose)) for part, whose in ours] == [(part.to_pylist(), list(whose)) for part, whose in theirs]


def log_in_again(log: SharedLog) -> SharedLog:
    """The same for a process that has written nothing."""
    return SharedLog(log.order, log.files, "city")


def test_a_writer_that_lost_a_race_takes_the_next_place_and_its_clock(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    other, met = log_in_again(log), []

    def admit(table: pa.Table, end: Any) -> tuple[pa.Table, dict[str, int]]:
        met.append(end.clock)
        if len(met) == 1:
            other.append(rows(900))
        return table, {}

    assert log.append(rows(5), admit=admit).first_seq == 1
    assert met == [None, 900]
    assert pa.concat_tables(log.read())["clock"].to_pylist()[1] == 900
    assert len(list((tmp_path / "city" / "live").iterdir())) == 2, "the file of the place that was lost is gone"


def test_an_altered_or_missing_file_is_damage_until_it_is_restored(shared: str) -> None:
    feed = a_feed()
    log = event_log("city")
    log.append(rows(1, 2))
    file = Path(shared, LogSegment.objects.get().file)
    content = file.read_bytes()
    file.write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])
    with pytest.raises(LogDamaged, match="checksum"):
        list(log.read())
    file.unlink()
    with pytest.raises(LogDamaged, match="missing"):
        list(log.all_between(0, 2))
    feed_maintain(feed=feed)
    with pytest.raises(CommandError, match=r"Bring back city/live/.*the file is missing"):
        call_command("repair", "city")
    file.write_bytes(content)
    said = io.StringIO()
    call_command("repair", "city", stdout=said)
    assert "the log is whole. The feed continues." in said.getvalue()


def test_a_disk_that_is_not_mounted_is_not_damage(shared: str) -> None:
    a_feed()
    log = event_log("city")
    log.append(rows(1, 2))
    away = Path(shared).rename(f"{shared}-unmounted")
    with pytest.raises(StoreUnavailable, match=r"shared does not exist \(is VEDETTE_LOG_STORE right"):
        list(log.read())
    with pytest.raises(StoreUnavailable):
        call_command("repair", "city", "--give-up")
    away.rename(shared)
    assert times(log) == [1, 2]


def test_a_bucket_that_does_not_exist_is_not_damage(store: str) -> None:
    log_in(store).append(rows(1, 2))
    with pytest.raises(StoreUnavailable, match=r"s3://nowhere does not exist"):
        list(log_in(store.replace(f"@{BUCKET}/", "@nowhere/"), Feed.objects.get()).read())


def test_rows_without_a_copy_in_the_store_are_given_up_and_counted(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As for large files, which readers do not check as a whole.
    monkeypatch.setattr("engine.sources.shared_log.WHOLE_BYTES", 0)
    feed, log = a_feed(), event_log("city")
    feed_head_ensure(feed)
    for i in range(3):
        log.append(rows(10 * i, 10 * i + 1), key=f"k{i}")
    log.compact(1)
    altered, missing = (Path(shared, segment.file) for segment in LogSegment.objects.filter(gone_at=None, first_seq__gt=0).order_by("first_seq"))
    content = altered.read_bytes()
    altered.write_bytes(content[:6] + bytes([content[6] ^ 255]) + content[7:])
    missing.unlink()
    said = io.StringIO()
    call_command("repair", "city", "--give-up", stdout=said)
    assert "2 repairs, 4 rows lost" in said.getvalue()
    assert (log.end, times(log), LogDamage.objects.count()) == ((6, 21), [0, 1, 1, 11, 11, 21], 0)
    assert [entity for table in log.read() for entity in table["entity"].to_pylist()] == ["a", "a", "$lost", "$lost", "$lost", "$lost"]
    assert [path.name for path in Path(shared, "city", "damaged").iterdir()] == [altered.name]
    assert log.append(rows(30), key="k1").repeated, "a delivery that the file still lists is known"
    assert log.remove_orphans(-60) >= 0 and Path(shared, "city", "damaged", altered.name).exists()
    feed_maintain(feed=feed)


def test_an_unavailable_store_is_not_damage(gateway: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    once = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    address = {"scheme": "http", "region": "us-east-1", "endpoint_override": f"127.0.0.1:{gateway.port}"}
    # By default the client retries for six seconds.
    system = fs.S3FileSystem(access_key=KEY, secret_key=gateway.password, retry_strategy=once, **address)
    log = SharedLog(DatabaseSegmentOrder(a_feed().name), Files(system, f"{BUCKET}/away"), "city")
    log.append(rows(1, 2))
    monkeypatch.setattr("engine.sources.store.TIMEOUT_S", 0.0)
    gateway.stop()
    try:
        # Not LogDamaged, which would stop the feed.
        with pytest.raises(StoreUnavailable):
            list(log.read())
    finally:
        gateway.start()
    assert times(log) == [1, 2]


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_files_are_joined_dropped_and_swept_beside_readers(kind: str, tmp_path: Path, store: str) -> None:
    log = log_in(store if kind == "s3" else tmp_path / "shared")
    for i in range(14):
        log.append(rows(i, entity=f"e{i % 3}"))
    whole, first = pa.concat_tables(log.read()), log.segments()[0]
    reader = log.read()
    assert log.compact(4) == 5
    assert [segment.rows for segment in log.segments()] == [5] + [1] * 9
    assert first.opened().__enter__().metadata.num_rows == 1, "who has looked before finds what was there"
    assert pa.concat_tables(reader).equals(whole)
    LogSegment.objects.exclude(gone_at=None).update(gone_at=timezone.now() - timezone.timedelta(hours=2))
    assert log.compact(9) == 5
    with pytest.raises(FileNotFoundError), first.opened():
        pass
    assert pa.concat_tables(log.read()).equals(whole)
    assert [entry.first_seq for entry in log.entries()] == list(range(10, 14))
    assert log.drop_before(5) == 5
    assert (log.start, log.end, times(log)) == (5, (14, 13), list(range(5, 14)))
    log.files.put("city/live/00000000000000000014-1-14.aaaaaaaa.parquet", pa.py_buffer(b"left behind"))
    assert log.remove_orphans(3_600) == 0, "its writer may be about to order it"
    assert (log.remove_orphans(-60), log.remove_orphans(-60)) == (1, 0)
    assert times(log) == list(range(5, 14))
    log.remove_all()
    assert log.files.older_than("city", -60) == []


def test_one_of_two_concurrent_compactions_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_in(tmp_path)
    for i in range(3):
        log.append(rows(i))
    other, put = log_in_again(log), log.files.put

    def late(*arguments: Any) -> None:
        monkeypatch.undo()
        other.compact(2)
        put(*arguments)

    monkeypatch.setattr(log.files, "put", late)
    log.compact(2)
    assert [(segment.rows, segment.path.parent.name) for segment in log.segments()] == [(3, "history")]
    assert len(list((tmp_path / "city" / "history").iterdir())) == 1
    assert times(log) == [0, 1, 2]


def test_programs_without_network_read_a_mirror(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, log = a_feed(), event_log("city")
    for i in range(6):
        log.append(rows(i))
    root = folder_of_logs(feed)
    there = EventLog(root, "city")
    assert pa.concat_tables(there.read()).equals(pa.concat_tables(log.read()))
    reader = there.read()
    log.append(rows(6))
    log.compact(3)
    assert folder_of_logs(feed) == root
    assert [segment.rows for segment in there.segments()] == [4, 1, 1, 1]
    assert (times(there), there.end, pa.concat_tables(reader).num_rows) == (list(range(7)), log.end, 6)
    feed_delete(feed=feed, user=feed.owner)


def test_logs_can_be_moved_to_shared_storage(settings: Any, tmp_path: Path) -> None:
    settings.VEDETTE_LOG_STORE = ""
    a_feed()
    with pytest.raises(CommandError, match="Set VEDETTE_LOG_STORE first"):
        call_command("log_move")
    old = event_log("city")
    for i in range(5):
        old.append(rows(i), key=f"k{i}")
    old.compact(2)
    settings.VEDETTE_LOG_STORE = str(tmp_path / "shared")
    said = io.StringIO()
    call_command("log_move", stdout=said)
    assert "city: 5 rows" in said.getvalue()
    log = event_log("city")
    assert pa.concat_tables(log.read()).equals(pa.concat_tables(old.read()))
    assert (log.append(rows(1), key="k4").repeated, log.append(rows(5)).first_seq) == (True, 5)
    with pytest.raises(CommandError, match="Not all"):
        call_command("log_move", stderr=io.StringIO())
    with pytest.raises(CommandError, match="Restore without VEDETTE_LOG_STORE"):
        call_command("restore", str(tmp_path / "backup.tar"))


@pytest.mark.django_db(transaction=True)
def test_growth_of_a_log_is_notified_at_once(tmp_path: Path) -> None:
    feed, notices = a_feed(), Notices()
    log = log_in(tmp_path, feed)
    assert notices.grown_since(feed.name, time.time_ns()), "who hears nothing looks"
    notices.start()
    try:
        wait_until(lambda: not notices.grown_since(feed.name, time.time_ns()))
        looked = time.time_ns()
        assert not notices.grown_since(feed.name, looked)
        log.append(rows(1))
        wait_until(lambda: notices.grown_since(feed.name, looked))
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        wait_until(lambda: notices.grown_since(feed.name, time.time_ns()))
        wait_until(lambda: not notices.grown_since(feed.name, time.time_ns()))
    finally:
        notices.stop()


def wait_until(holds: Any, seconds: float = 60.0) -> None:
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.01)


@pytest.mark.django_db(transaction=True)
def test_two_ingest_processes_write_one_feed_through_repeated_kills(tmp_path: Path, store: str, settings: Any) -> None:
    settings.VEDETTE_LOG_STORE = store
    feed = a_feed("yard", lateness=30)
    feed_head_ensure(feed)
    query_register(owner=a_user(), feed=feed, name="gate", specification={"family": "border", "version": 1, "region": SQUARE}, alert_kinds=["in"])
    until = 6
    places = ["log.before_order", "log.before_order_commit", "log.after_order", "ingest.after_append", "ingest.before_settle_commit"]
    with ingests(store) as (say, hear):
        say(f"steady 0 {until} ")
        done = {"steady": 0, "mortal": 0}
        for attempt, place in enumerate([*places, ""]):
            say(f"mortal {done['mortal']} {until} {place and f'{place}=kill@{1 + attempt % 2}'}")
            while (heard := hear())[0] != "ended":
                # It continues after the last response: the delivery that was under way
                # is repeated with its key.
                done[heard[0]] = int(heard[1]) + 1
            assert int(heard[1]) == (-signal.SIGKILL if place else 0)
        while done["steady"] < until:
            name, number = hear()
            done[name] = int(number) + 1
    assert done == {"steady": until, "mortal": until}
    log = event_log("yard")
    kept = pa.concat_tables(log.read())
    assert kept["seq"].to_pylist() == list(range(4 * until))
    for name in done:
        assert kept.filter(pc.equal(kept["entity"], name))["t"].to_pylist() == list(range(0, 20 * until, 10))
    t, clock = kept["t"].to_pylist(), kept["clock"].to_pylist()
    assert clock[1:] == [max(t[:i]) for i in range(1, len(t))]
    processor = FeedProcessor(feed.engine_feed(), log, FeedStore(feed, 1), Snapshots(files_of(tmp_path / "state")))
    processor.follow()
    while processor.process():
        pass
    audit = feed_audit(feed=feed)
    assert (audit.faults, audit.rows, IngestCounter.objects.get().received) == ([], 4 * until, 4 * until)
    assert audit.facts == Detection.objects.count() > 2
    assert FeedHead.objects.get().last_seq == 4 * until - 1


class ingests:
    """A process that forks ingests: `say` starts one, `hear` returns the words of the
    next line that they write."""

    def __init__(self, store: str) -> None:
        url = with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"])
        environment = {**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(ROOT), TESTING: "1", "VEDETTE_LOG_STORE": store}
        environment.pop(VARIABLE, None)
        command = [sys.executable, "-c", INGEST]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, bufsize=1)

    def __enter__(self) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        stdin, stdout = self.process.stdin, self.process.stdout

        def hear() -> list[str]:
            line = stdout.readline().split()
            assert line, "all processes have ended"
            return line

        return lambda line: stdin.write(line + "\n"), hear

    def __exit__(self, *_: object) -> None:
        timer = threading.Timer(60, self.process.kill)
        timer.start()
        self.process.communicate()
        timer.cancel()
