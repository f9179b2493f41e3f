"""The command's options and its exit status."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.backtest.documents import RunAborted
from engine.backtest.evaluation import backtest
from engine.model.feed import LARGEST_TIME

REFUSED = 2
"""Exit status for a refused document or unreadable input."""


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    options = argparse.ArgumentParser(prog="backtest", description="Evaluate queries over a file of events and write their answers to a file.")
    add_options(options)
    return options


def add_options(options: argparse.ArgumentParser) -> None:
    """Adds the command's options to a parser."""
    options.epilog = "docs/specification.md describes SPEC.json and FEED.json; its section 8 has complete examples to copy."
    options.add_argument(
        "--query", action="extend", nargs="+", required=True, type=Path, metavar="SPEC.json", help="one specification or more; may be given again"
    )
    options.add_argument("--events", required=True, type=Path, metavar="PATH", help="file or folder: parquet, csv or jsonl, also .gz or .zst")
    options.add_argument("--feed", required=True, type=Path, metavar="FEED.json", help="the feed's schema and clock")
    options.add_argument("--out", required=True, type=Path, metavar="OUT", help="answers: .parquet, .csv or .jsonl")
    options.add_argument("--map", default="", metavar="a=b,...", help="the feed's column a is the file's column b, or b+c: both, joined by /")
    options.add_argument("--regions", type=Path, metavar="FILE.geojson", help="stored regions by name: features with a `name`")
    options.add_argument("--arrival", metavar="COLUMN", help="deliver rows in the order of this column instead of file order")
    options.add_argument("--until", type=_time, metavar="T", help="move the clock on to T after the last event")
    options.add_argument("--runtime", choices=("local", "spark"), default="local")
    options.add_argument("--partitions", type=_positive, default=1, metavar="N", help="how many partitions share the entities")
    options.add_argument("--batch-rows", type=_positive, metavar="N", help="rows evaluated at once")
    options.add_argument("--shuffle-within", type=_natural, metavar="MS", help="deliver out of order by at most so much (unit of t)")
    options.add_argument("--seed", type=_whole, default=0, metavar="N", help="which order --shuffle-within takes")
    options.add_argument("--stats", type=Path, metavar="STATS.json", help="counts, speed, memory and the queries' work")
    options.add_argument("--dead-letters", type=Path, metavar="FILE", help="refused and late rows: .parquet, .csv or .jsonl")
    options.add_argument("--windows", type=Path, metavar="FILE", help="each window's own answer of calculus queries: .parquet, .csv or .jsonl")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number; times and spans are in the unit of t") from None


def _time(text: str) -> int:
    number = _whole(text)
    if abs(number) >= LARGEST_TIME:
        raise argparse.ArgumentTypeError("must lie between -2^61 and 2^61, like t")
    return number


def _natural(text: str) -> int:
    number = _whole(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


def _positive(text: str) -> int:
    number = _whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 0, or 2 with the reason on standard error."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stopped:
        return int(stopped.code or 0)
    with _ended_by(signal.SIGTERM):
        return run(options)


@contextmanager
def _ended_by(number: signal.Signals) -> Iterator[None]:
    """The signal ends the command as Ctrl-C does: its temporary files are removed."""

    def end(*_: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)


def run(options: argparse.Namespace) -> int:
    """Runs the command with parsed options; 0, or 2 with the reason on standard error."""
    try:
        backtest(options)
    except RunAborted as stop:
        print(f"backtest: {stop}", file=sys.stderr)
        return REFUSED
    return 0


def run_options(options: Mapping[str, Any]) -> int:
    """`run` for options that another parser read."""
    return run(argparse.Namespace(**options))
