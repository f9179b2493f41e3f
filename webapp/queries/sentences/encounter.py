"""Sentences of the family `encounter`."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext, gettext_lazy

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, counting, distance, duration, lasting, listed, region_name, something, span_of

KINDS = {"met": gettext_lazy("Met")}


def encounter(specification: Specification, feed: Feed) -> str:
    """`Reports while something whose kind is tug and something whose kind is cargo are
    within 300 m of each other.`"""
    between = gettext(", also on the way between two reports") if specification.get("position") == "interpolated" else ""
    text = gettext(
        "Reports while %(pair)s are within %(distance)s of each other%(place)s%(lasting)s. It looks every %(every)s%(between)s; a report counts for "
        "%(gap)s."
    ) % {
        "pair": _pair(*((specification.get(role) or {}).get("where") for role in "ab")),
        "distance": distance(specification["distance"], feed),
        "place": gettext(" in %(region)s") % {"region": region_name(specification["inside"], feed)} if specification.get("inside") else "",
        "lasting": lasting(specification, feed),
        "every": span_of(specification["every"], feed),
        "between": between,
        "gap": duration(specification["gap"], feed),
    }
    return text + counting(specification)


def _pair(first: Any, second: Any) -> str:
    if conditions(first) != conditions(second):
        return listed([something(first), something(second)], "and")
    return gettext("two whose %(conditions)s") % {"conditions": conditions(first)} if first else gettext("any two")
