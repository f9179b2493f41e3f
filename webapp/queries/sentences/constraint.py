"""Sentences of the family `constraint`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.model.feed import Feed
from webapp.queries.sentences.words import (
    OPERATORS,
    Specification,
    condition,
    constant_text,
    counting,
    distance,
    duration,
    listed,
    plural,
    region_name,
    span,
)


def constraint(specification: Specification, feed: Feed) -> str:
    """`Finds 2 different events: low (pressure is below 1006) and warm (any), such that warm comes at most 12 hours after low.`"""
    document = _document(specification)
    variables = document["variables"]
    asked = [text for one in document.get("constraints", []) for text in _constraint(one, list(variables), feed)]
    such = f", such that {listed(asked, 'and')}" if asked else ""
    first = " Each event that completes a match is reported once." if document.get("report") == "first" else ""
    return f"Finds {plural(len(variables), 'event', 'different events')}: {_variables(variables)}{such}.{first}{counting(document)}"


def _document(specification: Specification) -> Specification:
    """The document, also of one that is written as a trigger's text."""
    if "trigger" not in specification:
        return specification
    from engine.constraint_queries.trigger import translate

    return {**specification, **translate(specification["trigger"]).document}


def _variables(variables: Mapping[str, Any]) -> str:
    """Variables with the same filter are said together."""
    groups: dict[str, list[str]] = {}
    for name, entry in variables.items():
        phrase = listed([condition(*triple) for triple in entry.get("where") or []], "and") or "any"
        groups.setdefault(phrase, []).append(name)
    return listed(
        [f"{listed(names, 'and')} ({'each: ' if len(names) > 1 and phrase != 'any' else ''}{phrase})" for phrase, names in groups.items()], "and"
    )


def _constraint(one: Mapping[str, Any], names: Sequence[str], feed: Feed) -> list[str]:
    between = one["between"]
    asked = []
    if "dt" in one:
        low, high = one["dt"]
        asked.append(_times(between, names, low, high, feed))
    if "distance" in one:
        asked.append(f"{_all(between, names)} are {_apart(one['distance'], feed)} apart")
    if "inside" in one:
        asked.append(f"{listed(between, 'and')} {'lies' if len(between) == 1 else 'lie'} in {region_name(one['inside'])}")
    return asked + [_comparison(left, op, right) for left, op, right in one.get("compare", [])]


def _all(between: Sequence[str], names: Sequence[str]) -> str:
    if len(between) == 2:
        return listed(between, "and")
    return "any two of them" if len(between) == len(names) else f"any two of {listed(between, 'and')}"


def _times(between: Sequence[str], names: Sequence[str], low: Any, high: Any, feed: Feed) -> str:
    """`dt` is the later named event's time minus the earlier named one's."""
    least, most = span(low), span(high)
    if least is not None and most is not None and least == -most:
        return f"{_all(between, names)} are at most {duration(high, feed)} apart in time"
    later = between[1] if len(between) == 2 else f"each of {listed(between, 'and')}"
    other = between[0] if len(between) == 2 else "those named before it"
    return f"{later} comes {_after(least, most, feed)} {other}"


def _after(least: Any, most: Any, feed: Feed) -> str:
    if least is None and most is None:
        return "before or after"
    if least is None:
        return f"at most {duration(most, feed)} after" if most >= 0 else f"at least {duration(-most, feed)} before"
    if most is None:
        return f"at least {duration(least, feed)} after" if least >= 0 else f"at most {duration(-least, feed)} before"
    if least == most:
        return "at the time of" if least == 0 else f"{duration(abs(least), feed)} {'after' if least > 0 else 'before'}"
    if least >= 0:
        return f"{'at most' if least == 0 else duration(least, feed) + ' to'} {duration(most, feed)} after"
    if most <= 0:
        return f"{'at most' if most == 0 else duration(-most, feed) + ' to'} {duration(-least, feed)} before"
    return f"from {duration(-least, feed)} before to {duration(most, feed)} after"


def _apart(bounds: Mapping[str, Any], feed: Feed) -> str:
    strict = bounds.get("open", False)
    least = f"{'more than' if strict else 'at least'} {distance(bounds['min'], feed)}" if bounds.get("min") is not None else ""
    most = f"{'less than' if strict else 'at most'} {distance(bounds['max'], feed)}" if bounds.get("max") is not None else ""
    return listed([text for text in (least, most) if text], "and")


def _comparison(left: Any, op: str, right: Any) -> str:
    value = listed([constant_text(item) for item in right], "or") if isinstance(right, list) else constant_text(right)
    return f"{constant_text(left)} {OPERATORS.get(op, op)} {value}"
