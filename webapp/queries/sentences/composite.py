"""Sentences of the family `composite`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, counting, duration, listed, region_name, span_of

KINDS = {"detection": gettext_lazy("Detected")}

OPERATORS = ("and", "or", "sequence", "interval", "absence", "before", "around")
SPANS: Mapping[str, str | Promise] = {
    "before": gettext_lazy("%(other)s with no %(first)s in the %(within)s before"),
    "around": gettext_lazy("%(before)s with no %(other)s from %(within)s before until %(within)s after"),
    "absence": gettext_lazy("%(before)s, then no %(other)s for %(span)s"),
    "interval": gettext_lazy("%(first)s and %(other)s within %(within)s of each other"),
}
"""Operators with one length of time, in words."""


def composite(specification: Specification, feed: Feed) -> str:
    """`Reports when SHELF, then EXIT with no CHECKOUT in between, all of one
    entity and within 10 minutes.`"""
    tree = _tree(specification["pattern"])
    values = {"pattern": pattern_words(tree, feed), "within": span_of(specification["within"], feed)}
    if specification.get("per") == "entity":
        text = gettext("Reports %(pattern)s, all of one entity and within %(within)s.") % values
    else:
        text = gettext("Reports %(pattern)s, within %(within)s.") % values
    means = gettext("%(name)s means %(conditions)s")
    meanings = listed([means % {"name": name, "conditions": _primitive(entry, feed)} for name, entry in specification["primitives"].items()], "and")
    return f"{text} {meanings}.{counting(specification)}"


def _tree(pattern: Any) -> Any:
    """The JSON tree of a pattern, also of one that is written as text."""
    if not isinstance(pattern, str):
        return pattern
    from engine.complex_events.pattern_text import translate

    return translate(pattern).tree


def _primitive(entry: Mapping[str, Any], feed: Feed) -> str:
    parts = [conditions(entry.get("where"))]
    begins = gettext("%(column)s begins with %(text)s")
    parts += [begins % {"column": column, "text": text} for column, text in (entry.get("prefix") or {}).items()]
    places = {"inside": gettext("in %(region)s"), "outside": gettext("outside %(region)s")}
    parts += [words % {"region": region_name(entry[key], feed)} for key, words in places.items() if key in entry]
    return listed([text for text in parts if text], "and") or gettext("any event")


def pattern_words(tree: Any, feed: Feed) -> str:
    """A pattern's JSON tree (engine.complex_events.pattern) in words."""
    if not isinstance(tree, dict):
        return str(tree)
    kind = next(key for key in OPERATORS if key in tree)
    if kind in ("and", "or"):
        phrase = listed([_part(part, feed) for part in _operands(tree, kind)], "and" if kind == "and" else "or")
        return phrase if kind == "or" else gettext("%(parts)s in any order") % {"parts": phrase}
    first, *others = tree[kind]
    # Brackets around the first part change nothing.
    before = pattern_words(first, feed) if _is_chain(first) else _part(first, feed)
    parts = [_part(part, feed) for part in others]
    if kind in SPANS:
        spans = {"span": duration(tree["span"], feed), "within": span_of(tree["span"], feed)}
        return str(SPANS[kind]) % {"before": before, "first": _part(first, feed), "other": parts[0], **spans}
    steps = "".join(_then(part, tree.get("bounds"), feed) for part in parts)
    without = gettext(" with no %(other)s in between") % {"other": _part(tree["without"], feed)} if "without" in tree else ""
    return f"{before}{steps}{without}"


def _operands(tree: Any, kind: str) -> list[Any]:
    """Parts of AND or OR that are joined from the left are described as one list."""
    if not isinstance(tree, dict) or kind not in tree:
        return [tree]
    first, *others = tree[kind]
    return [*_operands(first, kind), *others]


def _is_chain(tree: Any) -> bool:
    return isinstance(tree, dict) and ("sequence" in tree or "absence" in tree)


def _part(tree: Any, feed: Feed) -> str:
    phrase = pattern_words(tree, feed)
    return f"({phrase})" if isinstance(tree, dict) else phrase


def _then(part: str, bounds: Any, feed: Feed) -> str:
    low, high = bounds or (None, None)
    values = {
        "part": part,
        "least": "" if low in (None, 0) else duration(low, feed),
        "most": "" if high is None else duration(high, feed),
        "within": "" if high is None else span_of(high, feed),
    }
    if values["least"] and values["most"]:
        return gettext(", then %(least)s to %(most)s later %(part)s") % values
    if values["most"]:
        return gettext(", then within %(within)s %(part)s") % values
    return (gettext(", then at least %(least)s later %(part)s") if values["least"] else gettext(", then %(part)s")) % values
