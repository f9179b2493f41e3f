"""Partitions of the detections table by `start`: one for each span of SPAN time units (a week
on a feed in milliseconds).

They are made when the first row of a span is about to be stored. Times outside FIRST..LAST (a feed
of ticks may hold any integer) share one partition at either end, so that extreme times cannot
create any number of partitions. Functions that a migration creates make and drop them: they
belong to the owner of the tables, and the application's role may not change the schema otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection, transaction

SPAN = 7 * 86_400_000
FIRST, LAST = -1_100, 7_800
"""Spans with separate partitions: years 1948 to 2119 on a feed in milliseconds. The functions in
the database contain all three numbers."""


def span_of(start: int) -> int:
    """The number of the partition for `start`: floor(start / SPAN), held
    within FIRST - 1 and LAST + 1."""
    return min(max(start // SPAN, FIRST - 1), LAST + 1)


def partitions_ensure(spans: Iterable[int]) -> None:
    """Creates missing partitions in separate transactions. Safe to call from
    several processes at once.

    Existing partitions are looked up each time: another process may have
    dropped one with its last rows.
    """
    wanted = sorted(set(spans))
    with connection.cursor() as cursor:
        cursor.execute("SELECT span FROM unnest(%s::int[]) AS span WHERE to_regclass(detections_partition_name(span)) IS NULL", [wanted])
        missing = [span for (span,) in cursor.fetchall()]
    if missing:
        with transaction.atomic(), connection.cursor() as cursor:
            for span in missing:
                cursor.execute("SELECT detections_partition_ensure(%s)", [span])


def partitions_list() -> list[int]:
    """The numbers of the existing partitions, in order."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'detections_detection'::regclass")
        names = [name for (name,) in cursor.fetchall()]
    return sorted((-1 if name[11] == "n" else 1) * int(name[12:]) for name in names)


def partition_drop(span: int) -> None:
    """Drops the partition `span` with all its rows; does nothing if it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT detections_partition_drop(%s)", [span])
