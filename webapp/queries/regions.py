"""Regions in queries: queries follow changes of their regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Prefetch, QuerySet
from django.utils import timezone

from engine.model.faults import Fault, Refused
from engine.model.messages import Message
from webapp.accounts.models import User
from webapp.accounts.permissions import AnyUser
from webapp.accounts.quotas import quota_check
from webapp.config.faults import InUse, refuse_if_changed
from webapp.config.room import hold
from webapp.feeds.documents import checked_region, vertices_of
from webapp.feeds.models import Feed, Region
from webapp.feeds.selectors import vertices_held
from webapp.feeds.services import trimmed_tags
from webapp.queries.derivation import dependents
from webapp.queries.following import dependents_follow, versions_renew
from webapp.queries.models import Query
from webapp.queries.references import frozen
from webapp.queries.selectors import blocking_names, regions_of_queries
from webapp.queries.services import checked_specification
from webapp.queries.versions import add_versions, end_versions, next_version


def region_list(*, user: AnyUser) -> QuerySet[Region]:
    """The regions that `user` may see, each with `using`: the live queries on
    it that they may see too."""
    using = Query.objects.visible_to(user).filter(deleted_at=None).order_by("name")
    return (
        Region.objects.visible_to(user)
        .with_editable(user)
        .select_related("feed", "owner", "team")
        .prefetch_related(Prefetch("queries", queryset=using, to_attr="using"))
        .order_by("feed__name", "name")
    )


@transaction.atomic
def region_update(*, region: Region, user: User, seen_at: datetime | None = None, **changes: Any) -> Region:
    """Changes the given fields; queries with the region follow a new geometry as new versions.

    Raises Refused; Conflict if somebody has changed it after `seen_at`.
    """
    hold(region.feed, "pk")
    region = hold(region)
    refuse_if_changed(seen_at=seen_at, updated_at=region.updated_at)
    old_name, old_geometry = region.name, region.geometry
    if "geometry" in changes:
        changes["geometry"], bbox = checked_region(changes["geometry"], region.feed, "/geometry")
        region.bbox = list(bbox)
        before, region.vertices = region.vertices, vertices_of(changes["geometry"])
        quota_check("vertices", user=region.owner, team=region.team, more=region.vertices - before, held=vertices_held)
    if (team := changes.get("team")) is not None and team != region.team:
        quota_check("vertices", team=team, more=region.vertices, held=vertices_held)
    if "tags" in changes:
        changes["tags"] = trimmed_tags(changes["tags"])
    for field, value in changes.items():
        setattr(region, field, value)
    region.full_clean(exclude=["owner", "team", "feed"])
    region.save()
    if region.name != old_name:
        queries_rename_region(region=region, old=old_name)
    if region.geometry != old_geometry:
        queries_follow_regions(feed=region.feed, regions=[region], user=user)
    return region


@transaction.atomic
def region_delete(*, region: Region, user: User) -> None:
    """Removes a region. Raises Refused while queries that `user` may change name it; other users'
    queries keep its shape."""
    names = blocking_names(region.queries, user=user)
    if names:
        raise InUse([Fault("", Message("Queries use this region: {names}.", names=", ".join(names)))])
    queries_keep_shape(region=region)
    region.delete()


def region_bulk_delete(*, regions: Sequence[Region], user: User) -> tuple[list[int], list[tuple[int, list[Fault]]]]:
    """Removes what can be removed: ids removed, and (id, faults) of those in use."""
    removed: list[int] = []
    refused: list[tuple[int, list[Fault]]] = []
    for region in regions:
        pk = region.pk
        try:
            region_delete(region=region, user=user)
            removed.append(pk)
        except Refused as error:
            refused.append((pk, list(error.faults)))
    return removed, refused


@transaction.atomic
def queries_follow_regions(*, feed: Feed, regions: Sequence[Region], user: User) -> list[Query]:
    """Makes one new version of each query that names some of the feed's `regions`, whose geometries
    have just changed. The queries."""
    naming = Query.regions.through.objects.filter(region__in=regions).values("query")
    using = list(Query.objects.filter(pk__in=naming, deleted_at=None).select_related("feed").order_by("pk"))
    if using:
        feed_version = next_version(feed)
        deriving = set(Query.derives_from.through.objects.filter(from_query__in=using).values_list("from_query", flat=True))
        alone = [query for query in using if query.pk not in deriving]
        _renew(alone, feed_version, user)
        dependents_follow(changed=[query.pk for query in alone], feed_version=feed_version, user=user)
        # The others may be unable to derive: this is checked again.
        versions_renew(sorted(deriving - {query.pk for query in dependents([query.pk for query in alone])}), feed_version, user)
    return using


def _renew(queries: Sequence[Query], feed_version: int, user: User) -> None:
    """New versions with the shapes that the queries' regions have now."""
    regions = regions_of_queries(queries)
    ready = [
        checked_specification(query.feed, query.specification, user, kept=query, derives=False, regions=regions.get(query.pk, {}))[0]
        for query in queries
    ]
    ids = [query.pk for query in queries]
    end_versions(ids, feed_version)
    Query.objects.filter(pk__in=ids).update(version=F("version") + 1, updated_at=timezone.now())
    for query in queries:
        query.version += 1
    add_versions(list(zip(queries, ready, strict=True)), feed_version, user)


@transaction.atomic
def queries_rename_region(*, region: Region, old: str) -> None:
    """Writes the region's new name into the specifications that use it; their meaning
    stays, so no version is made."""
    _rewrite(region, {old: {"region": region.name}})


@transaction.atomic
def queries_keep_shape(*, region: Region) -> None:
    """Writes the region's geometry into the specifications that use it, as it is about to be
    removed; their meaning stays, so no version is made."""
    _rewrite(region, {region.name: region.geometry})


def _rewrite(region: Region, named: Mapping[str, Any]) -> None:
    """Also in earlier versions, as these were written: restored, they must name the same region."""
    for query in Query.objects.filter(regions=region, deleted_at=None):
        query.specification = frozen(query.specification, named)
        query.save(update_fields=["specification", "updated_at"])
        for version in query.versions.only("document"):
            written = frozen(version.document, named)
            if written != version.document:
                version.document = written
                version.save(update_fields=["document"])
