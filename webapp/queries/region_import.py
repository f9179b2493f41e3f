"""The import of a file of regions: new ones are stored, and stored ones of the same name replaced
if the user wants that. Queries follow as after any change of a region."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from engine.model.faults import Fault, Refused, refuse
from engine.model.messages import Message
from webapp.accounts.models import User
from webapp.accounts.quotas import quota_check
from webapp.config.faults import Conflict
from webapp.config.room import hold
from webapp.feeds.documents import checked_region, vertices_of
from webapp.feeds.models import Feed, Region
from webapp.feeds.region_files import Feature
from webapp.feeds.selectors import vertices_held
from webapp.feeds.services import checked_tags, trimmed_tags
from webapp.queries.regions import queries_follow_regions

Change = Literal["geometry", "tags"]


@dataclass(frozen=True)
class Replacement:
    """A stored region that a region of the file has the name of and that the user may change;
    `changes`: which of its fields, `geometry` and `tags`, the file has otherwise."""

    stored: Region
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class ImportedRegion:
    """A region that an import stored, or would store.

    `file_name`: its name in the file, if that was taken. `same_as`: a stored region of its shape.
    `could_replace`: what `replace` would do instead.
    """

    region: Region
    file_name: str | None
    same_as: str | None
    could_replace: Replacement | None


@dataclass(frozen=True)
class Imported:
    """What an import stored or would store, what it replaced or would replace (each region as it is
    then), and its refusals: (row in the file, name, faults)."""

    regions: list[ImportedRegion]
    replaced: list[Replacement]
    refused: list[tuple[int, str, list[Fault]]]


def regions_import(
    *,
    owner: User,
    feed: Feed,
    features: Sequence[Feature],
    tags: Sequence[str] = (),
    partial: bool = False,
    only_new: bool = False,
    replace: bool = False,
    dry_run: bool = False,
) -> Imported:
    """Stores the regions of a file, all or none unless `partial`. A nameless one is named by its
    place; a taken name gets a number.

    `only_new`: regions of the shape of one that is stored already, and that the owner may see, are
    left out. `replace`: a region with the name of a stored one that the owner may change replaces
    its shape, and its tags if the file has tags for it; of several regions of one name the first
    does. Raises Refused.
    """
    reading = _Reading(owner, feed, checked_tags(tags), only_new=only_new, replace=replace)
    for feature in features:
        reading.take(feature)
    found = reading.found
    if not dry_run and (partial or not found.refused):
        _store(found, owner=owner, feed=feed)
    return found


class _Reading:
    """Sorts the regions of a file by what happens to them."""

    def __init__(self, owner: User, feed: Feed, tags: Sequence[str], *, only_new: bool, replace: bool) -> None:
        self.owner, self.feed, self.tags = owner, feed, tags
        self.only_new, self.replace = only_new, replace
        self.found = Imported([], [], [])
        here = Region.objects.filter(feed=feed)
        self.taken = set(here.values_list("name", flat=True))
        self.shapes = {_shape_key(shape): name for shape, name in here.visible_to(owner).order_by("-name").values_list("geometry", "name")}
        self.replaceable = {one.name: one for one in here.editable_by(owner).select_related("owner", "team")}

    def take(self, feature: Feature) -> None:
        try:
            if feature.fault:
                raise refuse("/geometry", feature.fault)
            document, bbox = checked_region(feature.geometry, self.feed, "/geometry")
            tags = checked_tags([*self.tags, *feature.tags])
            replacement = self._replacement(feature, document)
        except Refused as error:
            self.found.refused.append((feature.row, feature.name, list(error.faults)))
            return
        if self.replace and replacement is not None:
            if replacement.changes:
                self.found.replaced.append(replacement)
                replacement.stored.bbox = list(bbox)
            return
        self._add(feature, Region(geometry=document, bbox=list(bbox), tags=tags), replacement)

    def _replacement(self, feature: Feature, document: Any) -> Replacement | None:
        """Raises Refused when the stored region is replaced and would have too many tags."""
        stored = self.replaceable.pop(feature.name, None)
        if stored is None:
            return None
        tags = trimmed_tags([*self.tags, *(feature.tags or stored.tags)])
        differs: dict[Change, bool] = {"geometry": _shape_key(stored.geometry) != _shape_key(document), "tags": sorted(stored.tags) != tags}
        if self.replace:
            stored.geometry, stored.tags = document, checked_tags(tags)
        return Replacement(stored, tuple(name for name, is_other in differs.items() if is_other))

    def _add(self, feature: Feature, region: Region, could_replace: Replacement | None) -> None:
        same_as = self.shapes.get(_shape_key(region.geometry))
        if self.only_new and same_as is not None:
            return
        wanted = feature.name or f"region {feature.row}"
        region.owner, region.feed, region.name = self.owner, self.feed, _free_name(wanted, self.taken)
        region.vertices = vertices_of(region.geometry)
        file_name = None if region.name == wanted else wanted
        self.found.regions.append(ImportedRegion(region, file_name, same_as, could_replace))


@transaction.atomic
def _store(found: Imported, *, owner: User, feed: Feed) -> None:
    if found.replaced:
        hold(feed, "pk")
    quota_check("vertices", user=owner, more=sum(one.region.vertices for one in found.regions), held=vertices_held)
    Region.objects.bulk_create([one.region for one in found.regions], batch_size=500)
    _check_growth(found.replaced)
    _check_unchanged(found.replaced, user=owner)
    _replace(found.replaced)
    queries_follow_regions(feed=feed, regions=[one.stored for one in found.replaced if "geometry" in one.changes], user=owner)


def _check_growth(replaced: Sequence[Replacement]) -> None:
    """Raises OverQuota; the vertices count for the owner and the team of the stored region."""
    growth: dict[tuple[User, Any], int] = defaultdict(int)
    for one in replaced:
        before, one.stored.vertices = one.stored.vertices, vertices_of(one.stored.geometry)
        growth[one.stored.owner, one.stored.team] += one.stored.vertices - before
    for (holder, team), more in growth.items():
        quota_check("vertices", user=holder, team=team, more=more, held=vertices_held)


def _check_unchanged(replaced: Sequence[Replacement], *, user: User) -> None:
    """Raises Conflict when one of them was changed, removed, or is no longer the user's to change;
    their rows are held."""
    ids = [one.stored.pk for one in replaced]
    rows = Region.objects.editable_by(user).filter(pk__in=ids).order_by("pk").select_for_update(of=("self",), no_key=True)
    now = dict(rows.values_list("pk", "updated_at"))
    if any(now.get(one.stored.pk) != one.stored.updated_at for one in replaced):
        raise Conflict([Fault("", Message("Somebody has changed a region that this file replaces: import the file again."))])


def _replace(replaced: Sequence[Replacement]) -> None:
    now = timezone.now()
    for one in replaced:
        one.stored.updated_at = now
    fields = ["geometry", "bbox", "vertices", "tags", "updated_at"]
    Region.objects.bulk_update([one.stored for one in replaced], fields, batch_size=500)


def _shape_key(geometry: Any) -> str:
    """Equal for equal shapes, whether a whole coordinate is stored as 51 or 51.0."""
    return json.dumps(json.loads(json.dumps(geometry), parse_int=float), sort_keys=True)


def _free_name(name: str, taken: set[str]) -> str:
    """`name`, or `name 2`, `name 3`, ... ; then taken."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name[:90]} {number}"
    taken.add(free)
    return free
