"""JSON bodies of requests, as they are taken everywhere."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from engine.model.messages import Message

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half a character, as JSON writes it; alone, or before its other half."""


class Json(JSONParser):
    """JSON with valid texts only: half a character can neither be stored nor sent on,
    wherever it is in the document."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        data = stream.read()
        document = super().parse(io.BytesIO(data), media_type, parser_context)
        if _SURROGATE.search(data):
            try:
                json.dumps(document, ensure_ascii=False).encode()
            except UnicodeEncodeError as error:
                raise ParseError(
                    Message("A text has half a character (a lone surrogate): U+{code}.", code=f"{ord(error.object[error.start]):04X}")
                ) from error
        return document
