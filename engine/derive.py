"""Answers as events (specification 5.9): what a specification's `derive` means, and the graph that
the queries of a feed form by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.context import Context
from engine.families import FAMILIES, family_of
from engine.model.faults import Fault, unknown_name
from engine.model.feed import ColumnType, Feed, escaped
from engine.model.messages import Message

MOST_ENTITIES = 32
LEVELS = 20
"""The greatest depth of derivation: each level is a pass over the batch, and one feed
must not stop a job of many."""
MOST_EVENTS = 50
"""An answer may be each of the events that one query derives."""
VALUE = "value"
ENTITIES = tuple(f"entity{n}" for n in range(2, MOST_ENTITIES + 1))


@dataclass(frozen=True)
class Source:
    """The answers of `kind` of another query are events called `event`, at the
    answer's `at`: "start" or "end".

    `query` is the reference in the document: its name or its id; events of equal times
    are ordered by its `name`.
    """

    event: str
    query: str
    kind: str
    at: str
    name: str


def with_answers(feed: Feed) -> Feed:
    """The feed as a query that derives sees it: with the columns of answers in addition to its own.
    Where both have one, the answers' are left out.

    A feed's own whole numbers called `value` become floats like those of answers, which may not be
    whole.
    """
    more = {VALUE: ColumnType.FLOAT, **dict.fromkeys(ENTITIES, ColumnType.STRING)}
    columns = {name: ColumnType.FLOAT if (name, kind) == (VALUE, ColumnType.INT) else kind for name, kind in feed.columns.items()}
    return replace(feed, columns={**columns, **{name: kind for name, kind in more.items() if name not in columns}})


def sources_of(document: Mapping[str, Any], names: Mapping[str, str] | None = None) -> tuple[Source, ...]:
    """The sources of a checked document; `names` of queries that it names by their ids."""
    derive = (document.get("derive") or {}).items()
    return tuple(Source(event, one["query"], one["kind"], one["at"], (names or {}).get(one["query"], one["query"])) for event, one in derive)


def resolved(document: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """The document with the queries it derives from named by their ids, which
    stay; `ids` by name or id."""
    derive = document.get("derive") or {}
    stable = {event: {**one, "query": ids.get(one["query"], one["query"])} for event, one in derive.items()}
    return {**document, "derive": stable} if derive else dict(document)


def revises(specification: Any) -> bool:
    """Whether a query asserts an interval while it holds and asserts it again when it ends."""
    family = family_of(specification)
    return family.ends_later or family.is_revised


def known_at(specification: Any, at: str) -> Callable[[pa.Table], pa.Array | pa.ChunkedArray]:
    """When answers of an upstream query are known, at the latest: the event time after whose rows
    and timers each can be asserted.

    It is a function of the answer alone, so that what derives from it does not depend on batches. A
    calculus query takes the event as one that arrives then; for the others it is the event's own
    time, or the query was refused. A family may have its own rule.
    """
    family = family_of(specification)
    if (own := family.known_at(specification, at)) is not None:
        return own
    if revises(specification):
        lasting = getattr(specification, "lasting", 0) if at == "start" else 0
        return lambda rows: pc.add(rows.column(at), lasting)
    return lambda rows: rows.column("end")


def read_sources(document: Mapping[str, Any], context: Context) -> None:
    """Notes the faults in a document's `derive` itself."""
    here, family = context.at("derive"), document.get("family")
    deriving = [name for name, one in FAMILIES.items() if one.takes_answers]
    if family not in deriving:
        known = ", ".join(deriving)
        here.fault(Message("a query of the family {family} takes no answers as events: they have no place; {known} do", family=family, known=known))
        return
    value = document["derive"]
    if not isinstance(value, Mapping) or not value:
        here.fault(
            Message('must be an object from event to the answers that it is, for example {"arrival": {"query": "port", "kind": "in", "at": "end"}}')
        )
        return
    if len(value) > MOST_EVENTS:
        here.fault(Message("has {count:,} events; a query derives at most {most}", count=len(value), most=MOST_EVENTS))
        return
    for event, one in value.items():
        at = here.at(event)
        if not isinstance(event, str) or not event.strip() or event.startswith("$"):
            at.fault(Message("an event needs a name that is not empty and does not begin with $"))
        source = at.object(one, required=("query", "kind", "at"))
        for key, read in (("query", at.at("query").string), ("kind", at.at("kind").string)):
            if key in source:
                read(source[key])
        if "at" in source:
            at.at("at").choice(source["at"], ("start", "end"))


def graph_faults(documents: Mapping[str, Mapping[str, Any]], names: Mapping[str, str] | None = None) -> dict[str, list[Fault]]:
    """The faults between the queries of a feed, for each that derives. `documents` by the names
    that they use for one another; `names`: for users."""
    faults_of: dict[str, list[Fault]] = {}
    levels = _levels(documents)
    for name, document in documents.items():
        faults = [fault for source in sources_of(document) for fault in _source_faults(source, document, documents)]
        if not faults and (path := _cycle_from(name, documents)):
            faults = [_cycle_fault(document, path, names or {})]
        if not faults and levels.get(name, 0) > LEVELS:
            faults = [Fault("/derive", Message("the derivation would be more than {most} queries deep", most=LEVELS))]
        if faults:
            faults_of[name] = faults
    return faults_of


def _levels(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The depth of each query in the graph; queries in a cycle, and those that
    derive from them, are left out.

    >>> a, b = {}, {"derive": {"x": {"query": "a", "kind": "in", "at": "end"}}}
    >>> _levels({"a": a, "b": b})
    {'a': 0, 'b': 1}
    """
    above = {name: {source.query for source in sources_of(document)} & documents.keys() for name, document in documents.items()}
    below: dict[str, list[str]] = {name: [] for name in documents}
    for name, sources in above.items():
        for source in sources:
            below[source].append(name)
    waits = {name: len(sources) for name, sources in above.items()}
    levels = dict.fromkeys((name for name, count in waits.items() if not count), 0)
    ready = list(levels)
    while ready:
        name = ready.pop()
        for other in below[name]:
            waits[other] -= 1
            if not waits[other]:
                levels[other] = 1 + max(levels[source] for source in above[other])
                ready.append(other)
    return levels


def _source_faults(source: Source, document: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    pointer = f"/derive/{escaped(source.event)}"
    if source.query not in documents:
        return [Fault(f"{pointer}/query", unknown_name(source.query, documents, what=Message("query")))]
    upstream = documents[source.query]
    family = upstream["family"]
    if not FAMILIES[family].kinds:
        giving = ", ".join(name for name, one in FAMILIES.items() if one.kinds)
        return [
            Fault(f"{pointer}/query", Message("answers of the family {family} cannot be events; those of {giving} can", family=family, giving=giving))
        ]
    kinds = FAMILIES[family].kinds_of(upstream)
    if source.kind not in kinds:
        return [Fault(f"{pointer}/kind", unknown_name(source.kind, kinds, what=Message("kind of answer")))]
    if FAMILIES[document["family"]].revises:
        return []
    revising = " or ".join(name for name, one in FAMILIES.items() if one.revises)
    if (option := FAMILIES[family].late_option(upstream)) is not None:
        return [
            Fault(
                f"{pointer}/query",
                Message(
                    "its answers are known only after their times ({option}): only {revising}, which revises, takes them",
                    option=option,
                    revising=revising,
                ),
            )
        ]
    late = FAMILIES[family].known_at_end or bool(_lasts(upstream.get("lasting")))
    if source.at == "start" and late:
        return [
            Fault(
                f"{pointer}/at",
                Message('its answers are known only after their start: take "end"; only {revising}, which revises, takes "start"', revising=revising),
            )
        ]
    return []


def _lasts(value: Any) -> bool:
    from engine.model.durations import parse_duration

    return (parse_duration(value) if isinstance(value, str) else value or 0) > 0


def _cycle_from(name: str, documents: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A path from the query to itself; empty if there is none."""
    paths, seen = [[name]], {name}
    while paths:
        path = paths.pop()
        for source in sources_of(documents[path[-1]]):
            if source.query == name:
                return [*path, name]
            if source.query in documents and source.query not in seen:
                seen.add(source.query)
                paths.append([*path, source.query])
    return []


def _cycle_fault(document: Mapping[str, Any], path: list[str], names: Mapping[str, str]) -> Fault:
    event = next(source.event for source in sources_of(document) if source.query == path[1])
    way = " from ".join(names.get(one, one) for one in path)
    return Fault(f"/derive/{escaped(event)}/query", Message("the query would derive from itself: {way}", way=way))


def without_derive(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the family itself reads."""
    return {key: value for key, value in document.items() if key != "derive"}
