"""Plots of measured rows, one file a figure, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path

import matplotlib as mpl

from bench import Figure, Row

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter


def plot(family: str, rows: Sequence[Row], figures: Mapping[str, Figure], folder: Path) -> Iterator[Path]:
    """Writes each figure that has rows; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        points = sorted((row for row in rows if row.figure == name and row.x is not None), key=lambda row: row.x or 0.0)
        if points:
            yield from _draw(folder / f"{family}-{name}", figure, points)


def _draw(path: Path, figure: Figure, points: Sequence[Row]) -> Iterator[Path]:
    canvas, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    lines = [({"ours": row.ours, **row.baselines}, row) for row in points]
    names = list(dict.fromkeys(name for values, _ in lines for name in values))
    for style, series in zip(cycle(("-", "--", ":")), dict.fromkeys(row.series for row in points)):
        for number, name in enumerate(names):
            x, y = zip(*((row.x, values[name]) for values, row in lines if row.series == series and name in values), strict=True)
            marker, width = ("o", 2) if name == "ours" else (".", 1)
            label = f"{name}, {series}" if series else name
            axes.plot(x, y, color=f"C{number}", linestyle=style, marker=marker, linewidth=width, label=label)
    axes.set(title=figure.title, xlabel=figure.x_label, ylabel=points[0].unit)
    axes.set_xscale("log" if figure.log_x else "linear")
    axes.set_yscale("log" if figure.log_y else "linear")
    _scaled(axes.xaxis, [row.x or 0.0 for row in points], log=figure.log_x)
    _scaled(axes.yaxis, [value for values, _ in lines for value in values.values()], log=figure.log_y)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    for kind in (".svg", ".png"):
        target = path.with_name(path.name + kind)
        canvas.savefig(target, dpi=150)
        yield target
    plt.close(canvas)


def _scaled(axis: Axis, values: Sequence[float], *, log: bool) -> None:
    """Plain numbers, not powers of ten; whole ones where all values are."""
    if not log:
        axis.set_major_locator(MaxNLocator(integer=all(value == int(value) for value in values)))
        return
    some = [value for value in values if value > 0]
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(some, default=1) < 1000 * min(some, default=1) else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.15g}"))
    axis.set_minor_formatter(NullFormatter())
