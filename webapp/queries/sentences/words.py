"""Phrases that the sentences of all families share, in the reader's language: regions, values,
conditions, lengths of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext, npgettext

from engine.model.durations import parse_duration
from engine.model.feed import Crs, Feed, TimeUnit

Specification = Mapping[str, Any]
OPERATORS: Mapping[str, str | Promise] = {
    "=": gettext_lazy("%(left)s is %(right)s"),
    "!=": gettext_lazy("%(left)s is not %(right)s"),
    "<": gettext_lazy("%(left)s is below %(right)s"),
    "<=": gettext_lazy("%(left)s is at most %(right)s"),
    ">": gettext_lazy("%(left)s is above %(right)s"),
    ">=": gettext_lazy("%(left)s is at least %(right)s"),
    "in": gettext_lazy("%(left)s is one of %(right)s"),
}
_MS = (86_400_000, 3_600_000, 60_000, 1_000)
KILOMETRE = 1_000.0


def region_name(region: Any, feed: Feed) -> str:
    """`port A`, `the circle of radius 300 m around (10, 54)`, `the area drawn with 5 corners`."""
    if isinstance(region, dict) and isinstance(region.get("region"), str):
        return str(region["region"])
    if isinstance(region, dict) and "radius" in region:
        x, y = region["center"]
        values = {"radius": distance(region["radius"], feed), "x": number(x), "y": number(y)}
        return gettext("the circle of radius %(radius)s around (%(x)s, %(y)s)") % values
    if isinstance(region, dict) and region.get("type") == "MultiPolygon":
        return gettext("the %(count)s areas drawn") % {"count": len(region["coordinates"])}
    corners = len(region["coordinates"][0]) - 1 if isinstance(region, dict) and region.get("coordinates") else 0
    return gettext("the area drawn with %(count)s corners") % {"count": corners} if corners else gettext("the area drawn")


def ranges(bounds: Mapping[str, Sequence[float | None]]) -> str:
    """`price from 10 up to (not including) 20`: half-open, as in the specification."""
    return listed([_range(column, low, high) for column, (low, high) in bounds.items()], "and")


def _range(column: str, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return gettext("any %(column)s") % {"column": column}
    values = {"column": column, "low": number(low), "high": number(high)}
    if low is None:
        return gettext("%(column)s below %(high)s") % values
    if high is None:
        return gettext("%(column)s of at least %(low)s") % values
    return gettext("%(column)s from %(low)s to below %(high)s") % values


def condition(column: str, operator: str, constant: Any) -> str:
    """One condition of `where`."""
    value = listed([constant_text(item) for item in constant], "or") if operator == "in" else constant_text(constant)
    return compared(column, operator, value)


def compared(left: str, operator: str, right: str) -> str:
    """`speed is above 3`: the comparison of two texts."""
    words = OPERATORS.get(operator)
    return f"{left} {operator} {right}" if words is None else str(words) % {"left": left, "right": right}


def constant_text(constant: Any) -> str:
    """A constant in readable form."""
    if isinstance(constant, bool):
        return gettext("true") if constant else gettext("false")
    return number(constant) if isinstance(constant, int | float) else str(constant)


def duration(value: Any, feed: Feed) -> str:
    """`3 minutes` from `PT3M` or from 180000 on a feed of milliseconds; `50 ticks` on one of ticks.

    >>> from engine.model.feed import Crs
    >>> duration(5_400_000, Feed("f", Crs.PLANAR, TimeUnit.MS))
    '1 hour 30 minutes'
    """
    return " ".join(_units(value, feed, ngettext("%(count)s day", "%(count)s days", _days(value, feed))))


def span_of(value: Any, feed: Feed) -> str:
    """`duration` as it is written after a preposition (`within 3 days`): some
    languages have another form there."""
    return " ".join(_units(value, feed, npgettext("after a preposition", "%(count)s day", "%(count)s days", _days(value, feed))))


def _days(value: Any, feed: Feed) -> int:
    return int(span(value)) // _MS[0] if feed.time == TimeUnit.MS else 0


def _units(value: Any, feed: Feed, days: str) -> list[str]:
    """The parts of a length of time; `days` is the text for their number."""
    value = span(value)
    if feed.time != TimeUnit.MS:
        return [ngettext("%(count)s tick", "%(count)s ticks", 1 if value == 1 else 2) % {"count": number(value)}]
    rest, counts = int(value), []
    for size in _MS:
        count, rest = divmod(rest, size)
        counts.append(count)
    if rest:
        return [f"{number(value)} ms"]
    words = (
        days,
        ngettext("%(count)s hour", "%(count)s hours", counts[1]),
        ngettext("%(count)s minute", "%(count)s minutes", counts[2]),
        ngettext("%(count)s second", "%(count)s seconds", counts[3]),
    )
    shown = [text % {"count": count} for text, count in zip(words, counts, strict=True) if count]
    return shown or [ngettext("%(count)s second", "%(count)s seconds", 0) % {"count": 0}]


def last(value: Any, feed: Feed) -> str:
    """`last hour`, `last 90 minutes`.

    >>> last("PT1H", Feed("f", Crs.PLANAR, TimeUnit.MS))
    'last hour'
    """
    phrase = span_of(value, feed)
    if phrase.startswith("1 ") and phrase.count(" ") == 1:
        # `last hour` in English; a language that inflects "last" translates `last 1 hour`
        # separately.
        return gettext("last %(unit)s") % {"unit": phrase.removeprefix("1 "), "span": phrase}
    return gettext("last %(span)s") % {"span": phrase}


def listed(items: Sequence[str], word: Literal["and", "or"]) -> str:
    """`a, b or c`."""
    if len(items) < 2:
        return "".join(items)
    values = {"first": ", ".join(items[:-1]), "last": items[-1]}
    return (gettext("%(first)s and %(last)s") if word == "and" else gettext("%(first)s or %(last)s")) % values


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
    """The end of a sentence for the specification's own `where`."""
    phrase = conditions(specification.get("where"))
    return gettext(" Only events count whose %(conditions)s.") % {"conditions": phrase} if phrase else ""


def something(where: Any) -> str:
    """`something`, or `something whose speed is above 3`."""
    phrase = conditions(where)
    return gettext("something whose %(conditions)s") % {"conditions": phrase} if phrase else gettext("something")


def lasting(specification: Specification, feed: Feed) -> str:
    """` for 10 minutes or longer`; empty where it need not last."""
    if not specification.get("lasting"):
        return ""
    return gettext(" for %(span)s or longer") % {"span": duration(specification["lasting"], feed)}
