"""Partitions of the detections table by `start`: one for each span of SPAN time units (a week on a feed in milliseconds).

They are made when the first row of a span is about to be stored. What lies outside FIRST..LAST (a feed of ticks may hold any integer)
shares one partition at either end, so that wild times cannot make partitions without bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection, transaction
from psycopg2 import sql

SPAN = 7 * 86_400_000
FIRST, LAST = -1_100, 7_800
"""Spans of a partition of their own: years 1948 to 2119 on a feed in milliseconds."""
LOCK = 0x76646574
"""Advisory lock of whoever makes or drops a partition."""
TABLE = sql.Identifier("detections_detection")


def span_of(start: int) -> int:
    """The number of the partition for `start`: floor(start / SPAN), held within FIRST - 1 and LAST + 1."""
    return min(max(start // SPAN, FIRST - 1), LAST + 1)


def partition_name(span: int) -> str:
    return f"detections_{'n' if span < 0 else 'p'}{abs(span):05d}"


def _bounds(span: int) -> tuple[sql.Composable, sql.Composable]:
    """`FROM (a) TO (b)`, the upper end open."""
    low = sql.SQL("MINVALUE") if span < FIRST else sql.Literal(span * SPAN)
    high = sql.SQL("MAXVALUE") if span > LAST else sql.Literal((span + 1) * SPAN)
    return low, high


def partitions_ensure(spans: Iterable[int]) -> None:
    """Makes the missing partitions in a transaction of its own. Safe to call from several processes at once.

    A partition is made beside and attached: that blocks neither readers nor writers of the others.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        for span in sorted(set(spans)):
            cursor.execute("SELECT to_regclass(%s)", [partition_name(span)])
            if cursor.fetchone() == (None,):
                _make(cursor, span)


def _make(cursor: Any, span: int) -> None:
    name = sql.Identifier(partition_name(span))
    low, high = _bounds(span)
    cursor.execute(sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)").format(name, TABLE))
    # Intervals are updated when they end: room on the page keeps most of those updates away from the indexes.
    cursor.execute(sql.SQL("ALTER TABLE {} SET (fillfactor = 90)").format(name))
    cursor.execute(sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(TABLE, name, low, high))


def partitions_list() -> list[int]:
    """The numbers of the partitions there are, in order."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'detections_detection'::regclass")
        names = [name for (name,) in cursor.fetchall()]
    return sorted((-1 if name[11] == "n" else 1) * int(name[12:]) for name in names)


def partition_drop(span: int) -> None:
    """Drops the partition `span` with all its rows; nothing when there is none."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(partition_name(span))))
