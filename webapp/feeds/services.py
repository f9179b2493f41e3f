"""Services that change feeds and regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction

from engine.derive import ENTITIES, VALUE
from engine.model.faults import Fault, Refused, refuse
from engine.model.messages import Message
from webapp.accounts.models import Team, User
from webapp.accounts.quotas import quota_check
from webapp.config.room import hold
from webapp.feeds.admission import default_ahead
from webapp.feeds.documents import checked_region, feed_faults, vertices_of
from webapp.feeds.heads import feed_head_ensure, feed_head_follow_team, feed_place, feed_reopen
from webapp.feeds.models import MOST_TAGS, TAG_FORM, TAG_LENGTH, Feed, IngestCounter, Region
from webapp.feeds.selectors import feeds_held, vertices_held

SCHEMA_FIELDS = ("name", "crs", "time", "tick", "columns", "dedupe", "lateness")
"""Settings that stored rows and answers depend on: fixed once rows have been received."""
SCHEMA_STAYS = Message("Rows have been received already: create a new feed instead.")
COLUMNS_STAY = Message("Rows have been received already: columns can be added, but not changed.")
TOO_MANY_TAGS = Message("A region has at most {most} tags.", most=MOST_TAGS)
PLAN_BYTES = 10_000_000
PLAN_KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg", b"RIFF": "webp"}


@transaction.atomic
def feed_create(*, owner: User, name: str, title: str, crs: str, job: Any = None, **fields: Any) -> Feed:
    """A new feed with its counters, on the default job. The default of `ahead` depends on
    the clock. Raises Refused."""
    feed = Feed(owner=owner, name=name, title=title, crs=crs, **fields)
    if "ahead" not in fields:
        feed.ahead = default_ahead(time_unit=feed.time, wall_clock=feed.wall_clock, lateness=feed.lateness)
    _check(feed)
    feed.full_clean(exclude=["owner", "team"])
    quota_check("feeds", user=owner, team=feed.team, more=1, held=feeds_held)
    feed.save()
    IngestCounter.objects.create(feed=feed)
    feed_head_ensure(feed)
    if job is not None:
        feed_place(feed=feed, job=job)
    return feed


@transaction.atomic
def feed_update(*, feed: Feed, job: Any = None, **changes: Any) -> Feed:
    """Changes the given fields. Raises Refused; the schema and the clock are fixed once rows have
    been received, but columns can be added."""
    feed = hold(feed)
    received = IngestCounter.objects.filter(feed=feed, received__gt=0).exists()
    added = _added_columns(feed, changes.get("columns"))
    if added:
        # After the existing columns, in whatever order they are given: stored states
        # rely on the order of columns.
        changes["columns"] = {**feed.columns, **added}
    fixed = [name for name in SCHEMA_FIELDS if name in changes and changes[name] != getattr(feed, name) and not (added and name == "columns")]
    if fixed and received:
        raise Refused(Fault(f"/{name}", COLUMNS_STAY if name == "columns" else SCHEMA_STAYS) for name in fixed)
    if (team := changes.get("team")) is not None and team != feed.team:
        quota_check("feeds", team=team, more=1, held=feeds_held)
    if fixed and feed.queries.filter(deleted_at=None).exists():
        raise Refused(Fault(f"/{name}", Message("Queries were checked against it: remove them first.")) for name in fixed)
    for name, value in changes.items():
        setattr(feed, name, value)
    _check(feed)
    feed.full_clean(exclude=["owner", "team"])
    feed.save()
    if added:
        feed_reopen(feed=feed, why=Message("the feed {feed} has new columns: {columns}.", feed=feed.name, columns=", ".join(added)))
    if job is not None:
        feed_place(feed=feed, job=job)
    feed_head_follow_team(feed)
    return feed


def _added_columns(feed: Feed, columns: Any) -> dict[str, Any]:
    """What `columns` has beyond the feed's own, if all of these are in it unchanged. Raises Refused
    for names that have another meaning in queries."""
    if not isinstance(columns, dict) or any(columns.get(name) != kind for name, kind in feed.columns.items()):
        return {}
    added = {name: kind for name, kind in columns.items() if name not in feed.columns}
    taken = [name for name in added if name in (VALUE, *ENTITIES)]
    if taken and feed.queries.filter(deleted_at=None).exists():
        raise Refused(
            Fault(f"/columns/{name}", Message("Queries use this name for the answers of other queries: remove those queries first."))
            for name in taken
        )
    return added


def feed_set_plan(*, feed: Feed, data: bytes) -> Feed:
    """Sets the image of a planar feed, or removes it when `data` is empty. Raises Refused."""
    old = feed.plan_image.name
    if not data:
        feed.plan_image = ""
    else:
        feed.plan_image.save(f"{feed.name}.{_image_kind(data)}", ContentFile(data), save=False)
    feed.save(update_fields=["plan_image"])
    if old:
        default_storage.delete(old)
    return feed


def _image_kind(data: bytes) -> str:
    if len(data) > PLAN_BYTES:
        raise refuse("", Message("The image has more than {most} MB.", most=PLAN_BYTES // 1_000_000))
    kind = next((kind for magic, kind in PLAN_KINDS.items() if data.startswith(magic)), None)
    if kind is None or (kind == "webp" and data[8:12] != b"WEBP"):
        raise refuse("", Message("The image is neither PNG, JPEG nor WebP."))
    return kind


def _check(feed: Feed) -> None:
    faults = feed_faults(feed)
    if faults:
        raise Refused(faults)


# -- regions ---------------------------------------------------------------------------------------


@transaction.atomic
def region_create(
    *, owner: User, feed: Feed, name: str, geometry: Any, tags: Sequence[str] = (), team: Team | None = None, public: bool = False
) -> Region:
    """Stores a region of a feed. Raises Refused with pointers below `/geometry`."""
    document, bbox = checked_region(geometry, feed, "/geometry")
    if Region.objects.filter(feed=feed, name=name).exists():
        raise refuse("/name", Message("Another region of this feed has this name."))
    count = vertices_of(document)
    region = Region(
        owner=owner, feed=feed, name=name, geometry=document, bbox=list(bbox), vertices=count, tags=trimmed_tags(tags), team=team, public=public
    )
    quota_check("vertices", user=owner, team=team, more=count, held=vertices_held)
    region.full_clean(exclude=["owner", "team", "feed"])
    region.save()
    return region


def checked_tags(tags: Iterable[str]) -> list[str]:
    """The tags, trimmed. Raises Refused for what the API would not take as a region's tags."""
    trimmed = trimmed_tags(tags)
    if any(len(tag) > TAG_LENGTH for tag in trimmed):
        raise refuse("/tags", Message("A tag has at most {most} characters.", most=TAG_LENGTH))
    if not all(map(TAG_FORM.match, trimmed)):
        raise refuse("/tags", Message("A tag has no commas, no control characters and no marks that change the direction of writing."))
    if len(trimmed) > MOST_TAGS:
        raise refuse("/tags", TOO_MANY_TAGS)
    return trimmed


def trimmed_tags(tags: Iterable[str]) -> list[str]:
    return sorted({tag.strip() for tag in tags if tag.strip()})


@transaction.atomic
def region_bulk_tag(*, regions: Sequence[Region], tags: Sequence[str], remove: bool) -> tuple[list[int], list[tuple[int, list[Fault]]]]:
    """Adds tags to regions, or takes them away: ids changed, and (id, faults) of
    those that would have too many. Raises Refused for tags that a region may not have."""
    added = [] if remove else checked_tags(tags)
    changed: list[int] = []
    refused: list[tuple[int, list[Fault]]] = []
    for region in regions:
        # A region of an older release may have tags that are no longer permitted.
        kept = trimmed_tags(set(region.tags) - set(tags)) if remove else trimmed_tags([*region.tags, *added])
        if len(kept) > max(MOST_TAGS, len(region.tags)):
            refused.append((region.pk, [Fault("/tags", TOO_MANY_TAGS)]))
            continue
        region.tags = kept
        region.save(update_fields=["tags", "updated_at"])
        changed.append(region.pk)
    return changed, refused
