"""Specifications of the family `calculus` (specification 5.6)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from engine.context import COMMON_KEYS, Context
from engine.event_calculus.compiler import compile_text
from engine.event_calculus.empty_domains import empty_domains, without_members
from engine.event_calculus.inputs import InputSpec, default_columns
from engine.event_calculus.parser import ProgramRefused
from engine.event_calculus.plan import Plan
from engine.event_calculus.program import EVENT, INTERVALS, POINTS, Program
from engine.event_calculus.shapes import base_name
from engine.event_calculus.state import Settings
from engine.event_calculus.synopsis import INPUTS, SynopsisSpec, read_synopsis
from engine.event_calculus.syntax import Indicator
from engine.model.columns import EVENT as EVENT_COLUMN
from engine.model.conditions import Conditions
from engine.model.faults import unknown_name
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.model.messages import Message
from engine.model.region import Region

KINDS = {"points": POINTS, "intervals": INTERVALS}
MAX_INPUTS = 500
MAX_AREAS = 500


@dataclass(frozen=True, eq=False)
class CalculusSpecification:
    """A checked program with its inputs, outputs and windows.

    `arrival`: the column with a row's time of arrival, or null. `synopsis`: how critical points are
    derived from positions, or null. `distributed`: the partitions of a job share the program's
    work; else it is in one of them.
    """

    name: str
    where: Conditions
    text: str
    program: Program
    plan: Plan
    settings: Settings
    inputs: tuple[InputSpec, ...]
    outputs: tuple[str, ...]
    areas: Mapping[str, Region] = field(default_factory=dict)
    arrival: str | None = None
    synopsis: SynopsisSpec | None = None
    distributed: bool = False


def check(document: Mapping[str, Any], context: Context) -> CalculusSpecification | None:
    """The checked specification; faults of the program have the pointer /program
    and name line and column."""
    context.object(
        document, required=["program", "window", "step"],
        optional=[*COMMON_KEYS, "outputs", "origin", "dialect", "edge", "grounding", "inputs", "arrival", "areas", "synopsis", "distributed"],
    )  # fmt: skip
    where = context.at("where").where(document["where"]) if "where" in document else Conditions()
    settings = _settings(document, context)
    declared = _inputs(document.get("inputs", {}), context.at("inputs"))
    given = _given_areas(document.get("areas", {}), context.at("areas"))
    synopsis = read_synopsis(document["synopsis"], context.at("synopsis")) if "synopsis" in document else None
    if "synopsis" in document:
        declared = {**INPUTS, **declared}
    if "grounding" in document:
        context.at("grounding").choice(document["grounding"], ("dynamic",))
    distributed = context.at("distributed").boolean(document["distributed"]) if "distributed" in document else False
    arrival = context.at("arrival").column(document["arrival"], kinds=(ColumnType.INT,)) if "arrival" in document else None
    text = document.get("program")
    if not isinstance(text, str):
        if "program" in document:
            context.at("program").fault(Message("must be the text of a program"))
        return None
    program = _program(text, declared, {*context.regions, *given}, context)
    if program is None:
        return None
    inputs = _all_inputs(program, declared, context.at("inputs"))
    outputs = _outputs(document, program, context)
    if "outputs" in document:
        program = replace(program, outputs=())
    areas = _areas(program, given, context)
    if settings is None:
        return None
    return CalculusSpecification(
        str(document.get("name", "")),
        where,
        text,
        program,
        Plan(program),
        settings,
        inputs,
        outputs,
        areas,
        arrival,
        synopsis,
        distributed,
    )


def uses_places(specification: CalculusSpecification) -> bool:
    return bool(specification.program.spatial or specification.areas or specification.synopsis)


def event_names(specification: CalculusSpecification) -> set[str]:
    """Those of the conditions and the program's inputs; a synopsis makes the inputs itself."""
    inputs = () if specification.synopsis is not None else specification.inputs
    return specification.where.values_of(EVENT_COLUMN) | {one.name for one in inputs}


def _settings(document: Mapping[str, Any], context: Context) -> Settings | None:
    window = context.at("window").duration(document["window"], least=1) if "window" in document else None
    step = context.at("step").duration(document["step"], least=1) if "step" in document else None
    origin: int | None = 0
    if "origin" in document:
        at_origin, value = context.at("origin"), document["origin"]
        origin = at_origin.duration(value, least=-math.inf) if isinstance(value, str) else at_origin.integer(value)
    dialect = context.at("dialect").choice(document["dialect"], ("rtec", "rtec1")) if "dialect" in document else "rtec"
    edge = context.at("edge").choice(document["edge"], ("exact", "rtec")) if "edge" in document else "exact"
    if window is None or step is None or origin is None or dialect is None or edge is None:
        return None
    return Settings(
        window, step, origin, context.feed.tick, dialect, edge == "exact", context.feed.crs is Crs.GEOGRAPHIC,
        begin=0 if context.feed.time is TimeUnit.TICKS else None,
    )  # fmt: skip


def _inputs(value: Any, context: Context) -> dict[str, InputSpec]:
    if not isinstance(value, Mapping):
        context.fault(Message('must be an object such as {"appear": {"args": ["entity"]}}'))
        return {}
    if len(value) > MAX_INPUTS:
        context.fault(Message("must have at most {most} inputs, not {count}", most=MAX_INPUTS, count=len(value)))
        return {}
    found = {}
    for name, entry in value.items():
        here = context.at(name)
        given = here.object(entry, required=["args"], optional=["fluent"])
        if "args" not in given:
            continue
        columns = [
            here.at("args", place).column(column)
            for place, column in enumerate(here.at("args").items(given["args"], most=8, what=Message("columns")))
        ]
        kind = here.at("fluent").choice(given["fluent"], tuple(KINDS)) if "fluent" in given else None
        # An event with a column that the feed does not have is reported once, not as an unknown
        # event, too. A fluent may be a misspelt one of the program's own: then that is reported.
        if isinstance(given["args"], list) and (kind is None or None not in columns):
            found[name] = InputSpec(name, tuple(column or "" for column in columns), KINDS[kind] if kind else EVENT)
    return found


def _program(text: str, declared: Mapping[str, InputSpec], regions: Iterable[str], context: Context) -> Program | None:
    known = {name: (spec.kind, len(spec.columns)) for name, spec in declared.items()}
    try:
        return compile_text(text, inputs=known, regions=regions)
    except ProgramRefused as refused:
        for problem in refused.problems:
            context.at("program").fault(problem.sentence())
        return None


def _all_inputs(program: Program, declared: Mapping[str, InputSpec], context: Context) -> tuple[InputSpec, ...]:
    """The declared inputs, and the undeclared ones that the program names, with
    arguments entity, entity2, ..."""
    found = dict(declared)
    for (name, arity), kind in program.inputs.items():
        if name in found:
            continue
        columns = default_columns(arity)
        missing = [column for column in columns if column not in context.feed.types]
        if missing:
            context.fault(
                Message(
                    "{name}/{arity} needs an entry that names its {arity} columns: the feed has no column {column}",
                    name=name,
                    arity=arity,
                    column=repr(missing[0]),
                )
            )
            continue
        found[name] = InputSpec(name, columns, kind)
    return tuple(found.values())


def _outputs(document: Mapping[str, Any], program: Program, context: Context) -> tuple[str, ...]:
    known: dict[str, None] = {}
    for indicator in sorted(program.fluents | program.events | _input_fluents(program)):
        known[base_name(indicator[0])] = None
    if "outputs" not in document:
        return _default_outputs(program)
    wanted = []
    here = context.at("outputs")
    for place, name in enumerate(here.items(document["outputs"], least=1, most=1_000, what=Message("fluents or events"))):
        if not isinstance(name, str) or name not in known:
            here.at(place).fault(unknown_name(name, known, what=Message("fluent or event")))
        elif name not in wanted:
            wanted.append(name)
    return tuple(wanted)


def _input_fluents(program: Program) -> set[Indicator]:
    return {indicator for indicator, kind in program.inputs.items() if kind != EVENT}


def _given_areas(value: Any, context: Context) -> dict[str, Region | None]:
    """The document's own regions by their names in the program; null for a faulty one."""
    if not isinstance(value, Mapping):
        context.fault(Message('must be an object such as {"harbour": {"region": "Port A"}}'))
        return {}
    if len(value) > MAX_AREAS:
        context.fault(Message("must have at most {most} areas, not {count}", most=MAX_AREAS, count=len(value)))
        return {}
    return {str(name): context.at(name).region(region) for name, region in value.items()}


def _areas(program: Program, given: Mapping[str, Region | None], context: Context) -> dict[str, Region]:
    """The regions that the program names: the document's own, else stored ones."""
    names = sorted(area_names(program))
    regions = {name: given[name] if name in given else context.at("program").region({"region": name}) for name in names}
    return {name: region for name, region in regions.items() if region is not None}


def area_names(program: Program) -> set[str]:
    """The names of regions in a program."""
    names: set[str] = set()
    for spatial in program.spatial:
        if spatial.relation == "inside":
            rows = program.facts.get((spatial.region, 2), ())
            names |= {spatial.region} if len(spatial.fluent.arguments) == 1 else {str(row[1]) for row in rows}
    return names


def region_names_in_text(document: Mapping[str, Any]) -> set[str]:
    """The names of regions in the program of a document that may be faulty;
    empty if it cannot be read."""
    program = _readable(document)
    return set() if program is None else area_names(program)


def with_regions(document: Mapping[str, Any], regions: Mapping[str, Any]) -> dict[str, Any]:
    """The document with these regions in its `areas`."""
    return {**document, "areas": {**document.get("areas", {}), **regions}}


def kinds_of(document: Mapping[str, Any]) -> list[str]:
    """The names of the outputs of a document that may be faulty or have none; empty if
    its program cannot be read."""
    outputs = document["outputs"] if "outputs" in document else _outputs_of(json.dumps(document))
    return sorted({str(output).split("/")[0].split("(")[0] for output in outputs})


@lru_cache(maxsize=500)
def _outputs_of(document: str) -> tuple[str, ...]:
    """The outputs of a program's text, cached, because reading takes milliseconds and a
    list shows many programs."""
    program = _readable(json.loads(document))
    return () if program is None else _default_outputs(program)


def notices_of(document: Mapping[str, Any], feed: Feed) -> list[str]:
    """The parts of a document's program that change no answer, each with its place, and a window
    that is too short for late rows; empty if the program cannot be read.
    """
    program = _readable(document)
    return [] if program is None else [*_notices(document, program), *_short_window(_settings(document, Context(feed, {})), feed)]


def _notices(document: Mapping[str, Any], program: Program) -> list[str]:
    own = [str(Message("ignored: outputEntity; the specification names its outputs itself"))] if "outputs" in document and program.outputs else []
    empty = [] if document.get("outputs") or _default_outputs(program) else [str(Message("no answers: the program defines no fluent and no event"))]
    return [*map(str, program.notices), *own, *empty, *map(without_members, empty_domains(program))]


def _short_window(settings: Settings | None, feed: Feed) -> list[str]:
    if settings is None or settings.window >= settings.step + feed.lateness:
        return []
    late = Message(
        "the window is shorter than its step and the feed's lateness ({lateness}) together: rows that come late may be too old for it",
        lateness=Context(feed, {}).span_text(feed.lateness),
    )
    return [str(late)]


def _default_outputs(program: Program) -> tuple[str, ...]:
    declared = dict.fromkeys(base_name(output.name) for output in program.outputs)
    return tuple(declared) or tuple({base_name(name): None for name, _ in sorted(program.fluents | program.events)})


def _readable(document: Mapping[str, Any]) -> Program | None:
    """The program of a document that may be faulty; null if it cannot be read."""
    text, inputs = document.get("program"), document.get("inputs", {})
    if not isinstance(text, str) or not isinstance(inputs, Mapping):
        return None
    made = {name: (spec.kind, len(spec.columns)) for name, spec in INPUTS.items()} if "synopsis" in document else {}
    known = made | {
        str(name): (KINDS.get(str(entry.get("fluent")), EVENT), len(entry["args"]))
        for name, entry in inputs.items()
        if isinstance(entry, Mapping) and isinstance(entry.get("args"), list)
    }
    try:
        return compile_text(text, inputs=known)
    except ProgramRefused:
        return None
