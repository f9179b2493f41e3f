"""How many answers of the queries' newest versions begin when, exactly, of spans from seconds to years."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

WIDTHS = (60_000, 3_600_000)
"""Widths that are kept ready (`AnswerCount`); narrower ones are counted from the answers themselves, wider ones added up."""

_READY = """
SELECT query_id, kind, (bucket - %(from)s) / %(width)s AS place, sum(count)::bigint FROM detections_count counted
JOIN queries_query q ON q.id = query_id AND q.version = counted.version
WHERE counted.feed_id = %(feed)s AND width = %(kept)s AND bucket >= %(from)s AND bucket < %(to)s AND query_id = ANY(%(queries)s)
GROUP BY 1, 2, 3 HAVING sum(count) <> 0 ORDER BY 1, 2, 3
"""
_COUNTED = """
SELECT query_id, kind, (start - %(from)s) / %(width)s AS place, count(*) FROM detections_detection counted
JOIN queries_query q ON q.id = query_id AND q.version = counted.version
WHERE counted.feed_id = %(feed)s AND weight = 1 AND start >= %(from)s AND start < %(to)s AND query_id = ANY(%(queries)s)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def answer_counts(*, feed_id: int, query_ids: Sequence[int], from_t: int, to_t: int, buckets: int) -> dict[str, Any]:
    """`{from, to, width, counts}`: stretches of `width` from `from` on that cover `[from_t, to_t)`, about `buckets` of them.

    `counts` is `{query: {kind: [[number of the stretch, answers that begin in it], ...]}}`, without stretches in which none begins.
    """
    width = max(1, -(-(to_t - from_t) // buckets))
    # Of six hours in 400 stretches the answers themselves are three hundred thousand rows: half as many stretches come from a few thousand.
    kept = next((kept for kept in reversed(WIDTHS) if kept <= 2 * width), None)
    if kept is not None:
        width = -(-width // kept) * kept
    low, high = from_t // width * width, -(-to_t // width) * width
    values: dict[str, Any] = {"feed": feed_id, "queries": list(query_ids), "from": low, "to": high, "width": width, "kept": kept}
    counts: dict[str, dict[str, list[list[int]]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED if kept is None else _READY, values)
        for query, kind, place, count in cursor.fetchall():
            counts.setdefault(str(query), {}).setdefault(kind, []).append([place, count])
    return {"from": low, "to": high, "width": width, "counts": counts}
