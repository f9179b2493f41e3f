"""Parts of JSON texts, as `json.dumps` writes them without spaces: for hundreds of thousands of
small ones, an encoder for each costs most."""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring_ascii as quoted

__all__ = ["number_or_null", "numbers", "quoted", "text_or_null", "texts"]


def text_or_null(text: str | None) -> str:
    return "null" if text is None else quoted(text)


def number_or_null(number: int | None) -> str:
    return "null" if number is None else str(number)


def texts(items: Sequence[str]) -> str:
    """An array of texts.

    >>> texts(["a", 'say "b"'])
    '["a","say \\\\"b\\\\""]'
    """
    return f"[{','.join(map(quoted, items))}]"


def numbers(items: Sequence[int | None]) -> str:
    """An array of numbers.

    >>> numbers([1, None])
    '[1,null]'
    """
    return f"[{','.join(map(number_or_null, items))}]"
