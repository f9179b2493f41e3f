"""Exact counts of answers of the queries' newest versions by start time, over periods from seconds
to years."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from django.db import connection

from engine.model.feed import LARGEST_TIME

WIDTHS = (60_000, 600_000, 3_600_000)
"""Widths that are stored (`AnswerCount`); narrower buckets are counted from the
answers, wider ones summed up."""
MOST_COARSER = 3
"""Buckets may become at most this many times as wide as requested, so that they can be summed from
a stored width: six hours in 400 buckets would otherwise read three hundred thousand answers."""

_READY = """
SELECT query_id, kind, (bucket - %(from)s) / %(width)s AS place, count AS found FROM detections_count counted
JOIN queries_query q ON q.id = query_id AND q.version = counted.version
WHERE counted.feed_id = %(feed)s AND width = %(kept)s AND bucket >= %(from)s AND bucket < %(to)s AND query_id = ANY(%(queries)s) AND count <> 0
"""
_ADDED_UP = "SELECT query_id, kind, place, sum(found) AS found FROM ({rows}) AS kept GROUP BY 1, 2, 3"
_COUNTED = """
SELECT query_id, kind, (start - %(from)s) / %(width)s AS place, count(*) AS found FROM detections_detection counted
JOIN queries_query q ON q.id = query_id AND q.version = counted.version
WHERE counted.feed_id = %(feed)s AND weight = 1 AND start >= %(from)s AND start < %(to)s AND query_id = ANY(%(queries)s)
GROUP BY 1, 2, 3
"""
# PostgreSQL writes the hundred thousand pairs of a day in a fraction of the time that Python
# takes to read and write them.
_AS_JSON = """
SELECT query_id, kind, '[' || string_agg('[' || place || ',' || found || ']', ',') || ']' FROM ({rows}) AS buckets
GROUP BY 1, 2 ORDER BY 1, 2
"""


def answer_counts(*, feed_id: int, query_ids: Sequence[int], from_t: int, to_t: int, buckets: int) -> str:
    """`{from, to, width, counts}` as JSON: about `buckets` buckets of `width` from `from` on
    that cover `[from_t, to_t)`.

    `counts` is `{query: {kind: [[number of the bucket, answers that begin in it], ...]}}`, in no
    order, without empty buckets.
    """
    # Beyond these there are no rows, and differences would exceed 64 bits.
    from_t = min(max(from_t, -LARGEST_TIME), LARGEST_TIME - 1)
    to_t = max(min(to_t, LARGEST_TIME), from_t + 1)
    width = max(1, -(-(to_t - from_t) // buckets))
    kept = next((kept for kept in reversed(WIDTHS) if kept <= MOST_COARSER * width), None)
    if kept is not None:
        width = -(-width // kept) * kept
    low, high = from_t // width * width, -(-to_t // width) * width
    values: dict[str, Any] = {"feed": feed_id, "queries": list(query_ids), "from": low, "to": high, "width": width, "kept": kept}
    with connection.cursor() as cursor:
        rows = _COUNTED if kept is None else _READY if width == kept else _ADDED_UP.format(rows=_READY)
        cursor.execute(_AS_JSON.format(rows=rows), values)
        found = cursor.fetchall()
    queries = (
        f'"{query}":{{{",".join(f"{json.dumps(kind)}:{pairs}" for _, kind, pairs in kinds)}}}'
        for query, kinds in itertools.groupby(found, key=itemgetter(0))
    )
    return f'{{"from":{low},"to":{high},"width":{width},"counts":{{{",".join(queries)}}}}}'
