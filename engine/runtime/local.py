"""Evaluating in this process: what backtests, previews and tests run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from engine.model.changes import ANSWERS
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator, Outcome

Item = TypeVar("Item")


class Runtime(Protocol):
    """What a backtest needs of an evaluator: the Evaluator itself, or one whose
    partitions are elsewhere."""

    def process(self, stamped: pa.Table) -> Outcome: ...

    def finish(self, until: int | None = None) -> Outcome: ...

    def counters(self) -> Mapping[str, Mapping[str, int]]: ...

    @property
    def rows_kept(self) -> int: ...

    @property
    def last_t(self) -> int | None: ...


def evaluate(
    feed: Feed, queries: Sequence[RegisteredQuery], batches: Iterable[pa.Table], *, partitions: int = 1, until: int | None = None
) -> pa.Table:
    """All changes (ANSWERS) of `queries` over stamped batches, to the end of the input."""
    evaluator = Evaluator.start(feed, queries, partitions)
    asserted = [evaluator.process(batch).changes for batch in batches]
    return pa.concat_tables([ANSWERS.empty_table(), *asserted, evaluator.finish(until).changes])


def read_ahead(items: Iterable[Item], depth: int = 2) -> Iterator[Item]:
    """The same items, produced by a thread that is at most `depth` of them ahead; its
    exceptions are raised here.

    Parsing and evaluating release the interpreter's lock most of the time, so they overlap.
    """
    ready: queue.Queue[tuple[bool, Item | BaseException | None]] = queue.Queue(depth)
    left = threading.Event()

    def put(entry: tuple[bool, Item | BaseException | None]) -> None:
        while not left.is_set():
            try:
                ready.put(entry, timeout=0.1)
            except queue.Full:
                continue
            return

    def produce() -> None:
        try:
            for item in items:
                put((True, item))
                if left.is_set():
                    return
            put((False, None))
        except BaseException as error:
            put((False, error))

    thread = threading.Thread(target=produce, name="read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            is_item, value = ready.get()
            if is_item:
                yield value  # type: ignore[misc]
            elif value is None:
                return
            else:
                assert isinstance(value, BaseException)
                raise value
    finally:
        left.set()
        thread.join()
