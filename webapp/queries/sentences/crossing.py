"""Sentences of the families `border` and `transition`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext, gettext_lazy

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, distance, duration, listed, ranges, region_name, something, span_of

KINDS = {
    "in": gettext_lazy("Entered"),
    "out": gettext_lazy("Left"),
    "passed": gettext_lazy("Passed through"),
    "returned": gettext_lazy("Left and came back"),
    "stayed_in": gettext_lazy("Stayed in"),
    "stayed_out": gettext_lazy("Stayed out"),
}


def border(specification: Specification, feed: Feed) -> str:
    """`Reports when something enters or leaves port A.`"""
    place = place_of(specification, feed)
    moves = gettext(", also between two reports") if specification.get("segments") else ""
    return _reports(specification, [place.enters, place.leaves], moves) + options(specification, feed)


def transition(specification: Specification, feed: Feed) -> str:
    """`Reports when something enters port A and does not leave it within 3 minutes.`"""
    steps = _steps(place_of(specification, feed), specification["within"], feed)
    types = specification.get("types") or list(steps)
    return _reports(specification, [step for name, step in steps.items() if name in types], "") + options(specification, feed)


def _reports(specification: Specification, what: Sequence[str], moves: str) -> str:
    who = something(specification.get("where"))
    return gettext("Reports when %(who)s %(what)s%(moves)s.") % {"who": who, "what": listed(what, "or"), "moves": moves}


def options(specification: Specification, feed: Feed) -> str:
    """The effects of the options, one sentence each; empty if all are off."""
    parts = []
    if specification.get("hysteresis"):
        parts.append(gettext("It has left only when it is more than %(far)s away.") % {"far": distance(specification["hysteresis"], feed)})
    if specification.get("accuracy"):
        parts.append(gettext("Positions are trusted to within %(column)s.") % {"column": specification["accuracy"]})
    if specification.get("first") == "enter":
        parts.append(gettext("An entity that is inside at its first report has entered."))
    if specification.get("dwell"):
        parts.append(gettext("A visit counts only when it lasts for more than %(span)s.") % {"span": duration(specification["dwell"], feed)})
    if specification.get("while"):
        parts.append(gettext("It is inside only while %(conditions)s.") % {"conditions": conditions(specification["while"])})
    return "".join(f" {text}" for text in parts)


class CrossingWords:
    """The words for entering and leaving a region or a box of values."""

    def __init__(self, enters: str, leaves: str, back: str, again: str) -> None:
        self.enters, self.leaves, self.back, self.again = enters, leaves, back, again


def _steps(place: CrossingWords, within: Any, feed: Feed) -> dict[str, str]:
    words = {"enters": place.enters, "leaves": place.leaves, "back": place.back, "again": place.again}
    values = {**words, "within": span_of(within, feed), "span": duration(within, feed)}
    return {
        "passed": gettext("%(enters)s and %(again)s within %(within)s") % values,
        "returned": gettext("%(leaves)s and %(back)s within %(within)s") % values,
        "stayed_in": gettext("%(enters)s and stays for more than %(span)s") % values,
        "stayed_out": gettext("%(leaves)s and stays away for more than %(span)s") % values,
    }


def place_of(specification: Specification, feed: Feed) -> CrossingWords:
    """The region or the ranges that the query watches."""
    if "region" in specification:
        name = {"region": region_name(specification["region"], feed)}
        return CrossingWords(gettext("enters %(region)s") % name, gettext("leaves %(region)s") % name, gettext("comes back"), gettext("leaves again"))
    values = {"values": ranges(specification.get("ranges", {}))}
    enters, leaves = gettext("comes to have %(values)s") % values, gettext("no longer has %(values)s") % values
    return CrossingWords(enters, leaves, gettext("has it again"), gettext("loses it again"))
