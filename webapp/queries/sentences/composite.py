"""Sentences of the family `composite`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, counting, duration, listed, region_name

OPERATORS = ("and", "or", "sequence", "interval", "absence", "before", "around")


def composite(specification: Specification, feed: Feed) -> str:
    """`Tells when SHELF, then EXIT with no CHECKOUT in between, all of one entity and within 10 minutes.`"""
    tree = _tree(specification["pattern"])
    entity = "all of one entity and " if specification.get("per") == "entity" else ""
    meanings = listed([f"{name} means {_primitive(entry)}" for name, entry in specification["primitives"].items()], "and")
    return f"Tells of {pattern_words(tree, feed)}, {entity}within {duration(specification['within'], feed)}. {meanings}.{counting(specification)}"


def _tree(pattern: Any) -> Any:
    """The JSON tree of a pattern, also of one that is written as text."""
    if not isinstance(pattern, str):
        return pattern
    from engine.complex_events.text import translate

    return translate(pattern).tree


def _primitive(entry: Mapping[str, Any]) -> str:
    parts = [conditions(entry.get("where"))]
    parts += [f"{column} begins with {text}" for column, text in (entry.get("prefix") or {}).items()]
    parts += [f"{word} {region_name(entry[key])}" for key, word in (("inside", "in"), ("outside", "outside")) if key in entry]
    return listed([text for text in parts if text], "and") or "any event"


def pattern_words(tree: Any, feed: Feed) -> str:
    """A pattern's JSON tree (engine.complex_events.pattern) in words."""
    if not isinstance(tree, dict):
        return str(tree)
    kind = next(key for key in OPERATORS if key in tree)
    if kind in ("and", "or"):
        phrase = listed([_part(part, feed) for part in _operands(tree, kind)], kind)
        return phrase if kind == "or" else f"{phrase} in any order"
    first, *others = tree[kind]
    # What comes first comes first: brackets about it say nothing.
    before = pattern_words(first, feed) if _is_chain(first) else _part(first, feed)
    parts = [_part(part, feed) for part in others]
    if kind == "before":
        return f"{parts[0]} with no {_part(first, feed)} in the {duration(tree['span'], feed)} before"
    if kind == "around":
        span = duration(tree["span"], feed)
        return f"{before} with no {parts[0]} from {span} before until {span} after"
    if kind == "absence":
        return f"{before}, then no {parts[0]} for {duration(tree['span'], feed)}"
    if kind == "interval":
        return f"{_part(first, feed)} and {parts[0]} within {duration(tree['span'], feed)} of each other"
    without = f" with no {_part(tree['without'], feed)} in between" if "without" in tree else ""
    return "".join([before, *(f", then{_bounds(tree.get('bounds'), feed)} {part}" for part in parts), without])


def _operands(tree: Any, kind: str) -> list[Any]:
    """Those of AND or OR that are joined from the left are said as one list."""
    if not isinstance(tree, dict) or kind not in tree:
        return [tree]
    first, *others = tree[kind]
    return [*_operands(first, kind), *others]


def _is_chain(tree: Any) -> bool:
    return isinstance(tree, dict) and ("sequence" in tree or "absence" in tree)


def _part(tree: Any, feed: Feed) -> str:
    phrase = pattern_words(tree, feed)
    return f"({phrase})" if isinstance(tree, dict) else phrase


def _bounds(bounds: Any, feed: Feed) -> str:
    if not bounds:
        return ""
    low, high = bounds
    least = "" if low in (None, 0) else duration(low, feed)
    most = "" if high is None else duration(high, feed)
    if least and most:
        return f" {least} to {most} later"
    return f" within {most}" if most else f" at least {least} later" if least else ""
