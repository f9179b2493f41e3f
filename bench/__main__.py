"""All measurements: `python -m bench [FAMILY ...] [--quick] [--out FOLDER] [--plots
FOLDER] [--spark | --no-spark]`.

Prints a table, writes one JSON file a family (default `bench/results/`, not committed) and,
with `--plots`, the figures as SVG and PNG. `--quick` leaves the rows out that start Spark
unless `--spark` asks for them. A family that fails, for example because the answers of two methods
differ, is reported and keeps its rows so far; the others continue, and the run fails. A missed
target is shown, not failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from bench import MODULES, Figure, Row, Size

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    size = Size.QUICK if options.quick else Size.FULL
    with_spark = not options.quick if options.spark is None else options.spark
    options.out.mkdir(parents=True, exist_ok=True)
    missed: list[str] = []
    broken: list[str] = []
    for family in options.only:
        print(f"\n{family}\n{'-' * len(family)}")
        module = importlib.import_module(MODULES[family])
        began = time.monotonic()
        rows, whole = _with_targets(module, size, spark=with_spark)
        broken += [] if whole else [family]
        missed += [f"{family}: {row.workload}: {words}" for row in rows for words in row.missed]
        _write(options.out / f"{family}.json", family, size, rows, time.monotonic() - began)
        if options.plots:
            _plot(family, module, rows, options.plots)
    if with_spark:
        from bench.spark_overhead import end_session

        end_session()
    if missed and size is Size.FULL:
        print("\nbelow its target\n----------------", *missed, sep="\n")
    if broken:
        print(f"\nbroken off: {', '.join(broken)}")
    return 1 if broken else 0


def _with_targets(module: ModuleType, size: Size, *, spark: bool) -> tuple[list[Row], bool]:
    """A family's rows, each printed once it is measured; returns whether they are complete."""
    rows = []
    try:
        for row in _measured(module, size, spark=spark):
            print(line(row, with_targets=size is Size.FULL), flush=True)
            rows.append(row)
    except Exception:
        traceback.print_exc()
        return rows, False
    return rows, True


def _plot(family: str, module: ModuleType, rows: Sequence[Row], folder: Path) -> None:
    from bench.plots import plot

    for path in plot(family, rows, getattr(module, "FIGURES", dict[str, Figure]()), folder):
        print(f"  {path}")


def _measured(module: ModuleType, size: Size, *, spark: bool) -> Iterator[Row]:
    yield from module.rows(size)
    if spark and hasattr(module, "spark_rows"):
        yield from module.spark_rows(size)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs: checks that everything runs and agrees")
    parser.add_argument("families", nargs="*", type=_family, help=f"what is measured; none: all of {', '.join(MODULES)}")
    parser.add_argument("--only", type=_families, default=[], help="the same, separated by commas")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the JSON files")
    parser.add_argument("--plots", type=Path, help="folder for the figures")
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, help="with the rows that start Spark (default: yes, no with --quick)")
    options = parser.parse_args(arguments)
    options.only = [*options.families, *options.only] or list(MODULES)
    return options


def _families(text: str) -> list[str]:
    return [_family(name) for name in text.split(",")]


def _family(name: str) -> str:
    if name not in MODULES:
        raise argparse.ArgumentTypeError(f"{name!r} is not measured; known: {', '.join(MODULES)}")
    return name


def line(row: Row, *, with_targets: bool = True) -> str:
    """The row as one line of the table: our value, each baseline with its ratio, facts and, if
    `with_targets`, the missed targets."""
    words = [f"{row.workload:<46} {row.layer.value:<6} {row.ours:>12,.4g} {row.unit:<12}"]
    words += [f"{name} {value:,.4g} ({row.ratio(name):.3g}x)" for name, value in row.baselines.items()]
    words += [f"{name} {value if isinstance(value, str) else format(value, ',.4g')}" for name, value in row.facts.items()]
    words += [f"MISSED {missed}" for missed in row.missed if with_targets]
    return "  ".join(words)


def _write(path: Path, family: str, size: Size, rows: Sequence[Row], seconds: float) -> None:
    document = {
        "family": family,
        "size": size.value,
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "seconds": round(seconds, 1),
        "rows": [as_json(row) for row in rows],
    }
    path.write_text(json.dumps(document, indent=1))


def as_json(row: Row) -> dict[str, object]:
    """The row's fields with the ratios and the missed targets."""
    fields = {name: value for name, value in vars(row).items() if value is not None}
    return fields | {
        "layer": row.layer.value,
        "baselines": dict(row.baselines),
        "at_least": dict(row.at_least),
        "facts": dict(row.facts),
        "ratios": {name: round(row.ratio(name), 3) for name in row.baselines},
        "missed": row.missed,
    }


if __name__ == "__main__":
    sys.exit(main())
