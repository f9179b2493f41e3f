"""Specifications of the families `border` and `transition` (CONTRACT 2.1, 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.model.conditions import Conditions
    from engine.model.region import Region


@dataclass(frozen=True)
class RangeBound:
    """One dimension of a range: `[low, high)` over a column, null = unbounded."""

    column: str
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BorderSpecification:
    """Watches one region or one box of ranges; exactly one of `region` and `ranges` is given.

    `ranges` are ordered by column, so that equal boxes are equal values. `segments`: also moves that pass between two samples.
    """

    name: str
    where: Conditions
    region: Region | None = None
    ranges: tuple[RangeBound, ...] = ()
    segments: bool = False


@dataclass(frozen=True)
class TransitionSpecification(BorderSpecification):
    """Pairs the in and out events of the region or ranges: `types` within `within` (unit of `t`)."""

    within: int = 0
    types: tuple[str, ...] = ()
