"""Many queries in one step: one specification as the template, one query for each region of a
file; and the removal of many.

The region replaces `{"region": "$feature"}` in the template; a border or transition template
without a place for it gets it as its region. Running the same file again registers nothing: names
that the feed has are reported, not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import transaction

from engine.families import family_named
from engine.model.faults import Fault, Refused, refuse
from engine.model.messages import Message, untranslated
from engine.specification import check
from webapp.accounts.models import User
from webapp.accounts.quotas import quota_check
from webapp.feeds.documents import checked_region
from webapp.feeds.models import NO_CONTROLS, Feed
from webapp.feeds.region_files import Feature
from webapp.feeds.selectors import regions_of_feed
from webapp.queries.derivation import derive_faults, upstream_of, with_upstream
from webapp.queries.families import kinds_of
from webapp.queries.following import rebind_by_name
from webapp.queries.models import Query
from webapp.queries.references import frozen, named_regions
from webapp.queries.selectors import names_used, queries_held, rate_faults
from webapp.queries.services import PROGRAM_CHARACTERS, queries_end
from webapp.queries.versions import add_versions, next_version

FEATURE = "$feature"
NAMING = "{name}"
NAME_CHARACTERS = 100
TEMPLATE = "/template"
FeatureFaults = tuple[int, str, list[Fault]]
"""A feature's place in the file, its query's name, and its faults."""


@dataclass(frozen=True)
class Planned:
    """One query to be made: the feature's place in the file, its name, the specification as written
    and frozen, and its region."""

    row: int
    name: str
    specification: Any
    ready: Any
    geometry: Any


@dataclass
class Registered:
    """The result for a file. `queries` are in the order of `made`, and
    empty when nothing was stored."""

    made: list[Planned] = field(default_factory=list)
    existing: list[tuple[int, Query, bool]] = field(default_factory=list)
    """(row, the query of that name, whether its specification is the same)."""
    refused: list[FeatureFaults] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)


def queries_register(
    *,
    owner: User,
    feed: Feed,
    template: Any,
    features: Sequence[Feature],
    naming: str = NAMING,
    alert_kinds: Sequence[str] = (),
    partial: bool = False,
    dry_run: bool = False,
    **settings: Any,
) -> Registered:
    """Registers a query for each feature, all or none unless `partial`, in one transaction and one
    version of the feed's set.

    `naming` may hold `{name}` and `{row}`; `settings` are those that `query_register`
    takes, too, for all of them. Raises Refused when the template itself is at fault, with
    pointers below `/template`.
    """
    template = _placed(template)
    planned, refused = _plan(template, features, naming, feed, owner)
    if planned:
        _check_kinds(template, alert_kinds)
    if dry_run or (refused and not partial):
        return _split(owner, feed, planned, refused)
    with transaction.atomic():
        registered = _split(owner, feed, planned, refused, lock=True)
        if registered.made and (partial or not registered.refused):
            quota_check("queries", user=owner, team=settings.get("team"), more=len(registered.made), held=queries_held)
            registered.queries = _store(registered.made, owner, feed, alert_kinds=list(alert_kinds), **settings)
    return registered


@dataclass
class Removed:
    """The result of a removal. `removed` are ids, by name; `missing` ids and names that the feed
    does not have, or not for this user."""

    removed: list[int] = field(default_factory=list)
    refused: list[Query] = field(default_factory=list)
    missing: list[int | str] = field(default_factory=list)
    stored: bool = False


def queries_remove(
    *,
    user: User,
    feed: Feed,
    ids: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    family: str | None = None,
    search: str | None = None,
    partial: bool = False,
    dry_run: bool = False,
    stop_dependents: bool = False,
) -> Removed:
    """Removes those of the feed's queries that match all given choices, in one transaction and one
    version of the feed's set.

    All or none unless `partial`: a query that `user` sees but may not change is refused.
    Answers and alerts stay, as with the removal of one. Raises Refused when others derive from
    them, unless these may stop.
    """
    with transaction.atomic():
        Feed.objects.select_for_update(of=("self",), no_key=True).only("pk").get(pk=feed.pk)
        chosen = Query.objects.visible_to(user).with_editable(user).filter(feed=feed, deleted_at=None)
        chosen = chosen.filter(**{"family": family} if family else {}, **{"name__icontains": search} if search else {})
        rows = list(chosen.defer("specification").order_by("name", "pk"))
        removed = Removed()
        if ids is not None:
            removed.missing += _others(ids, {query.pk for query in rows})
            distinct = set(ids)
            rows = [query for query in rows if query.pk in distinct]
        if names is not None:
            removed.missing += _others(names, {query.name for query in rows})
            called = set(names)
            rows = [query for query in rows if query.name in called]
        removed.refused = [query for query in rows if not query.editable]  # type: ignore[attr-defined]  # of with_editable
        removed.removed = [query.pk for query in rows if query.editable]  # type: ignore[attr-defined]
        removed.stored = not dry_run and (partial or not (removed.refused or removed.missing))
        if removed.stored and removed.removed:
            queries_end(feed=feed, query_ids=removed.removed, user=user, stop_dependents=stop_dependents)
    return removed


Named = TypeVar("Named", int, str)


def _others(queries: Sequence[Named], known: Set[Named]) -> list[Named]:
    return [one for one in dict.fromkeys(queries) if one not in known]


def _placed(template: Any) -> Any:
    """The template with a place for the region. Raises Refused."""
    if not isinstance(template, dict):
        raise refuse(TEMPLATE, Message("The template is a specification: a JSON object."))
    if FEATURE in named_regions(template):
        return template
    family = family_named(template.get("family"))
    if family is not None and family.has_region and not {"region", "ranges"} & set(template):
        return {**template, "region": {"region": FEATURE}}
    raise refuse(TEMPLATE, Message('The template has no place for the region: write {"region": "{feature}"} where it belongs.', feature=FEATURE))


def _plan(template: Any, features: Sequence[Feature], naming: str, feed: Feed, owner: User) -> tuple[list[Planned], list[FeatureFaults]]:
    """The query for each feature, whether or not its name is taken on the feed, and
    the features without one."""
    written = len(str(template.get("program", ""))) * len(features)
    if written > PROGRAM_CHARACTERS:
        most = PROGRAM_CHARACTERS // len(features)
        raise refuse(
            f"{TEMPLATE}/program",
            Message("For {count:,} regions a program has at most {most:,} characters: send fewer regions at once.", count=len(features), most=most),
        )
    regions = regions_of_feed(feed, user=owner)
    engine_feed = feed.engine_feed()
    upstream: dict[str, Query] = {}
    planned: list[Planned] = []
    refused: list[FeatureFaults] = []
    rows_of_names: dict[str, int] = {}
    for feature in features:
        name = naming.replace("{name}", feature.name or f"region {feature.row}").replace("{row}", str(feature.row)).strip()
        try:
            _check_name(name, rows_of_names.get(name))
            if feature.fault:
                raise refuse("/geometry", feature.fault)
            geometry, _ = checked_region(feature.geometry, feed, "/geometry")
            specification = frozen(template, {FEATURE: geometry})
            if not planned:
                upstream = _check_template(specification, regions, feed, owner)
            ready = with_upstream(frozen(specification, regions), upstream)
            check(ready, engine_feed, {})
        except Refused as error:
            if any(fault.pointer.startswith(TEMPLATE) for fault in error.faults):
                raise
            refused.append((feature.row, name, list(error.faults)))
            continue
        rows_of_names[name] = feature.row
        planned.append(Planned(feature.row, name, specification, ready, geometry))
    return planned, refused


def _check_name(name: str, row: int | None) -> None:
    if not name or len(name) > NAME_CHARACTERS:
        raise refuse("/name", Message("A name has 1 to {most} characters.", most=NAME_CHARACTERS))
    try:
        NO_CONTROLS(name)
    except ValidationError as error:
        raise refuse("/name", untranslated(" ".join(error.messages))) from error
    if row is not None:
        raise refuse("/name", Message("Row {row} of the file has this name, too.", row=row))


def _check_template(specification: Any, regions: Mapping[str, Any], feed: Feed, owner: User) -> dict[str, Query]:
    """The upstream queries of the template. Raises Refused with all faults, with pointers below
    `/template`, after a valid region was put into it."""
    try:
        checked = check(specification, feed.engine_feed(), dict(regions))
        upstream = upstream_of(feed=feed, document=specification, user=owner)
        faults = derive_faults(feed=feed, document=specification, upstream=upstream, user=owner) or rate_faults(feed=feed, checked=checked)
        if faults:
            raise Refused(faults)
        return upstream
    except Refused as refused:
        raise Refused(Fault(TEMPLATE + fault.pointer, fault.message) for fault in refused.faults) from refused


def _check_kinds(template: Any, alert_kinds: Sequence[str]) -> None:
    kinds = kinds_of(template)
    unknown = [kind for kind in alert_kinds if kind not in kinds]
    if unknown:
        raise refuse(
            "/alert_kinds",
            Message("These queries give no answers of kind {kind}; they give: {known}.", kind=repr(unknown[0]), known=", ".join(kinds)),
        )


def _split(owner: User, feed: Feed, planned: Sequence[Planned], refused: list[FeatureFaults], lock: bool = False) -> Registered:
    """The planned queries, split by whether the feed has one of that name. Of a query that `owner`
    may not see only the taken name is shown."""
    if lock:
        # Under the row's lock no other registration can take one of the names meanwhile.
        Feed.objects.select_for_update(of=("self",), no_key=True).only("pk").get(pk=feed.pk)
    taken = {query.name: query for query in Query.objects.filter(feed=feed, deleted_at=None, name__in=[one.name for one in planned])}
    visible = set(Query.objects.visible_to(owner).filter(pk__in=[query.pk for query in taken.values()]).values_list("pk", flat=True))
    registered = Registered(refused=list(refused))
    for one in planned:
        query = taken.get(one.name)
        if query is None:
            registered.made.append(one)
        elif query.pk not in visible:
            registered.refused.append((one.row, one.name, [Fault("/name", Message("Another query of this feed has this name."))]))
        else:
            registered.existing.append((one.row, query, query.specification == one.specification))
    return registered


def _store(made: Sequence[Planned], owner: User, feed: Feed, **common: Any) -> list[Query]:
    queries = Query.objects.bulk_create(
        [Query(owner=owner, feed=feed, name=one.name, family=one.specification["family"], specification=one.specification, **common) for one in made],
        batch_size=500,
    )
    _link_regions(queries, feed, owner)
    upstream = set(upstream_of(feed=feed, document=made[0].specification, user=owner).values())
    links = [Query.derives_from.through(from_query_id=query.pk, to_query_id=one.pk) for query in queries for one in upstream]
    Query.derives_from.through.objects.bulk_create(links, batch_size=1000)
    feed_version = next_version(feed)
    add_versions([(query, one.ready) for query, one in zip(queries, made, strict=True)], feed_version, owner)
    rebind_by_name(feed=feed, names=[one.name for one in made], feed_version=feed_version, user=owner)
    return queries


def _link_regions(queries: Sequence[Query], feed: Feed, owner: User) -> None:
    """The stored regions that the template uses in addition to the file's: the same for all."""
    named = list(names_used(feed, named_regions(queries[0].specification), user=owner))
    links: Iterator[Any] = (Query.regions.through(query_id=query.pk, region_id=region.pk) for query in queries for region in named)
    Query.regions.through.objects.bulk_create(links, batch_size=1000)
