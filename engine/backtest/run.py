"""One running backtest: its options, and its counters."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.model.events import DeadLetter
    from engine.model.feed import Feed
    from engine.operator import RegisteredQuery
    from engine.plausibility import Plausibility

BATCH_ROWS = 131_072


@dataclass
class Counts:
    """`read` is the sum of the others."""

    read: int = 0
    accepted: int = 0
    duplicate: int = 0
    late: int = 0
    dead: int = 0


@dataclass
class Run:
    """One run under way."""

    options: argparse.Namespace
    feed: Feed
    queries: Sequence[RegisteredQuery]
    documents: Mapping[str, Mapping[str, Any]]
    plausibility: Plausibility
    counts: Counts = field(default_factory=Counts)
    asserted: Counter[str] = field(default_factory=Counter)
    first_dead: DeadLetter | None = None


def batch_rows(options: argparse.Namespace) -> int:
    return BATCH_ROWS if options.batch_rows is None else int(options.batch_rows)
