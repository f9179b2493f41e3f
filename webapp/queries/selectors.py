"""Reads of queries and their versions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from engine.families import family_of
from engine.model.faults import Fault, Refused
from engine.operator import RegisteredQuery
from engine.specification import check
from webapp.accounts.permissions import AnyUser
from webapp.feeds.models import Feed, Region
from webapp.feeds.selectors import regions_of_feed
from webapp.queries.derivation import derive_faults, upstream_of, with_upstream
from webapp.queries.models import Query, QueryStop, QueryVersion
from webapp.queries.newest_rows import NEWEST_ROWS
from webapp.queries.references import frozen, shapes
from webapp.queries.sentences import sentence_of
from webapp.queries.sentences.placement import placement
from webapp.queries.verdicts import faults_of, is_long


def query_list(*, user: AnyUser) -> QuerySet[Query]:
    """The queries that `user` may see, removed ones left out."""
    return (
        Query.objects.visible_to(user)
        .with_editable(user)
        .filter(deleted_at=None)
        .select_related("feed", "owner", "team")
        .annotate(left_at=Subquery(QueryVersion.objects.filter(query=OuterRef("pk"), version=OuterRef("version")).values("left_at")[:1]))
        .prefetch_related("regions", "stops")
        .order_by("name", "id")
    )


def with_nothing_beside(query: Query, **related: QuerySet[Any]) -> Query:
    """A query that was just created, in the form of `query_list`, without further reads, `related`
    included."""
    made: Any = query
    made.editable = True
    made._prefetched_objects_cache = {"regions": Region.objects.none(), "stops": QueryStop.objects.none(), **related}
    return query


def blocking_names(queries: Any, *, user: AnyUser) -> list[str]:
    """Names of those live ones of `queries` (a related manager) that `user` may change, and so
    can remove; twenty at most."""
    blocking = Query.objects.editable_by(user).filter(pk__in=queries.filter(deleted_at=None).values("pk"))
    return list(blocking.order_by("name").values_list("name", flat=True)[:20])


def regions_of_queries(queries: Sequence[Query]) -> dict[int, dict[str, Any]]:
    """The regions that each query names, by its id and their names; a query without any is not in
    it."""
    found: dict[int, dict[str, Any]] = {}
    through = Query.regions.through.objects.filter(query__in=queries)
    for pk, name, geometry in through.values_list("query", "region__name", "region__geometry"):
        found.setdefault(pk, {})[name] = geometry
    return found


def query_names(*, feed: Feed) -> set[str]:
    """The names of all queries that the feed ever had, removed ones too, so that seeding
    does not make them again."""
    return set(Query.objects.filter(feed=feed).values_list("name", flat=True))


def queries_visible(*, user: AnyUser, feed: Feed | None = None) -> set[int]:
    """Ids of the queries (of one feed, if given) whose answers `user` may see; removed
    ones too: their answers stay."""
    queries = Query.objects.visible_to(user)
    return set((queries if feed is None else queries.filter(feed=feed)).values_list("pk", flat=True))


def versions_at(*, feed: Feed, version: int) -> QuerySet[QueryVersion]:
    """The set of query versions that is the feed's version `version`: from <= version < to."""
    ended = Q(to_feed_version=None) | Q(to_feed_version__gt=version)
    return QueryVersion.objects.filter(ended, query__feed=feed, from_feed_version__lte=version).order_by("query", "version")


def versions_running(*, feed: Feed, version: int) -> QuerySet[QueryVersion]:
    """Those of `versions_at` that were not stopped."""
    stopped = QueryStop.objects.filter(query=OuterRef("query"), version=OuterRef("version"))
    return versions_at(feed=feed, version=version).exclude(Exists(stopped))


def version_list(*, query: Query) -> QuerySet[QueryVersion]:
    """All generations of a query, newest first."""
    return query.versions.select_related("created_by").order_by("-version")


def shapes_of(query: Query) -> list[Any]:
    """Every region of the query's newest version."""
    newest = query.versions.order_by("-version").first()
    return [] if newest is None else list(shapes(newest.specification))


def behind(query: Query, version: int) -> tuple[str | None, list[Any]]:
    """The sentence of the version that gave an answer, and its regions as they were: the query
    may have been edited since."""
    row = query.versions.filter(version=version).first()
    document, ready = (query.specification, {}) if row is None else (row.document, row.specification)
    return sentence_of(document, feed=query.feed.engine_feed()), list(shapes(ready))


def specification_then(query: Query, version: int) -> dict[str, Any]:
    """The specification of a version, with its regions as they were."""
    row = query.versions.filter(version=version).first()
    found: dict[str, Any] = query.specification if row is None else row.specification
    return found


def is_unchanged(query: Query, version: QueryVersion) -> bool:
    """Whether a version, perhaps an older one, equals the present specification with the present
    regions."""
    upstream = upstream_of(feed=query.feed, document=query.specification, user=None, kept=query)
    return bool(with_upstream(frozen(query.specification, dict(query.regions.values_list("name", "geometry"))), upstream) == version.specification)


def specification_faults(*, feed: Feed, specification: Any, user: AnyUser) -> list[Fault]:
    """All faults of a specification on this feed with the stored regions that `user` may see;
    empty: it can be registered."""
    regions = regions_of_feed(feed, user=user)
    if is_long(specification):
        # Programs of rules keep a window at any arrival rate.
        return faults_of(specification, feed.engine_feed(), regions) or _between(feed, specification, user)
    try:
        checked = check(specification, feed.engine_feed(), regions)
    except Refused as refused:
        return list(refused.faults)
    return _between(feed, specification, user) or rate_faults(feed=feed, checked=checked)


def placement_of(*, feed: Feed, specification: Any, user: AnyUser) -> str | None:
    """Which parts of a specification without faults several partitions share, as one line; null for
    a family that has no such parts."""
    checked = check(specification, feed.engine_feed(), regions_of_feed(feed, user=user))
    return placement(family_of(checked).operator().parts(RegisteredQuery("new", 1, checked)))


def _between(feed: Feed, specification: Any, user: AnyUser) -> list[Fault]:
    """The faults between a checked specification and its upstream queries."""
    upstream = upstream_of(feed=feed, document=specification, user=user)
    return derive_faults(feed=feed, document=specification, upstream=upstream, user=user)


def rate_faults(*, feed: Feed, checked: Any) -> list[Fault]:
    """Warnings about a checked specification at the feed's arrival rate; empty
    while there is no history.

    May read many rows: do not call it under the feed's lock.
    """
    reason = family_of(checked).operator().refusal(RegisteredQuery("new", 1, checked), feed.engine_feed(), partial(NEWEST_ROWS.rows, feed))
    return [] if reason is None else [Fault("", reason)]


def names_used(feed: Feed, names: set[str], *, user: AnyUser) -> QuerySet[Region]:
    """The stored regions of these names that `user` may see."""
    return Region.objects.visible_to(user).filter(feed=feed, name__in=names)


def queries_held(owner_filter: dict[str, Any]) -> int:
    """How many live queries someone has."""
    return Query.objects.filter(**owner_filter, deleted_at=None).count()
