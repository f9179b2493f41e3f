"""Any queries over any file: the program of `manage.py backtest` (specification 7). Needs no database, no broker and no running service."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.model.faults import Refused
from engine.model.messages import Message
from engine.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.model.events import DeadLetter
    from engine.model.feed import Feed
    from engine.operator import RegisteredQuery
    from engine.plausibility import Plausibility
    from engine.runtime.evaluator import Outcome
    from engine.runtime.local import Runtime
    from engine.sources.files import Columns, Piece

REFUSED = 2
"""Exit status for a refused document or unreadable input."""
BATCH_ROWS = 131_072
SPARK_BATCH_ROWS = 400_000
"""A batch on Spark costs about as much however few its rows are."""


class Stop(Exception):
    """The run cannot go on; the text is for the user."""


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    options = argparse.ArgumentParser(prog="backtest", description="Evaluate queries over a file of events and write their answers to a file.")
    add_options(options)
    return options


def add_options(options: argparse.ArgumentParser) -> None:
    """Adds the command's options to a parser."""
    options.add_argument(
        "--query", action="extend", nargs="+", required=True, type=Path, metavar="SPEC.json", help="one specification or more; may be given again"
    )
    options.add_argument("--events", required=True, type=Path, metavar="PATH", help="file or folder: parquet, csv or jsonl, also .gz or .zst")
    options.add_argument("--feed", required=True, type=Path, metavar="FEED.json", help="the feed's schema and clock")
    options.add_argument("--out", required=True, type=Path, metavar="OUT", help="answers: .parquet, .csv or .jsonl")
    options.add_argument("--map", default="", metavar="a=b,...", help="the feed's column a is the file's column b, or b+c: both, joined by /")
    options.add_argument("--regions", type=Path, metavar="FILE.geojson", help="stored regions by name: features with a `name`")
    options.add_argument("--arrival", metavar="COLUMN", help="deliver rows in the order of this column instead of file order")
    options.add_argument("--until", type=_whole, metavar="T", help="move the clock on to T after the last event")
    options.add_argument("--runtime", choices=("local", "spark"), default="local")
    options.add_argument("--partitions", type=_positive, default=1, metavar="N", help="how many partitions share the entities")
    options.add_argument("--batch-rows", type=_positive, metavar="N", help="rows evaluated at once")
    options.add_argument("--shuffle-within", type=_natural, metavar="MS", help="deliver out of order by at most so much (unit of t)")
    options.add_argument("--seed", type=_whole, default=0, metavar="N", help="which order --shuffle-within takes")
    options.add_argument("--stats", type=Path, metavar="STATS.json", help="counts, speed, memory and the queries' work")
    options.add_argument("--dead-letters", type=Path, metavar="FILE", help="refused and late rows: .parquet, .csv or .jsonl")
    options.add_argument("--windows", type=Path, metavar="FILE", help="each window's own answer of calculus queries: .parquet, .csv or .jsonl")


def _whole(text: str) -> int:
    return int(text)


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 0, or 2 with the reason on standard error."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Runs the command with parsed options; 0, or 2 with the reason on standard error."""
    try:
        backtest(options)
    except Stop as stop:
        print(f"backtest: {stop}", file=sys.stderr)  # noqa: T201
        return REFUSED
    return 0


def run_options(options: Mapping[str, Any]) -> int:
    """`run` for options that another parser read."""
    return run(argparse.Namespace(**options))


@dataclass
class Counts:
    """`read` is the sum of the others."""

    read: int = 0
    accepted: int = 0
    duplicate: int = 0
    late: int = 0
    dead: int = 0


@dataclass
class _Run:
    """One run under way."""

    options: argparse.Namespace
    feed: Feed
    queries: Sequence[RegisteredQuery]
    documents: Mapping[str, Mapping[str, Any]]
    plausibility: Plausibility
    counts: Counts = field(default_factory=Counts)
    asserted: Counter[str] = field(default_factory=Counter)


def backtest(options: argparse.Namespace) -> None:
    """Reads, evaluates, writes. Raises Stop with all that is wrong."""
    started = time.monotonic()
    feed = read_feed(options.feed)
    documents, queries = read_queries(options.query, feed, read_regions(options.regions, feed))
    from engine.plausibility import Plausibility
    from engine.sinks.answers import AnswerFile, UnbalancedRetraction
    from engine.sources.files import Columns, Unreadable, find_files

    run = _Run(options, feed, queries, documents, Plausibility(feed, queries, documents))
    try:
        _check_outputs(options)
        paths = find_files(options.events)
        columns = Columns(feed, _renamed(options.map), options.arrival)
        with ExitStack() as stack:
            answers = stack.enter_context(AnswerFile(options.out))
            letters = stack.enter_context(_Letters(options.dead_letters)) if options.dead_letters else None
            windows = stack.enter_context(_Windows(options.windows, run)) if options.windows else None
            progress = stack.enter_context(Progress())
            runtime = stack.enter_context(_Runtime(options, feed, queries))
            for outcome in _outcomes(run, paths, columns, runtime, letters, windows):
                answers.add(outcome.changes, time.time_ns() // 1_000_000)
                if letters is not None:
                    letters.late(outcome.late, feed)
                _count(run, outcome)
                progress.show(run.counts.read, run.asserted.total(), outcome.watermark)
            written = answers.close()
    except (Unreadable, OSError, ValueError) as error:
        raise Stop(str(error)) from error
    except UnbalancedRetraction as error:
        raise RuntimeError(f"{options.out}: {error}") from error
    seconds = time.monotonic() - started
    progress.end(run.counts.read, written, seconds)
    for warning in run.plausibility.warnings():
        print(f"backtest: warning: {warning}", file=sys.stderr)  # noqa: T201
    if options.stats:
        options.stats.write_text(json.dumps(_statistics(run, runtime, answers.written, seconds), indent=2) + "\n")


def _outcomes(
    run: _Run, paths: Sequence[Path], columns: Columns, runtime: Runtime, letters: _Letters | None, windows: _Windows | None
) -> Iterator[Outcome]:
    from engine.model.events import Stamper
    from engine.runtime.local import read_ahead
    from engine.sources.delivery import batches_of
    from engine.sources.file_rows import read_files

    stamper = Stamper()
    tables = _delivered(run, _counted(run, read_files(paths, columns), letters), letters)
    for rows in read_ahead(batches_of(tables, _batch_rows(run.options))):
        stamped = stamper.stamp(rows)
        if windows is not None:
            windows.take(stamped)
        yield runtime.process(stamped)
    if windows is not None:
        windows.finish()
    yield runtime.finish(run.options.until)


def _counted(run: _Run, pieces: Iterable[Piece], letters: _Letters | None) -> Iterator[Piece]:
    for piece in pieces:
        run.counts.read += piece.read
        run.counts.dead += piece.dead_count
        if letters is not None and piece.dead_count:
            letters.add(piece.dead())
        run.plausibility.take(piece.rows)
        yield piece


def _delivered(run: _Run, pieces: Iterable[Piece], letters: _Letters | None) -> Iterator[pa.Table]:
    """Checked rows in the order of delivery, without those from the future if the feed bounds them."""
    from engine.sources.delivery import Shuffle, by_arrival

    tables = by_arrival(pieces) if run.options.arrival is not None else (piece.rows for piece in pieces)
    if run.feed.ahead is not None:
        tables = _not_from_the_future(run, tables, letters)
    if run.options.shuffle_within is not None:
        return Shuffle(run.feed, run.options.shuffle_within, run.options.seed).shuffled(tables)
    return iter(tables)


def _not_from_the_future(run: _Run, tables: Iterable[pa.Table], letters: _Letters | None) -> Iterator[pa.Table]:
    """The rows that move the clock by no more than the feed allows. They are judged before a shuffle, as their order is the file's."""
    from engine.sources.delivery import beyond_clock

    for rows, refused in beyond_clock(tables, run.feed):
        run.counts.dead += len(refused)
        if letters is not None and refused:
            letters.add(refused)
        yield rows


def _count(run: _Run, outcome: Outcome) -> None:
    run.counts.accepted += outcome.processed
    run.counts.duplicate += outcome.duplicates
    run.counts.late += outcome.late.num_rows
    run.asserted["changes"] += outcome.changes.num_rows


def _batch_rows(options: argparse.Namespace) -> int:
    default = SPARK_BATCH_ROWS if options.runtime == "spark" else BATCH_ROWS
    return default if options.batch_rows is None else int(options.batch_rows)


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

            return SparkEvaluator.start(self.feed, queries, self.options.partitions, batch_rows=_batch_rows(self.options))
        from engine.runtime.evaluator import Evaluator

        return Evaluator.start(self.feed, queries, self.options.partitions)

    def __exit__(self, *_: object) -> None:
        self.runtime.close()


# -- documents --------------------------------------------------------------------------------------------------------------------


def read_json(path: Path) -> Any:
    """A JSON document. Raises Stop: a key given twice, or what JSON does not know, is refused."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Stop(f"{path}: no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise Stop(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is given twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _stop(path: Path, refused: Refused) -> Stop:
    return Stop("\n".join(f"{path}: {fault}" for fault in refused.faults))


def read_feed(path: Path) -> Feed:
    """The feed of FEED.json. Raises Stop."""
    from engine.model.feed import Feed

    try:
        return Feed.from_json(read_json(path))
    except Refused as refused:
        raise _stop(path, refused) from refused


def read_regions(path: Path | None, feed: Feed) -> dict[str, Any]:
    """Name to region document: the features of a GeoJSON file, or a plain object. All are checked. Raises Stop."""
    if path is None:
        return {}
    document = read_json(path)
    if isinstance(document, Mapping) and document.get("type") == "FeatureCollection":
        found = {}
        for position, feature in enumerate(document.get("features") or []):
            name = (feature.get("properties") or {}).get("name") if isinstance(feature, Mapping) else None
            if not isinstance(name, str) or not name or name in found:
                raise Stop(f"{path}: /features/{position}/properties/name: every region needs a name of its own")
            found[name] = feature.get("geometry")
    elif isinstance(document, Mapping):
        found = dict(document)
    else:
        raise Stop(f"{path}: must be a GeoJSON FeatureCollection, or an object from name to region")
    from engine.model.region import read_region

    for name, region in found.items():
        try:
            read_region(region, feed.crs)
        except Refused as refused:
            raise Stop("\n".join(f"{path}: region {name!r}: {fault}" for fault in refused.faults)) from refused
    return found


def read_queries(paths: Sequence[Path], feed: Feed, regions: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Any]], list[RegisteredQuery]]:
    """(document by query name, checked queries). A query's name is that of its document, else of its file. Raises Stop with all faults."""
    from engine.derive import graph_faults, sources_of
    from engine.operator import RegisteredQuery
    from engine.specification import check

    documents: dict[str, Mapping[str, Any]] = {}
    queries, problems = [], []
    for path in paths:
        try:
            document = read_specification(path)
            specification = check(document, feed, regions)
        except Stop as stop:
            problems.append(str(stop))
            continue
        except Refused as refused:
            problems.append(str(_stop(path, refused)))
            continue
        name = document.get("name", path.stem)
        if name in documents:
            problems.append(f"{path}: /name: another query is named {name!r} too; answers would not tell them apart")
        documents[name] = document
        for notice in getattr(specification, "notices", ()):
            print(f"backtest: {path}: {notice}", file=sys.stderr)  # noqa: T201
        queries.append(RegisteredQuery(name, 1, specification, sources_of(document)))
    if not problems:
        places = dict(zip(documents, paths, strict=True))
        problems = [f"{places[name]}: {fault}" for name, faults in graph_faults(documents).items() for fault in faults]
    if problems:
        raise Stop("\n".join(problems))
    return documents, queries


def read_specification(path: Path) -> Any:
    """A specification's document: JSON, or the text of a trigger. Raises Stop."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Stop(f"{path}: {error.strerror if isinstance(error, OSError) else 'the file is not UTF-8 text'}") from error
    if text.lstrip()[:14].upper() == "CREATE TRIGGER":
        return {"family": "constraint", "version": 1, "trigger": text}
    return read_json(path)


def _renamed(text: str) -> dict[str, str]:
    """The pairs of `--map`. Raises Stop."""
    found: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        ours, equals, theirs = (part.strip() for part in pair.partition("="))
        if not ours or not equals or not theirs or ours in found:
            raise Stop(f"--map: {pair!r} must read column=file_column, each column once")
        found[ours] = theirs
    return found


def _check_outputs(options: argparse.Namespace) -> None:
    from engine.sinks.answers import FORMATS

    for name in ("out", "dead_letters", "windows"):
        path = getattr(options, name)
        if path is not None and path.suffix.lower() not in FORMATS:
            raise Stop(f"--{name.replace('_', '-')}: {path}: the name must end in one of {', '.join(FORMATS)}")
    for name in ("out", "dead_letters", "windows", "stats"):
        path = getattr(options, name)
        if path is not None and not path.resolve().parent.is_dir():
            raise Stop(f"--{name.replace('_', '-')}: {path}: there is no such folder")


# -- what is written besides the answers ------------------------------------------------------------------------------------------


class _Letters:
    """The file of dead letters: refused rows as they are read, late ones as they are judged."""

    def __init__(self, path: Path) -> None:
        import threading

        import pyarrow as pa

        from engine.sinks.answers import table_writer

        kinds = [("reason", pa.string()), ("detail", pa.string()), ("row", pa.string()), ("line", pa.int64()), ("source", pa.string())]
        self._schema = pa.schema(kinds)
        self._objects = path.suffix.lower() == ".jsonl"
        self._writer = table_writer(path, self._schema)
        # Rows are refused in the reading thread and judged late in the evaluating one.
        self._lock = threading.Lock()

    def __enter__(self) -> _Letters:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.__exit__(*error)

    def add(self, letters: Sequence[DeadLetter]) -> None:
        import pyarrow as pa

        rows = [letter.to_json() for letter in letters]
        rows = [row | {"row": json.dumps(row["row"], ensure_ascii=False)} for row in rows]
        with self._lock:
            self._writer.write(pa.Table.from_pylist(rows, schema=self._schema))

    def late(self, rows: pa.Table, feed: Feed) -> None:
        from engine.model.events import DeadLetter, Reason, plain_row

        if rows.num_rows:
            found = []
            for row in rows.to_pylist():
                clock, _ = row.pop("clock"), row.pop("seq")
                detail = Message("t is {late} behind the newest row; the feed allows {lateness}", late=clock - row["t"], lateness=feed.lateness)
                found.append(DeadLetter(Reason.LATE, detail, plain_row(row)))
            self.add(found)


class _Windows:
    """The file of each window's own answers: calculus queries only."""

    def __init__(self, path: Path, run: _Run) -> None:
        from engine.event_calculus.replay import WINDOW_ANSWERS, WindowReplay
        from engine.runtime.gate import Gate
        from engine.sinks.answers import table_writer

        mine = [query for query in run.queries if run.documents[query.id]["family"] == "calculus"]
        if not mine:
            raise Stop("--windows: none of the queries is of the family calculus; the others have no windows")
        self._feed = run.feed
        self._replays = [WindowReplay(query, run.feed) for query in mine]
        self._gate = Gate(run.feed)
        self._writer = table_writer(path, WINDOW_ANSWERS)
        self._reached: int | None = None

    def __enter__(self) -> _Windows:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.__exit__(*error)

    def take(self, stamped: pa.Table) -> None:
        from engine.runtime.evaluator import reached

        self._reached = reached(stamped, self._reached)
        accepted = self._gate.take(stamped, self._reached - self._feed.lateness).accepted
        for replay in self._replays:
            for answers in replay.take(accepted):
                self._writer.write(answers)

    def finish(self) -> None:
        for replay in self._replays:
            for answers in replay.finish():
                self._writer.write(answers)


def _statistics(run: _Run, runtime: Runtime, written: Mapping[str, int], seconds: float) -> dict[str, Any]:
    counts, counters = run.counts, runtime.counters()
    # Counted once, not for each query: there may be a hundred thousand.
    families = Counter(document["family"] for document in run.documents.values())
    return {
        "rows_read": counts.read,
        "rows_accepted": counts.accepted,
        "rows_duplicate": counts.duplicate,
        "rows_late": counts.late,
        "rows_dead": counts.dead,
        "seconds": round(seconds, 3),
        "rows_per_second": round(counts.read / max(seconds, 1e-9)),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "events_kept": sum(work.get("events_kept", 0) for work in counters.values()),
        "rows_kept_by_gate": runtime.rows_kept,
        "answers": sum(written.values()),
        "last_t": runtime.last_t,
        "runtime": run.options.runtime,
        "partitions": run.options.partitions,
        "batch_rows": _batch_rows(run.options),
        "queries": {
            query.id: _query_statistics(query, families, counters, written.get(query.id, 0), run.documents[query.id]["family"])
            for query in run.queries
        },
    }


def _query_statistics(
    query: RegisteredQuery, queries: Mapping[str, int], counters: Mapping[str, Mapping[str, int]], answers: int, family: str
) -> dict[str, Any]:
    """A query's answers and the work of the operator that evaluates it together with those of `shared_by` queries; `queries` are there by family.

    What a counter called `name@query` counts is that query's alone.
    """
    from engine.families import FAMILIES

    operator = FAMILIES[family].operator()
    together = operator.families
    sharing = sum(queries[name] for name in together if name in queries)
    counted = [(*name.partition("@"), count) for name, count in counters.get(together[0], {}).items()]
    work = {name: count for name, at, owner, count in counted if not at or owner == query.id}
    found = {"family": family, "answers": answers, "shared_by": sharing, "work": work}
    return found | ({"parts": parts} if (parts := operator.parts(query)) else {})


if __name__ == "__main__":
    sys.exit(main())
