"""Reads, evaluates, writes."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from engine.backtest.documents import RunAborted, read_feed, read_queries, read_regions
from engine.backtest.outputs import DeadLetterFile, WindowFile, check_outputs
from engine.backtest.run import Run, batch_rows
from engine.backtest.statistics import statistics
from engine.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.model.events import DeadLetter
    from engine.model.feed import Feed
    from engine.operator import RegisteredQuery
    from engine.runtime.evaluator import Outcome
    from engine.runtime.local import Runtime
    from engine.sources.files import CheckedChunk, Columns


def backtest(options: argparse.Namespace) -> None:
    """Reads, evaluates, writes. Raises RunAborted with all that is wrong."""
    started = time.monotonic()
    feed = read_feed(options.feed)
    documents, queries = read_queries(options.query, feed, read_regions(options.regions, feed))
    from engine.plausibility import Plausibility
    from engine.sinks.answers import AnswerFile, UnbalancedRetraction
    from engine.sources.files import Columns, UnreadableFile, find_files

    run = Run(options, feed, queries, documents, Plausibility(feed, queries, documents))
    try:
        paths = find_files(options.events)
        check_outputs(options, paths)
        columns = Columns(feed, _renamed(options.map), options.arrival)
        with ExitStack() as stack:
            answers = stack.enter_context(AnswerFile(options.out))
            letters = stack.enter_context(DeadLetterFile(options.dead_letters)) if options.dead_letters else None
            windows = stack.enter_context(WindowFile(options.windows, run)) if options.windows else None
            progress = stack.enter_context(Progress())
            runtime = stack.enter_context(_Runtime(options, feed, queries))
            for outcome in _outcomes(run, paths, columns, runtime, letters, windows):
                answers.add(outcome.changes, time.time_ns() // 1_000_000)
                if letters is not None:
                    letters.late(outcome.late, feed)
                _count(run, outcome)
                progress.show(run.counts.read, run.asserted.total(), outcome.watermark)
            written = answers.close()
    except (UnreadableFile, OSError, ValueError) as error:
        raise RunAborted(str(error)) from error
    except UnbalancedRetraction as error:
        raise RuntimeError(f"{options.out}: {error}") from error
    seconds = time.monotonic() - started
    progress.end(run.counts.read, written, seconds)
    _say_what_did_not_count(run)
    for warning in run.plausibility.warnings():
        print(f"backtest: warning: {warning}", file=sys.stderr)
    if options.stats:
        options.stats.write_text(json.dumps(statistics(run, runtime, answers.written, seconds), indent=2) + "\n")


def _say_what_did_not_count(run: Run) -> None:
    """Rows that no query saw, on standard error: otherwise an answer that lacks
    them would look complete."""
    if run.counts.dead or run.counts.late:
        letters = run.options.dead_letters
        where = f"{letters} has them with their reasons" if letters else "--dead-letters FILE writes them with their reasons"
        print(f"backtest: rows that did not count: {run.counts.dead:,} refused, {run.counts.late:,} late; {where}", file=sys.stderr)
    if (first := run.first_dead) is not None:
        place = f"{first.source}, line {first.line}: " if first.line is not None else ""
        print(f"backtest: the first refused row: {place}{first.detail}", file=sys.stderr)


def _outcomes(
    run: Run, paths: Sequence[Path], columns: Columns, runtime: Runtime, letters: DeadLetterFile | None, windows: WindowFile | None
) -> Iterator[Outcome]:
    from engine.model.events import Stamper
    from engine.runtime.local import read_ahead
    from engine.sources.delivery import batches_of
    from engine.sources.file_rows import read_files

    stamper = Stamper()
    tables = _delivered(run, _counted(run, read_files(paths, columns), letters), letters)
    for rows in read_ahead(batches_of(tables, batch_rows(run.options))):
        stamped = stamper.stamp(rows)
        if windows is not None:
            windows.take(stamped)
        yield runtime.process(stamped)
    if windows is not None:
        windows.finish()
    yield runtime.finish(run.options.until)


def _counted(run: Run, pieces: Iterable[CheckedChunk], letters: DeadLetterFile | None) -> Iterator[CheckedChunk]:
    for piece in pieces:
        run.counts.read += piece.read
        run.counts.dead += piece.dead_count
        if piece.dead_count and (letters is not None or run.first_dead is None):
            _refused(run, piece.dead(), letters)
        run.plausibility.take(piece.rows)
        yield piece


def _refused(run: Run, refused: Sequence[DeadLetter], letters: DeadLetterFile | None) -> None:
    run.first_dead = run.first_dead or refused[0]
    if letters is not None:
        letters.add(refused)


def _delivered(run: Run, pieces: Iterable[CheckedChunk], letters: DeadLetterFile | None) -> Iterator[pa.Table]:
    """Checked rows in the order of delivery, without those from the future if the feed bounds
    them."""
    from engine.sources.delivery import Shuffle, by_arrival

    tables = by_arrival(pieces) if run.options.arrival is not None else (piece.rows for piece in pieces)
    if run.feed.ahead is not None:
        tables = _not_from_the_future(run, tables, letters)
    if run.options.shuffle_within is not None:
        return Shuffle(run.feed, run.options.shuffle_within, run.options.seed).shuffled(tables)
    return iter(tables)


def _not_from_the_future(run: Run, tables: Iterable[pa.Table], letters: DeadLetterFile | None) -> Iterator[pa.Table]:
    """The rows that move the clock by no more than the feed allows. They are judged before a
    shuffle, as their order is the file's."""
    from engine.sources.delivery import beyond_clock

    for rows, refused in beyond_clock(tables, run.feed):
        run.counts.dead += len(refused)
        if refused:
            _refused(run, refused, letters)
        yield rows


def _count(run: Run, outcome: Outcome) -> None:
    run.counts.accepted += outcome.processed
    run.counts.duplicate += outcome.duplicates
    run.counts.late += outcome.late.num_rows
    run.asserted["changes"] += outcome.changes.num_rows


def _renamed(text: str) -> dict[str, str]:
    """The pairs of `--map`. Raises RunAborted."""
    renamed: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        column, equals, source = (part.strip() for part in pair.partition("="))
        if not column or not equals or not source or column in renamed:
            raise RunAborted(f"--map: {pair!r} must read column=file_column, each column once")
        renamed[column] = source
    return renamed


class _Runtime:
    """The evaluator, closed at the end if it has to be."""

    def __init__(self, options: argparse.Namespace, feed: Feed, queries: Sequence[RegisteredQuery]) -> None:
        self.options, self.feed, self.queries = options, feed, queries

    def __enter__(self) -> Runtime:
        from engine.runtime.derived import GraphEvaluator

        self.runtime = GraphEvaluator.start(self.feed, self.queries, self._started)
        return self.runtime

    def _started(self, queries: Sequence[RegisteredQuery]) -> Runtime:
        if self.options.runtime == "spark":
            from engine.runtime.spark_backtest import SparkEvaluator

            return SparkEvaluator.start(self.feed, queries, self.options.partitions, batch_rows=self.options.batch_rows)
        from engine.runtime.evaluator import Evaluator

        return Evaluator.start(self.feed, queries, self.options.partitions)

    def __exit__(self, *_: object) -> None:
        self.runtime.close()
