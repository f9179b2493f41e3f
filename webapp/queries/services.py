"""Services that register, edit and remove queries. The running job applies each change
at its next batch boundary.

A feed's set of queries has a version; every change takes the next one under the feed's row lock,
so sets follow one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction
from django.dispatch import Signal
from django.http import Http404
from django.utils import timezone

from engine.model.faults import Fault, Refused, refuse
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message
from engine.specification import check
from webapp.accounts.models import Team, User
from webapp.accounts.quotas import quota_check
from webapp.audit.services import record, record_all
from webapp.config.faults import OverQuota, refuse_if_changed
from webapp.config.room import hold
from webapp.feeds.models import Feed
from webapp.feeds.selectors import regions_of_feed
from webapp.queries.derivation import derive_faults, not_visible_to_owner, refuse_if_derived_from, seen_by_owner, upstream_of, with_upstream
from webapp.queries.families import kinds_of
from webapp.queries.following import dependents_follow, follow_sharing, rebind_by_name, versions_renew
from webapp.queries.models import Calls, Query, QueryStop, Severity
from webapp.queries.references import frozen, named_regions, stands_alone
from webapp.queries.selectors import names_used, queries_held, rate_faults
from webapp.queries.verdicts import faults_of, is_long
from webapp.queries.versions import add_versions, end_versions, next_version, version_resume

SPECIFICATION = "/specification"
queries_ended = Signal()
"""Sent with `feed_id` and `query_ids` in the transaction that removes queries: waiting alerts end
with them."""
NAME_TAKEN = Message("Another query of this feed has this name.")
ENDED_AT_ONCE = 10_000
"""Ids in one statement."""
PROGRAM_CHARACTERS = 300_000
"""Of all programs in one request together: checking them takes a few seconds."""


@transaction.atomic
def query_register(  # noqa: PLR0913 -- the columns of a query, each by its name
    *,
    owner: User,
    feed: Feed,
    name: str,
    specification: Any,
    severity: str = Severity.LOW,
    alert_kinds: Sequence[str] = (),
    description: str = "",
    folder: str = "",
    tags: Sequence[str] = (),
    enabled: bool = True,
    team: Team | None = None,
    public: bool = False,
    calls: str = Calls.EACH,
    calls_per_hour: int | None = None,
) -> Query:
    """Registers a query; enabled, it runs from the next batch on and answers
    for the log's history too.

    Raises Refused with all faults: those of the specification point below `/specification`.
    """
    ready, checked = checked_specification(feed, specification, owner)
    _check_rate(feed, checked)
    feed_version = next_version(feed)
    is_alone = stands_alone(specification)
    if not is_alone:
        # Checked again: regions or queries that it uses may have changed before the lock was taken.
        ready, _ = checked_specification(feed, specification, owner)
    _check_name(feed, name)
    _check_kinds(specification, alert_kinds)
    quota_check("queries", user=owner, team=team, more=1, held=queries_held)
    query = Query.objects.create(
        owner=owner,
        feed=feed,
        name=name,
        description=description,
        folder=folder,
        tags=list(tags),
        family=specification["family"],
        specification=specification,
        severity=severity,
        alert_kinds=list(alert_kinds),
        calls=calls,
        calls_per_hour=calls_per_hour,
        enabled=enabled,
        team=team,
        public=public,
    )
    if not is_alone:
        query.regions.set(names_used(feed, named_regions(specification), user=owner))
        query.derives_from.set(upstream_of(feed=feed, document=specification, user=owner).values())
    add_versions([(query, ready)], feed_version, owner)
    rebind_by_name(feed=feed, names=[name], feed_version=feed_version, user=owner)
    # Within this transaction: a separate one would need another write to disk.
    record("query.create", query)
    return query


@transaction.atomic
def queries_register_together(*, owner: User, feed: Feed, documents: Sequence[Mapping[str, Any]]) -> list[Query]:
    """Registers queries, all or none; one may derive from another before it. `documents`: for each
    the arguments of query_register except owner and feed.

    Raises Refused with the faults of all; their pointers begin with the place in the list.
    """
    written = sum(len(str(one["specification"].get("program", ""))) for one in documents if isinstance(one["specification"], dict))
    if written > PROGRAM_CHARACTERS:
        raise refuse(
            "",
            Message(
                "Programs of one request have at most {most:,} characters together, these have {written:,}: send fewer at once.",
                most=PROGRAM_CHARACTERS,
                written=written,
            ),
        )
    plain = {place: one for place, one in enumerate(documents) if stands_alone(one["specification"])}
    faults: list[Fault] = []
    made = _register_plain(owner, feed, plain, faults)
    for place, one in enumerate(documents):
        if place not in plain:
            with faults_at(place, faults):
                made[place] = query_register(owner=owner, feed=feed, **one)
    if faults:
        raise Refused(sorted(faults, key=lambda fault: int(fault.pointer.split("/")[1])))
    return [made[place] for place in range(len(documents))]


def _register_plain(owner: User, feed: Feed, documents: Mapping[int, Mapping[str, Any]], faults: list[Fault]) -> dict[int, Query]:
    """Those of a list that use nothing outside themselves, with a fixed number of statements;
    none if there are `faults`."""
    for place, one in documents.items():
        with faults_at(place, faults):
            _check_rate(feed, checked_specification(feed, one["specification"], owner)[1])
            _check_kinds(one["specification"], one.get("alert_kinds", ()))
    feed_version = next_version(feed)
    names = [one["name"] for one in documents.values()]
    taken = set(Query.objects.filter(feed=feed, name__in=names, deleted_at=None).values_list("name", flat=True))
    for place, one in documents.items():
        if one["name"] in taken:
            faults.append(Fault(f"/{place}/name", NAME_TAKEN))
        taken.add(one["name"])
    if faults or not documents:
        return {}
    quota_check("queries", user=owner, more=len(documents), held=queries_held)
    for team, more in Counter(one.get("team") for one in documents.values()).items():
        quota_check("queries", team=team, more=more, held=queries_held)
    queries = Query.objects.bulk_create(
        [Query(owner=owner, feed=feed, family=one["specification"]["family"], **one) for one in documents.values()], batch_size=500
    )
    add_versions([(query, query.specification) for query in queries], feed_version, owner)
    rebind_by_name(feed=feed, names=names, feed_version=feed_version, user=owner)
    record_all("query.create", queries)
    return dict(zip(documents, queries, strict=True))


@contextmanager
def faults_at(place: int, faults: list[Fault]) -> Iterator[None]:
    """Adds refusals inside to `faults`, with the pointer of this position of a list."""
    try:
        yield
    except OverQuota:
        raise
    except Refused as refused:
        faults += [Fault(f"/{place}{fault.pointer}", fault.message) for fault in refused.faults]


@transaction.atomic
def query_edit(*, query: Query, user: User, stop_dependents: bool = False, seen_at: datetime | None = None, **changes: Any) -> Query:
    """Changes the given fields: any of query_register's but `owner` and `feed`. A new
    specification makes a new version.

    What derives from it gets a new version too, or stops when it can no longer derive;
    `stop_dependents`: switching it off may stop others.

    Switched off and on again, the same version continues: its answers have
    the same keys (decision 20).

    Raises Refused like query_register; Conflict if somebody has changed it after `seen_at`.
    """
    if changes.get("specification", query.specification) != query.specification:
        _check_rate(query.feed, checked_specification(query.feed, changes["specification"], user, kept=query)[1])
    feed_version = next_version(query.feed)
    query = hold(query)
    if query.deleted_at is not None:
        raise Http404
    refuse_if_changed(seen_at=seen_at, updated_at=query.updated_at)
    before = (query.specification, query.enabled)
    called, shared = query.name, (query.team_id, query.public)
    if query.enabled and changes.get("enabled") is False and not stop_dependents:
        refuse_if_derived_from(queries=[query.pk], user=user, what=Message("is switched off"))
    if "name" in changes:
        _check_name(query.feed, changes["name"], query)
    if (team := changes.get("team")) is not None and team != query.team:
        quota_check("queries", team=team, more=1, held=queries_held)
    specification = changes.get("specification", query.specification)
    # Stored regions that the editor cannot see, but that the query named before, may stay in it.
    is_switched_on = not query.enabled and changes.get("enabled") is True
    ready, _ = checked_specification(query.feed, specification, user, kept=query, derives=specification != before[0] or is_switched_on)
    if "specification" in changes or "alert_kinds" in changes:
        _check_kinds(specification, changes.get("alert_kinds", query.alert_kinds))
    for field, value in changes.items():
        setattr(query, field, value)
    query.family = specification["family"]
    if (query.specification, query.enabled) != before:
        end_versions([query.pk], feed_version)
        _set_regions(query, user)
        if specification != before[0] or (query.enabled and not version_resume(query, ready, feed_version)):
            query.version += 1
            add_versions([(query, ready)], feed_version, user)
    query.save()
    if specification != before[0] or is_switched_on:
        query.derives_from.set(upstream_of(feed=query.feed, document=specification, user=user, kept=query).values())
    if (query.specification, query.enabled, query.name) != (*before, called):
        if query.name != called:
            _rename_upstream(query, called)
        dependents_follow(changed=[query.pk], feed_version=feed_version, user=user)
    elif (query.team_id, query.public) != shared:
        follow_sharing(query=query, feed_version=feed_version, user=user)
    return query


def _rename_upstream(query: Query, called: str) -> None:
    """Writes the query's new name into the specifications that derive from it by its name,
    for owners who may see it."""
    for other in query.derived_by.filter(deleted_at=None).select_related("feed", "owner"):
        if not seen_by_owner(other).filter(pk=query.pk).exists():
            continue
        derive = {event: {**one, "query": query.name} if one["query"] == called else one for event, one in other.specification["derive"].items()}
        other.specification = {**other.specification, "derive": derive}
        other.save(update_fields=["specification", "updated_at"])


@transaction.atomic
def query_remove(*, query: Query, user: User | None = None, stop_dependents: bool = False) -> None:
    """Stops the query for good. Its answers and alerts stay; alerts that wait are resolved.

    Raises Refused when running queries derive from it, unless these may stop.
    """
    queries_end(feed=query.feed, query_ids=[query.pk], user=user, stop_dependents=stop_dependents)


def queries_end(*, feed: Feed, query_ids: Sequence[int], user: User | None, stop_dependents: bool = False) -> None:
    """Stops queries of one feed in one version of its set. To be called within a transaction.
    Raises Refused as query_remove."""
    feed_version = next_version(feed)
    if not stop_dependents:
        refuse_if_derived_from(queries=query_ids, user=user, what=Message("is removed"))
    for begin in range(0, len(query_ids), ENDED_AT_ONCE):
        ids = query_ids[begin : begin + ENDED_AT_ONCE]
        end_versions(ids, feed_version)
        Query.objects.filter(pk__in=ids).update(deleted_at=timezone.now(), enabled=False)
        Query.regions.through.objects.filter(query_id__in=ids).delete()
        Query.derives_from.through.objects.filter(from_query_id__in=ids).delete()
        queries_ended.send(sender=Query, feed_id=feed.pk, query_ids=ids)
    dependents_follow(changed=query_ids, feed_version=feed_version, user=user)


def query_stop(*, query_id: int, version: int, reason: str) -> str:
    """Records that the job runs without this version, unless it was removed or stopped before.
    Returns its name; if it has been removed, its id."""
    name = Query.objects.filter(pk=query_id).values_list("name", flat=True).first()
    if name is not None:
        QueryStop.objects.bulk_create([QueryStop(query_id=query_id, version=version, reason=reason[:2000])], ignore_conflicts=True)
    return str(query_id) if name is None else name


def queries_stop_without_access() -> None:
    """Stops queries that derive from queries which their owner may no longer see, for example
    because members left or owners changed."""
    for feed in not_visible_to_owner():
        with transaction.atomic():
            feed_version = next_version(feed)
            # Again, under the lock.
            versions_renew(not_visible_to_owner().get(feed, []), feed_version, None)


def checked_specification(
    feed: Feed,
    specification: Any,
    user: User,
    kept: Query | None = None,
    *,
    derives: bool = True,
    regions: Mapping[str, Any] | None = None,
) -> tuple[Any, Any]:
    """The specification with stored regions inserted, and the engine's checked form. Raises Refused
    with pointers below `/specification`.

    `derives`: also faults between it and the queries it derives from. `regions`: those it may name;
    unless given, all that the user may see and those that `kept` has.
    """
    try:
        if stands_alone(specification):
            return specification, check(specification, feed.engine_feed(), {})
        if regions is None:
            regions = regions_of_feed(feed, user=user) | ({} if kept is None else dict(kept.regions.values_list("name", "geometry")))
        if is_long(specification):
            ready, checked = _checked_elsewhere(specification, feed.engine_feed(), regions), None
        else:
            check(specification, feed.engine_feed(), regions)
            ready = frozen(specification, regions)
            # Jobs compile the frozen form, which must be self-contained.
            checked = check(ready, feed.engine_feed(), {})
        upstream = upstream_of(feed=feed, document=specification, user=user, kept=kept)
        if derives and (faults := derive_faults(feed=feed, document=specification, upstream=upstream, user=user, query=kept)):
            raise Refused(faults)
        return with_upstream(ready, upstream), checked
    except Refused as refused:
        raise Refused(Fault(SPECIFICATION + fault.pointer, fault.message) for fault in refused.faults) from refused


def _checked_elsewhere(specification: Any, feed: EngineFeed, regions: Mapping[str, Any]) -> Any:
    """A long program with stored regions in their place. Raises Refused."""
    if faults := faults_of(specification, feed, regions):
        raise Refused(faults)
    ready = frozen(specification, regions)
    if faults := faults_of(ready, feed, {}):
        raise Refused(faults)
    return ready


def _check_rate(feed: Feed, checked: Any) -> None:
    """Raises Refused with a pointer to the specification. Long programs (null) keep a
    window at any arrival rate."""
    faults = [] if checked is None else rate_faults(feed=feed, checked=checked)
    if faults:
        raise Refused(Fault(SPECIFICATION + fault.pointer, fault.message) for fault in faults)


def _check_name(feed: Feed, name: str, query: Query | None = None) -> None:
    taken = Query.objects.filter(feed=feed, name=name, deleted_at=None)
    if query is not None:
        taken = taken.exclude(pk=query.pk)
    if taken.exists():
        raise refuse("/name", NAME_TAKEN)


def _check_kinds(specification: Any, alert_kinds: Sequence[str]) -> None:
    kinds = kinds_of(specification)
    unknown = [
        Fault(
            f"/alert_kinds/{position}",
            Message("This query gives no answers of kind {kind}; it gives: {known}.", kind=repr(kind), known=", ".join(kinds)),
        )
        for position, kind in enumerate(alert_kinds)
        if kind not in kinds
    ]
    if unknown:
        raise Refused(unknown)


def _set_regions(query: Query, user: User) -> None:
    names = named_regions(query.specification)
    kept = query.regions.filter(name__in=names)
    query.regions.set({*names_used(query.feed, names, user=user), *kept})
