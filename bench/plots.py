"""Plots of measured rows, one file a figure, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

from bench import Figure, Row

mpl.use("Agg")
from matplotlib import pyplot as plt


def plot(family: str, rows: Sequence[Row], figures: Mapping[str, Figure], folder: Path) -> Iterator[Path]:
    """Writes each figure that has rows; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        points = sorted((row for row in rows if row.figure == name and row.x is not None), key=lambda row: row.x or 0.0)
        if points:
            yield from _draw(folder / f"{family}-{name}", figure, points)


def _draw(path: Path, figure: Figure, points: Sequence[Row]) -> Iterator[Path]:
    canvas, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    names = list(dict.fromkeys(name for row in points for name in row.baselines))
    axes.plot([row.x for row in points], [row.ours for row in points], marker="o", linewidth=2, label="ours")
    for name in names:
        own = [row for row in points if name in row.baselines]
        axes.plot([row.x for row in own], [row.baselines[name] for row in own], marker=".", linewidth=1, label=name)
    axes.set(title=figure.title, xlabel=figure.x_label, ylabel=points[0].unit)
    axes.set_xscale("log" if figure.log_x else "linear")
    axes.set_yscale("log" if figure.log_y else "linear")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    for kind in (".svg", ".png"):
        target = path.with_name(path.name + kind)
        canvas.savefig(target, dpi=150)
        yield target
    plt.close(canvas)
