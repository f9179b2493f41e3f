"""Stored answers as files: CSV, GeoJSON, JSON lines. Written while they are sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from webapp.detections.models import Detection
from webapp.detections.selectors import detection_row

COLUMNS = ("query", "kind", "entities", "value", "start", "end", "evidence", "weight", "detected_at")
"""The specification's columns of an answer; `entities` and `evidence` are JSON in CSV."""
FORMATS = {"csv": "text/csv; charset=utf-8", "geojson": "application/geo+json", "jsonl": "application/x-ndjson"}


def table_rows(detections: Iterable[Detection]) -> Iterator[Sequence[Any]]:
    """The cells of each answer in the order of COLUMNS."""
    for detection in detections:
        row: Mapping[str, Any] = detection_row(detection)
        yield [row[name] for name in COLUMNS]


def json_lines(detections: Iterable[Detection]) -> Iterator[str]:
    """One JSON object per line."""
    for detection in detections:
        yield json.dumps(detection_row(detection), separators=(",", ":")) + "\n"


def feature_collection(detections: Iterable[Detection]) -> Iterator[str]:
    """One feature for each answer: the place of its evidence as points, null where it has none."""
    yield '{"type":"FeatureCollection","features":['
    for position, detection in enumerate(detections):
        row: Mapping[str, Any] = detection_row(detection)
        feature = {"type": "Feature", "id": row["id"], "geometry": _geometry(row["evidence"]), "properties": {name: row[name] for name in COLUMNS}}
        yield ("," if position else "") + json.dumps(feature, separators=(",", ":"))
    yield "]}"


def _geometry(evidence: Sequence[dict[str, Any]] | None) -> dict[str, Any] | None:
    places = [[item["x"], item["y"]] for item in evidence or [] if item.get("x") is not None and item.get("y") is not None]
    if not places:
        return None
    return {"type": "Point", "coordinates": places[0]} if len(places) == 1 else {"type": "MultiPoint", "coordinates": places}
