"""A stored answer with the tracks of its entities around it: why it was given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypedDict

from django.db.models import QuerySet

from engine.derive import sources_of
from engine.model.changes import DERIVED_SEQ
from engine.sinks.answer_rows import EvidenceItem
from webapp.accounts.permissions import AnyUser
from webapp.detections.models import Detection
from webapp.detections.selectors import DetectionRow, detection_row, with_ends
from webapp.feeds.models import Feed
from webapp.feeds.recent import TRACK_ENTITIES, Track, tracks
from webapp.queries.models import Query, QueryVersion

MARGIN = {"ms": 120_000, "ticks": 3_000}
"""How much of a track is shown before and after, at least, in the feed's unit."""
LONGEST = 20
"""Of a long interval at most this many margins after its start are read."""
SHOWN_POINTS = 5_000
SHOWN_ANSWERS = 50


class DetectionWithTracks(TypedDict):
    """An answer and the tracks of its entities around it."""

    detection: DetectionRow
    tracks: list[Track]


class AnswerBehind(DetectionRow):
    """An answer of another query from which one was derived, as the event that it became."""

    query_name: str
    event: str


def detection_get(*, feed: Feed, key: bytes) -> Detection | None:
    """The newest answer under a natural key, retracted or not."""
    return with_ends(Detection.objects.filter(feed=feed, key=key)).order_by("-start").first()


def evidence_by_key(answers: Iterable[tuple[int, bytes, int]]) -> dict[tuple[int, bytes], list[EvidenceItem] | None]:
    """The evidence of answers by feed, natural key and start; retention may have deleted some."""
    wanted = defaultdict[int, dict[bytes, int]](dict)
    for feed, key, start in answers:
        wanted[feed][key] = start
    found: dict[tuple[int, bytes], list[EvidenceItem] | None] = {}
    for feed, starts in wanted.items():
        # The span of starts excludes most partitions.
        rows = Detection.objects.filter(feed_id=feed, key__in=list(starts), start__range=(min(starts.values()), max(starts.values())))
        found |= {(feed, bytes(key)): evidence for key, evidence in rows.values_list("key", "evidence")}
    return found


def detection_find(*, user: AnyUser, key: bytes, feed: str | None = None) -> Detection | None:
    """The answer if `user` may see its query."""
    found = with_ends(Detection.objects.filter(key=key, query__in=Query.objects.visible_to(user).values("pk"))).select_related("query", "feed")
    return (found if feed is None else found.filter(feed__name=feed)).order_by("-start").first()


def detection_with_tracks(*, feed: Feed, key: bytes, until: int | None = None) -> DetectionWithTracks | None:
    """Null when retention has deleted the answer. `until` is used as the end of an answer that has
    none."""
    detection = detection_get(feed=feed, key=key)
    if detection is None:
        return None
    return {"detection": detection_row(detection), "tracks": tracks_around(feed=feed, detection=detection, until=until)}


def tracks_around(*, feed: Feed, detection: Detection, until: int | None = None) -> list[Track]:
    """The tracks of the answer's entities from a while before it to a while after it."""
    margin = MARGIN[feed.time]
    times = _times(detection)
    start = min([detection.start, *times])
    end = max([detection.start, detection.end or detection.start, until or detection.start, *times])
    end = min(end, start + LONGEST * margin)
    return tracks(feed, _entities(detection), start - margin, end + margin, SHOWN_POINTS).tracks


def answers_behind(*, user: AnyUser, detection: Detection) -> list[AnswerBehind]:
    """The upstream answers from which `detection` was derived, as far as `user` may see them,
    newest last: each may have upstream answers.

    Rules name no events: of their upstream answers, those are returned that share an entity and
    happened in the interval or at its beginning.
    """
    own = QueryVersion.objects.filter(query=detection.query_id, version=detection.version).first()
    if own is None:
        return []
    found: list[AnswerBehind] = []
    for source in sources_of(own.specification):
        above = QueryVersion.objects.filter(query=int(source.query), from_feed_version__lte=own.from_feed_version).order_by("-version").first()
        if above is None or not Query.objects.visible_to(user).filter(pk=above.query_id).exists():
            continue
        rows = with_ends(Detection.objects.filter(feed=detection.feed_id, query=above.query_id, version=above.version, kind=source.kind, weight=1))
        matching = _of_events(rows, source.at, detection) if detection.evidence is not None else _of_rules(rows, source.at, detection)
        found += [{**detection_row(row), "query_name": above.query.name, "event": source.event} for row in matching]
    return sorted(found, key=lambda row: (row["start"], row["id"]))[-SHOWN_ANSWERS:]


def _of_events(rows: QuerySet[Detection], at: str, detection: Detection) -> list[Detection]:
    wanted = {(item["entity"], item["t"]) for item in detection.evidence or [] if (item.get("seq") or 0) >= DERIVED_SEQ}
    some = rows.filter(**{f"{at}__in": sorted({t for _, t in wanted})})
    return [row for row in some if (row.entities[0] if row.entities else None, getattr(row, at)) in wanted]


def _of_rules(rows: QuerySet[Detection], at: str, detection: Detection) -> list[Detection]:
    """A conclusion at a time point holds from the next one on."""
    begin, end = detection.start - detection.feed.tick, detection.end or detection.start
    some = rows.filter(**{f"{at}__gte": begin, f"{at}__lte": end}, entities__overlap=list(detection.entities))
    return list(some.order_by("-start")[:SHOWN_ANSWERS])


def _times(detection: Detection) -> list[int]:
    return [item["t"] for item in detection.evidence or [] if item.get("t") is not None]


def _entities(detection: Detection) -> Sequence[str]:
    named = [*detection.entities, *(item["entity"] for item in detection.evidence or [] if item.get("entity"))]
    return list(dict.fromkeys(named))[:TRACK_ENTITIES]
