"""The series of an index, and the queries that need them, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.model.conditions import Conditions
from engine.model.region import Region
from engine.motion_patterns.specification import TargetPoint

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SeriesKey:
    """The identity of a series. `test`: "any", "inside" or "outside" (`target`), "least" or
    "greatest" (distance to `target`)."""

    where: Conditions
    test: str
    target: Region | TargetPoint | None
    start: int
    end: int
    every: int


class MotionPlan(NamedTuple):
    """The index as arrays. Series p, query q, chain node n; `x_first[i]` to
    `x_first[i + 1]` are the entries of i.

    Series: window `start` > T - t >= `end`, `every`, `measure` (number of the distance series or
    -1), `sign` (+1 least, -1 greatest kept), `eager` (every point that enters or leaves is
    reported, not only the first and the last), `users` (queries that keep points). Queries:
    `required` and `excluded` (series that must, and must not, have a point), `sums` (distance
    series in order), `totals` (their numbers; `reached`: whether the bound must be reached or
    must not), `decides`, `bound`, `ranking` (number among the ranked, or -1), `ranks`, `k`,
    `chain` nodes with their series and up to two successors, and for each predicate the `witness`
    series and chain node (or -1).
    """

    start: Ints
    end: Ints
    every: Ints
    measure: Ints
    sign: Ints
    eager: npt.NDArray[np.bool_]
    users_first: Ints
    users: Ints
    required_first: Ints
    required: Ints
    excluded_first: Ints
    excluded: Ints
    sums_first: Ints
    sums: Ints
    totals_first: Ints
    totals: Ints
    reached: npt.NDArray[np.bool_]
    total_users_first: Ints
    total_users: Ints
    decides: Ints
    bound: npt.NDArray[np.float64]
    ranking: Ints
    ranks: Ints
    k: Ints
    chain_first: Ints
    chain: Ints
    chain_after: Ints
    witness_first: Ints
    witness: Ints
    witness_node: Ints
