"""The rows that a feed accepts, row by row: a direct implementation of specification 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def judged(rows: Sequence[Row], lateness: int, dedupe: bool, columns: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """Positions of the accepted rows sorted by (t, arrival), of the late
    ones, and of the duplicates."""
    clock: int | None = None
    accepted: list[int] = []
    late: list[int] = []
    duplicates: list[int] = []
    for i, row in enumerate(rows):
        if clock is not None and row["t"] < clock - lateness:
            late.append(i)
        elif dedupe and any(all(rows[j][name] == row[name] for name in columns) for j in accepted):
            duplicates.append(i)
        else:
            accepted.append(i)
            clock = row["t"] if clock is None else max(clock, row["t"])
    return sorted(accepted, key=lambda i: (rows[i]["t"], i)), late, duplicates
