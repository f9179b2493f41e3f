"""A stored answer with the tracks of its entities around it: why it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webapp.accounts.permissions import AnyUser
from webapp.detections.models import Detection
from webapp.detections.selectors import detection_row, with_ends
from webapp.feeds.models import Feed
from webapp.feeds.recent import TRACK_ENTITIES, tracks
from webapp.queries.models import Query

MARGIN = {"ms": 120_000, "ticks": 3_000}
"""How much of a track is shown before and after, at least, in the feed's unit."""
LONGEST = 20
"""Of a long interval this many margins after its start are read at most."""
SHOWN_POINTS = 5_000


def detection_get(*, feed: Feed, key: bytes) -> Detection | None:
    """The newest answer under a natural key, withdrawn or not."""
    return with_ends(Detection.objects.filter(feed=feed, key=key)).order_by("-start").first()


def detection_find(*, user: AnyUser, key: bytes, feed: str | None = None) -> Detection | None:
    """The answer if `user` may see its query."""
    found = with_ends(Detection.objects.filter(key=key, query__in=Query.objects.visible_to(user).values("pk"))).select_related("query", "feed")
    return (found if feed is None else found.filter(feed__name=feed)).order_by("-start").first()


def detection_with_tracks(*, feed: Feed, key: bytes, until: int | None = None) -> dict[str, Any] | None:
    """`{"detection", "tracks"}`; null when retention took the answer. `until` stands for an end that the answer itself does not have."""
    detection = detection_get(feed=feed, key=key)
    if detection is None:
        return None
    return {"detection": detection_row(detection), "tracks": tracks_around(feed=feed, detection=detection, until=until)}


def tracks_around(*, feed: Feed, detection: Detection, until: int | None = None) -> list[dict[str, Any]]:
    """Where the answer's entities were from a while before it to a while after it."""
    margin = MARGIN[feed.time]
    times = _times(detection)
    start = min([detection.start, *times])
    end = max([detection.start, detection.end or detection.start, until or detection.start, *times])
    end = min(end, start + LONGEST * margin)
    return tracks(feed, _entities(detection), start - margin, end + margin, SHOWN_POINTS).tracks


def _times(detection: Detection) -> list[int]:
    return [item["t"] for item in detection.evidence or [] if item.get("t") is not None]


def _entities(detection: Detection) -> Sequence[str]:
    named = [*detection.entities, *(item["entity"] for item in detection.evidence or [] if item.get("entity"))]
    return list(dict.fromkeys(named))[:TRACK_ENTITIES]
