"""Sentences of the family `motion`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, counting, distance, duration, last, listed, number, region_name, span


def motion(specification: Specification, feed: Feed) -> str:
    """`Every 10 seconds, finds whatever was in bank 1, then in bank 2, all within the last hour.`"""
    predicates = specification["predicates"]
    measured = [one for one in predicates if "distance" in one]
    # Time added up takes part in no order.
    totals = [one for one in predicates if one.get("quantifier") == "total"]
    asked = [one for one in predicates if one not in measured and one not in totals]
    clauses = [_steps(asked, feed)] if asked else []
    if any(one.get("window") is None for one in asked):
        clauses[0] += f", all in the {last(specification['horizon'], feed)}"
    clauses += [_total(one, feed) for one in totals]
    if measured:
        clauses.append(_score(measured, specification["theta"], feed))
    whoever = "whatever" if asked or totals else "everything"
    return f"Every {duration(specification['every'], feed)}, finds {whoever} {', and '.join(clauses)}.{counting(specification)}"


def _steps(predicates: list[Any], feed: Feed) -> str:
    """The binary predicates in their order: `then` goes before each that must come after another."""
    text = _step(predicates[0], feed)
    for before, one in pairwise(predicates):
        in_order = one.get("window") is None or before.get("window") is None
        text += (", then " if in_order else " and ") + _step(one, feed)
    return text


def _step(predicate: Any, feed: Feed) -> str:
    inside = "inside" in predicate
    name = region_name(predicate["inside" if inside else "outside"])
    window = predicate.get("window")
    always = predicate.get("quantifier") == "forall"
    verb = ("stayed in" if inside else "kept out of") if always else ("was in" if inside else "was outside")
    return f"{verb} {name}" + ("" if window is None else f" {_when(window, feed, always)}")


def _total(predicate: Any, feed: Feed) -> str:
    inside = "inside" in predicate
    bound = "at_least" if predicate.get("at_least") is not None else "at_most"
    no_time = bound == "at_most" and span(predicate[bound]) == 0
    how_long = "no time at all" if no_time else f"{bound.replace('_', ' ')} {duration(predicate[bound], feed)} in all"
    gap = f" (a report counts for {duration(predicate['gap'], feed)})" if predicate.get("gap") is not None else ""
    when = _when(predicate["window"], feed, always=False)
    return f"was {'in' if inside else 'outside'} {region_name(predicate['inside' if inside else 'outside'])} for {how_long} {when}{gap}"


def _when(window: Any, feed: Feed, always: bool) -> str:
    """`in the last 5 minutes`, `between 10 minutes and 5 minutes ago`."""
    if span(window[1]) == 0:
        return f"{'throughout' if always else 'in'} the {last(window[0], feed)}"
    begin, end = duration(window[0], feed), duration(window[1], feed)
    return f"all the time from {begin} to {end} ago" if always else f"between {begin} and {end} ago"


def _score(predicates: list[Any], theta: Any, feed: Feed) -> str:
    measures = listed([_measure(one, feed) for one in predicates], "and")
    subject = f"the sum of {measures}" if len(predicates) > 1 else measures
    return f"for which {subject} {_theta(theta, feed)}"


def _measure(predicate: Any, feed: Feed) -> str:
    target = predicate["distance"]
    if isinstance(target, dict) and target.get("type") == "Point":
        target = target["coordinates"]
    name = _point(target) if isinstance(target, list) else region_name(target)
    furthest = predicate.get("quantifier") == "forall"
    return f"its {'greatest' if furthest else 'least'} distance from {name} {_when(predicate['window'], feed, always=False)}"


def _point(target: list[Any]) -> str:
    return f"the point ({number(target[0])}, {number(target[1])})"


def _theta(theta: Any, feed: Feed) -> str:
    op = theta["op"]
    if op in ("<=", ">="):
        return f"is at {'most' if op == '<=' else 'least'} {distance(theta['value'], feed)}"
    if op == "top":
        return f"is among the {number(theta['k'])} {'smallest' if theta['order'] == 'min' else 'greatest'}"
    return f"is the {'smallest' if op == 'min' else 'greatest'} of all"
