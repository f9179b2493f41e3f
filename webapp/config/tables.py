"""Tables as files that are streamed."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.http import StreamingHttpResponse

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters with which spreadsheets begin formulas."""


def harmless(text: str) -> str:
    """A cell that no spreadsheet takes for a formula.

    >>> harmless("=1+1")
    "'=1+1"
    """
    return "'" + text if text.startswith(FORMULA) else text


class _Echo:
    """A file whose `write` returns the text."""

    def write(self, text: str) -> str:
        return text


def csv_download(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """A CSV file; no cell can be taken for a formula by a spreadsheet."""
    writer = csv.writer(_Echo())

    def lines() -> Iterator[str]:
        yield writer.writerow(columns)
        for row in rows:
            yield writer.writerow([_cell(value) for value in row])

    return download(name, "text/csv; charset=utf-8", lines())


def download(name: str, content_type: str, parts: Iterable[Any]) -> StreamingHttpResponse:
    """A file to be kept, never shown in the browser."""
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
    return harmless(value if isinstance(value, str) else json.dumps(value))
