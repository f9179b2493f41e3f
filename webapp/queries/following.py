"""New versions of queries that derive from changed ones.

All effects of a change are read and written together, because the feed is locked meanwhile: the
number of statements depends on levels and owners, not on the number of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import F
from django.utils import timezone

from engine.derive import sources_of
from webapp.accounts.models import User
from webapp.feeds.models import Feed
from webapp.queries.derivation import Graph, chosen, dependents, derive_faults, named_by, not_visible_to_owner, seen_by_owner, with_upstream
from webapp.queries.models import Query, QueryStop
from webapp.queries.references import frozen
from webapp.queries.selectors import regions_of_queries
from webapp.queries.versions import add_versions, end_versions

Links = Query.derives_from.through


def dependents_follow(*, changed: Sequence[int], feed_version: int, user: User | None) -> None:
    """New versions of all that derives from `changed`, whose names, specifications or
    states have just changed.

    To be called within the transaction, under the feed's lock.
    """
    _follow(dependents(changed), feed_version, user)


def rebind_by_name(*, feed: Feed, names: Sequence[str], feed_version: int, user: User) -> None:
    """Queries that derived from removed ones of these names derive from the new ones. To be called
    like `dependents_follow`."""
    gone = Query.objects.filter(feed=feed, name__in=names, deleted_at__isnull=False, derived_by__isnull=False)
    dependents_follow(changed=list(gone.values_list("pk", flat=True)), feed_version=feed_version, user=user)


def follow_sharing(*, query: Query, feed_version: int, user: User) -> None:
    """The sharing of the query changed: queries that derive from it stop, or continue. To be called
    like `dependents_follow`."""
    hidden_sources = [pk for ids in not_visible_to_owner([query.pk]).values() for pk in ids]
    waiting = [one.pk for one in query.derived_by.filter(deleted_at=None, enabled=True).prefetch_related("stops") if one.stopped is not None]
    versions_renew([*hidden_sources, *waiting], feed_version, user)


def versions_renew(queries: Sequence[int], feed_version: int, user: User | None) -> None:
    """New versions of queries that derive from others, and of all that derives from them. To be
    called like `dependents_follow`."""
    above = Links.objects.filter(from_query__in=queries).values_list("to_query", flat=True)
    affected = {*queries, *(one.pk for one in dependents(queries))}
    below = dependents(list(above)) if queries else []
    _follow([one for one in below if one.pk in affected], feed_version, user)


def _follow(queries: Sequence[Query], feed_version: int, user: User | None) -> None:
    """New versions of these, of one feed, each after those it derives from."""
    if not queries:
        return
    following = _Following(queries)
    ids = [query.pk for query in queries]
    end_versions(ids, feed_version)
    Query.objects.filter(pk__in=ids).update(version=F("version") + 1, updated_at=timezone.now())
    for query in queries:
        query.version += 1
        following.choose(query)
    Links.objects.filter(from_query__in=ids).delete()
    Links.objects.bulk_create([Links(from_query_id=pk, to_query_id=source) for pk in ids for source in following.graph.sources[pk]], batch_size=5_000)
    add_versions([(query, following.ready(query)) for query in queries], feed_version, user)
    QueryStop.objects.bulk_create(following.graph.stops.values())


class _Following:
    """The following queries and their possible upstream queries, updated while they are processed
    in order."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self.called = {query.pk: {source.query for source in sources_of(query.specification)} for query in queries}
        live = Query.objects.filter(feed=queries[0].feed, deleted_at=None)
        named = live.filter(named_by(set().union(*self.called.values()))).prefetch_related("stops")
        candidates = {query.pk: query for query in [*named, *queries]}
        self.graph = Graph.above(candidates.values())
        self.by_name: dict[str, list[Query]] = {}
        for query in candidates.values():
            self.by_name.setdefault(query.name, []).append(query)
        self.candidates = candidates
        self.seen = {owner: self._seen_by(query) for owner, query in {query.owner_id: query for query in queries}.items()}
        self.upstream: dict[int, dict[str, Query]] = {}
        self.regions = regions_of_queries(queries)

    def _seen_by(self, query: Query) -> set[int]:
        return set(seen_by_owner(query).filter(pk__in=self.candidates).values_list("pk", flat=True))

    def _named(self, called: Iterable[str]) -> dict[int, Query]:
        """The candidates with these names or ids."""
        queries = {query.pk: query for name in called for query in self.by_name.get(name, ())}
        ids = (int(one) for one in called if one.isascii() and one.isdigit())
        return queries | {pk: self.candidates[pk] for pk in ids if pk in self.candidates}

    def choose(self, query: Query) -> None:
        """The upstream queries now, and why the query stops if it cannot derive."""
        called, before = self.called[query.pk], set(self.graph.sources[query.pk])
        seen = self.seen[query.owner_id]
        upstream = chosen([one for pk, one in self._named(called).items() if pk in seen], called, before)
        # A removed or hidden query is remembered: one of its name may be added,
        # or it may be shared again.
        gone = [pk for pk in before if self.graph.queries[pk].name not in upstream and str(pk) not in upstream]
        self.upstream[query.pk] = upstream
        self.graph.sources[query.pk] = list(dict.fromkeys([*(one.pk for one in upstream.values()), *gone]))
        if query.enabled:
            faults = derive_faults(feed=query.feed, document=query.specification, upstream=upstream, user=None, query=query, graph=self.graph)
            if faults:
                reason = f"It derives from other queries: {faults[0].message}"[:2000]
                self.graph.stops[query.pk] = QueryStop(query=query, version=query.version, reason=reason)

    def ready(self, query: Query) -> object:
        """Its specification as jobs run it."""
        return with_upstream(frozen(query.specification, self.regions.get(query.pk, {})), self.upstream[query.pk])
