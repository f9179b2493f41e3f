"""Specifications of the family `constraint` (specification 5.4)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from engine import contradictions
from engine.constraint_queries.constraints import ConstraintSpecification, interchangeable
from engine.constraint_queries.graph import ConstraintGraph
from engine.constraint_queries.reader import read
from engine.context import COMMON_KEYS, Context
from engine.model.feed import Feed
from engine.model.messages import Message

MAX_ARRANGEMENTS = 5_040
"""The greatest number of arrangements of symmetric variables, which are compared one by one if the
variables are not interchangeable."""
_TRIGGER = re.compile(r"(\s|--[^\n]*\n)*CREATE\s+TRIGGER\b", re.IGNORECASE)
OWN_KEYS = ("variables", "constraints", "symmetric", "report", "expiration")


def check(document: Mapping[str, Any], context: Context) -> ConstraintSpecification | None:
    """The specification of a document with its keys or with the text `trigger`.
    Faults are noted in `context`."""
    if "trigger" in document:
        return _check_trigger(document, context)
    context.object(document, required=("family", "variables"), optional=(*COMMON_KEYS, *OWN_KEYS[1:]))
    return check_keys(document, context)


def uses_places(specification: ConstraintSpecification) -> bool:
    bounds = (bound for pair in specification.pairs for bound in (pair.least, pair.greatest))
    return any(one.regions for one in specification.variables) or any(bound is not None for bound in bounds)


def notices_of(document: Mapping[str, Any], feed: Feed) -> list[str]:
    """Conditions of a text that exclude each other; `engine.specification` finds those of keys."""
    from engine.constraint_queries.trigger import translate

    return contradictions.notices_of(translate(document["trigger"]).document) if "trigger" in document else []


def is_text(text: str) -> bool:
    """Whether it begins like a trigger; comments may come before."""
    return _TRIGGER.match(text) is not None


def _check_trigger(document: Mapping[str, Any], context: Context) -> ConstraintSpecification | None:
    """The specification of a text; faults have the pointer of the text and name line and column."""
    from engine.constraint_queries.trigger import read_trigger

    trigger = read_trigger(document, context)
    if trigger is None:
        return None
    inner = Context(context.feed, context.regions)
    found = check_keys({**trigger.document, **({"name": document["name"]} if "name" in document else {})}, inner)
    for fault in inner.faults:
        line, column = trigger.location(fault.pointer)
        context.at("trigger").fault(Message("line {line}, column {column}: {message}", line=line, column=column, message=fault.message))
    return found


def region_names_in_text(document: Mapping[str, Any]) -> set[str]:
    """The names of stored regions in the text `trigger` of a document that may be faulty;
    empty if it cannot be read."""
    from engine.constraint_queries.trigger import TriggerRefused, translate

    try:
        constraints = translate(document["trigger"]).document.get("constraints", []) if isinstance(document["trigger"], str) else []
    except TriggerRefused:
        return set()
    areas = (one.get("inside", {}) for one in constraints)
    return {area["region"] for area in areas if isinstance(area, dict) and set(area) == {"region"}}


def with_regions(document: Mapping[str, Any], regions: Mapping[str, Any]) -> dict[str, Any]:
    """An equal document: with new names of regions in its text, if `regions` has only references,
    else with keys instead of the text."""
    from engine.constraint_queries.trigger import translate, with_names

    names = {name: one["region"] for name, one in regions.items() if set(one) == {"region"}}
    if len(names) == len(regions):
        return {**document, "trigger": with_names(document["trigger"], names)}
    return {**translate(document["trigger"]).document, **{key: value for key, value in document.items() if key != "trigger"}}


def check_keys(document: Mapping[str, Any], context: Context) -> ConstraintSpecification | None:
    """The specification of a document whose keys are checked; null after a fault
    that leaves no specification."""
    reading = read(document, context)
    if reading is None:
        return None
    found, graph = reading
    check_graph(found, graph, context)
    return found


def check_graph(found: ConstraintSpecification, graph: ConstraintGraph, context: Context) -> None:
    """Refuses queries that cannot be satisfied, and those that need unbounded memory."""
    here = context.at("constraints")
    wrong = graph.contradiction()
    if wrong is not None:
        here.at(max(wrong.sources)).fault(Message("no events can satisfy the query: {reason}", reason=wrong.reason))
        return
    latest = found.latest()
    for i, name in enumerate(graph.names):
        unbounded = [graph.names[j] for j, upper in enumerate(latest[i]) if upper is None]
        if unbounded:
            bounds = f"{unbounded[0]}.t - {name}.t"
            here.fault(
                Message(
                    "events of variable {name} would have to be kept forever: nothing bounds {bounds} from above; give 'dt' an upper bound",
                    name=repr(name),
                    bounds=bounds,
                )
            )
    if not interchangeable(found):
        count = math.prod(math.factorial(len(group)) for group in found.symmetric)
        if count > MAX_ARRANGEMENTS:
            context.at("symmetric").fault(
                Message(
                    "these variables have different constraints and {count:,} arrangements; at most {most:,} are compared. Give all "
                    "variables of a group the same filters, and all their pairs the same constraints",
                    count=count,
                    most=MAX_ARRANGEMENTS,
                )
            )
