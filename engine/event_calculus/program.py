"""A checked program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.event_calculus.parser import Problem
from engine.event_calculus.syntax import Deadline, Grounding, Indicator, Initially, IntervalRule, PointRule, SpatialFluent
from engine.event_calculus.terms import Term

EVENT, POINTS, INTERVALS = "event", "points", "intervals"
"""The form of an input's rows: events at instants, fluents at single
ticks, fluents over [t, t_end)."""


@dataclass(frozen=True)
class Output:
    """outputEntity(...): an event, or a fluent with its value; tuples with
    its constants are asserted."""

    name: str
    terms: tuple[Term, ...]
    fluent: bool


@dataclass(frozen=True)
class Program:
    """A program without faults. Rules are numbered in reading order; `number` is their position
    in the list shown to users.

    `notices` name the parts of the text that change no answer; they are shown to its author.
    """

    point_rules: tuple[PointRule, ...] = ()
    interval_rules: tuple[IntervalRule, ...] = ()
    initially: tuple[Initially, ...] = ()
    deadlines: tuple[Deadline, ...] = ()
    groundings: Mapping[str, tuple[Grounding, ...]] = field(default_factory=dict)
    domains: tuple[Indicator, ...] = ()
    facts: Mapping[Indicator, tuple[tuple[Term, ...], ...]] = field(default_factory=dict)
    spatial: tuple[SpatialFluent, ...] = ()
    inputs: Mapping[Indicator, str] = field(default_factory=dict)
    outputs: tuple[Output, ...] = ()
    notices: tuple[Problem, ...] = ()

    @property
    def fluents(self) -> set[Indicator]:
        simple = {rule.indicator for rule in self.point_rules if rule.kind != "event"} | {start.indicator for start in self.initially}
        return simple | {rule.head.indicator for rule in self.interval_rules} | {spatial.fluent.indicator for spatial in self.spatial}

    @property
    def simple_fluents(self) -> set[Indicator]:
        return {rule.indicator for rule in self.point_rules if rule.kind != "event"} | {start.indicator for start in self.initially}

    @property
    def events(self) -> set[Indicator]:
        return {rule.indicator for rule in self.point_rules if rule.kind == "event"}
