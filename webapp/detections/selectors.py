"""Reads of stored answers and of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import F, Max, Min, Q, QuerySet

from webapp.detections.models import Detection, Outbox


def outbox_since(*, feed_id: int, seq: int, limit: int = 100) -> list[Outbox]:
    """The outbox rows after number `seq`, in order."""
    return list(Outbox.objects.filter(feed_id=feed_id, seq__gt=seq).order_by("seq")[:limit])


def outbox_range(*, feed_id: int) -> tuple[int, int] | None:
    """The oldest and the newest number that is still there; None in an empty outbox."""
    found = Outbox.objects.filter(feed_id=feed_id).aggregate(oldest=Min("seq"), newest=Max("seq"))
    return None if found["oldest"] is None else (found["oldest"], found["newest"])


def detection_list(
    *,
    feed_id: int | None = None,
    query_ids: Sequence[int] | None = None,
    from_t: int | None = None,
    to_t: int | None = None,
    entity: str | None = None,
    kinds: Sequence[str] | None = None,
    withdrawn: bool = False,
) -> QuerySet[Detection]:
    """Answers that touch the time span `[from_t, to_t)` (open intervals reach to the end of time), newest start first.

    `withdrawn`: those that later events took back, instead of those that hold.
    """
    found = Detection.objects.filter(weight=0 if withdrawn else 1)
    if feed_id is not None:
        found = found.filter(feed_id=feed_id)
    if query_ids is not None:
        found = found.filter(query_id__in=query_ids)
    if to_t is not None:
        found = found.filter(start__lt=to_t)
    if from_t is not None:
        # The second branch repeats the condition of the index `detections_lasting`, which then answers it.
        lasting = Q(end__isnull=True) | Q(end__gt=F("start"), end__gte=from_t)
        found = found.filter(Q(start__gte=from_t) | lasting)
    if entity is not None:
        found = found.filter(entities__contains=[entity])
    if kinds is not None:
        found = found.filter(kind__in=kinds)
    return found.order_by("-start", "key")


def detection_row(detection: Detection) -> dict[str, Any]:
    """The answer as frames carry it (ARCHITECTURE.md, WebSocket)."""
    return {
        "id": bytes(detection.key).hex(),
        "query": detection.query_id,
        "version": detection.version,
        "kind": detection.kind,
        "entities": list(detection.entities),
        "value": detection.value if detection.score is None else detection.score,
        "start": detection.start,
        "end": detection.end,
        "evidence": detection.evidence,
        "weight": detection.weight,
        "backfill": detection.backfill,
        "detected_at": detection.detected_at,
    }


def detections_recent(*, feed_id: int, query_ids: Sequence[int] | None, from_t: int | None = None, limit: int) -> list[dict[str, Any]]:
    """What a page starts with: the newest answers of these queries that touch the time after `from_t`, oldest first."""
    found = detection_list(feed_id=feed_id, query_ids=query_ids, from_t=from_t)[:limit]
    return [detection_row(detection) for detection in reversed(found)]
