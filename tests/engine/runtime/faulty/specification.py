"""The behaviour of a query of the family."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Faulty:
    """From time `at` on a query that `stops` says so, one that `breaks` fails with an
    error, and those that are `pairs` fail when there are two of them; one that is
    `never` cannot even be compiled."""

    does: str = "answers"
    at: int = 0
