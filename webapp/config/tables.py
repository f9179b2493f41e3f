"""Tables as files that are streamed."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from engine.model.messages import Message

DOWNLOAD_ROWS = 100_000
"""The most rows of a file."""
FORMATS = {"csv": "text/csv; charset=utf-8", "geojson": "application/geo+json", "jsonl": "application/x-ndjson"}
"""Of a table whose rows may have a place; lists are JSON in CSV."""
FORMAT = OpenApiParameter("format", str, enum=list(FORMATS))
PlacedRow = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]] | None]
"""A row with its `id` and `start`, and the evidence that gives it places."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Characters with which spreadsheets begin formulas, also in full width."""


def harmless(text: str) -> str:
    """A cell that no spreadsheet reads as a formula.

    >>> harmless("=1+1")
    "'=1+1"
    """
    return "'" + text if text.startswith(FORMULA) else text


class _Echo:
    """A file whose `write` returns the text."""

    def write(self, text: str) -> str:
        return text


def csv_download(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """A CSV file; a spreadsheet can read no cell as a formula."""
    writer = csv.writer(_Echo())

    def lines() -> Iterator[str]:
        yield writer.writerow(columns)
        for row in rows:
            yield writer.writerow([_cell(value) for value in row])

    return download(name, "text/csv; charset=utf-8", lines())


class FormatOfFile(DefaultContentNegotiation):
    """`?format=` names the file's format, not the renderer."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:
        return renderers


def format_of(request: Request) -> str:
    """The format of FORMATS that the address asks for. Raises ValidationError."""
    kind = request.query_params.get("format", "csv")
    if kind not in FORMATS:
        raise ValidationError({"format": Message("One of {known}.", known=", ".join(FORMATS))})
    return kind


def table_download(name: str, kind: str, columns: Sequence[str], rows: Iterable[PlacedRow], *, first: int | None) -> StreamingHttpResponse:
    """The rows as a file of a format of FORMATS, written while it is sent. `first`: its number of
    rows if there are more: the reader of a truncated file should know that it is not complete."""
    name = f"{name}.{kind}" if first is None else f"{name}-first-{first}.{kind}"
    if kind == "csv":
        return csv_download(name, columns, ([row[column] for column in columns] for row, _ in rows))
    return download(name, FORMATS[kind], _features(columns, rows) if kind == "geojson" else _json_lines(rows))


def points_of(evidence: Sequence[Mapping[str, Any]] | None, start: Any) -> tuple[dict[str, Any] | None, list[Any]]:
    """The places of evidence as a geometry, and the time of each; without places null and the
    start: a feed can read each feature of a file."""
    placed = [item for item in evidence or [] if item.get("x") is not None and item.get("y") is not None]
    if not placed:
        return None, [start]
    places = [[item["x"], item["y"]] for item in placed]
    geometry = {"type": "Point", "coordinates": places[0]} if len(places) == 1 else {"type": "MultiPoint", "coordinates": places}
    return geometry, [item["t"] for item in placed]


def _json_lines(rows: Iterable[PlacedRow]) -> Iterator[str]:
    for row, _ in rows:
        yield json.dumps(row, separators=(",", ":")) + "\n"


def _features(columns: Sequence[str], rows: Iterable[PlacedRow]) -> Iterator[str]:
    yield '{"type":"FeatureCollection","features":['
    for position, (row, evidence) in enumerate(rows):
        place, times = points_of(evidence, row["start"])
        properties = {name: row[name] for name in columns} | {"times": times}
        feature = {"type": "Feature", "id": row["id"], "geometry": place, "properties": properties}
        yield ("," if position else "") + json.dumps(feature, separators=(",", ":"))
    yield "]}"


def download(name: str, content_type: str, parts: Iterable[Any]) -> StreamingHttpResponse:
    """A file to download, never shown in the browser."""
    response = StreamingHttpResponse(parts, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _cell(value: Any) -> Any:
    """Numbers stay numbers, everything else becomes harmless text."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    return harmless(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
