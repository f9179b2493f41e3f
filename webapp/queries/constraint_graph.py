"""A constraint query as a graph editor shows it: as a document and as text, with its closure, or
the reason why it is unsatisfiable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.model.faults import Fault
from webapp.config.wording import translated
from webapp.queries.references import named_regions
from webapp.queries.trial_answers import Closure, Edge, PlacedFault

if TYPE_CHECKING:
    from engine.constraint_queries.constraints import ConstraintSpecification
    from engine.constraint_queries.graph import ConstraintGraph
    from engine.model.feed import Feed
    from engine.model.region import Region

_PLACE = re.compile(r"line (\d+), column (\d+): ")


def constraint_graph(specification: Mapping[str, Any], feed: Feed, regions: Mapping[str, Any]) -> Closure:
    """Nothing is raised for a specification with faults."""
    from engine.constraint_queries.reader import read
    from engine.constraint_queries.specification import check
    from engine.constraint_queries.trigger import TriggerRefused, translate
    from engine.context import Context

    context = Context(feed, regions)
    check(specification, context)
    answer: Closure = {"faults": [placed(fault) for fault in context.faults], "document": None, "text": None, "edges": [], "conflict": None}
    document = {key: value for key, value in specification.items() if key != "trigger"}
    if isinstance(specification.get("trigger"), str):
        try:
            document |= translate(specification["trigger"]).document
        except TriggerRefused:
            return answer
    answer["document"] = document
    reading = read(document, Context(feed, regions))
    if reading is None:
        return answer
    checked, graph = reading
    wrong = graph.contradiction()
    if wrong is None:
        answer["edges"] = _edges(graph)
    else:
        pairs = [[graph.names[one], graph.names[other]] for one, other in wrong.cycle]
        answer["conflict"] = {"constraints": list(wrong.sources), "cycle": pairs, "reason": translated(wrong.reason)}
    answer["text"] = _text(checked, document, feed, regions)
    return answer


def placed(fault: Fault) -> PlacedFault:
    """A fault; that of a text has line and column as separate fields."""
    place = _PLACE.match(fault.message)
    row: PlacedFault = {"pointer": fault.pointer, "message": translated(fault.message)}
    if place is not None:
        row["line"], row["column"] = int(place[1]), int(place[2])
    return row


def _edges(graph: ConstraintGraph) -> list[Edge]:
    """Each pair of variables with bounds: the tightest bounds that hold, and whether any constraint
    states one of them."""
    from engine.constraint_queries.graph import LONGEST, closed_distances, closed_times

    names = graph.names
    latest, near = closed_times(len(names), graph.times), closed_distances(len(names), graph.greatest)
    timed = {frozenset((one.start, one.end)) for one in graph.times}
    placed = {frozenset((one.first, one.second)) for one in (*graph.greatest, *graph.least)}
    edges: list[Edge] = []
    for i, one in enumerate(names):
        for j, other in enumerate(names[i + 1 :], start=i + 1):
            high, low, distance = latest[i][j], latest[j][i], near[i][j]
            bounds = [None if bound is None or abs(bound) >= LONGEST else bound for bound in (None if low is None else -low, high)]
            edges.append(
                {
                    "between": [one, other],
                    "dt": None if bounds == [None, None] else bounds,
                    "distance": None if distance is None else {"max": float(distance[0]), "open": distance[1]},
                    "explicit": {"dt": frozenset((i, j)) in timed, "distance": frozenset((i, j)) in placed},
                }
            )
    return [edge for edge in edges if edge["dt"] is not None or edge["distance"] is not None]


def _text(checked: ConstraintSpecification, document: Mapping[str, Any], feed: Feed, regions: Mapping[str, Any]) -> str | None:
    from engine.constraint_queries.trigger_writer import trigger_text
    from engine.model.region import read_region

    stored: dict[Region, str] = {read_region(regions[name], feed.crs): name for name in sorted(named_regions(document)) if name in regions}
    try:
        return trigger_text(checked, stored)
    except ValueError:
        # A variable is called like a word of the text's language.
        return None
