"""Why an alert was raised: the detection behind it and the tracks of its
entities around that time."""

from __future__ import annotations

from typing import TypedDict

from webapp.alerts.models import Alert
from webapp.detections.evidence import detection_get, detection_with_tracks
from webapp.detections.selectors import DetectionRow, detection_row
from webapp.feeds.recent import Track


class Evidence(TypedDict):
    """The opening and the ending answer of an alert, and the tracks of its entities."""

    detection: DetectionRow | None
    closing: DetectionRow | None
    tracks: list[Track]


def evidence_of(alert: Alert) -> Evidence:
    """The opening and the ending detection (null if there is none, or retention deleted it),
    and the entities' tracks."""
    opening = detection_with_tracks(feed=alert.feed, key=bytes(alert.detection_key), until=alert.end)
    closing = None if alert.closing_key is None else detection_get(feed=alert.feed, key=bytes(alert.closing_key))
    return {
        "detection": None if opening is None else opening["detection"],
        "closing": None if closing is None else detection_row(closing),
        "tracks": [] if opening is None else opening["tracks"],
    }
