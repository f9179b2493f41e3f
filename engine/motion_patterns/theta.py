"""How a query's Θ decides, as numbers for kernels."""

from __future__ import annotations

LOCAL_NONE, LOCAL_AT_MOST, LOCAL_AT_LEAST, RANKED = range(4)
"""How a query's scores decide: no score, `<=`, `>=`, or entities against each other."""
RANK_LEAST, RANK_GREATEST, RANK_FIRST_K, RANK_LAST_K = range(4)
"""min, max (all ties), top k ascending, top k descending (ties by entity id)."""
