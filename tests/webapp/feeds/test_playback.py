"""The player: every row once, in file order, at its pace, despite
interruptions. It needs no database."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from webapp.feeds.client import IngestClient
from webapp.feeds.playback import Move, Player, Recording

FEED = Feed("sea", Crs.GEOGRAPHIC, TimeUnit.MS, columns={"sog": ColumnType.FLOAT})


class Server(IngestClient):
    """Stores what is sent, once for each key; fails at the calls in `fails`, after storing."""

    def __init__(self, fails: tuple[int, ...] = ()) -> None:
        super().__init__("http://127.0.0.1:1", "token")
        self.fails, self.calls = fails, 0
        self.stored: dict[str, pa.Table] = {}

    def send(self, feed: str, rows: pa.Table, *, key: str | None = None) -> dict[str, Any]:
        assert key is not None
        assert key not in self.stored or self.stored[key].equals(rows)
        self.stored[key] = rows
        self.calls += 1
        if self.calls in self.fails:
            raise ConnectionError("killed")
        return {"late": 0, "dead": 0, "dead_letters": []}

    @property
    def times(self) -> list[int]:
        return [t for rows in self.stored.values() for t in rows["t"].to_pylist()]


class Time:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, []

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    path = tmp_path / "sea.csv"
    path.write_text("mmsi,t,x,y,sog\n" + "".join(f"v{n % 3},{1000 * n},1,2,{n}\n" for n in range(20)) + "broken\n")
    return Recording(path, FEED, {"entity": "mmsi"})


def player(server: Server, recording: Recording, rate: float | None = None) -> tuple[Player, Time]:
    clock = Time()
    return Player(server, recording, recording.path.parent / "notes.json", rate, sleep=clock.sleep, clock=lambda: clock.now), clock


def test_all_rows_are_sent_in_order_and_unreadable_ones_are_reported(recording: Recording) -> None:
    server, unread = Server(), []
    one, _ = player(server, recording)
    one.unread = unread.append
    assert one.play().end == 20
    assert (server.times, unread, server.calls) == ([1000 * n for n in range(20)], [1], 1)
    assert next(iter(server.stored.values()))["entity"].to_pylist()[:4] == ["v0", "v1", "v2", "v0"]
    assert not one.notes.exists()


def test_rows_wait_for_their_time(recording: Recording) -> None:
    server = Server()
    one, clock = player(server, recording, rate=2.0)
    one.play()
    assert (len(server.stored), clock.slept) == (20, [0.5] * 19)
    assert server.times == [1000 * n for n in range(20)]


@pytest.mark.parametrize("rate", [None, 2.0])
@pytest.mark.parametrize("killed", [(1,), (1, 2, 5)])
def test_an_interrupted_run_continues_without_duplicates(recording: Recording, rate: float | None, killed: tuple[int, ...]) -> None:
    server = Server(killed)
    for _ in range(len(killed) + 1):
        try:
            player(server, recording, rate)[0].play(now_ms=1_000_000)
            break
        except ConnectionError:
            continue
    assert server.times == [1_000_000 + 1000 * n for n in range(20)]


def test_shifting_moves_both_times(recording: Recording) -> None:
    rows = pa.table({"t": [1, 2], "t_end": pa.array([5, None], pa.int64())})
    assert Move(0, 10).moved(rows).to_pydict() == {"t": [11, 12], "t_end": [15, None]}
    assert Move(1, 100, 2.0).moved(rows).to_pydict() == {"t": [100, 100], "t_end": [102, None]}
    assert Move().moved(rows) is rows


def test_in_step_rows_get_the_time_of_sending_also_after_resuming(recording: Recording) -> None:
    server = Server((3,))
    one, _ = player(server, recording, 2.0)
    with pytest.raises(ConnectionError):
        one.play(now_ms=1_000_000, in_step=True)
    player(server, recording, 2.0)[0].play(now_ms=5_000_000, in_step=True)
    assert server.times == [1_000_000 + 500 * n for n in range(3)] + [5_000_000 + 500 * n for n in range(17)]


def test_another_file_or_mapping_is_another_run(recording: Recording) -> None:
    same = Recording(recording.path, FEED, {"entity": "mmsi"})
    other = Recording(recording.path, FEED, {"entity": "t"})
    assert recording.identity == same.identity != other.identity
