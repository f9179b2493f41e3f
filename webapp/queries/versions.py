"""The feed's sets of queries: every change takes the next version of the set,
under the feed's row lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.http import Http404

from webapp.accounts.models import User
from webapp.feeds.models import Feed
from webapp.queries.models import Query, QueryStop, QueryVersion

Key = tuple[int, int]
"""A query's id and version."""
_LEAVE = """
UPDATE queries_queryversion v SET left_at = %s, left_seq = %s FROM unnest(%s::bigint[], %s::integer[]) AS named (query_id, version)
WHERE v.query_id = named.query_id AND v.version = named.version
"""
_BACK = """
UPDATE queries_queryversion v SET left_at = NULL, left_seq = NULL
FROM unnest(%s::bigint[], %s::integer[]) AS named (query_id, version), queries_queryversion before
WHERE v.query_id = named.query_id AND v.version = named.version AND before.id = v.id AND before.left_seq IS NOT NULL
RETURNING v.query_id, v.version, before.left_seq
"""


def next_version(feed: Feed) -> int:
    """The feed's next query version; its row is locked from now on (not the key: the sink
    refers to the row meanwhile). Raises Http404 when it has been removed."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE feeds_feed SET query_version = query_version + 1 WHERE id = %s RETURNING query_version", [feed.pk])
        if (row := cursor.fetchone()) is None:
            raise Http404
    feed.query_version = int(row[0])
    return feed.query_version


def add_versions(queries: Sequence[tuple[Query, Any]], feed_version: int, user: User | None) -> None:
    """The next generation of each (query, frozen specification).

    The version of a disabled query does not run: its span is empty until the query is enabled.
    """
    QueryVersion.objects.bulk_create(
        [
            QueryVersion(
                query=query,
                version=query.version,
                document=query.specification,
                specification=ready,
                from_feed_version=feed_version,
                created_by=user,
            )
            for query, ready in queries
            if query.enabled
        ],
        batch_size=500,
    )


def end_versions(query_ids: Sequence[int], feed_version: int) -> None:
    """The set `feed_version` is the first without the running versions of these queries, of one
    feed."""
    QueryVersion.objects.filter(query__in=query_ids, to_feed_version=None).update(to_feed_version=feed_version)


def version_resume(query: Query, ready: Any, feed_version: int) -> bool:
    """Runs the disabled version again, from the set `feed_version` on. False when a
    new version has to be made.

    That is so when its regions have changed meanwhile, or the job could not continue with it.
    """
    known = QueryVersion.objects.filter(query=query, version=query.version).first()
    if known is None or known.specification != ready or QueryStop.objects.filter(query=query, version=query.version).exists():
        return False
    known.from_feed_version, known.to_feed_version = feed_version, None
    known.save(update_fields=["from_feed_version", "to_feed_version"])
    return True


def versions_leave(keys: Sequence[Key], *, at: int | None, seq: int) -> None:
    """The job has left these versions at event time `at` and outbox number `seq`."""
    with connection.cursor() as cursor:
        cursor.execute(_LEAVE, [at, seq, *_columns(keys)])


def versions_back(keys: Sequence[Key]) -> dict[Key, int]:
    """The job runs these versions. Of those that it had left before, the
    outbox number of that time."""
    with connection.cursor() as cursor:
        cursor.execute(_BACK, _columns(keys))
        return {(query, version): seq for query, version, seq in cursor.fetchall()}


def _columns(keys: Sequence[Key]) -> list[list[int]]:
    return [[query for query, _ in keys], [version for _, version in keys]]
