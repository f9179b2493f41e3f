"""Queries that derive from others: its obstacles, and the effects of a change on derived queries.

Each version of a query has one set of upstream versions: every change of an upstream query
gives all queries that derive from it new versions, which answer for the history again. A query
that can no longer derive is stopped with the reason, and continues when it can again. A query
derives only from queries that its owner may see: otherwise it would continue showing answers
that are no longer shared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, TypedDict

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from engine.derive import graph_faults, resolved, sources_of
from engine.model.faults import Fault, Refused, unknown_name
from engine.model.feed import Feed as EngineFeed
from engine.model.feed import escaped
from engine.model.messages import Message, listed, untranslated
from engine.operator import RegisteredQuery
from engine.runtime.derived import in_order
from engine.specification import check
from webapp.accounts.models import Membership
from webapp.accounts.permissions import AnyUser, seen_by
from webapp.feeds.models import Feed
from webapp.queries.models import Query, QueryStop, QueryVersion

SUGGESTED = 500
"""At most this many names are searched for a suggestion."""
CANDIDATE = ""
"""The key of a query that has no id yet."""


def upstream_of(*, feed: Feed, document: Any, user: AnyUser | None, kept: Query | None = None) -> dict[str, Query]:
    """The live queries that a document derives from, by what it calls them. A name takes precedence
    over an id, except an id that `kept` derived from before: a query of that name does not replace
    it.

    Of those that `user` may see, and those that `kept` derived from before; null: of all. The owner
    of `kept` has to see them too.
    """
    called = {source.query for source in sources_of(document)}
    if not called:
        return {}
    live = Query.objects.filter(feed=feed, deleted_at=None)
    before = set() if kept is None else set(kept.derives_from.values_list("pk", flat=True))
    if user is not None:
        live = live.filter(Q(pk__in=Query.objects.visible_to(user).filter(feed=feed).values("pk")) | Q(pk__in=before))
    if kept is not None:
        live = live.filter(pk__in=seen_by_owner(kept).values("pk"))
    return chosen(live.filter(named_by(called)), called, before)


def named_by(called: Collection[str]) -> Q:
    """The queries that documents call by one of these names or ids."""
    return Q(name__in=called) | Q(pk__in=[int(one) for one in called if one.isascii() and one.isdigit() and len(one) < 19])


def chosen(queries: Iterable[Query], called: Set[str], before: Set[int]) -> dict[str, Query]:
    """The named ones of these queries, by the given names; `before`: what was derived from
    before."""
    queries_and_sources = list(queries)
    again = [query for query in queries_and_sources if query.pk in before]
    by_name = _by_name(queries_and_sources, called - {str(pk) for pk in before}) | _by_name(again, called)
    return {str(query.pk): query for query in queries_and_sources if str(query.pk) in called} | by_name


def seen_by_owner(query: Query) -> QuerySet[Query]:
    """The queries of its feed that the owner of a query may see."""
    of_feed = Query.objects.filter(feed=query.feed)
    return of_feed if query.owner.is_superuser else of_feed.filter(seen_by(query.owner))


def _by_name(queries: Iterable[Query], called: Set[str]) -> dict[str, Query]:
    return {query.name: query for query in queries if query.name in called}


@dataclass
class Graph:
    """Queries by id, and the ids of those that each derives from. `stops`: those that have just
    been stopped."""

    queries: dict[int, Query] = field(default_factory=dict)
    sources: dict[int, list[int]] = field(default_factory=dict)
    stops: dict[int, QueryStop] = field(default_factory=dict)

    @classmethod
    def above(cls, queries: Iterable[Query]) -> Graph:
        """These and all their upstream queries, direct or not: one statement for each level."""
        graph, waiting = cls(), {query.pk: query for query in queries}
        while waiting:
            graph.queries |= waiting
            graph.sources |= {pk: [] for pk in waiting}
            links = list(Query.derives_from.through.objects.filter(from_query__in=waiting).values_list("from_query", "to_query"))
            for below, source in links:
                graph.sources[below].append(source)
            waiting = Query.objects.prefetch_related("stops").in_bulk({source for _, source in links} - graph.queries.keys())
        return graph

    def closure(self, queries: Iterable[Query]) -> list[int]:
        """The ids of these and of all that they derive from."""
        closed: dict[int, None] = {}
        waiting = [query.pk for query in queries]
        while waiting:
            pk = waiting.pop()
            if pk not in closed:
                closed[pk] = None
                waiting += self.sources[pk]
        return list(closed)

    def stopped(self, query: Query) -> QueryStop | None:
        """Why an enabled query does not run."""
        return self.stops.get(query.pk) or query.stopped


def derive_faults(
    *,
    feed: Feed,
    document: Mapping[str, Any],
    upstream: Mapping[str, Query],
    user: AnyUser | None,
    query: Query | None = None,
    graph: Graph | None = None,
) -> list[Fault]:
    """The faults between a checked document (of `query`, if it is stored) and its upstream queries.
    `graph`: these, if known."""
    graph = Graph.above(upstream.values()) if graph is None else graph
    faults = []
    for source in sources_of(document):
        pointer = f"/derive/{escaped(source.event)}/query"
        source_row = upstream.get(source.query)
        if source_row is None:
            faults.append(Fault(pointer, _fault_of_reference(source.query, feed, user)))
        elif not source_row.enabled:
            faults.append(Fault(pointer, Message("{name} is switched off: switch it on first", name=repr(source_row.name))))
        elif (stop := graph.stopped(source_row)) is not None:
            faults.append(Fault(pointer, Message("{name} was stopped: {reason}", name=repr(source_row.name), reason=untranslated(stop.reason))))
    return faults or _graph_faults(document, upstream, user, query, graph)


def _fault_of_reference(called: str, feed: Feed, user: AnyUser | None) -> Message:
    """Why a query cannot be derived from under this name."""
    if user is None:
        return Message("{name} is not there any more, or no longer shared with this query's owner", name=repr(called))
    seen = _names_seen(feed, user)
    if called in seen:
        return Message("the owner of this query may not see {name}: share it with them", name=repr(called))
    return unknown_name(called, seen, what=Message("query"))


def _names_seen(feed: Feed, user: AnyUser) -> list[str]:
    return list(Query.objects.visible_to(user).filter(feed=feed, deleted_at=None).values_list("name", flat=True)[:SUGGESTED])


def _graph_faults(document: Mapping[str, Any], upstream: Mapping[str, Query], user: AnyUser | None, query: Query | None, graph: Graph) -> list[Fault]:
    query_key = CANDIDATE if query is None else str(query.pk)
    closure = {str(pk): graph.queries[pk] for pk in graph.closure(upstream.values())}
    documents: dict[str, Mapping[str, Any]] = {}
    for key, one in closure.items():
        documents[key] = resolved(one.specification, _ids(graph.queries[pk] for pk in graph.sources[one.pk]))
    documents[query_key] = resolved(document, {called: str(one.pk) for called, one in upstream.items()})
    seen = closure.keys() if user is None else {str(pk) for pk in Query.objects.visible_to(user).filter(pk__in=closure).values_list("pk", flat=True)}
    names = {key: one.name if key in seen else "a query of others" for key, one in closure.items()}
    if query is not None:
        names[query_key] = query.name
    return graph_faults(documents, names).get(query_key, [])


def _ids(queries: Iterable[Query]) -> dict[str, str]:
    """By name and by id."""
    queries_and_sources = list(queries)
    return {str(one.pk): str(one.pk) for one in queries_and_sources} | {one.name: str(one.pk) for one in queries_and_sources}


def with_upstream(document: Any, upstream: Mapping[str, Query]) -> Any:
    """A frozen document with the queries it derives from named by their ids, as jobs know them."""
    return resolved(document, {called: str(one.pk) for called, one in upstream.items()}) if upstream else document


def dependents(queries: Iterable[int]) -> list[Query]:
    """All live queries that derive from these, directly or not, each after those it
    derives from; these left out."""
    roots = set(queries)
    edges: dict[int, list[int]] = {}
    dependents: dict[int, Query] = {}
    beyond = roots
    while beyond:
        below = Query.derives_from.through.objects.filter(to_query__in=beyond).values("from_query")
        rows = list(Query.objects.filter(pk__in=below, deleted_at=None).select_related("feed", "owner").prefetch_related("derives_from", "stops"))
        beyond = {query.pk for query in rows} - dependents.keys() - roots
        for query in rows:
            dependents[query.pk] = query
            edges[query.pk] = [one.pk for one in query.derives_from.all()]
    return [dependents[pk] for pk in in_order(edges) if pk in dependents and pk not in roots]


def not_visible_to_owner(among: Sequence[int] | None = None) -> dict[Feed, list[int]]:
    """Running queries that derive from one that their owner may not see, by feed; `among` those
    that derive from these, null: all."""
    links = Query.derives_from.through.objects.exclude(to_query__owner=F("from_query__owner")).exclude(
        Exists(Membership.objects.filter(user=OuterRef("from_query__owner"), team=OuterRef("to_query__team")))
    )
    links = links.filter(to_query__public=False, to_query__deleted_at=None, from_query__owner__is_superuser=False, from_query__enabled=True)
    if among is not None:
        links = links.filter(to_query__in=among)
    stopped = QueryStop.objects.filter(query=OuterRef("pk"), version=OuterRef("version"))
    hidden: dict[Feed, list[int]] = {}
    for query in Query.objects.filter(~Exists(stopped), pk__in=links.values("from_query"), deleted_at=None).select_related("feed"):
        hidden.setdefault(query.feed, []).append(query.pk)
    return hidden


def refuse_if_derived_from(*, queries: Sequence[int], user: AnyUser | None, what: Message) -> None:
    """Raises Refused when running queries derive from these; it names those that `user` may see."""
    running = [query for query in dependents(queries) if query.enabled and query.stopped is None]
    if not running:
        return
    visible = Query.objects.none() if user is None else Query.objects.visible_to(user)
    seen = set(visible.filter(pk__in=[query.pk for query in running]).values_list("pk", flat=True))
    names = [f"{query.name!r}" for query in running if query.pk in seen][:20]
    others = len(running) - len(names)
    if not others:
        named = listed(names)
    elif names:
        named = Message("{names}, {count} of others", names=", ".join(names), count=others)
    elif others == 1:
        named = Message("1 query of others")
    else:
        named = Message("{count} queries of others", count=others)
    raise Refused(
        [
            Fault(
                "/stop_dependents",
                Message("This would stop {names}, derived from what {what}: send stop_dependents = true to do it anyway.", names=named, what=what),
            )
        ]
    )


class _QueryName(TypedDict):
    id: int | None
    name: str | None
    family: str | None


class Upstream(_QueryName):
    """A source of a query: `called` in its specification, null where the user may not see it.
    `runs`: it gives answers now."""

    called: str
    event: str
    kind: str
    at: str
    runs: bool


class Downstream(_QueryName):
    """A query that derives from another one; `direct`: from its answers, not from
    those of a query between them."""

    direct: bool
    runs: bool


class Derivation(TypedDict):
    """What a query derives from and what derives from it; `hidden`: how many more,
    which the user may not see."""

    derives_from: list[Upstream]
    derived_by: list[Downstream]
    hidden: int


def derivation(*, query: Query, user: AnyUser) -> Derivation:
    """The upstream and downstream queries of a query, as far as `user` may see them;
    the number of the others."""
    sources = sources_of(query.specification)
    upstream = upstream_of(feed=query.feed, document=query.specification, user=None, kept=query)
    seen = set(Query.objects.visible_to(user).filter(feed=query.feed).values_list("pk", flat=True)) if sources else set()
    above: list[Upstream] = []
    for source in sources:
        one = upstream.get(source.query)
        known = one if one is not None and one.pk in seen else None
        above.append({**_row_of(known), "called": source.query, "event": source.event, "kind": source.kind, "at": source.at, "runs": _runs(one)})
    below = dependents([query.pk])
    visible = set(Query.objects.visible_to(user).filter(pk__in=[one.pk for one in below]).values_list("pk", flat=True))
    direct = {one.pk for one in query.derived_by.all()}
    listed: list[Downstream] = [{**_row_of(one), "direct": one.pk in direct, "runs": _runs(one)} for one in below if one.pk in visible]
    return {"derives_from": above, "derived_by": listed, "hidden": len(below) - len(listed)}


def _row_of(query: Query | None) -> _QueryName:
    return {"id": None, "name": None, "family": None} if query is None else {"id": query.pk, "name": query.name, "family": query.family}


def _runs(query: Query | None) -> bool:
    return query is not None and query.enabled and query.stopped is None


def registered(rows: Iterable[QueryVersion], feed: EngineFeed) -> list[RegisteredQuery]:
    """Stored versions as jobs run them. Regions and queries were put in their place when a version
    was made: only names are looked up."""
    versions = list(rows)
    above = {int(source.query) for row in versions for source in sources_of(row.specification) if source.query.isdigit()}
    names = {str(pk): name for pk, name in Query.objects.filter(pk__in=above).values_list("pk", "name")} if above else {}
    return [
        RegisteredQuery(str(row.query_id), row.version, check(row.specification, feed, {}), sources_of(row.specification, names)) for row in versions
    ]


def documents_above(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Name and running specification of all queries that a frozen document derives
    from, directly or not, by id."""
    documents: dict[str, dict[str, Any]] = {}
    waiting = {source.query for source in sources_of(document)}
    while waiting:
        rows = QueryVersion.objects.filter(query__in=[int(one) for one in waiting], to_feed_version=None).select_related("query")
        documents |= {str(row.query_id): {"name": row.query.name, "specification": row.specification} for row in rows}
        waiting = {source.query for row in rows for source in sources_of(row.specification)} - documents.keys()
    return documents
