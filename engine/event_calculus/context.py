"""The evaluation context of one window's rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.event_calculus.conditions import KnowledgeBase
from engine.event_calculus.crossing import Crossing
from engine.event_calculus.groundings import DeclaredGroundings
from engine.event_calculus.memory import Bounds
from engine.event_calculus.plan import Plan
from engine.event_calculus.sharing import Share
from engine.event_calculus.syntax import Indicator
from engine.event_calculus.tables import FluentTable


@dataclass(frozen=True)
class WindowContext:
    """A plan over one window: the tables so far (`kb`), the declared `groundings`, and the
    intervals `crossing` the window's edges.

    `retracted`: by fluent, the wrong assertions of speed rules before the window. `undecided`: by
    fluent, the part before the window of intervals that a rule may still select. `share`: of
    distributed relations only this share is computed.
    """

    plan: Plan
    kb: KnowledgeBase
    bounds: Bounds
    groundings: DeclaredGroundings
    crossing: Crossing
    exact: bool
    share: Share | None
    retracted: dict[Indicator, FluentTable] = field(default_factory=dict)
    undecided: dict[Indicator, FluentTable] = field(default_factory=dict)
