"""What a batch, or a part of it, stores with its answers: late rows, counts and measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from engine.runtime.derived import GraphEvaluator
from engine.runtime.evaluator import Outcome
from engine.runtime.store import Commit, Head, StoppedQuery


def batch_commit(
    head: Head,
    outcomes: Sequence[Outcome],
    changes: Sequence[Any],
    evaluator: GraphEvaluator,
    seconds: float,
    since_last: float,
    *,
    whole: bool,
    stopped: tuple[StoppedQuery, ...],
) -> Commit:
    """`changes` are those of `outcomes`, as the store has prepared them.

    `seconds` the batch took so far; its rows came within `since_last` seconds.
    `whole`: it ends with these.
    """
    processed, duplicates = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("processed", "duplicates"))
    late = _joined(outcome.late for outcome in outcomes)
    rows = processed + duplicates + (late.num_rows if late is not None else 0)
    return Commit(
        head,
        head.last_batch if whole else None,
        changes,
        late=late,
        measures={
            "watermark": evaluator.watermark,
            "max_t": _newest(evaluator),
            "batch_ms": seconds * 1000,
            "rows_per_s": rows / max(since_last, 0.001),
        },
        counted={"processed": processed, "duplicates": duplicates, "late": late.num_rows if late is not None else 0},
        stopped=stopped,
    )


def _newest(evaluator: GraphEvaluator) -> int | None:
    return None if evaluator.watermark is None else evaluator.watermark + evaluator.feed.lateness


def _joined(tables: Iterable[pa.Table]) -> pa.Table | None:
    full = [table for table in tables if table.num_rows]
    return pa.concat_tables(full, promote_options="default") if full else None
