"""Reads of the registry, of notes and watches, and of visits to regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import Q, QuerySet

from engine.model.feed import Crs
from engine.model.region import read_region
from webapp.accounts.models import User
from webapp.config.openapi import Length, TimeRangeRead
from webapp.entities.models import Note, Record, Watch
from webapp.entities.visits import visits
from webapp.feeds.history import NO_REPORTS
from webapp.feeds.models import Feed, Region
from webapp.feeds.recent import DEFAULT_SPAN, FIRST_T, accepted, log_of

COLUMNS = ["event", "entity", "t", "x", "y", "clock"]
ACTIVITY_ROWS = 1_000_000
"""The activity of a region is counted in at most this many of the newest rows."""
VISITED_REGIONS = 1_000
VISITS = 500
INSIDE = 500
BINS = 24


def record_of(*, feed: Feed, entity: str) -> Record | None:
    """The registry's entry of an entity."""
    return Record.objects.filter(feed=feed, entity=entity).first()


def record_list(*, feed: Feed, search: str = "") -> QuerySet[Record]:
    """The registry by entity: those whose id or name contains `search`."""
    return Record.objects.filter(Q(entity__icontains=search) | Q(name__icontains=search), feed=feed).order_by("entity")


def note_list(*, feed: Feed, entity: str) -> QuerySet[Note]:
    """The notes on an entity, newest first."""
    return Note.objects.filter(feed=feed, entity=entity).select_related("author")


def watch_list(*, user: User) -> QuerySet[Watch]:
    """The user's watches on feeds that they still see."""
    return Watch.objects.filter(user=user, feed__in=Feed.objects.visible_to(user)).select_related("feed")


class Visit(TypedDict):
    """A stay in a region; `end` null while it lasts."""

    region: int
    name: str
    start: int
    end: int | None


@dataclass(frozen=True)
class Visited:
    """Visits in order of start, the latest `VISITS` of `[from_t, to_t]`."""

    from_t: int | None
    to_t: int | None
    complete: bool
    visits: list[Visit]


def visited(*, feed: Feed, entity: str, user: User, from_t: int | None, to_t: int | None) -> Visited:
    """The regions in which an entity was, of those that the user sees; without a span, as
    far back as a track goes."""
    log = log_of(feed)
    _, newest = log.end
    if newest is None:
        return Visited(from_t, to_t, True, [])
    until = newest if to_t is None else min(to_t, newest)
    since = max(until - DEFAULT_SPAN[feed.time], FIRST_T) if from_t is None else from_t
    rows = _placed(feed, log.tail(since, until + 1, lateness=feed.lateness, columns=COLUMNS, entities=[entity]))
    regions = list(Region.objects.visible_to(user).filter(feed=feed).filter(_near(rows))[: VISITED_REGIONS + 1])
    found: list[Visit] = [
        {"region": region.pk, "name": region.name, "start": start, "end": end}
        for region in regions[:VISITED_REGIONS]
        for start, end in _spans(rows, region)
    ]
    found.sort(key=lambda one: (one["start"], one["name"]))
    return Visited(since, until, len(regions) <= VISITED_REGIONS and len(found) <= VISITS, found[-VISITS:])


def _spans(rows: pa.Table, region: Region) -> list[tuple[int, int | None]]:
    visits_of_entity = visits(rows, read_region(region.geometry, Crs(region.feed.crs)))
    return [
        (start, end if ended else None)
        for start, end, ended in zip(visits_of_entity.start.tolist(), visits_of_entity.end.tolist(), visits_of_entity.ended.tolist(), strict=True)
    ]


def _placed(feed: Feed, rows: pa.Table) -> pa.Table:
    """Accepted rows that have a place."""
    if not rows.num_columns:
        return NO_REPORTS
    rows = accepted(feed, rows)
    return rows.filter(pc.and_(pc.is_valid(rows.column("x")), pc.is_valid(rows.column("entity"))))


def _near(rows: pa.Table) -> Q:
    """The regions whose boxes meet the rows' box."""
    if not rows.num_rows:
        return Q(pk__in=[])
    (west, east), (south, north) = (
        (found["min"].as_py(), found["max"].as_py()) for found in (pc.min_max(rows.column("x")), pc.min_max(rows.column("y")))
    )
    return Q(bbox__0__lte=east, bbox__1__lte=north, bbox__2__gte=west, bbox__3__gte=south)


class RegionActivity(TimeRangeRead):
    """What happened in a region. `inside`: [entity, since, last report] of those whose last report
    is inside, longest first.

    `edges`: of equal spans; `entries` and `exits` in each. `dwell_edges` and `dwells`: how many
    visits that ended lasted so long, by spans `[edge, next)`. `complete` is false where the log's
    rows of the span were more than are read at once: then `from` is later than was asked for.
    """

    complete: bool
    inside: list[Annotated[list[str | int], Length(3)]]
    inside_count: int
    edges: list[int]
    entries: list[int]
    exits: list[int]
    dwell_edges: list[int]
    dwells: list[int]
    median_dwell: float | None


NO_ACTIVITY: RegionActivity = {
    "from": None, "to": None, "complete": True, "inside": [], "inside_count": 0, "edges": [], "entries": [], "exits": [], "dwell_edges": [],
    "dwells": [], "median_dwell": None,
}  # fmt: skip


def activity(*, region: Region, span: int) -> RegionActivity:
    """What happened in a region within the last `span` units of the feed's time.

    An entity that was inside at the beginning is inside, and did not enter.
    """
    feed = region.feed
    log = log_of(feed)
    next_seq, newest = log.end
    if newest is None:
        return NO_ACTIVITY
    since = max(newest - span, FIRST_T)
    first = next((segment.first_seq for segment in log.segments() if segment.max_t >= since), next_seq)
    oldest = max(first, next_seq - ACTIVITY_ROWS)
    rows = _placed(feed, pa.concat_tables(log.read(oldest, next_seq, columns=COLUMNS), promote_options="permissive"))
    complete = oldest == first
    if not complete and rows.num_rows:
        # Rows may be up to the lateness before the first ones to arrive.
        since = min(newest, max(since, pc.min(rows.column("t")).as_py() + feed.lateness))
    rows = rows.filter(pc.greater_equal(rows.column("t"), since))
    since = max(since, pc.min(rows.column("t")).as_py() or since)
    return _activity(rows, region, since, newest, complete)


def _activity(rows: pa.Table, region: Region, since: int, newest: int, complete: bool) -> RegionActivity:
    visits_of_entity = visits(rows, read_region(region.geometry, Crs(region.feed.crs)))
    still = np.flatnonzero(~visits_of_entity.ended)
    still = still[np.argsort(visits_of_entity.start[still], kind="stable")]
    inside: list[list[str | int]] = [
        [visits_of_entity.names[visits_of_entity.entity[i]], int(visits_of_entity.start[i]), int(visits_of_entity.end[i])] for i in still[:INSIDE]
    ]
    edges = np.linspace(since, newest + 1, BINS + 1).astype(np.int64)
    began = visits_of_entity.start[visits_of_entity.start > _first_reports(rows, visits_of_entity.names)[visits_of_entity.entity]]
    dwells = (visits_of_entity.end - visits_of_entity.start)[visits_of_entity.ended]
    dwell_edges = np.unique(np.linspace(0, dwells.max() + 1, BINS + 1).astype(np.int64)) if len(dwells) else np.empty(0, np.int64)
    return {
        "from": since,
        "to": newest,
        "complete": complete,
        "inside": inside,
        "inside_count": len(still),
        "edges": edges.tolist(),
        "entries": np.histogram(began, edges)[0].tolist(),
        "exits": np.histogram(visits_of_entity.end[visits_of_entity.ended], edges)[0].tolist(),
        "dwell_edges": dwell_edges.tolist(),
        "dwells": np.histogram(dwells, dwell_edges)[0].tolist() if len(dwells) else [],
        "median_dwell": float(np.median(dwells)) if len(dwells) else None,
    }


def _first_reports(rows: pa.Table, names: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The time of each entity's first report: an entity that it found inside did not enter."""
    if not rows.num_rows:
        return np.empty(0, np.int64)
    firsts = rows.group_by("entity").aggregate([("t", "min")])
    at = pc.index_in(pa.array(names, pa.string()), value_set=firsts.column("entity").combine_chunks())
    return np.asarray(firsts.column("t_min").to_numpy()[at.to_numpy()], np.int64)
