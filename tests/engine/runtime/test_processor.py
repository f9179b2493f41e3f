"""The batch protocol against its definition: after any failure, stored answers are those of one
evaluator over the whole log."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.events import row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.runtime import catch_up
from engine.runtime import processor as processor_module
from engine.runtime.evaluator import Evaluator
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshot, Snapshots, SnapshotUnusable
from engine.runtime.store import Commit, Head, QueryKey, StoreTooSlow
from engine.sources.eventlog import EventLog
from engine.sources.segments import LogDamaged
from engine.sources.store import files_of
from engine.specification import check

FEED = Feed("yard", Crs.PLANAR, TimeUnit.TICKS, lateness=3)
SQUARE = {"type": "Polygon", "coordinates": [[[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]]}
SPECIFICATIONS = [
    {"family": "border", "version": 1, "region": SQUARE},
    {"family": "transition", "version": 1, "region": SQUARE, "within": 5, "types": ["passed", "returned", "stayed_in", "stayed_out"]},
    {"family": "border", "version": 1, "region": {"center": [2, 2], "radius": 1}},
]
QUERIES = [RegisteredQuery(str(i), 1, check(document, FEED)) for i, document in enumerate(SPECIFICATIONS)]
PLACES = ["batch.before_evaluate", "batch.after_evaluate", "files.before_rename", "batch.after_snapshot", "store.lost", "store.unknown"]
PLACES += ["batch.after_commit", "join.before_register", "join.before_commit"]
STORING = ThreadPoolExecutor(4)


class Crash(Exception):
    """The process has died."""


@dataclass
class Memory:
    """A store with atomic commits that survives the processes that use it.

    More than `most_rows` in a commit are too many for it; each takes `seconds`.
    """

    head: Head = field(default_factory=lambda: Head(0))
    wanted: list[RegisteredQuery] = field(default_factory=list)
    number: int = 0
    facts: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    backfill: dict[tuple[Any, ...], int] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    called: list[str] = field(default_factory=list)
    stopped: dict[QueryKey, str] = field(default_factory=dict)
    progress: list[tuple[set[str], int, int] | None] = field(default_factory=list)
    known: Sequence[RegisteredQuery] = field(default_factory=lambda: QUERIES)
    fail: Callable[[str], None] = lambda place: None
    most_rows: int = 1_000_000
    seconds: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> Head:
        with self.lock:
            self.head = Head(**{**self.head.__dict__, "epoch": self.head.epoch + 1})
            return self.head

    def version(self) -> int:
        return self.number

    def queries(self, version: int) -> Sequence[RegisteredQuery]:
        return [query for query in self.wanted if query.key not in self.stopped]

    def owns(self) -> bool:
        return True

    def recall(self, keys: Sequence[QueryKey]) -> Sequence[RegisteredQuery]:
        return [query for key in keys for query in self.known if query.key == key]

    def prepare(self, changes: pa.Table) -> Sequence[Any]:
        rows: list[Any] = changes.to_pylist()
        return rows

    def commit(self, commit: Commit) -> bool:
        time.sleep(self.seconds)
        with self.lock:
            head, before = commit.head, self.head
            if head.epoch != before.epoch:
                raise Crash("a newer start has taken over")
            if commit.batch is not None and (head.checkpoint, commit.batch) <= (before.checkpoint, before.last_batch):
                return False
            assert head.snapshot_seq <= head.last_seq, "a state of rows that are not stored"
            return self._commit(commit)

    def _commit(self, commit: Commit) -> bool:
        self.fail("store.lost")
        if commit.head.last_seq - self.head.last_seq > self.most_rows:
            raise StoreTooSlow("it took too long")
        for row in commit.changes:
            key = (row["query"], row["kind"], tuple(row["entities"]), row["start"], row["end"], tuple(item["seq"] for item in row["evidence"]))
            if commit.backfill:
                # Stored by natural key: found again after a crash, it is the same fact.
                self.backfill[key] = row["weight"]
            else:
                self.facts[key] += row["weight"]
        self.counted.update(commit.counted)
        self.stopped.update((one.key, one.reason) for one in commit.stopped)
        self.head = commit.head
        self.fail("store.unknown")
        return True

    def catching_up(self, queries: Sequence[str], read: int, rows: int) -> None:
        self.progress.append((set(queries), read, rows))

    def caught_up(self) -> None:
        self.progress.append(None)

    def report_event(self, kind: str, text: str) -> None:
        self.called.append(kind)


def rows_of(chance: random.Random, count: int, t: int) -> pa.Table:
    rows = [
        {"event": "position", "entity": f"e{chance.randrange(3)}", "t": max(0, t + i // 2 - chance.choice([0, 0, 1, 3, 6])), "x": x, "y": y}
        for i in range(count)
        for x, y in [(float(chance.randrange(5)), float(chance.randrange(5)))]
    ]
    return pa.Table.from_pylist(rows, schema=row_schema(FEED))


def the_oracle(log: EventLog, queries: Sequence[RegisteredQuery]) -> Counter[tuple[Any, ...]]:
    evaluator = Evaluator.start(FEED, queries)
    answers: Counter[tuple[Any, ...]] = Counter()
    for table in log.read():
        for row in evaluator.process(table).changes.to_pylist():
            seqs = tuple(item["seq"] for item in row["evidence"])
            answers[(row["query"], row["kind"], tuple(row["entities"]), row["start"], row["end"], seqs)] += row["weight"]
    return answers


class Life:
    """A log, a store, and a job that is started again whenever it has crashed. Whether it stores in
    parallel with the evaluation is random, as are the batches after which it writes a snapshot: a
    start loads the last one and replays the rows after it."""

    def __init__(self, folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch, known: Sequence[RegisteredQuery] = QUERIES) -> None:
        self.chance = random.Random(seed)
        self.is_concurrent = self.chance.random() < 0.5
        monkeypatch.setattr(processor_module, "AHEAD_ROWS", 1)
        monkeypatch.setattr(FeedProcessor, "_snapshot_is_due", lambda job: self.chance.random() < 0.3)
        self.log = EventLog(folder, "yard")
        self.folder = folder
        # Time enough to evaluate the next batch.
        self.store = Memory(known=known, seconds=0.005 if self.is_concurrent else 0.0)
        self.armed: dict[str, int] = {}
        self.store.fail = self.reach
        monkeypatch.setattr(processor_module, "failpoint", self.reach)
        monkeypatch.setattr("engine.sources.store.failpoint", self.reach)
        self.t = 0
        self.job = self.begin()

    def reach(self, place: str) -> None:
        if self.armed.get(place, 0):
            self.armed[place] -= 1
            raise Crash(place)

    def begin(self) -> FeedProcessor:
        options: dict[str, Any] = {"storing": STORING, "batch_rows": 8} if self.is_concurrent else {}
        return FeedProcessor(FEED, self.log, self.store, Snapshots(files_of(self.folder / "state")), partitions=2, **options)

    def grow(self, count: int) -> None:
        self.log.append(rows_of(self.chance, count, self.t))
        self.t += count // 2

    def act(self, step: Callable[[], None]) -> None:
        """`step`, again after each crash."""
        for _ in range(5):
            try:
                step()
                return
            except Crash:
                self.job = self.begin()
                if self.chance.random() < 0.5:
                    # Queries that changed meanwhile may join before the batch is done again.
                    self.store.wanted = list(self.store.known[: max(len(self.store.wanted), 2)])
                    self.store.number += 1
                    self.armed = {}
                    self.job.follow()
        raise AssertionError("it crashes again and again")

    def run_batch(self) -> None:
        """What has come since the last batch; done again when it crashes."""
        self.act(self.exhaust)

    def exhaust(self) -> None:
        while self.job.process():
            pass

    def check(self) -> None:
        stored = +self.store.facts
        for key, weight in self.store.backfill.items():
            stored[key] += weight
        running = [query for query in self.store.wanted if query.key not in self.store.stopped]
        wanted = {query.id for query in running}
        expected = the_oracle(self.log, running)
        assert Counter({key: n for key, n in stored.items() if key[0] in wanted}) == expected
        assert sum(self.store.counted.values()) == self.log.end[0]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Life]]:
    patch = pytest.MonkeyPatch()
    yield lambda seed: Life(tmp_path_factory.mktemp("life"), seed, patch)
    patch.undo()


STEPS = st.tuples(st.integers(0, 9), st.sampled_from(["batch", "batch", "add", "follow", "crash", "slow"]), st.sampled_from(PLACES))
"""How many rows come, what happens then, and where the process dies in it."""


@given(st.integers(0, 2**32), st.lists(STEPS, min_size=6, max_size=12))
def test_whatever_crashes_where_every_answer_is_stored_once(life: Callable[[int], Life], seed: int, steps: list[tuple[int, str, str]]) -> None:
    live(life(seed), steps)


def live(world: Life, steps: Sequence[tuple[int, str, str]]) -> None:
    """All steps, then what is left, then the comparison with the oracle."""
    world.store.wanted, world.store.number = [QUERIES[0]], 1
    world.act(lambda: world.job.follow())
    for count, step, place in steps:
        world.grow(count)
        world.armed = {place: 1} if step != "crash" else {}
        if step == "add" and len(world.store.wanted) < len(QUERIES):
            world.store.wanted = QUERIES[: len(world.store.wanted) + 1]
            world.store.number += 1
        elif step == "follow":
            world.act(lambda: world.job.follow())
        elif step == "batch":
            world.run_batch()
        elif step == "crash":
            world.job = world.begin()
        elif step == "slow":
            world.store.most_rows = count + 1
    world.armed = {}
    world.act(lambda: world.job.follow())
    world.run_batch()
    world.check()


@pytest.fixture
def calm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Life:
    """Some batches with all queries, no crash."""
    world = Life(tmp_path, 3, monkeypatch)
    world.store.wanted, world.store.number = list(QUERIES), 1
    world.job.follow()
    for _ in range(4):
        world.grow(20)
        world.run_batch()
    return world


def test_a_removed_query_stops_and_its_answers_stay(calm: Life) -> None:
    before = {key for key in calm.store.facts if key[0] == "0"}
    calm.store.wanted, calm.store.number = QUERIES[1:], 2
    calm.job.follow()
    calm.grow(40)
    calm.run_batch()
    assert before
    assert {key for key in calm.store.facts if key[0] == "0"} == before
    calm.check()


def test_a_damaged_snapshot_is_rebuilt_from_the_log(calm: Life) -> None:
    path = calm.folder / "state" / calm.store.head.snapshot
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    calm.job = calm.begin()
    assert calm.store.called == ["rebuilt"]
    calm.grow(40)
    calm.run_batch()
    calm.check()


def test_a_missing_snapshot_is_rebuilt_from_the_log(calm: Life) -> None:
    (calm.folder / "state" / calm.store.head.snapshot).unlink()
    calm.job = calm.begin()
    calm.grow(40)
    calm.run_batch()
    calm.check()


def test_a_process_that_begins_again_stores_nothing_twice(calm: Life) -> None:
    before, head = Counter(calm.store.facts), calm.store.head
    calm.job = calm.begin()
    assert not calm.job.process()
    assert calm.store.facts == before
    assert calm.store.head.last_batch == head.last_batch


def test_a_backlog_is_taken_in_batches(calm: Life) -> None:
    calm.job.batch_rows = 50
    for _ in range(6):
        calm.grow(20)
    first = calm.job.head.last_batch
    while calm.job.process():
        pass
    # Whole segments of 20 rows, two at a time.
    assert calm.job.head.last_batch == first + 3
    calm.check()


def stored_parts(life: Life) -> list[int]:
    """How many rows each commit of the backlog is of."""
    parts: list[int] = []
    keep = life.store._commit

    def commit(given: Commit) -> bool:
        before = life.store.head.last_seq
        kept = keep(given)
        parts.append(given.head.last_seq - before)
        return kept

    life.store._commit = commit  # type: ignore[assignment,method-assign]
    life.exhaust()
    return [rows for rows in parts if rows]


@pytest.mark.parametrize("is_concurrent", [False, True])
def test_a_batch_that_takes_too_long_to_store_goes_on_in_smaller_parts_that_grow_again(calm: Life, is_concurrent: bool) -> None:
    calm.is_concurrent = is_concurrent
    calm.job = calm.begin()
    calm.job.batch_rows = 400
    calm.grow(400)
    for _ in range(40):
        calm.grow(10)
    calm.store.most_rows = 60
    parts = stored_parts(calm)
    # 400, 200, 100 were too many; segments of 10 rows then go together until
    # there are 60 of them again.
    assert parts[0] == 50
    assert 60 in parts[1:]
    assert set(calm.store.called) == {"resumed"}
    calm.check()
    calm.store.most_rows = 1_000_000
    for _ in range(80):
        calm.grow(40)
    assert max(stored_parts(calm)) > 200
    calm.check()


def test_a_row_that_takes_too_long_to_store_ends_the_job(calm: Life) -> None:
    calm.store.most_rows = 0
    calm.grow(20)
    with pytest.raises(StoreTooSlow):
        calm.exhaust()


def test_the_next_batch_is_evaluated_while_one_is_stored(calm: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    calm.is_concurrent = True
    calm.job = calm.begin()
    evaluated = [threading.Event() for _ in range(3)]
    take = calm.job._evaluate

    def evaluate(span: Any) -> Any:
        found = take(span)
        next(event for event in evaluated if not event.is_set()).set()
        return found

    monkeypatch.setattr(calm.job, "_evaluate", evaluate)
    waited: list[bool] = []
    keep = calm.store._commit

    def commit(given: Commit) -> bool:
        if given.batch is not None and not waited:
            waited.append(evaluated[1].wait(10))
            assert not evaluated[2].wait(0.2), "one batch ahead, no more"
        return keep(given)

    monkeypatch.setattr(calm.store, "_commit", commit)
    for _ in range(3):
        calm.grow(8)
    calm.exhaust()
    assert waited == [True]
    calm.check()


def test_rows_that_were_compacted_before_their_batch_are_found_in_history(calm: Life) -> None:
    calm.grow(20)
    calm.log.compact(calm.log.end[0] - 1)
    calm.grow(20)
    calm.run_batch()
    calm.check()


def test_new_queries_report_how_much_of_the_history_they_have_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "LEAST_ROWS", 4)
    monkeypatch.setattr(catch_up, "MOST_ROWS", 8)
    life = Life(tmp_path, 3, monkeypatch)
    life.grow(20)
    life.run_batch()
    life.store.wanted, life.store.number = list(QUERIES), 1
    life.job.follow()
    *reports, last = life.store.progress
    ids = {query.id for query in QUERIES}
    assert reports == [(ids, read, 20) for read in (0, 4, 12, 20)]
    assert last is None
    life.check()


def test_pieces_of_the_history_become_smaller_while_they_take_long() -> None:
    pieces = catch_up.Pieces([pa.table({"t": range(100_000)})] * 2)
    sizes = []
    for piece, seconds in zip(pieces, [0.1, 0.1, 0.1, 0.1, 3.0, 3.0, 1.5, 3.0, 3.0, 0.9], strict=False):
        sizes.append(piece.num_rows)
        pieces.adapt(seconds)
    assert sizes == [2048, 4096, 8192, 16384, 16384, 8192, 4096, 4096, 2048, 2048]
    assert pieces.rows == 4096


def test_rows_that_are_in_no_file_stop_the_job(calm: Life) -> None:
    calm.grow(5)
    (gone,) = [path for path in calm.log.live.iterdir() if path.name.startswith(f"{calm.log.end[0] - 5:020d}")]
    calm.grow(5)
    gone.unlink()
    with pytest.raises(LogDamaged, match=f"rows {calm.log.end[0] - 10} to {calm.log.end[0] - 6}"):
        calm.job.process()


def test_snapshots_are_whole_or_unusable(tmp_path: Path) -> None:
    snapshots = Snapshots(files_of(tmp_path))
    snapshots.write("a", Snapshot({"position": 3}, b"state\nof bytes"))
    assert snapshots.read("a") == Snapshot({"position": 3}, b"state\nof bytes")
    content = (tmp_path / "a").read_bytes()
    for damaged in (b"", content[:10], content[:-1], content + b"x"):
        (tmp_path / "a").write_bytes(damaged)
        with pytest.raises(SnapshotUnusable):
            snapshots.read("a")
    for missing in ("", "b"):
        with pytest.raises(SnapshotUnusable):
            snapshots.read(missing)


def test_a_start_removes_its_own_snapshots_and_those_it_went_on_from(tmp_path: Path) -> None:
    """It lists the files of others: the head decides whether they may be deleted."""
    former, snapshots = Snapshots(files_of(tmp_path)), Snapshots(files_of(tmp_path))
    old, left = former.named("old"), former.named("left")
    mine = [snapshots.named(f"{i}") for i in range(3)]
    for name in (old, left, *mine):
        snapshots.write(name, Snapshot({}, b""))
    (tmp_path / f".{mine[2]}.part").write_bytes(b"a write that was broken off")
    snapshots.adopt([old])
    snapshots.keep_only({old, mine[1]})
    assert {path.name for path in tmp_path.iterdir()} == {old, left, mine[1]}
    snapshots.keep_only({mine[1]})
    assert snapshots.left_behind({mine[1]}) == [left]
    assert {path.name for path in tmp_path.iterdir()} == {left, mine[1]}
