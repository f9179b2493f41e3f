"""A query's settings, and its state between two windows."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.event_calculus.answers import NEVER
from engine.event_calculus.arrivals import InputRows
from engine.event_calculus.intervals import Ints
from engine.event_calculus.local_results import LocalResults
from engine.event_calculus.memory import Groundings, Memory
from engine.event_calculus.syntax import Indicator
from engine.event_calculus.tables import FluentTable, Symbols, Table


@dataclass(frozen=True)
class Settings:
    """The windows of a query; times in the unit of t."""

    window: int
    step: int
    origin: int = 0
    tick: int = 1
    dialect: str = "rtec"
    exact: bool = True
    geographic: bool = False
    max_rows: int = 4_000_000
    max_work: int = 20_000_000
    begin: int | None = 0
    """The beginning of time; null: the least t of the feed."""


@dataclass
class WindowState:
    """The state of a query between two query times.

    `rows` have arrived by the last query time, `waiting` after it; `first_time` is the t of the
    first row that arrived (with `initially`: read or not), `earliest` the least t of the feed's
    rows that had arrived by the last query time, including those that no rule reads, and
    `beginnings` the (arrived, t) of later rows with a lesser one; `last_query` is the last query
    time decided; `clock` the feed's clock. NEVER means none. `idle` counts consecutive query times
    without rows. `local_results`: the lists of the keyed stage, if the program is divided. `share`:
    the share of the distributed relations in this state. `members`: those of domains at the last
    query time (codes), if pairs are shared out. `looked_at`: a query time whose rows have been
    counted although the clock has not passed it; it is decided again.
    """

    symbols: Symbols
    rows: dict[Indicator, list[InputRows]] = field(default_factory=dict)
    waiting: dict[Indicator, list[InputRows]] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    answers: dict[str, FluentTable] = field(default_factory=dict)
    instants: dict[str, Table] = field(default_factory=dict)
    last_query: int = NEVER
    clock: int = NEVER
    first_time: int = NEVER
    earliest: int = NEVER
    beginnings: list[tuple[int, int]] = field(default_factory=list)
    looked_at: int = NEVER
    idle: int = 0
    windows: int = 0
    pairs_examined: int = 0
    groundings: int = 0
    local_results: LocalResults | None = None
    share: int = 0
    members: dict[Indicator, Ints] = field(default_factory=dict)
    allowed: Groundings = field(default_factory=dict, repr=False, compare=False)
    domains: dict[Indicator, Table] = field(default_factory=dict, repr=False, compare=False)
    facts: dict[Indicator, Table] | None = field(default=None, repr=False, compare=False)

    @property
    def rows_kept(self) -> int:
        return sum(len(part) for parts in (*self.rows.values(), *self.waiting.values()) for part in parts)
