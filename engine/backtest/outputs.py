"""The other outputs than the answers: dead letters, and the answers of each window."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.backtest.documents import RunAborted
from engine.backtest.run import Run
from engine.model.clock import watermark_at

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.model.events import DeadLetter
    from engine.model.feed import Feed


def check_outputs(options: argparse.Namespace, events: Sequence[Path]) -> None:
    """Raises RunAborted for an output of an unknown kind, in no folder, or in the place of an
    input or of another output."""
    from engine.sinks.answers import FORMATS

    for name in ("out", "dead_letters", "windows"):
        path = getattr(options, name)
        if path is not None and path.suffix.lower() not in FORMATS:
            raise RunAborted(f"--{name.replace('_', '-')}: {path}: the name must end in one of {', '.join(FORMATS)}")
    for name in ("out", "dead_letters", "windows", "stats"):
        path = getattr(options, name)
        if path is not None and not path.resolve().parent.is_dir():
            raise RunAborted(f"--{name.replace('_', '-')}: {path}: there is no such folder")
        if path is not None and path.is_dir():
            raise RunAborted(f"--{name.replace('_', '-')}: {path}: this is a folder; name a file")
    taken = {path.resolve() for path in (*options.query, options.feed, options.regions, *events) if path is not None}
    for name in ("out", "dead_letters", "windows", "stats"):
        path = getattr(options, name)
        if path is not None and path.resolve() in taken:
            raise RunAborted(f"--{name.replace('_', '-')}: {path}: this command reads or writes the file already; choose another name")
        if path is not None:
            taken.add(path.resolve())


class DeadLetterFile:
    """The file of dead letters: refused rows as they are read, late ones as they are judged."""

    def __init__(self, path: Path) -> None:
        import threading

        import pyarrow as pa

        from engine.sinks.answers import table_writer

        kinds = [("reason", pa.string()), ("detail", pa.string()), ("row", pa.string()), ("line", pa.int64()), ("source", pa.string())]
        self._schema = pa.schema(kinds)
        self._writer = table_writer(path, self._schema)
        # Rows are refused in the reading thread and judged late in the evaluating one.
        self._lock = threading.Lock()

    def __enter__(self) -> DeadLetterFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.__exit__(*error)

    def add(self, letters: Sequence[DeadLetter]) -> None:
        import pyarrow as pa

        rows = [letter.to_json() for letter in letters]
        rows = [row | {"row": _as_json(row["row"])} for row in rows]
        with self._lock:
            self._writer.write(pa.Table.from_pylist(rows, schema=self._schema))

    def late(self, rows: pa.Table, feed: Feed) -> None:
        from engine.model.untimely import late_letters

        if rows.num_rows:
            self.add(late_letters(rows, feed))


def _as_json(row: object) -> str:
    """A row as JSON text; one with half of a character (a lone surrogate) in escapes only, as it
    was sent."""
    try:
        text = json.dumps(row, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(row)
    return text


class WindowFile:
    """The file with the answers of each window: calculus queries only."""

    def __init__(self, path: Path, run: Run) -> None:
        from engine.event_calculus.replay import WINDOW_ANSWERS, WindowReplay
        from engine.runtime.gate import Gate
        from engine.sinks.answers import table_writer

        calculus_queries = [query for query in run.queries if run.documents[query.id]["family"] == "calculus"]
        if not calculus_queries:
            raise RunAborted("--windows: none of the queries is of the family calculus; the others have no windows")
        if deriving := [query.id for query in calculus_queries if query.sources]:
            raise RunAborted(
                f"--windows: the windows of {deriving[0]!r} cannot be written: it takes answers of other queries as events; leave it out"
            )
        self._feed = run.feed
        self._replays = [WindowReplay(query, run.feed) for query in calculus_queries]
        self._gate = Gate(run.feed)
        self._writer = table_writer(path, WINDOW_ANSWERS)
        self._reached: int | None = None

    def __enter__(self) -> WindowFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.__exit__(*error)

    def take(self, stamped: pa.Table) -> None:
        from engine.runtime.evaluator import reached

        self._reached = reached(stamped, self._reached)
        accepted = self._gate.take(stamped, watermark_at(self._reached, self._feed.lateness)).accepted
        self._write(answers for replay in self._replays for answers in replay.take(accepted))

    def finish(self) -> None:
        self._write(answers for replay in self._replays for answers in replay.finish())

    def _write(self, tables: Iterator[pa.Table]) -> None:
        from engine.event_calculus.conditions import LimitExceeded

        try:
            for answers in tables:
                self._writer.write(answers)
        except LimitExceeded as error:
            raise RunAborted(f"--windows: {error}") from error
