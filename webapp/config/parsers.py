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
    """JSON whose texts and numbers can be stored and sent on, wherever they are in the document; in
    UTF-8, whatever charset the request names (RFC 8259)."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        data = stream.read()
        document = super().parse(io.BytesIO(data), media_type, {**(parser_context or {}), "encoding": "utf-8"})
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
    if _NOT_STORABLE.search(data) and (fault := _first_fault(document)) is not None:
        raise Refused([fault])


def _first_fault(document: Any) -> Fault | None:
    """Its pointer is written only once it is found: keys and documents may be long."""
    levels: list[Iterator[tuple[Any, Any]]] = [iter([("", document)])]
    steps: list[object] = []
    while levels:
        for step, value in levels[-1]:
            if (message := _fault_of(value)) is not None:
                return Fault("".join(f"/{escaped(one)}" for one in [*steps, step][1:]), message)
            if isinstance(value, dict | list):
                steps.append(step)
                levels.append(iter(value.items()) if isinstance(value, dict) else enumerate(value))
                break
        else:
            levels.pop()
            del steps[-1:]
    return None


def _fault_of(value: Any) -> Message | None:
    texts = [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
    if any("\0" in text for text in texts):
        return Message("A text may not hold the character NUL: take it out.")
    if isinstance(value, float) and not math.isfinite(value):
        return Message("This number is too large.")
    return None
