"""What the sentences of all families are made of: regions, values, conditions, lengths of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.model.durations import parse_duration
from engine.model.feed import Crs, Feed, TimeUnit

Specification = Mapping[str, Any]
OPERATORS = {"=": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least", "in": "is one of"}
_MS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))
KILOMETRE = 1_000.0


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


def last(value: Any, feed: Feed) -> str:
    """`last hour`, `last 90 minutes`.

    >>> last("PT1H", Feed("f", Crs.PLANAR, TimeUnit.MS))
    'last hour'
    """
    phrase = duration(value, feed)
    return f"last {phrase.removeprefix('1 ') if phrase.count(' ') == 1 else phrase}"


def listed(items: Sequence[str], word: str) -> str:
    """`a, b or c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}" if items else ""


def number(value: Any) -> str:
    """A number without a needless fraction."""
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def span(value: Any) -> Any:
    """A duration as a number in the feed's unit.

    >>> span("PT1M"), span(5)
    (60000, 5)
    """
    return parse_duration(value) if isinstance(value, str) else value


def distance(value: float, feed: Feed) -> str:
    """`300 m`, `5.5 km`; in the plan's own unit on a planar feed.

    >>> distance(5500, Feed("f", Crs.GEOGRAPHIC, TimeUnit.MS))
    '5.5 km'
    """
    if feed.crs is not Crs.GEOGRAPHIC:
        return number(value)
    return f"{number(value / KILOMETRE)} km" if value >= KILOMETRE else f"{number(value)} m"


def conditions(triples: Any) -> str:
    """`sst is above 28 and wind is below 2`; empty without any."""
    return listed([condition(*triple) for triple in triples or []], "and")


def counting(specification: Specification) -> str:
    """What stands at a sentence's end for the specification's own `where`."""
    phrase = conditions(specification.get("where"))
    return f" Only events count whose {phrase}." if phrase else ""


def plural(count: int, one: str, many: str) -> str:
    """`1 event`, `3 events`."""
    return f"{count} {one if count == 1 else many}"
