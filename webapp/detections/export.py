"""Stored answers as rows of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from webapp.config.moments import iso_of_event
from webapp.config.openapi import Moment
from webapp.config.tables import PlacedRow
from webapp.detections.models import Detection
from webapp.detections.selectors import DetectionRow, detection_row
from webapp.queries.models import Query

COLUMNS = (
    "id", "query", "query_name", "version", "kind", "entities", "value", "start", "end", "start_at", "end_at", "cut", "evidence", "weight",
    "backfill", "detected_at", "found_at",
)  # fmt: skip
"""The specification's columns of an answer, and readable ones; `entities` and `evidence` are JSON
in CSV."""


class ExportedAnswerRow(DetectionRow):
    """An answer as in files. `start_at`, `end_at`: of feeds that count milliseconds; `found_at`:
    `detected_at` for people."""

    query_name: str
    start_at: Moment | None
    end_at: Moment | None
    found_at: Moment | None


def named(query_ids: Sequence[int]) -> Mapping[int, tuple[str, str]]:
    """The name of each query and the unit of its feed."""
    found = Query.objects.filter(pk__in=query_ids).values_list("pk", "name", "feed__time")
    return {pk: (name, unit) for pk, name, unit in found}


def rows_of(detections: Iterable[Detection], queries: Mapping[int, tuple[str, str]]) -> Iterator[PlacedRow]:
    """Each answer of one of `queries` (see `named`); its places are those of its evidence."""
    for detection in detections:
        name, unit = queries[detection.query_id]
        row: ExportedAnswerRow = {
            **detection_row(detection),
            "query_name": name,
            "start_at": iso_of_event(detection.start, unit),
            "end_at": iso_of_event(detection.end, unit),
            "found_at": iso_of_event(detection.detected_at, "ms"),
        }
        yield row, row["evidence"]
