"""Reads of feeds, their counters, regions and dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Q, QuerySet, Sum
from django.urls import reverse

from webapp.accounts.permissions import AnyUser
from webapp.config.wording import translated
from webapp.feeds.heads import CatchingUp
from webapp.feeds.models import Connector, DeadLetter, Feed, Region, Upload, UploadState

Box = tuple[float, float, float, float]
"""Least x, least y, greatest x, greatest y."""


def feed_list(*, user: AnyUser) -> QuerySet[Feed]:
    """The feeds that `user` may see, with the relations that `feed_counters` and `feed_head`
    read."""
    return (
        Feed.objects.visible_to(user)
        .with_editable(user)
        .select_related("owner", "team", "ingest_counter", "head", "head__job", "damage")
        .order_by("name")
    )


def feed_get(*, user: AnyUser, name: str) -> Feed | None:
    """The feed of this name if `user` may see it."""
    return Feed.objects.visible_to(user).filter(name=name).first()


def feed_of(*, pk: int) -> Feed:
    """The feed with this id, for callers that check permissions themselves."""
    return Feed.objects.get(pk=pk)


def feed_damage(feed: Feed) -> str | None:
    """Why the feed is suspended, with the remedy; null when it is not."""
    damage = _related(feed, "damage")
    return None if damage is None else translated(damage.sentence)


class FeedEvent(TypedDict):
    """An event of a feed or a job."""

    at: datetime
    kind: str
    text: str


class FeedCounters(TypedDict):
    """`received` is the sum of the others; `waiting` rows are in the log, not yet processed."""

    received: int
    processed: int
    duplicates: int
    late: int
    dead: int
    lost: int
    waiting: int


class FeedHeadRow(TypedDict):
    """How far a feed has been processed."""

    seq: int
    watermark: int | None
    max_t: int | None
    outbox_seq: int
    batch_ms: float | None
    rows_per_s: float | None
    query_version: int
    catching_up: CatchingUp | None
    updated_at: datetime | None
    job: str | None


def failing_connectors(feed: Feed) -> list[str]:
    """The names of the feed's connectors that keep failing or do not run."""
    return list(Connector.objects.failing().filter(feed=feed).order_by("name").values_list("name", flat=True))


def feed_events(feed: Feed, limit: int = 20) -> list[FeedEvent]:
    """The events of the feed, newest first."""
    return [{"at": event.at, "kind": event.kind, "text": translated(event.text)} for event in feed.events.order_by("-id")[:limit]]


def feed_counters(feed: Feed) -> FeedCounters:
    """The counters of received rows: `received = processed + duplicates + late + dead + lost +
    waiting`; `waiting` are in the log, not yet processed, `lost` were in it until it was damaged.

    The job may have processed rows that ingest has appended and not counted yet: they have been
    received all the same. `feed_list` reads both rows in one statement, so at one moment.
    """
    counter, head = _related(feed, "ingest_counter"), _related(feed, "head")
    received, dead, lost = (counter.received, counter.dead, counter.lost) if counter else (0, 0, 0)
    processed, duplicates, late = (head.processed, head.duplicates, head.late) if head else (0, 0, 0)
    done = processed + duplicates + late + dead + lost
    waiting = max(0, received - done)
    return {
        "received": done + waiting,
        "processed": processed,
        "duplicates": duplicates,
        "late": late,
        "dead": dead,
        "lost": lost,
        "waiting": waiting,
    }


def feed_head(feed: Feed) -> FeedHeadRow | None:
    """How far the feed has been processed; null when no job has taken it up."""
    head = _related(feed, "head")
    if head is None:
        return None
    return {
        "seq": head.last_seq,
        "watermark": head.watermark,
        "max_t": head.max_t,
        "outbox_seq": head.outbox_seq,
        "batch_ms": head.batch_ms,
        "rows_per_s": head.rows_per_s,
        "query_version": head.query_version,
        "catching_up": head.catching_up,
        "updated_at": head.updated_at,
        "job": head.job.name if head.job_id else None,
    }


def _related(feed: Feed, name: str) -> Any:
    try:
        return getattr(feed, name)
    except ObjectDoesNotExist:
        return None


def plan_address(feed: Feed) -> str | None:
    """Where the plan image is served, null without one. The name changes with the
    image, so it may be cached."""
    return f"{reverse('feed-plan', args=[feed.name])}?v={str(feed.plan_image.name).rsplit('/', 1)[-1]}" if feed.plan_image else None


def feed_row(feed: Feed) -> dict[str, Any]:
    """A feed as pages need it to draw its map and read its times."""
    return {
        "name": feed.name,
        "title": feed.title,
        "crs": feed.crs,
        "time": feed.time,
        "tick": feed.tick,
        "lateness": feed.lateness,
        "columns": feed.columns,
        "wall_clock": feed.wall_clock,
        "plan_image": plan_address(feed),
        "plan_bounds": feed.plan_bounds,
        "view": feed.view,
        "editable": bool(getattr(feed, "editable", False)),
    }


def feeds_for_page(*, user: AnyUser) -> list[dict[str, Any]]:
    """All feeds for a page's selection."""
    return [feed_row(feed) for feed in Feed.objects.visible_to(user).with_editable(user).order_by("name")]


def in_box(regions: QuerySet[Region], box: Box) -> QuerySet[Region]:
    """The regions whose bounding box meets `box`."""
    west, south, east, north = box
    return regions.filter(Q(bbox__0__lte=east) & Q(bbox__1__lte=north) & Q(bbox__2__gte=west) & Q(bbox__3__gte=south))


def regions_of_feed(feed: Feed, *, user: AnyUser) -> dict[str, dict[str, Any]]:
    """Name to geometry of the stored regions that `user`'s specifications may name."""
    return dict(Region.objects.visible_to(user).filter(feed=feed).values_list("name", "geometry"))


def dead_letter_list(*, feed: Feed) -> QuerySet[DeadLetter]:
    """The feed's refused rows, newest first."""
    return DeadLetter.objects.filter(feed=feed).order_by("-id")


def feeds_held(owner_filter: dict[str, Any]) -> int:
    """How many feeds someone has."""
    return Feed.objects.filter(**owner_filter).count()


def upload_list(*, user: AnyUser) -> QuerySet[Upload]:
    """The uploads that `user` may see."""
    return Upload.objects.visible_to(user).with_editable(user).select_related("owner", "team", "feed").order_by("-created_at")


def uploads_held(owner_filter: dict[str, Any]) -> int:
    """How many megabytes someone's uploaded files have together, unfinished ones with their whole
    size."""
    kept = Upload.objects.filter(**owner_filter).exclude(state__in=(UploadState.DONE, UploadState.CANCELLED))
    return -(-(kept.aggregate(held=Sum("size"))["held"] or 0) // 1_000_000)


def vertices_held(owner_filter: dict[str, Any]) -> int:
    """How many vertices someone's stored regions have together."""
    return Region.objects.filter(**owner_filter).aggregate(held=Sum("vertices"))["held"] or 0
