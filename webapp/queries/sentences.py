"""Sentences that read a query back to who wrote it: one function a family, in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.model.durations import parse_duration
from engine.model.feed import Feed, TimeUnit

Specification = Mapping[str, Any]
Sentence = Callable[[Specification, Feed], str]

OPERATORS = {"=": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least", "in": "is one of"}
_MS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))


def sentence_of(specification: Any, *, feed: Feed) -> str | None:
    """What a checked specification asks, in words; null for a family without a sentence yet."""
    family = specification.get("family") if isinstance(specification, dict) else None
    writer = SENTENCES.get(str(family))
    return None if writer is None else writer(specification, feed)


def border(specification: Specification, feed: Feed) -> str:
    """`Tells when something enters or leaves port A.`"""
    place = place_of(specification)
    moves = ", also between two reports" if specification.get("segments") else ""
    return f"Tells when {who(specification)} {place.enters} or {place.leaves}{moves}."


def transition(specification: Specification, feed: Feed) -> str:
    """`Tells when something enters port A and does not leave it within 3 minutes.`"""
    place, within = place_of(specification), duration(specification["within"], feed)
    wanted = specification.get("types") or list(STEPS)
    steps = [step(place, within) for name, step in STEPS.items() if name in wanted]
    return f"Tells when {who(specification)} {listed(steps, 'or')}."


class Place:
    """The words for entering and leaving a region or a box of values."""

    def __init__(self, enters: str, leaves: str, back: str, again: str) -> None:
        self.enters, self.leaves, self.back, self.again = enters, leaves, back, again


STEPS: Mapping[str, Callable[[Place, str], str]] = {
    "passed": lambda place, within: f"{place.enters} and {place.again} within {within}",
    "returned": lambda place, within: f"{place.leaves} and {place.back} within {within}",
    "stayed_in": lambda place, within: f"{place.enters} and stays for more than {within}",
    "stayed_out": lambda place, within: f"{place.leaves} and stays away for more than {within}",
}


def place_of(specification: Specification) -> Place:
    """The place or the values that the query watches."""
    if "region" in specification:
        name = region_name(specification["region"])
        return Place(f"enters {name}", f"leaves {name}", "comes back", "leaves again")
    values = ranges(specification.get("ranges", {}))
    return Place(f"comes to have {values}", f"no longer has {values}", "has it again", "loses it again")


def region_name(region: Any) -> str:
    """`port A`, `a circle of 300 around (10, 54)`, `an area of 5 corners`."""
    if isinstance(region, dict) and isinstance(region.get("region"), str):
        return str(region["region"])
    if isinstance(region, dict) and "radius" in region:
        x, y = region["center"]
        return f"the circle of radius {number(region['radius'])} around ({number(x)}, {number(y)})"
    if isinstance(region, dict) and region.get("type") == "MultiPolygon":
        return f"the {len(region['coordinates'])} areas drawn"
    corners = len(region["coordinates"][0]) - 1 if isinstance(region, dict) and region.get("coordinates") else 0
    return f"the area drawn with {corners} corners" if corners else "the area drawn"


def ranges(bounds: Mapping[str, Sequence[float | None]]) -> str:
    """`price from 10 up to (not including) 20`: half-open as the specification says."""
    return listed([_range(column, low, high) for column, (low, high) in bounds.items()], "and")


def _range(column: str, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return f"any {column}"
    if low is None:
        return f"{column} below {number(high)}"
    if high is None:
        return f"{column} of at least {number(low)}"
    return f"{column} from {number(low)} to below {number(high)}"


def who(specification: Specification) -> str:
    """`something`, or `something whose speed is above 3`."""
    conditions = [condition(*triple) for triple in specification.get("where") or []]
    return "something" if not conditions else f"something whose {listed(conditions, 'and')}"


def condition(column: str, operator: str, constant: Any) -> str:
    """One condition of `where`."""
    value = listed([constant_text(item) for item in constant], "or") if operator == "in" else constant_text(constant)
    return f"{column} {OPERATORS.get(operator, operator)} {value}"


def constant_text(constant: Any) -> str:
    """A constant as people write it."""
    if isinstance(constant, bool):
        return "true" if constant else "false"
    return number(constant) if isinstance(constant, int | float) else str(constant)


def duration(value: Any, feed: Feed) -> str:
    """`3 minutes` from `PT3M` or from 180000 on a feed of milliseconds; `50 ticks` on one of ticks.

    >>> from engine.model.feed import Crs
    >>> duration(5_400_000, Feed("f", Crs.PLANAR, TimeUnit.MS))
    '1 hour 30 minutes'
    """
    if isinstance(value, str):
        value = parse_duration(value)
    if feed.time != TimeUnit.MS:
        return f"{number(value)} tick{'' if value == 1 else 's'}"
    rest, parts = int(value), []
    for unit, size in _MS:
        count, rest = divmod(rest, size)
        parts.append((unit, count))
    words = [f"{count} {unit}{'' if count == 1 else 's'}" for unit, count in parts if count]
    if rest:
        return f"{number(value)} ms"
    return " ".join(words) or "0 seconds"


def listed(items: Sequence[str], word: str) -> str:
    """`a, b or c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}" if items else ""


def number(value: Any) -> str:
    """A number without a needless fraction."""
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


SENTENCES: Mapping[str, Sentence] = {"border": border, "transition": transition}
"""Family to the function that writes its sentence; a new family adds its line here."""
