"""Sentences of the family `composite`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, counting, duration, listed, region_name

OPERATORS = ("and", "or", "sequence", "interval", "absence")


def composite(specification: Specification, feed: Feed) -> str:
    """`Tells when SHELF, then EXIT with no CHECKOUT in between, all of one entity and within 10 minutes.`"""
    tree = _tree(specification["pattern"])
    entity = "all of one entity and " if specification.get("per") == "entity" else ""
    meanings = listed([f"{name} means {_primitive(entry)}" for name, entry in specification["primitives"].items()], "and")
    return f"Tells of {_told(tree, feed)}, {entity}within {duration(specification['within'], feed)}. {meanings}.{counting(specification)}"


def _tree(pattern: Any) -> Any:
    """The JSON tree of a pattern, also of one that is written as text."""
    if not isinstance(pattern, str):
        return pattern
    from engine.complex_events.text import translate

    return translate(pattern).tree


def _primitive(entry: Mapping[str, Any]) -> str:
    told = [conditions(entry.get("where"))]
    told += [f"{column} begins with {text}" for column, text in (entry.get("prefix") or {}).items()]
    told += [f"{word} {region_name(entry[key])}" for key, word in (("inside", "in"), ("outside", "outside")) if key in entry]
    return listed([text for text in told if text], "and") or "any event"


def _told(tree: Any, feed: Feed) -> str:
    """A pattern's JSON tree (engine.complex_events.pattern) in words."""
    if not isinstance(tree, dict):
        return str(tree)
    kind = next(key for key in OPERATORS if key in tree)
    first, second = (_part(part, feed) for part in tree[kind])
    if kind == "absence":
        return f"{first}, then no {second} for {duration(tree['span'], feed)}"
    if kind == "sequence":
        without = f" with no {_part(tree['without'], feed)} in between" if "without" in tree else ""
        return f"{first}, then{_bounds(tree.get('bounds'), feed)} {second}{without}"
    if kind == "interval":
        return f"{first} and {second} within {duration(tree['span'], feed)} of each other"
    return f"{first} {kind} {second}" if kind == "or" else f"{first} and {second} in any order"


def _part(tree: Any, feed: Feed) -> str:
    told = _told(tree, feed)
    return f"({told})" if isinstance(tree, dict) else told


def _bounds(bounds: Any, feed: Feed) -> str:
    if not bounds:
        return ""
    low, high = bounds
    least = "" if low in (None, 0) else duration(low, feed)
    most = "" if high is None else duration(high, feed)
    if least and most:
        return f" {least} to {most} later"
    return f" within {most}" if most else f" at least {least} later" if least else ""
