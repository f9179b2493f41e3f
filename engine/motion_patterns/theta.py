"""The kinds of a query's Θ, as numbers for kernels."""

from __future__ import annotations

LOCAL_NONE, LOCAL_AT_MOST, LOCAL_AT_LEAST, RANKED = range(4)
"""How a query selects by score: no score, `<=`, `>=`, or by ranking the entities."""
RANK_LEAST, RANK_GREATEST, RANK_FIRST_K, RANK_LAST_K = range(4)
"""min, max (all ties), top k ascending, top k descending (ties by entity id)."""
