"""Stored answers as rows of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from webapp.config.moments import iso_of_event
from webapp.config.openapi import Moment
from webapp.config.tables import PlacedRow, points_of
from webapp.detections.models import Detection
from webapp.detections.selectors import DetectionRow, detection_row
from webapp.queries.models import Query

COLUMNS = ("query", "query_name", "kind", "entities", "value", "start", "end", "start_at", "end_at", "evidence", "weight", "detected_at")
"""The specification's columns of an answer, and what people read; `entities` and `evidence` are
JSON in CSV."""


class ExportedAnswerRow(DetectionRow):
    """An answer as in files. `start_at`, `end_at`: of feeds that count milliseconds."""

    query_name: str
    start_at: Moment | None
    end_at: Moment | None


def rows_of(detections: Iterable[Detection], queries: Iterable[Query]) -> Iterator[PlacedRow]:
    """Each answer of one of `queries`; its place are the points of its evidence."""
    known: Mapping[int, Query] = {query.pk: query for query in queries}
    for detection in detections:
        query = known[detection.query_id]
        row: ExportedAnswerRow = {
            **detection_row(detection),
            "query_name": query.name,
            "start_at": iso_of_event(detection.start, query.feed.time),
            "end_at": iso_of_event(detection.end, query.feed.time),
        }
        yield row, points_of(row["evidence"])
