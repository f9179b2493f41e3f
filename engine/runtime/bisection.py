"""Which queries make an operator fail: found by bisection: each half is tried without the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.model.messages import Message
from engine.operator import RegisteredQuery
from engine.runtime.store import StoppedQuery

Attempt = Callable[[Sequence[RegisteredQuery]], str | None]
"""Evaluates some queries alone; why that fails, or null when it does not. May raise
QueryStopped."""


def failing_queries(suspects: Sequence[RegisteredQuery], attempt: Attempt) -> list[StoppedQuery]:
    """Those of `suspects` that fail without any other query; all of them when it takes several at
    once, none when it does not fail again.

    Takes two attempts for each failing query and halving. Raises what `attempt` raises.
    """
    failure = attempt(suspects)
    if failure is None:
        return []
    if len(suspects) > 1:
        half = len(suspects) // 2
        found = failing_queries(suspects[:half], attempt) + failing_queries(suspects[half:], attempt)
        if found:
            return found
    return [StoppedQuery(query.key, Message("its evaluation failed ({failure})", failure=failure)) for query in suspects]
