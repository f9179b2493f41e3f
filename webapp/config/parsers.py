"""JSON bodies of requests, as they are taken everywhere."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from engine.model.faults import Fault, Refused
from engine.model.feed import escaped
from engine.model.messages import Message

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half a character, as JSON writes it; alone, or before its other half."""
_NOT_STORABLE = re.compile(rb"\\u0000|[eE]\+?[0-9]{3}|[0-9]{200}")
"""What a NUL looks like, and what every number that is too large for a double has."""


class Json(JSONParser):
    """JSON whose texts and numbers can be stored and sent on, wherever they are in the document."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        data = stream.read()
        document = super().parse(io.BytesIO(data), media_type, parser_context)
        check_values(document, data)
        return document


def check_values(document: Any, data: bytes) -> None:
    """Raises ParseError for half a character, Refused for a NUL or an infinite number in the
    document. `data`: its text."""
    if _SURROGATE.search(data):
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ParseError(
                Message("A text has half a character (a lone surrogate): U+{code}.", code=f"{ord(error.object[error.start]):04X}")
            ) from error
    if _NOT_STORABLE.search(data) and (fault := next(_faults(document, ""), None)) is not None:
        raise Refused([fault])


def _faults(value: Any, pointer: str) -> Iterator[Fault]:
    if isinstance(value, str):
        if "\0" in value:
            yield Fault(pointer, Message("A text may not hold a NUL character."))
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield Fault(pointer, Message("This number is too large."))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _faults(key, pointer)
            yield from _faults(inner, f"{pointer}/{escaped(key)}")
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _faults(inner, f"{pointer}/{position}")
