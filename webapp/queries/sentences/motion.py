"""Sentences of the family `motion`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from django.utils.translation import gettext, gettext_lazy

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, counting, distance, duration, last, listed, number, region_name, span, span_of

KINDS = {"match": gettext_lazy("Match")}


def motion(specification: Specification, feed: Feed) -> str:
    """`Every 10 seconds, finds each entity that was in bank 1, then in bank 2,
    all within the last hour.`"""
    predicates = specification["predicates"]
    measured = [one for one in predicates if "distance" in one]
    # Time added up takes part in no order.
    totals = [one for one in predicates if one.get("quantifier") == "total"]
    plain = [one for one in predicates if one not in measured and one not in totals]
    clauses = [_steps(plain, feed)] if plain else []
    if any(one.get("window") is None for one in plain):
        clauses[0] += gettext(", all in the %(last)s") % {"last": last(specification["horizon"], feed)}
    clauses += [_total(one, feed) for one in totals]
    if measured:
        clauses.append(_score(measured, specification["theta"], feed))
    values = {"every": span_of(specification["every"], feed), "clauses": gettext(", and ").join(clauses)}
    if plain or totals:
        text = gettext("Every %(every)s, finds each entity that %(clauses)s.") % values
    else:
        text = gettext("Every %(every)s, finds everything %(clauses)s.") % values
    return text + counting(specification)


def _steps(predicates: list[Any], feed: Feed) -> str:
    """The binary predicates in their order: `then` goes before each that must come after
    another."""
    text = _step(predicates[0], feed)
    for before, one in pairwise(predicates):
        in_order = one.get("window") is None or before.get("window") is None
        text += (gettext(", then ") if in_order else gettext(" and ")) + _step(one, feed)
    return text


def _step(predicate: Any, feed: Feed) -> str:
    inside = "inside" in predicate
    window = predicate.get("window")
    always = predicate.get("quantifier") == "forall"
    when = "" if window is None else f" {_when(window, feed, always)}"
    values = {"region": region_name(predicate["inside" if inside else "outside"], feed), "when": when}
    if always:
        text = gettext("stayed in %(region)s%(when)s") if inside else gettext("kept out of %(region)s%(when)s")
    else:
        text = gettext("was in %(region)s%(when)s") if inside else gettext("was outside %(region)s%(when)s")
    return text % values


def _total(predicate: Any, feed: Feed) -> str:
    inside = "inside" in predicate
    bound = "at_least" if predicate.get("at_least") is not None else "at_most"
    if bound == "at_most" and span(predicate[bound]) == 0:
        how_long = gettext("no time at all")
    else:
        words = gettext("at least %(span)s in all") if bound == "at_least" else gettext("at most %(span)s in all")
        how_long = words % {"span": duration(predicate[bound], feed)}
    gap = predicate.get("gap")
    values = {
        "region": region_name(predicate["inside" if inside else "outside"], feed),
        "how_long": how_long,
        "when": _when(predicate["window"], feed, always=False),
        "gap": "" if gap is None else gettext(" (a report counts for %(gap)s)") % {"gap": duration(gap, feed)},
    }
    text = (
        gettext("was in %(region)s for %(how_long)s %(when)s%(gap)s")
        if inside
        else gettext("was outside %(region)s for %(how_long)s %(when)s%(gap)s")
    )
    return text % values


def _when(window: Any, feed: Feed, always: bool) -> str:
    """`in the last 5 minutes`, `between 10 minutes and 5 minutes ago`."""
    if span(window[1]) == 0:
        text = gettext("throughout the %(last)s") if always else gettext("in the %(last)s")
        return text % {"last": last(window[0], feed)}
    text = gettext("all the time from %(begin)s to %(end)s ago") if always else gettext("between %(begin)s and %(end)s ago")
    return text % {"begin": span_of(window[0], feed), "end": span_of(window[1], feed)}


def _score(predicates: list[Any], theta: Any, feed: Feed) -> str:
    measures = listed([_measure(one, feed) for one in predicates], "and")
    subject = gettext("the sum of %(measures)s") % {"measures": measures} if len(predicates) > 1 else measures
    return gettext("for which %(subject)s %(bound)s") % {"subject": subject, "bound": _theta(theta, feed)}


def _measure(predicate: Any, feed: Feed) -> str:
    target = predicate["distance"]
    if isinstance(target, dict) and target.get("type") == "Point":
        target = target["coordinates"]
    name = _point(target) if isinstance(target, list) else region_name(target, feed)
    furthest = predicate.get("quantifier") == "forall"
    text = gettext("its greatest distance from %(place)s %(when)s") if furthest else gettext("its least distance from %(place)s %(when)s")
    return text % {"place": name, "when": _when(predicate["window"], feed, always=False)}


def _point(target: list[Any]) -> str:
    return gettext("the point (%(x)s, %(y)s)") % {"x": number(target[0]), "y": number(target[1])}


def _theta(theta: Any, feed: Feed) -> str:
    op = theta["op"]
    if op in ("<=", ">="):
        text = gettext("is at most %(far)s") if op == "<=" else gettext("is at least %(far)s")
        return text % {"far": distance(theta["value"], feed)}
    if op == "top":
        text = gettext("is among the %(count)s smallest") if theta["order"] == "min" else gettext("is among the %(count)s greatest")
        return text % {"count": number(theta["k"])}
    return gettext("is the smallest of all") if op == "min" else gettext("is the greatest of all")
