"""How many events a query will keep, estimated from a feed's recent rows before it runs.

Counted is only what is kept whatever else is stored: a query that would run is not refused, and one that passes the limit all the same is stopped.
Events come at the pace of those rows and stay for the time that their variable needs them, so as many are stored at a time as rows come while one
stays (Little's law).
"""

from __future__ import annotations

import numpy as np

from engine.constraint_queries.expiration import DOMAINS, TIGHT, surely_kept
from engine.constraint_queries.pairs import AFTER, Ints
from engine.constraint_queries.plan import ConstraintIndex
from engine.constraint_queries.unary import passing_rows
from engine.model.batch import Batch

_EXTRAPOLATED = 1_000
"""Windows longer than this many times the rows' span cannot be estimated from them."""


def times_kept(index: ConstraintIndex) -> Ints:
    """How long each variable of the only query of `index` keeps an event at least; 0 where that depends on others."""
    m = len(index.plans[0].filters)
    return surely_kept(index.graphs.times[:, AFTER].reshape(m, m), tight=index.graphs.form[0] == TIGHT)


def expected_events(index: ConstraintIndex, recent: Batch) -> float | None:
    """The events that the only query of `index` keeps at a time at least, on the average, at the pace of `recent` rows; null when these cover too
    little time to tell."""
    kept = times_kept(index)
    covered = int(recent.t.max() - recent.t.min()) if len(recent) else 0
    if covered * _EXTRAPOLATED < max(int(kept.max(initial=0)), 1):
        return None
    _, _, bits = passing_rows(index, recent)
    own = np.where((bits[:, None] >> np.arange(len(kept))) & 1, kept, 0)
    # Stored once for all variables, or once for each.
    times = own.sum(axis=1) if index.graphs.form[0] == DOMAINS else own.max(axis=1, initial=0)
    return float(times.sum(dtype=np.float64)) / covered
