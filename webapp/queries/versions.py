"""The feed's sets of queries: every change takes the next version of the set, under the feed's row lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webapp.accounts.models import User
from webapp.feeds.models import Feed
from webapp.queries.models import Query, QueryVersion


def next_version(feed: Feed) -> int:
    """The feed's next query version, taken under its row's lock (not the key's: the sink refers to the row meanwhile)."""
    locked = Feed.objects.select_for_update(of=("self",), no_key=True).only("query_version").get(pk=feed.pk)
    locked.query_version += 1
    locked.save(update_fields=["query_version"])
    feed.query_version = locked.query_version
    return locked.query_version


def add_versions(queries: Sequence[tuple[Query, Any]], feed_version: int, user: User) -> None:
    """The next generation of each (query, frozen specification).

    Of a query that is switched off it is none that runs: its span is empty of sets until it is switched on.
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


def end_version(query: Query, feed_version: int) -> None:
    """The set `feed_version` is the first without the query's running version."""
    end_versions([query.pk], feed_version)


def end_versions(query_ids: Sequence[int], feed_version: int) -> None:
    """The same for many queries of one feed."""
    QueryVersion.objects.filter(query__in=query_ids, to_feed_version=None).update(to_feed_version=feed_version)
