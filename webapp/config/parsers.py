"""JSON bodies of requests, with the same rules everywhere."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from engine.model.faults import Fault, Refused
from engine.model.feed import escaped
from engine.model.messages import Message

MOST_DIGITS = 400
"""A whole number with more digits does not fit a double."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half a character, as JSON writes it; alone, or before its other half."""
_NOT_STORABLE = re.compile(rb"\\u0000|[eE]\+?[0-9]{3}|[0-9]{200}|NaN|Infinity")
"""The text of a NUL, the digits that every number too large for a double has, and constants that
Python reads but JSON does not have."""


class Json(JSONParser):
    """JSON whose texts and numbers can be stored and sent on, wherever they are in the document; in
    UTF-8, whatever charset the request names (RFC 8259)."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        return read_json(stream.read())


def read_json(data: bytes) -> Any:
    """The document. Raises ParseError for what is no JSON and for half a character, Refused with
    its place for a key that an object has twice, for a NUL, and for what is no finite number."""
    twice: list[tuple[dict[str, Any], str]] = []
    try:
        document = _read(data, twice)
    except ValueError as error:
        raise ParseError(Message("This is not JSON: {error}", error=error)) from error
    if twice:
        # The last one contains the others, or is next to them.
        members, name = twice[-1]
        pointer = next(pointer for pointer, value in _walk(document) if value is members)
        raise Refused([Fault(f"{pointer()}/{escaped(name)}", Message("The key {name} is here twice: keep one of them.", name=repr(name)))])
    check_values(document, data)
    return document


def _read(data: bytes, twice: list[tuple[dict[str, Any], str]]) -> Any:
    def members_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            twice.append((members, next(name for name, many in Counter(name for name, _ in pairs).items() if many > 1)))
        return members

    text = data.decode()
    try:
        return json.loads(text, object_pairs_hook=members_of)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # A whole number has more digits than Python reads: it is found where it is, as too large.
        twice.clear()
        return json.loads(text, object_pairs_hook=members_of, parse_int=lambda digits: math.inf if len(digits) > MOST_DIGITS else int(digits))


def check_values(document: Any, data: bytes) -> None:
    """Raises ParseError for half a character, Refused for a NUL or what is no finite number in the
    document. `data`: its text."""
    if _SURROGATE.search(data):
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ParseError(
                Message("A text has half a character (a lone surrogate): U+{code}.", code=f"{ord(error.object[error.start]):04X}")
            ) from error
    if _NOT_STORABLE.search(data):
        for pointer, value in _walk(document):
            if (message := _fault_of(value)) is not None:
                raise Refused([Fault(pointer(), message)])


def _walk(document: Any) -> Iterator[tuple[Callable[[], str], Any]]:
    """Each value of the document, with a function that writes its pointer: pointers are made only
    when needed, because keys and documents may be long."""
    steps: list[object] = []
    levels: list[Iterator[tuple[Any, Any]]] = [iter([("", document)])]
    while levels:
        for step, value in levels[-1]:
            yield partial(_pointer, steps, step), value
            if isinstance(value, dict | list):
                steps.append(step)
                levels.append(iter(value.items()) if isinstance(value, dict) else enumerate(value))
                break
        else:
            levels.pop()
            del steps[-1:]


def _pointer(steps: list[object], step: object) -> str:
    """Of a value below these steps."""
    return "".join(f"/{escaped(one)}" for one in [*steps, step][1:])


def _fault_of(value: Any) -> Message | None:
    texts = [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
    if any("\0" in text for text in texts):
        return Message("A text must not contain the character NUL: remove it.")
    if isinstance(value, float) and math.isnan(value):
        return Message("NaN is not a JSON number: leave it out, or write null.")
    if isinstance(value, float) and math.isinf(value):
        return Message("This number is too large.")
    return None
