"""Messages for users that can be translated: a text with named placeholders, and their values.

A Message is the English sentence, and a `str` like any other for logs, files and the database. The
web application looks the text up in the reader's language before it fills in the values. Texts are
literals, so that the tool for translators finds them: no f-strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from numbers import Integral
from typing import Any

PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)(:,)?\}")
_DEEPEST = 20
"""The greatest depth of messages within messages."""
Value = str | int | float
"""A value that is a Message is translated, too."""


class Message(str):
    """`text` with `{name}` in the place of that value; `{name:,}` for a number with thousands
    separators. Other braces are literal.

    >>> fault = Message("has more than {most:,} vertices; simplify it", most=1200)
    >>> fault
    'has more than 1,200 vertices; simplify it'
    >>> fault.text, fault.values["most"]
    ('has more than {most:,} vertices; simplify it', 1200)
    """

    text: str
    values: Mapping[str, Value]

    def __new__(cls, text: str, /, **values: object) -> Message:
        plain = {name: _plain(value) for name, value in values.items()}
        message = super().__new__(cls, filled(text, plain))
        message.text, message.values = text, plain
        return message

    @classmethod
    def of(cls, text: str, values: Mapping[str, object]) -> Message:
        """The message of a text that is a literal elsewhere."""
        return cls(text, **values)

    def __str__(self) -> str:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return message_from_json, (self.to_json(),)

    def to_json(self) -> list[Any]:
        """The form that `message_from_json` reads."""
        return [self.text, {name: value.to_json() if isinstance(value, Message) else value for name, value in self.values.items()}]


def filled(text: str, values: Mapping[str, Value], grouped: Callable[[int | float], str] = "{:,}".format) -> str:
    """`text` with the values filled in. Not `str.format`: a text from a child process must not be
    able to use format syntax."""

    def value_of(place: re.Match[str]) -> str:
        value = values.get(place[1], place[0])
        return grouped(value) if place[2] and isinstance(value, int | float) else str(value)

    return PLACE.sub(value_of, text)


def untranslated(words: object) -> Message:
    """A message that is shown as it is in every language: words of a library
    or of the operating system."""
    return Message.of("{words}", {"words": words})


def message_of(error: BaseException) -> Message:
    """The message of an error."""
    message = error.args[0] if error.args else None
    return message if isinstance(message, Message) else untranslated(error)


def message_from_json(written: Any, depth: int = 0) -> Message:
    """The message that `to_json` wrote. Raises ValueError for anything else: it may come from a
    process that is not trusted."""
    if depth > _DEEPEST or not isinstance(written, list) or len(written) != 2:
        raise ValueError("no message")
    text, values = written
    if not isinstance(text, str) or not isinstance(values, dict):
        raise ValueError("no message")
    return Message.of(text, {name: message_from_json(value, depth + 1) if isinstance(value, list) else value for name, value in values.items()})


def either(names: Iterable[object]) -> Message:
    """All of the names, joined by "or".

    >>> either(["int", "float", "string"])
    'int or float or string'
    """
    messages: list[Message] = [name if isinstance(name, Message) else untranslated(name) for name in names]
    return reduce(lambda first, last: Message("{first} or {last}", first=first, last=last), messages) if messages else untranslated("")


def all_of(parts: Sequence[Message]) -> Message:
    """All of the parts, joined by "and"."""
    return reduce(lambda first, last: Message("{first} and {last}", first=first, last=last), parts) if parts else untranslated("")


def listed(names: Iterable[object], nothing: Message | None = None) -> Message:
    """The names with commas between them; `nothing` (by default "none") if there are no names."""
    words = ", ".join(map(str, names))
    return untranslated(words) if words else nothing or Message("none")


def _plain(value: object) -> Value:
    if isinstance(value, Message):
        return value
    if isinstance(value, bool) or not isinstance(value, Integral | float):
        return str(value)
    return value if isinstance(value, float) else int(value)
