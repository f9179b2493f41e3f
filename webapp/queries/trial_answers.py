"""The types of the JSON that programs in the cage return for a query that is being written."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from engine.sinks.answer_rows import AnswerFields, EvidenceItem
from webapp.config.openapi import Length, TimeRangeRead


class PreviewedAnswer(AnswerFields):
    """An answer as in frames; its query has no id."""

    query: int | None
    evidence: list[EvidenceItem] | None


class Preview(TimeRangeRead):
    """The answers of a preview: the newest of `total`. `truncated`: the period has more rows than a
    preview reads. `lacks_places`: the query asks for places, and no row of the period has one.
    `unmet`: conditions on texts that no row of the period meets."""

    rows: int
    truncated: bool
    total: int
    answers: list[PreviewedAnswer]
    lacks_places: bool
    unmet: list[str]
    seconds: float


class SandboxRule(TypedDict):
    """A clause as written, with the line of its head."""

    line: int
    text: str


class SandboxCause(TypedDict):
    """The rule of an edge, by its place in `rules`, and sentences for its conditions."""

    rule: int
    because: list[str]


class SandboxInterval(TypedDict):
    """Half-open; `end` null: it holds at the end of the period. Of an event `start` is `end`."""

    start: int
    end: int | None
    began: SandboxCause | None
    ended: SandboxCause | None


class SandboxLane(TypedDict):
    """A fluent or event with its arguments. `level`: 0 for inputs, else one more than the
    greatest level that is read."""

    fluent: str
    args: list[str]
    value: str | None
    kind: Literal["input", "simple", "derived", "event"]
    level: int
    is_output: bool
    intervals: list[SandboxInterval]


class Sandbox(TimeRangeRead):
    """A program over a period of history. `entities`: those that the lanes are
    restricted to; null: all.

    `absent`: inputs that the program names and no row of the period is; if there are any, `events`
    has the events of the period, frequent ones first.
    """

    rows: int
    absent: list[str]
    events: list[str]
    entities: list[str] | None
    rules: list[SandboxRule]
    lanes: list[SandboxLane]
    seconds: float


class _WitnessPlace(TypedDict):
    t: int
    x: float
    y: float


class Witness(_WitnessPlace, total=False):
    """The sample that a step of a motion pattern was done with."""

    distance: float


class EntityProgress(TypedDict):
    """How many of the steps of a motion pattern an entity has done; `steps`: the sample of each,
    null for one that is not done."""

    entity: str
    done: int
    of: int
    matches: bool
    score: float | None
    steps: list[Witness | None]


class ProgressAnswer(TypedDict):
    """The entities that have done a step at time `at`, those with the most steps first; `total`:
    their number."""

    at: int | None
    rows: int
    total: int
    entities: list[EntityProgress]


class OccupancyCourse(TimeRangeRead):
    """`steps`: [t, the count from then on]."""

    rows: int
    steps: list[Annotated[list[int], Length(2)]]


class _PlacedFault(TypedDict):
    pointer: str
    message: str


class PlacedFault(_PlacedFault, total=False):
    """A fault of a specification; of one in a text, its place."""

    line: int
    column: int


class Distance(TypedDict):
    """The greatest distance; `open`: it is not reached."""

    max: float
    open: bool


class Explicit(TypedDict):
    """Whether a constraint bounds this itself; otherwise the bound follows from others."""

    dt: bool
    distance: bool


class Edge(TypedDict):
    """The tightest bounds between two variables. `dt`: least and greatest time
    from the first to the second."""

    between: Annotated[list[str], Length(2)]
    dt: Annotated[list[int | None], Length(2)] | None
    distance: Distance | None
    explicit: Explicit


class Conflict(TypedDict):
    """Constraints that contradict each other, by their numbers from 0, and the cycle
    of variables that shows it."""

    constraints: list[int]
    cycle: list[Annotated[list[str], Length(2)]]
    reason: str


class Closure(TypedDict):
    """A constraint query as document and text, with the closure of its constraints."""

    faults: list[PlacedFault]
    document: dict[str, Any] | None
    text: str | None
    edges: list[Edge]
    conflict: Conflict | None


LeafKind = Literal["normal", "trigger", "negative"]


class Leaf(TypedDict):
    """A primitive of a pattern; `needed`: every occurrence contains it."""

    name: str
    kind: LeafKind
    needed: bool


class PatternAnswer(TypedDict):
    """A composite pattern as tree and in words, with its primitives from left to right."""

    faults: list[PlacedFault]
    tree: Any
    words: str | None
    leaves: list[Leaf]
