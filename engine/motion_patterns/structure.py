"""The common interface of the two evaluators: index points (`point_series`)
and planes (`plane_sweep`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.motion_patterns.batch_cache import BatchCache
from engine.motion_patterns.evaluation import MatchEvents

Ints = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass
class WorkCounters:
    """Work counters, in the paper's terms: index points kept, positive and negative updates,
    re-evaluations, raw trajectory reads."""

    samples: int = 0
    index_points: int = 0
    positive_updates: int = 0
    negative_updates: int = 0
    evaluations: int = 0
    samples_read: int = 0

    def add(self, other: WorkCounters) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Structure(ABC):
    """Queries with their samples and answers of one partition."""

    def __init__(self) -> None:
        self.work = WorkCounters()

    @abstractmethod
    def take(self, cache: BatchCache) -> None:
        """Stores the batch's rows that the queries need. Rows are sorted by (t, seq) and come after
        those of earlier batches."""

    @abstractmethod
    def advance(self, last: int, entities: int, rank: Ints) -> MatchEvents:
        """Evaluate all times up to `last`; events of each (query, entity) in order of time.

        `entities`: codes in use; `rank` orders them by id (used by top k only).
        """

    @abstractmethod
    def force(self, after: int) -> None:
        """Makes the first evaluation after that time evaluate everything,
        because queries were added."""

    @abstractmethod
    def held(self) -> tuple[Ints, Ints]:
        """(query, entity) of the pairs that match now (ranked: are candidates); queries
        by position in the index."""

    @abstractmethod
    def hold(self, query: Ints, entity: Ints) -> None:
        """Sets the pairs that match now (ranked: are candidates); pairs of other
        structures' queries are ignored."""

    @abstractmethod
    def dump(self) -> Arrays:
        """All state but `work`, as arrays."""

    @abstractmethod
    def kept(self) -> int:
        """The number of samples or index points in memory."""

    @abstractmethod
    def check(self, done: int | None) -> None:
        """Asserts the invariants, with every evaluation time up to `done`
        evaluated; used by tests."""
