"""The event log in one process: rows, idempotency keys, spans of time, compaction."""

import os
import random
import tempfile
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.failpoints import VARIABLE
from engine.sources.appends import Appended, AppendEntry
from engine.sources.eventlog import EventLog
from engine.sources.segment_times import TailRequest
from engine.sources.segments import Segment, SegmentGap, list_segments, without_overlaps
from tests.engine.sources.log_rows import rows, stored, times


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path, "city")


# -- appending and reading -------------------------------------------------------------------------


def test_an_empty_log_has_no_rows_and_ends_at_zero(log: EventLog) -> None:
    assert (log.end, list(log.read()), log.segments(), log.start) == ((0, None), [], [], 0)
    assert log.tail(0).num_rows == 0


def test_rows_get_their_number_and_the_greatest_time_before_them(log: EventLog) -> None:
    assert log.append(rows(5, 3)) == Appended(0, 1)
    assert log.append(rows(9, 4)) == Appended(2, 3)
    found = stored(log)
    assert [(seq, t) for seq, t, _ in found] == [(0, 5), (1, 3), (2, 9), (3, 4)]
    assert [clock for _, _, clock in found][1:] == [5, 5, 9]
    assert found[0][2] is None or found[0][2] < 5
    assert log.end == (4, 9)


def test_segments_are_readable_only_by_their_owner(log: EventLog) -> None:
    log.folder.mkdir(mode=0o755)
    log.append(rows(1))
    assert log.folder.stat().st_mode & 0o777 == 0o700, "also of a log that an older release made"
    assert EventLog(log.folder.parent, "harbour").append(rows(1)) and log.folder.with_name("harbour").stat().st_mode & 0o777 == 0o700


def test_an_append_without_rows_writes_nothing(log: EventLog) -> None:
    assert log.append(rows()) == Appended(0, -1)
    assert log.segments() == []


def test_file_names_hold_negative_times(log: EventLog) -> None:
    log.append(rows(-7, -9))
    assert log.end == (2, -7)
    assert [s.path.name.partition(".")[0] for s in log.segments()] == ["00000000000000000000-2--7"]


def test_modification_times_increase_by_a_millisecond_at_least(log: EventLog) -> None:
    for t in range(30):
        log.append(rows(t))
    stamps = [s.path.stat().st_mtime_ns // 1_000_000 for s in log.segments()]
    assert stamps == sorted(set(stamps))


def test_modification_times_increase_even_when_the_clock_was_ahead(log: EventLog) -> None:
    log.append(rows(1))
    ahead = time.time_ns() + 3_600_000_000_000
    os.utime(log.segments()[0].path, ns=(ahead, ahead))
    log.append(rows(2))
    assert log.segments()[1].path.stat().st_mtime_ns // 1_000_000 == ahead // 1_000_000 + 1


def test_part_of_the_log_is_read_across_segments(log: EventLog) -> None:
    for t in range(0, 30, 3):
        log.append(rows(t, t + 1, t + 2))
    assert times(log, 4, 17) == list(range(4, 17))
    assert times(log, 28) == [28, 29]
    assert times(log, 30) == times(log, 7, 7) == []


def test_columns_can_be_chosen_and_added_later(log: EventLog) -> None:
    log.append(rows(1, sog=2.5))
    log.append(rows(2, sog=3.5, name="x"))
    assert [table.to_pydict() for table in log.read(columns=["t", "name"])] == [{"t": [1]}, {"t": [2], "name": ["x"]}]
    log.compact(1)
    assert [table.to_pydict() for table in log.read(columns=["t", "name"])] == [{"t": [1, 2], "name": [None, "x"]}]


def test_a_column_that_changed_its_type_keeps_both(log: EventLog) -> None:
    log.append(rows(1, value=1))
    log.append(rows(2, value="one"))
    assert log.compact(1) == 2
    assert [table["value"].to_pylist() for table in log.read()] == [[1], ["one"]]


def test_small_segments_are_joined_for_readers(log: EventLog) -> None:
    for t in range(20):
        log.append(rows(t))
    assert [table.num_rows for table in log.read()] == [20]


# -- keys ------------------------------------------------------------------------------------------


def test_an_idempotency_key_is_appended_once(log: EventLog) -> None:
    first = log.append(rows(1, 2), key="k")
    log.append(rows(3))
    again = log.append(rows(1, 2), key="k")
    assert again == Appended(first.first_seq, first.last_seq, repeated=True)
    assert times(log) == [1, 2, 3]


def test_a_key_is_found_by_another_writer_and_its_note_is_kept(tmp_path: Path) -> None:
    EventLog(tmp_path, "f").append(rows(1), key="k", note={"dead": 2})
    log = EventLog(tmp_path, "f")
    assert log.append(rows(1), key="k").repeated
    assert list(log.entries()) == [AppendEntry(0, 1, "k", {"dead": 2})]
    assert list(log.entries(1)) == []


def test_one_idempotency_key_from_many_threads_is_written_once(log: EventLog) -> None:
    answers: list[Appended] = []
    threads = [threading.Thread(target=lambda: answers.append(log.append(rows(7), key="k"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert times(log) == [7]
    assert sorted(a.repeated for a in answers) == [False] + [True] * 15


def test_concurrent_appends_share_one_segment(log: EventLog) -> None:
    answers: dict[int, Appended] = {}
    with log.locked():
        threads = [threading.Thread(target=lambda t=t: answers.update({t: log.append(rows(t), key=str(t))})) for t in range(20)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    # The first append leads, the others follow it.
    assert len(log.segments()) == 2
    assert {t: times(log, a.first_seq, a.last_seq + 1) for t, a in answers.items()} == {t: [t] for t in range(20)}
    assert [e.key for e in log.entries()] == [str(t) for t in times(log)]


def test_every_waiting_append_gets_a_disk_error_and_the_log_stays_usable(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "log.before_rename=raise")
    with pytest.raises(OSError, match=r"log\.before_rename"):
        log.append(rows(1))
    monkeypatch.delenv(VARIABLE)
    assert list(log.tmp.iterdir()) == []
    assert log.append(rows(2)) == Appended(0, 0)


# -- time ------------------------------------------------------------------------------------------


def test_tail_returns_a_time_span_for_all_or_some_entities(log: EventLog) -> None:
    log.append(rows(1, 5, entity="a"))
    log.append(rows(3, 9, entity="b"))
    log.append(rows(2, entity="c"))
    assert log.tail(3)["t"].to_pylist() == [5, 3, 9]
    assert log.tail(2, 5)["t"].to_pylist() == [3, 2]
    assert log.tail(0, entities=["b", "c"], columns=["t"]).to_pydict() == {"t": [3, 9, 2]}
    log.compact(3)
    assert log.tail(3)["t"].to_pylist() == [5, 3, 9]


def test_tail_opens_no_segment_that_ended_before(log: EventLog) -> None:
    log.append(rows(1))
    log.append(rows(9))
    log.segments()[0].path.write_bytes(b"not opened")
    assert log.tail(2)["t"].to_pylist() == [9]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first numbers of the segments that `tail` opens from here on."""
    found: list[int] = []
    whole = Segment.opened

    def counted(segment: Segment) -> AbstractContextManager[pq.ParquetFile]:
        found.append(segment.first_seq)
        return whole(segment)

    monkeypatch.setattr(Segment, "opened", counted)
    return found


@pytest.mark.parametrize("compacted", [-1, 39, 99])
def test_a_bounded_span_opens_only_segments_that_may_hold_it(log: EventLog, opened: list[int], compacted: int) -> None:
    for t in range(0, 1000, 10):
        log.append(rows(t))
    log.compact(compacted)
    opened.clear()
    assert log.tail(500, 530, lateness=20)["t"].to_pylist() == [500, 510, 520]
    # The row of 550 is the last that could have brought one of 529 in time.
    reaching = [s.first_seq for s in log.segments() if s.max_t >= 500 and s.first_seq <= 55]
    assert opened == reaching and (len(reaching) == 6 or compacted == 99)
    opened.clear()
    log.tail(500, 530)
    assert len(opened) == sum(s.max_t >= 500 for s in log.segments()), "late rows may be anywhere"


def test_on_time_rows_are_found_however_far_behind_the_clock(log: EventLog) -> None:
    for t in (100, 120, 119, 101, 100, 130, 109, 120, 140, 120, 141, 120):
        log.append(rows(t))
    # After 120, 100 is in time; after 130, 109 is late; after 140, 120 is the last that is in
    # time, and after 141 late.
    assert log.tail(100, 121, lateness=20)["t"].to_pylist() == [100, 120, 119, 101, 100, 120, 120]
    assert log.tail(100, 121)["t"].to_pylist() == [100, 120, 119, 101, 100, 109, 120, 120, 120]


def test_tail_holds_at_most_one_row_group_besides_its_result(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sources.compaction.GROUP_ROWS", 50)
    for first in range(0, 1000, 50):
        log.append(rows(*range(first, first + 50)))
    log.compact(999)
    sizes = []
    among = TailRequest.among
    monkeypatch.setattr(TailRequest, "among", lambda wanted, table: sizes.append(table.num_rows) or among(wanted, table))
    assert log.tail(0, 1000, columns=["t"], entities=["nobody"]).num_rows == 0
    assert sizes == [50] * 20 and len(log.segments()) == 1


@pytest.mark.parametrize("compacted", [-1, 499, 999])
def test_the_rows_of_a_span_are_found_within_a_large_file(log: EventLog, compacted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lateness, chance = 20, random.Random(3)
    monkeypatch.setattr("engine.sources.compaction.GROUP_ROWS", 50)
    for first in range(0, 1000, 50):
        log.append(rows(*(t - chance.randrange(30) for t in range(first, first + 50))))
    log.compact(compacted)
    known = stored(log)
    for _ in range(200):
        from_t = chance.randrange(-50, 1050)
        to_t = from_t + chance.randrange(1, 120)
        wanted = [seq for seq, t, clock in known if from_t <= t < to_t and (clock is None or t >= clock - lateness)]
        span = log.numbers_of(from_t, to_t, lateness)
        assert all(span.first <= seq < span.stop for seq in wanted)
        assert span.rows <= to_t - from_t + 3 * 50 + 2 * (lateness + 30)
    assert EventLog(log.folder.parent, "empty").numbers_of(0, 9, 0).rows == 0


def test_only_the_oldest_history_is_dropped(log: EventLog) -> None:
    for t in (10, 20, 30):
        log.append(rows(t, t - 5))
        log.compact(log.end[0] - 1)
    assert log.drop_before(20) == 2
    assert (times(log), log.start, log.end) == ([20, 15, 30, 25], 2, (6, 30))
    assert log.drop_before(1000) == 2
    assert (times(log), log.end) == ([30, 25], (6, 30))
    assert log.append(rows(1)) == Appended(6, 6)


# -- compaction ------------------------------------------------------------------------------------


def test_only_whole_segments_up_to_the_position_are_compacted(log: EventLog) -> None:
    for t in (0, 2, 4):
        log.append(rows(t, t + 1))
    assert log.compact(4) == 2
    assert ([s.first_seq for s in list_segments(log.live)], [s.rows for s in list_segments(log.history)]) == ([4], [4])
    assert times(log) == list(range(6))
    assert log.compact(5) == 1
    assert list_segments(log.live) == []
    assert log.append(rows(6)) == Appended(6, 6)


def test_small_history_files_are_joined(log: EventLog) -> None:
    for t in range(200):
        log.append(rows(t))
        log.compact(t)
    assert len(list_segments(log.history)) < 30
    assert times(log) == list(range(200))


def test_overlapping_segments_are_ignored_and_gaps_are_errors() -> None:
    def segment(first: int, n: int) -> Segment:
        return Segment(first, n, 0, Path(f"{first}-{n}"))

    assert without_overlaps([segment(0, 2), segment(0, 6), segment(2, 2), segment(6, 1)]) == [segment(0, 6), segment(6, 1)]
    with pytest.raises(SegmentGap, match="rows 2 to 2 are missing"):
        without_overlaps([segment(0, 2), segment(3, 1)])


@pytest.mark.parametrize("place", ["log.before_delete", "log.in_delete"])
def test_a_crash_during_compaction_loses_no_rows(log: EventLog, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for t in range(10):
        log.append(rows(t))
    monkeypatch.setenv(VARIABLE, f"{place}=raise")
    with pytest.raises(OSError, match=place):
        log.compact(7)
    monkeypatch.delenv(VARIABLE)
    assert times(log) == list(range(10))
    assert log.append(rows(10)) == Appended(10, 10)
    log.compact(8)
    assert times(log) == list(range(11))
    assert [s.first_seq for s in list_segments(log.live)] == [9, 10]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(-5, 40), max_size=4), st.sampled_from([None, "k", "l"])),
        st.tuples(st.just("compact"), st.integers(-1, 30)),
        st.tuples(st.just("drop"), st.integers(-5, 40)),
        st.tuples(st.just("read"), st.integers(0, 20), st.integers(0, 25)),
        st.tuples(st.just("reopen")),
    ),
    max_size=25,
)


@given(steps=STEPS)
def test_the_log_behaves_like_a_list(steps: list[tuple]) -> None:
    """Model: all rows ever appended with their clock; a key returns its first
    append while that is live."""
    with tempfile.TemporaryDirectory() as folder:
        log, model, keys = EventLog(folder, "f"), [], {}
        for step in steps:
            if step[0] == "append":
                _, ts, key = step
                answer = log.append(rows(*ts), key=key)
                live = [e.key for e in log.entries()]
                if key in keys and answer.repeated:
                    assert (answer.first_seq, answer.last_seq) == keys[key]
                    continue
                assert not answer.repeated
                assert (answer.first_seq, answer.last_seq) == (len(model), len(model) + len(ts) - 1)
                model += ts
                if key is not None and ts:
                    assert key in live
                    keys[key] = (answer.first_seq, answer.last_seq)
            elif step[0] == "compact":
                log.compact(step[1])
                keys = {e.key: (e.appended.first_seq, e.appended.last_seq) for e in log.entries() if e.key}
            elif step[0] == "drop":
                log.drop_before(step[1])
                assert all(t < step[1] for t in model[: log.start])
            elif step[0] == "read":
                start = max(step[1], log.start)
                assert times(log, step[1], step[2]) == model[start : step[2]]
            else:
                log = EventLog(folder, "f")
            kept = stored(log)
            assert [t for _, t, _ in kept] == model[log.start :]
            assert [c for s, _, c in kept if s > 0] == [max(model[:s]) for s, _, _ in kept if s > 0]
            assert log.end == (len(model), max(model) if model else None)
            wanted = [t for t in model[log.start :] if 5 <= t < 20]
            assert (log.tail(5, 20)["t"].to_pylist() if model else []) == wanted
            in_time = [t for s, t, c in kept if 5 <= t < 20 and (s == 0 or t >= c - 3)]
            assert (log.tail(5, 20, lateness=3)["t"].to_pylist() if model else []) == in_time


def test_segments_are_plain_parquet_with_stamps(log: EventLog) -> None:
    log.append(rows(4, sog=1.5))
    table = pq.read_table(log.segments()[0].path)
    assert table.column_names == ["event", "entity", "t", "sog", "seq", "clock"]
    assert table.schema.field("seq").type == table.schema.field("clock").type == pa.int64()


def test_a_log_that_has_not_grown_is_recognised_without_reading_it(tmp_path: Path) -> None:
    log = EventLog(tmp_path, "yard")
    assert not log.grown_since(0)
    log.append(rows(1))
    looked_ns = time.time_ns()
    assert log.grown_since(looked_ns), "a file system's clock is not fine enough to tell"
    later_ns = looked_ns + 1_000_000_000
    assert not log.grown_since(later_ns)
    os.utime(log.live, ns=(later_ns, later_ns))
    assert log.grown_since(later_ns)
