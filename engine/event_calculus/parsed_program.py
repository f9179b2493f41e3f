"""The result of reading the clauses of a program."""

from __future__ import annotations

from collections.abc import Mapping

from engine.event_calculus.deadlines import FiClause
from engine.event_calculus.expansion import Expander
from engine.event_calculus.parser import Problem
from engine.event_calculus.program import Output
from engine.event_calculus.syntax import FluentPattern, Grounding, Indicator, Initially, IntervalRule, PointRule, SpatialFluent
from engine.event_calculus.terms import SourceLocation, Term
from engine.model.messages import Message


class ParsedProgram:
    """Rules, facts and declarations in the order of the text, with faults and notices."""

    def __init__(self, inputs: Mapping[str, tuple[str, int]], regions: set[str] | None) -> None:
        self.problems: list[Problem] = []
        self.regions = regions
        self.inputs: dict[Indicator, str] = {(name, arity): kind for name, (kind, arity) in inputs.items()}
        self.mapped = set(self.inputs)
        self.facts: dict[Indicator, list[tuple[Term, ...]]] = {}
        self.point_rules: list[PointRule] = []
        self.interval_rules: list[IntervalRule] = []
        self.initially: list[Initially] = []
        self.groundings: dict[str, list[Grounding]] = {}
        self.fact_locations: dict[Indicator, SourceLocation] = {}
        self.domains: dict[Indicator, SourceLocation] = {}
        self.outputs: dict[Output, SourceLocation] = {}
        self.kind_declared: set[Indicator] = set()
        """Input fluents for which the text declares the form of their rows."""
        self.given_values: dict[Indicator, list[FluentPattern]] = {}
        self.fi: list[FiClause] = []
        self.extends: list[FluentPattern] = []
        self.notices: list[Problem] = []
        self.spatial: list[SpatialFluent] = []
        self.expander = Expander(self.fault)

    def fault(self, location: SourceLocation, message: Message) -> None:
        self.problems.append(Problem(location, message))

    def notice(self, location: SourceLocation, message: Message) -> None:
        self.notices.append(Problem(location, Message("ignored: {message}", message=message)))
