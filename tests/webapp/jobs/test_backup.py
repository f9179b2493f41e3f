"""A backup of a running instance is consistent: restored elsewhere, it is exact and continues."""

from __future__ import annotations

import os
import tarfile
import threading
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from engine.model.events import row_schema
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.segments import list_segments
from tests.crash.outage import pointed_at
from webapp.detections.models import Detection
from webapp.feeds.ingest import Delivery, ingest
from webapp.feeds.logs import states_of
from webapp.feeds.maintenance import feed_maintain
from webapp.feeds.models import Feed, IngestCounter
from webapp.feeds.recent import log_of
from webapp.jobs.models import FeedHead
from webapp.platform import backup
from webapp.platform.backup import BackupError, unpack
from webapp.platform.postgres import fresh_database, with_database
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


def processor_of(feed: Feed, epoch: int) -> FeedProcessor:
    return FeedProcessor(feed.engine_feed(), log_of(feed), FeedStore(feed, epoch), Snapshots(states_of(feed.name)))


class Stream(threading.Thread):
    """Rows arrive, are processed and compacted, until `stopping` is set."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(daemon=True)
        self.feed, self.stopping, self.rounds, self.error = feed, threading.Event(), 0, None

    def run(self) -> None:
        try:
            processor = processor_of(self.feed, 1)
            processor.follow()
            while not self.stopping.is_set():
                t = range(1000 * self.rounds, 1000 * self.rounds + 1000, 100)
                rows = [{"event": "position", "entity": "a", "t": at, "x": float(at // 100 % 20), "y": 1.0} for at in t]
                ingest(self.feed, Delivery(pa.Table.from_pylist(rows, schema=row_schema(self.feed.engine_feed())), key=f"k{self.rounds}"))
                processor.process()
                if self.rounds % 5 == 4:
                    feed_maintain(feed=self.feed)
                self.rounds += 1
        except Exception as error:
            self.error = error
        finally:
            connection.close()


@pytest.mark.parametrize("shared", [False, True], ids=["folder", "store"])
def test_a_running_instance_is_restored_elsewhere_exactly(
    shared: bool, feed: Feed, query: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR, settings.VEDETTE_LOG_STORE = tmp_path, str(tmp_path / "store") if shared else ""
    stream = Stream(feed)
    stream.start()
    while stream.rounds < 8 and stream.is_alive():
        stream.join(0.05)
    file = tmp_path / "vedette.tar"
    began, dump = stream.rounds, backup.dump

    def late(*arguments: Any) -> None:
        """The database is read after rows have arrived and were processed and compacted
        since the log was listed."""
        while stream.rounds < began + 6 and stream.is_alive():
            stream.join(0.05)
        dump(*arguments)

    def slowly(folder: Path) -> Any:
        """Between listing two folders of the log a segment could move: one compaction merges
        it, and the next removes it."""
        found, until = list_segments(folder), time.monotonic() + 3.0
        while folder.name == "history" and stream.rounds < began + 11 and stream.is_alive() and time.monotonic() < until:
            stream.join(0.05)
        return found

    monkeypatch.setattr(backup, "dump", late)
    monkeypatch.setattr(backup, "list_segments", slowly)
    call_command("backup", str(file), stdout=StringIO())
    stream.stopping.set()
    stream.join()
    assert stream.error is None
    assert list(tmp_path.glob(".backup-*")) == [], "no temporary folder is left"
    newest = FeedHead.objects.get().last_seq

    elsewhere, settings.VEDETTE_LOG_STORE = tmp_path / "elsewhere", ""
    settings.VAR, settings.EVENT_LOG_ROOT = elsewhere, elsewhere / "log"
    settings.CHECKPOINT_ROOT, settings.MEDIA_ROOT = elsewhere / "checkpoints", elsewhere / "media"
    owner_url = fresh_database(os.environ.get("DATABASE_OWNER_URL") or os.environ["DATABASE_URL"], "restored")
    with pointed_at(with_database(os.environ["DATABASE_URL"], "restored"), owner_url):
        call_command("restore", str(file), stdout=StringIO())
        restored = Feed.objects.get(name="yard")
        head = FeedHead.objects.get()
        assert 80 <= head.last_seq + 1 <= newest
        assert (elsewhere / "checkpoints" / "yard" / "state" / head.snapshot).is_file() and head.snapshot
        audit = feed_audit(feed=restored)
        assert (audit.faults, audit.rows) == ([], head.last_seq + 1)
        assert audit.facts == Detection.objects.count() > 4
        ingest(restored, Delivery(log_of(restored).tail(0).slice(0, 0).select(row_schema(restored.engine_feed()).names)))
        processor_of(restored, head.epoch + 1).process()
        assert feed_audit(feed=restored).faults == []
        assert IngestCounter.objects.get().received == log_of(restored).end[0] == FeedHead.objects.get().last_seq + 1
        with pytest.raises(CommandError, match="not empty"):
            call_command("restore", str(file), stdout=StringIO())


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.REGTYPE])
def test_an_archive_with_paths_outside_its_folder_is_refused(kind: bytes, tmp_path: Path) -> None:
    """Without Python's filter for archives, which 3.11.2 lacks."""
    member = tarfile.TarInfo("../outside" if kind == tarfile.REGTYPE else "inside")
    member.type, member.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "made-up.tar", "w") as archive:
        archive.addfile(member)
    (tmp_path / "staging").mkdir()
    with pytest.raises(BackupError, match="nothing that a backup holds"):
        unpack(tmp_path / "made-up.tar", tmp_path / "staging")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made-up.tar", "staging"]


def test_the_file_is_the_operators_alone_whatever_an_attempt_before_has_left(tmp_path: Path) -> None:
    (tmp_path / "staging").mkdir()
    left = tmp_path / "vedette.tar.part"
    left.touch()
    left.chmod(0o644)
    backup.pack(tmp_path / "staging", tmp_path / "vedette.tar", {})
    assert (tmp_path / "vedette.tar").stat().st_mode & 0o777 == 0o600 and not left.exists()


def test_a_damaged_backup_is_refused_by_the_file_that_is_damaged(feed: Feed, settings: Any, tmp_path: Path) -> None:
    settings.VAR = tmp_path / "here"
    file = tmp_path / "vedette.tar"
    call_command("backup", str(file), stdout=StringIO())
    with tarfile.open(file) as archive:
        place = archive.getmember("database.dump").offset_data
    content = bytearray(file.read_bytes())
    content[place + 100] ^= 1
    file.write_bytes(content)
    owner_url = fresh_database(os.environ.get("DATABASE_OWNER_URL") or os.environ["DATABASE_URL"], "restored")
    with pointed_at(with_database(os.environ["DATABASE_URL"], "restored"), owner_url), pytest.raises(CommandError, match=r"database.dump is damaged"):
        call_command("restore", str(file), stdout=StringIO())


def test_a_file_that_is_not_there_is_named_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command of the operator runs in the project's folder, wherever the operator is."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(backup.BackupError, match=f"there is no file {tmp_path / 'none.tar'}"):
        backup.unpack(Path("none.tar"), tmp_path)


def test_a_file_that_is_there_is_replaced_only_when_asked_to(feed: Feed, settings: Any, tmp_path: Path) -> None:
    settings.VAR = tmp_path / "here"
    file = tmp_path / "vedette.tar"
    file.write_text("the backup of yesterday")
    with pytest.raises(CommandError, match=r"is there already.*--replace"):
        call_command("backup", str(file), stdout=StringIO())
    assert file.read_text() == "the backup of yesterday"
    with pytest.raises(CommandError, match="is a folder: name a file in it"):
        call_command("backup", str(tmp_path), stdout=StringIO())
    said = StringIO()
    call_command("backup", str(file), replace=True, stdout=said)
    assert tarfile.is_tarfile(file) and f"{file}: 1 feed, " in said.getvalue()


def test_a_folder_that_is_not_there_is_named_before_anything_is_copied(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.VAR = tmp_path / "here"
    monkeypatch.setattr(backup, "staged", lambda folder: pytest.fail("it copies"))
    with pytest.raises(CommandError, match=f"{tmp_path / 'away'} is no folder that this user may write to"):
        call_command("backup", str(tmp_path / "away" / "vedette.tar"), stdout=StringIO())


def test_without_the_owner_the_variable_that_is_missing_is_named(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The application's role may not read tables that the owner has made since."""

    def refused(*arguments: Any) -> None:
        raise BackupError("pg_dump failed: permission denied for table detections_p02916")

    monkeypatch.setattr(backup, "dump", refused)
    settings.VAR, settings.DATABASE_OWNER = tmp_path / "here", {}
    with pytest.raises(CommandError, match=r"^DATABASE_OWNER_URL is not set, and only the owner"):
        call_command("backup", str(tmp_path / "vedette.tar"), stdout=StringIO())
