"""Sentences of the family `constraint`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext, gettext_lazy, ngettext

from engine.model.feed import Feed
from webapp.queries.sentences.words import (
    Specification,
    compared,
    condition,
    constant_text,
    counting,
    distance,
    duration,
    listed,
    region_name,
    span,
    span_of,
)

KINDS = {"match": gettext_lazy("Match")}


def constraint(specification: Specification, feed: Feed) -> str:
    """`Finds 2 different events: low (pressure is below 1006) and warm (any), such that warm comes
    at most 12 hours after low.`"""
    document = _document(specification)
    variables = document["variables"]
    conditions = [text for one in document.get("constraints", []) for text in _constraint(one, list(variables), feed)]
    such = gettext(", such that %(asked)s") % {"asked": listed(conditions, "and")} if conditions else ""
    first = gettext(" Each event that completes a match is reported once.") if document.get("report") == "first" else ""
    finds = ngettext("Finds %(count)s event: %(events)s%(such)s.", "Finds %(count)s different events: %(events)s%(such)s.", len(variables))
    return finds % {"count": len(variables), "events": _variables(variables), "such": such} + first + counting(document)


def _document(specification: Specification) -> Specification:
    """The document, also of one that is written as a trigger's text."""
    if "trigger" not in specification:
        return specification
    from engine.constraint_queries.trigger import translate

    return {**specification, **translate(specification["trigger"]).document}


def _variables(variables: Mapping[str, Any]) -> str:
    """Variables with the same filter are described together."""
    groups: dict[str, list[str]] = {}
    for name, entry in variables.items():
        groups.setdefault(listed([condition(*triple) for triple in entry.get("where") or []], "and"), []).append(name)
    each, anything = gettext("each: %(conditions)s"), gettext("any")
    filters = {phrase: each % {"conditions": phrase} if len(names) > 1 else phrase for phrase, names in groups.items()}
    return listed([f"{listed(names, 'and')} ({filters[phrase] if phrase else anything})" for phrase, names in groups.items()], "and")


def _constraint(one: Mapping[str, Any], names: Sequence[str], feed: Feed) -> list[str]:
    between = one["between"]
    conditions = []
    if "dt" in one:
        low, high = one["dt"]
        conditions.append(_times(between, names, low, high, feed))
    if "distance" in one:
        conditions.append(gettext("%(events)s are %(far)s apart") % {"events": _all(between, names), "far": _apart(one["distance"], feed)})
    if "inside" in one:
        lie = ngettext("%(events)s lies in %(region)s", "%(events)s lie in %(region)s", len(between))
        conditions.append(lie % {"events": listed(between, "and"), "region": region_name(one["inside"], feed)})
    return conditions + [_comparison(left, op, right) for left, op, right in one.get("compare", [])]


def _all(between: Sequence[str], names: Sequence[str]) -> str:
    if len(between) == 2:
        return listed(between, "and")
    if len(between) == len(names):
        return gettext("any two of them")
    return gettext("any two of %(events)s") % {"events": listed(between, "and")}


def _times(between: Sequence[str], names: Sequence[str], low: Any, high: Any, feed: Feed) -> str:
    """`dt` is the later named event's time minus the earlier named one's."""
    least, most = span(low), span(high)
    if least is not None and most is not None and least == -most:
        return gettext("%(events)s are at most %(span)s apart in time") % {"events": _all(between, names), "span": duration(high, feed)}
    later = between[1] if len(between) == 2 else gettext("each of %(events)s") % {"events": listed(between, "and")}
    other = between[0] if len(between) == 2 else gettext("those named before it")
    return gettext("%(later)s comes %(after)s %(other)s") % {"later": later, "after": _after(least, most, feed), "other": other}


def _after(least: Any, most: Any, feed: Feed) -> str:
    """`at most 5 minutes after`; `least` and `most` are null where there is no bound."""
    if least is None and most is None:
        return gettext("before or after")
    if least == most == 0:
        return gettext("at the time of")
    if least is not None and most is not None and least < 0 < most:
        return gettext("from %(least)s before to %(most)s after") % {"least": span_of(-least, feed), "most": span_of(most, feed)}
    if (least is not None and least >= 0) or (least is None and most >= 0):
        return _bounds(0 if least is None else least, most, feed, is_after=True)
    return _bounds(0 if most is None else -most, None if least is None else -least, feed, is_after=False)


def _bounds(least: Any, most: Any, feed: Feed, *, is_after: bool) -> str:
    """`least` and `most` (null: without end) are lengths of time to one side."""
    values = {"least": duration(least, feed), "most": duration(0 if most is None else most, feed)}
    if most is None:
        text = gettext("at least %(least)s after") if is_after else gettext("at least %(least)s before")
    elif least == most:
        text = gettext("%(least)s after") if is_after else gettext("%(least)s before")
    elif least == 0:
        text = gettext("at most %(most)s after") if is_after else gettext("at most %(most)s before")
    else:
        text = gettext("%(least)s to %(most)s after") if is_after else gettext("%(least)s to %(most)s before")
    return text % values


def _apart(bounds: Mapping[str, Any], feed: Feed) -> str:
    strict = bounds.get("open", False)
    least = gettext("more than %(far)s") if strict else gettext("at least %(far)s")
    most = gettext("less than %(far)s") if strict else gettext("at most %(far)s")
    bounded = [(words, bounds[end]) for words, end in ((least, "min"), (most, "max")) if bounds.get(end) is not None]
    return listed([words % {"far": distance(far, feed)} for words, far in bounded], "and")


def _comparison(left: Any, op: str, right: Any) -> str:
    value = listed([constant_text(item) for item in right], "or") if isinstance(right, list) else constant_text(right)
    return compared(constant_text(left), op, value)
