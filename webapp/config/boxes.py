"""Boxes and integers in parameters of addresses."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rest_framework.exceptions import ValidationError

from engine.model.messages import Message

Box = tuple[float, float, float, float]


def box_from(text: str) -> Box:
    """`w,s,e,n` as numbers. Raises ValidationError."""
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError as error:
        raise ValidationError({"bbox": Message("Four numbers: west,south,east,north.")}) from error
    if not all(map(math.isfinite, (west, south, east, north))) or west > east or south > north:
        raise ValidationError({"bbox": Message("West is at most east, south at most north.")})
    return west, south, east, north


def integers(texts: Iterable[str], name: str) -> list[int]:
    """Whole numbers, given one by one or separated by commas. Raises ValidationError."""
    return [number for text in texts for part in text.split(",") if (number := whole(part, name)) is not None]


def whole(text: str | None, name: str) -> int | None:
    """A 64-bit integer, null if the parameter is missing. Raises ValidationError."""
    if text is None or text == "":
        return None
    try:
        value = int(text)
    except ValueError as error:
        raise ValidationError({name: Message("A whole number.")}) from error
    if not -(2**63) <= value < 2**63 - 1:
        raise ValidationError({name: Message("The number is too large.")})
    return value


def whole_between(text: str | None, name: str, least: int, most: int, *, usual: int) -> int:
    """A whole number from `least` to `most`, `usual` if the parameter is missing. Raises
    ValidationError."""
    value = whole(text, name)
    if value is None:
        return usual
    if not least <= value <= most:
        raise ValidationError({name: Message("From {least} to {most:,}.", least=least, most=most)})
    return value


def page_size(text: str | None, usual: int, most: int) -> int:
    """The length of a page: `usual` if the parameter is missing, and never above `most`. Raises
    ValidationError."""
    size = whole(text, "page_size")
    if size is not None and size < 1:
        raise ValidationError({"page_size": Message("At least 1.")})
    return min(size or usual, most)
