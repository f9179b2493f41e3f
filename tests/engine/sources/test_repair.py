"""Damage of any byte of a log is detected, and repaired: nothing readable is lost, and no wrong row
is read."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.model.events import stamped_schema
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.sources import segments
from engine.sources.eventlog import EventLog
from engine.sources.repair import LOST, LogExtent, repair
from engine.sources.segments import LogDamaged

FEED = Feed("city", Crs.PLANAR, TimeUnit.MS, columns={"speed": ColumnType.FLOAT})
SCHEMA = stamped_schema(FEED)
COLUMNS = ["event", "entity", "t", "speed", "seq", "clock"]
Row = dict[str, object]


def rows(first: int, count: int = 3) -> pa.Table:
    """Rows with increasing times, every second one a step back."""
    t = [10 * n - 15 * (n % 2) for n in range(first, first + count)]
    return pa.table({"event": ["position"] * count, "entity": [f"e{n}" for n in t], "t": t, "speed": [n / 7 for n in t]})


def read(log: EventLog) -> list[Row]:
    tables = list(log.read())
    return pa.concat_tables(tables, promote_options="permissive").select(COLUMNS).to_pylist() if tables else []


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    """Two files of history, four live ones, three rows an append; 24 rows."""
    log = EventLog(tmp_path, "city")
    for first in range(0, 24, 3):
        log.append(rows(first), key=f"k{first}", note={"received": 3})
        if first in (3, 9):
            log.compact(first + 2)
    return log


def files(log: EventLog) -> list[Path]:
    return sorted([*log.history.glob("*.parquet"), *log.live.glob("*.parquet")], key=lambda path: path.name)


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << (position % 8)
    path.write_bytes(content)


def test_readers_detect_any_flipped_bit(log: EventLog) -> None:
    chance = random.Random(18)
    for path in files(log):
        content = path.read_bytes()
        for position in chance.sample(range(len(content)), 40):
            flip(path, position)
            with pytest.raises(LogDamaged) as damage:
                read(log)
            assert damage.value.file == path and damage.value.feed == "city"
            path.write_bytes(content)
    assert len(read(log)) == 24


def test_tail_entries_and_compaction_detect_damage(log: EventLog) -> None:
    flip(files(log)[-1], 200)
    for look in (lambda: log.tail(0), lambda: list(log.entries()), lambda: log.compact(23), lambda: log.verify(0, 24)):
        with pytest.raises(LogDamaged, match="checksum"):
            look()
    log.append(rows(24))
    assert log.end[0] == 27, "rows still come in"


def test_segments_of_older_releases_are_read_without_a_check_sum(log: EventLog) -> None:
    before = read(log)
    for path in files(log):
        path.rename(path.with_name(path.name.split(".")[0] + ".parquet"))
    assert read(log) == before
    log.compact(23)
    log.append(rows(24))
    assert read(log)[:24] == before


def test_a_file_with_another_name_and_one_with_other_rows_are_damage(log: EventLog) -> None:
    stray = log.live / "notes.parquet"
    stray.write_bytes(b"")
    with pytest.raises(LogDamaged, match="name of a segment"):
        log.segments()
    assert repair(log, SCHEMA, LogExtent()) == []
    assert not stray.exists() and len(read(log)) == 24
    path = files(log)[-1]
    path.rename(path.with_name(path.name.split(".")[0].replace("-3-", "-4-") + ".parquet"))
    with pytest.raises(LogDamaged, match="rows in the file: 3"):
        read(log)


def truncated(log: EventLog, chance: random.Random) -> None:
    path = chance.choice(files(log))
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def flipped(log: EventLog, chance: random.Random) -> None:
    path = chance.choice(files(log))
    flip(path, chance.randrange(path.stat().st_size))


def removed(log: EventLog, chance: random.Random) -> None:
    chance.choice(files(log)[1:]).unlink()


@pytest.mark.parametrize("harm", [truncated, flipped, removed])
@pytest.mark.parametrize("seed", range(8))
def test_repair_keeps_readable_rows_and_counts_the_others(log: EventLog, harm: Callable[[EventLog, random.Random], None], seed: int) -> None:
    before, end = read(log), log.end
    chance = random.Random(seed)
    for _ in range(1 + seed % 3):
        harm(log, chance)
    done = repair(log, SCHEMA, LogExtent(*end))
    lost = {seq for one in done for seq in one.lost}
    after = read(log)
    assert log.end == end
    assert [row["seq"] for row in after] == list(range(24))
    assert [row for row in after if row["seq"] not in lost] == [row for row in before if row["seq"] not in lost]
    stand_ins = [row for row in after if row["seq"] in lost]
    assert all(row["entity"] == LOST and row["event"] == "$heartbeat" for row in stand_ins)
    # The clock of later rows is unchanged: late rows stay late.
    assert (
        [max(row["t"] for row in after[:n]) for n in range(1, 24) if n not in lost]
        == [  # type: ignore[type-var]
            max(row["t"] for row in before[:n])
            for n in range(1, 24)
            if n not in lost  # type: ignore[type-var]
        ]
    )
    assert repair(log, SCHEMA, LogExtent(*end)) == [], "once repaired, nothing is left to do"
    log.append(rows(24))
    log.compact(26)
    log.drop_before(-100)
    assert len(read(log)) == 27
    # Damaged files are kept.
    assert harm is removed or list((log.folder / "damaged").iterdir())


def test_row_groups_that_are_whole_are_kept(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sources.compaction.GROUP_ROWS", 3)
    log.compact(23)
    path = max(log.history.glob("*.parquet"), key=lambda path: path.name)
    with pq.ParquetFile(path) as file:
        assert file.num_row_groups > 1
        column = file.metadata.row_group(1).column(2)
    flip(path, column.data_page_offset + column.total_compressed_size - 1)
    (done,) = repair(log, SCHEMA, LogExtent())
    assert (len(done.lost), done.kept) == (3, done.next_seq - done.first_seq - 3)


def test_a_log_that_lost_its_end_does_not_reuse_sequence_numbers(log: EventLog) -> None:
    end = log.end
    for path in files(log)[-2:]:
        path.unlink()
    (done,) = repair(log, SCHEMA, LogExtent(*end))
    assert (list(done.lost), log.end) == (list(range(18, 24)), end)


def test_a_removed_log_continues_after_its_last_number(log: EventLog) -> None:
    end = log.end
    for path in files(log):
        path.unlink()
    (done,) = repair(log, SCHEMA, LogExtent(*end, needed_from=20))
    assert (list(done.lost), log.end, log.start) == ([20, 21, 22, 23], end, 20)
    log.append(rows(24))
    assert read(log)[-1]["seq"] == 26


def test_the_check_sum_of_an_unchanged_large_file_is_computed_once(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jumps through a day of history open the same files again and again: a checksum over 20 MB
    each time was most of the wait."""
    summed: list[str] = []
    crc_of = segments.crc_of
    monkeypatch.setattr("engine.sources.segments.WHOLE_BYTES", 100)
    monkeypatch.setattr("engine.sources.segments.crc_of", lambda file: (summed.append(Path(file.name).name), crc_of(file))[1])
    whole = read(log)
    assert sorted(summed) == sorted(path.name for path in files(log))
    assert read(log) == whole
    assert len(summed) == len(files(log))
    path = files(log)[0]
    state = path.stat()
    flip(path, state.st_size // 2)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(LogDamaged):
        read(log)


def test_verification_reads_the_file_again(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """An explicit verification must not use a cached result."""
    monkeypatch.setattr("engine.sources.segments.WHOLE_BYTES", 100)
    read(log)
    looked_at: list[object] = []
    crc_of = segments.crc_of
    monkeypatch.setattr("engine.sources.segments.crc_of", lambda file: (looked_at.append(file), crc_of(file))[1])
    log.segments()[0].verify()
    assert len(looked_at) == 1
