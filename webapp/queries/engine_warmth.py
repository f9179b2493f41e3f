"""Warm-up of a process that evaluates queries: kernels are read from their cache at their
first call. Its forks do not write to that cache: other processes load it as code, and
forks run what users wrote.
"""

from __future__ import annotations

from typing import Any


def warm_up() -> None:
    """One row passes through the most common families."""
    import pyarrow as pa
    from numba.core import caching

    from engine.model.events import Stamper, row_schema
    from engine.model.feed import Crs, Feed, TimeUnit
    from engine.operator import RegisteredQuery
    from engine.runtime.evaluator import Evaluator
    from engine.sinks.facts import facts_of
    from engine.specification import check

    square = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
    own: list[dict[str, Any]] = [
        {"family": "border"},
        {"family": "transition", "within": 3, "types": ["passed", "returned", "stayed_in", "stayed_out"]},
    ]
    for crs in Crs:
        feed = Feed("warm", crs, TimeUnit.TICKS)
        documents = [{"version": 1, "region": region, **one} for one in own for region in (square, {"center": [1, 1], "radius": 1})]
        queries = [RegisteredQuery(str(i), 1, check(document, feed, {})) for i, document in enumerate(documents)]
        rows = [{"event": "position", "entity": "a", "t": t, "x": x, "y": 1.0} for t, x in enumerate((-1.0, 1.0, 1.5, 5.0, 1.0))]
        evaluator = Evaluator.start(feed, queries)
        facts_of(evaluator.process(Stamper().stamp(pa.Table.from_pylist(rows, schema=row_schema(feed)))).changes)
        facts_of(evaluator.finish().changes)
    caching.Cache.save_overload = _nothing  # type: ignore[method-assign]
    caching._CacheLocator.ensure_cache_path = _nothing  # type: ignore[method-assign]


def _nothing(*_: object) -> None:
    """Replaces writing to the cache."""
