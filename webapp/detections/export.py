"""Stored answers as rows of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webapp.config.tables import PlacedRow, points_of
from webapp.detections.models import Detection
from webapp.detections.selectors import detection_row

COLUMNS = ("query", "kind", "entities", "value", "start", "end", "evidence", "weight", "detected_at")
"""The specification's columns of an answer; `entities` and `evidence` are JSON in CSV."""


def rows_of(detections: Iterable[Detection]) -> Iterator[PlacedRow]:
    """Each answer; its place are the points of its evidence."""
    for detection in detections:
        row = detection_row(detection)
        yield row, points_of(row["evidence"])
