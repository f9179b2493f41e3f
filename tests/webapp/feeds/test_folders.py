"""Files in a feed's inbox: every row once, even if a process dies; no partial files; faults are
reported."""

import gzip
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.webapp.conftest import at_each_place
from tests.webapp.forked import forked
from webapp.feeds import folders
from webapp.feeds.folders import Inbox, is_complete
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed, IngestCounter

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "inbox", chunk_rows=3, quiet_s=0.0)


@pytest.fixture
def folder(inbox: Inbox, feed: Feed) -> Path:
    found = inbox.root / feed.name
    found.mkdir(parents=True)
    return found


def times(feed: Feed) -> list[int]:
    return [t for table in event_log(feed.name).read() for t in table["t"].to_pylist()]


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


CSV = "entity,t\n" + "".join(f"a,{n}\n" for n in range(8))


def test_files_of_every_format_are_read_and_moved_to_done(feed: Feed, inbox: Inbox, folder: Path) -> None:
    (folder / "1.csv").write_text(CSV)
    (folder / "2.jsonl.gz").write_bytes(gzip.compress(b'{"entity":"a","t":8}\nbad\n{"entity":"a","t":9}\n'))
    pq.write_table(pa.table({"entity": ["a"] * 4, "t": [10, 11, 12, None]}), folder / "3.parquet")
    inbox.scan([feed], budget_s=60)
    assert times(feed) == list(range(13))
    assert names(folder) == ["done/1.csv", "done/2.jsonl.gz", "done/3.parquet"]
    counter = IngestCounter.objects.get(feed=feed)
    assert (counter.received, counter.dead) == (15, 2)
    reported = set(DeadLetter.objects.values_list("source", "line", "reason"))
    assert reported == {("file:2.jsonl.gz", 2, "malformed"), ("file:3.parquet", None, "missing_t")}


def test_files_that_no_feed_takes_are_reported_once(feed: Feed, inbox: Inbox, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    misspelt = inbox.root / f"{feed.name}s"
    misspelt.mkdir()
    (misspelt / "a.csv").write_text(CSV)
    (inbox.root / "b.csv").write_text(CSV)
    (inbox.root / "empty").mkdir()
    (inbox.root / ".hidden").write_text("")
    (inbox.root / "c.csv.part").write_text("")
    (inbox.root / "nowhere").symlink_to("none")
    for _ in range(3):
        inbox.scan([feed], budget_s=60)
    said = sorted(record.getMessage() for record in caplog.records)
    assert said == [
        f"{inbox.root / 'b.csv'} is not read: files belong in the folder of their feed",
        f"{misspelt} is not read: unknown feed '{misspelt.name}'; did you mean '{feed.name}'? Known: {feed.name}",
    ]
    assert {"b.csv", f"{misspelt.name}/a.csv"} <= set(names(inbox.root))


def test_the_files_of_a_feed_that_is_set_aside_wait_unreported(feed: Feed, inbox: Inbox, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "a.csv").write_text(CSV)
    inbox.scan([], budget_s=60)
    assert caplog.records == [] and names(folder) == ["a.csv"]


def test_unreadable_files_are_moved_to_failed_with_the_reason(feed: Feed, inbox: Inbox, folder: Path) -> None:
    (folder / "a.csv").write_bytes(b"")
    (folder / "b.parquet").write_bytes(b"no parquet")
    (folder / "c.txt").write_text("?")
    (folder / "d.csv.gz").write_bytes(gzip.compress(CSV.encode())[:-9])
    inbox.scan([feed], budget_s=60)
    failed = ["a.csv", "b.parquet", "c.txt", "d.csv.gz"]
    assert names(folder) == sorted(f"failed/{name}{end}" for name in failed for end in ("", ".reason.txt"))
    assert "zero bytes" in (folder / "failed" / "a.csv.reason.txt").read_text()
    events = list(feed.events.filter(kind="unreadable").order_by("id").values_list("text", flat=True))
    assert len(events) == len(failed) and "a.csv" in events[0] and "zero bytes" in events[0]
    assert "Compressed file ended" in (folder / "failed" / "d.csv.gz.reason.txt").read_text()


def test_a_fault_of_the_reader_delays_no_other_file(feed: Feed, inbox: Inbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path, *_: Any) -> Any:
        if path.name == "1.csv":
            raise IndexError("list index out of range")
        return read_rows_of_file(path, *_)

    read_rows_of_file = folders.read_rows_of_file
    monkeypatch.setattr(folders, "read_rows_of_file", broken)
    for name in ("1.csv", "2.csv"):
        (folder / name).write_text(CSV)
    inbox.scan([feed], budget_s=60)
    assert names(folder) == ["done/2.csv", "failed/1.csv", "failed/1.csv.reason.txt"]
    assert "list index out of range" in (folder / "failed" / "1.csv.reason.txt").read_text()


def test_names_that_are_not_utf_8_are_read_and_reported(feed: Feed, inbox: Inbox, folder: Path) -> None:
    (folder / os.fsdecode(b"H\xe4fen.csv")).write_text(CSV)
    (folder / os.fsdecode(b"H\xe4fen.txt")).write_text("?")
    inbox.scan([feed], budget_s=60)
    assert times(feed) == [*range(8)]
    assert [os.fsencode(path.name) for path in (folder / "done").iterdir()] == [b"H\xe4fen.csv"]
    assert r"H\xe4fen.txt" in feed.events.get(kind="unreadable").text


def test_a_file_of_the_same_name_is_new_data_and_overwrites_nothing(feed: Feed, inbox: Inbox, folder: Path) -> None:
    for _ in range(2):
        (folder / "1.csv").write_text(CSV)
        inbox.scan([feed], budget_s=60)
    assert times(feed) == [*range(8), *range(8)]
    assert len(names(folder)) == 2


def test_a_file_that_is_being_written_is_not_read(feed: Feed, inbox: Inbox, folder: Path) -> None:
    for name in (".hidden.csv", "x.csv.part", "y.tmp"):
        (folder / name).write_text(CSV)
    with (folder / "slow.csv").open("w") as file:
        for line in CSV.splitlines(keepends=True):
            file.write(line)
            file.flush()
            inbox.scan([feed], budget_s=60)
        assert times(feed) == []
    inbox.scan([feed], budget_s=60)
    assert times(feed) == list(range(8))
    assert len(names(folder)) == 4


def test_a_file_that_changed_recently_is_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    assert not is_complete(path, 60.0)
    os.utime(path, (time.time() - 61, time.time() - 61))
    assert is_complete(path, 60.0)


def test_a_scan_is_interrupted_and_continued(feed: Feed, inbox: Inbox, folder: Path) -> None:
    (folder / "1.csv").write_text(CSV)
    inbox.scan([feed], budget_s=0)
    assert times(feed) == [0, 1, 2]
    for _ in range(5):
        inbox.scan([feed], budget_s=0)
    assert (times(feed), names(folder)) == (list(range(8)), ["done/1.csv"])


def scan(root: Path) -> None:
    Inbox(root, chunk_rows=3, quiet_s=0.0).scan(list(Feed.objects.all()), budget_s=60)


READ = ("ingest.after_append", "folder.after_chunk", "folder.after_move")


@at_each_place(
    folder=("log.before_rename", "log.after_rename", *READ), store=("log.before_order", "log.before_order_commit", "log.after_order", *READ)
)
def test_every_row_of_a_file_arrives_once_despite_kills(log_form: str, feed: Feed, inbox: Inbox, folder: Path, settings: Any, place: str) -> None:
    (folder / "1.csv").write_text(CSV + "bad\n")
    failpoints = f"{place}=kill@{1 if place == 'folder.after_move' else 2}"
    assert forked(scan, inbox.root, failpoints=failpoints) == (-signal.SIGKILL, None)
    inbox.scan([feed], budget_s=60)
    counter = IngestCounter.objects.get(feed=feed)
    assert (times(feed), counter.received, counter.dead, DeadLetter.objects.count()) == (list(range(8)), 9, 1, 1)
    assert names(folder) == ["done/1.csv"]


def test_each_unreadable_file_keeps_its_own_reason_under_one_name(feed: Feed, inbox: Inbox, folder: Path) -> None:
    for content in (b"", b"mmsi;ts\n1;2\n"):
        (folder / "a.csv").write_bytes(content)
        inbox.scan([feed], budget_s=60)
    failed = folder / "failed"
    assert "zero bytes" in (failed / "a.csv.reason.txt").read_text()
    (second,) = (path for path in failed.glob("a-*.csv"))
    assert "semicolons" in (failed / f"{second.name}.reason.txt").read_text()


def test_a_slow_writer_beside_scans_is_never_read_in_part(feed: Feed, inbox: Inbox, folder: Path) -> None:
    done = threading.Event()

    def write() -> None:
        with (folder / "slow.csv").open("w") as file:
            for line in CSV.splitlines(keepends=True):
                file.write(line)
                file.flush()
                time.sleep(0.01)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        inbox.scan([feed], budget_s=60)
    writer.join()
    inbox.scan([feed], budget_s=60)
    assert times(feed) == list(range(8))


def test_a_file_whose_header_names_no_entity_goes_to_failed_with_what_was_seen(feed: Feed, inbox: Inbox, folder: Path) -> None:
    (folder / "ais.csv").write_text("mmsi;ts;lon;lat\n1;2;3;4\n")
    pq.write_table(pa.table({"mmsi": ["a"], "ts": [1]}), folder / "ais.parquet")
    inbox.scan([feed], budget_s=60)
    assert names(folder) == ["failed/ais.csv", "failed/ais.csv.reason.txt", "failed/ais.parquet", "failed/ais.parquet.reason.txt"]
    assert "'mmsi;ts;lon;lat'" in (folder / "failed" / "ais.csv.reason.txt").read_text()
    assert "semicolons" in (folder / "failed" / "ais.csv.reason.txt").read_text()
    assert "'mmsi', 'ts'" in (folder / "failed" / "ais.parquet.reason.txt").read_text()
    assert times(feed) == []
