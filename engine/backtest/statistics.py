"""`--stats`: counts, speed, memory and the queries' work."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.backtest.run import Run, batch_rows

if TYPE_CHECKING:
    from engine.operator import RegisteredQuery
    from engine.runtime.local import Runtime


def statistics(run: Run, runtime: Runtime, written: Mapping[str, int], seconds: float) -> dict[str, Any]:
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
        "batch_rows": batch_rows(run.options),
        "queries": {
            query.id: _query_statistics(query, families, counters, written.get(query.id, 0), run.documents[query.id]["family"])
            for query in run.queries
        },
    }


def _query_statistics(
    query: RegisteredQuery, queries: Mapping[str, int], counters: Mapping[str, Mapping[str, int]], answers: int, family: str
) -> dict[str, Any]:
    """A query's answers and the work of the operator that evaluates it together with those of
    `shared_by` queries; `queries` are there by family.

    What a counter called `name@query` counts is that query's alone.
    """
    from engine.families import FAMILIES

    operator = FAMILIES[family].operator()
    together = operator.families
    sharing = sum(queries[name] for name in together if name in queries)
    counted = [(*name.partition("@"), count) for name, count in counters.get(together[0], {}).items()]
    work = {name: count for name, at, owner, count in counted if not at or owner == query.id}
    figures = {"family": family, "answers": answers, "shared_by": sharing, "work": work}
    return figures | ({"parts": parts} if (parts := operator.parts(query)) else {})
