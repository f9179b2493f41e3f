"""Estimates how many events a query will keep, from a feed's recent rows, before it runs.

The estimate is a lower bound: it counts only events that are kept in any case. So no query is
refused that would run; one that exceeds the limit later is stopped then. Events arrive at the rate
of the recent rows and are kept for as long as their variable needs them, so the number stored at a
time is the rate multiplied by that time (Little's law).
"""

from __future__ import annotations

import numpy as np

from engine.constraint_queries.expiration import DOMAINS, TIGHT, minimal_kept_spans
from engine.constraint_queries.pairs import AFTER, Ints
from engine.constraint_queries.plan import ConstraintIndex
from engine.constraint_queries.unary import passing_rows
from engine.model.batch import Batch

_EXTRAPOLATED = 1_000
"""The estimate is not made for windows longer than this many times the time span of the rows."""


def minimal_kept_times(index: ConstraintIndex) -> Ints:
    """The shortest time for which each variable of the only query of `index` keeps an event; 0 if
    it depends on other events."""
    m = len(index.plans[0].filters)
    return minimal_kept_spans(index.graphs.times[:, AFTER].reshape(m, m), tight=index.graphs.form[0] == TIGHT)


def expected_events(index: ConstraintIndex, recent: Batch) -> float | None:
    """A lower bound of the average number of events that the only query of `index` keeps, at the
    arrival rate of the `recent` rows; null if these cover too short a time."""
    kept = minimal_kept_times(index)
    covered = int(recent.t.max() - recent.t.min()) if len(recent) else 0
    if covered * _EXTRAPOLATED < max(int(kept.max(initial=0)), 1):
        return None
    _, _, bits = passing_rows(index, recent)
    own = np.where((bits[:, None] >> np.arange(len(kept))) & 1, kept, 0)
    # An event is stored once for all variables, or once for each.
    times = own.sum(axis=1) if index.graphs.form[0] == DOMAINS else own.max(axis=1, initial=0)
    return float(times.sum(dtype=np.float64)) / covered
