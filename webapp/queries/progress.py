"""The progress of entities in a motion pattern now: computed from the newest rows of the log, in a
process that can be killed.

`run` is what that process does (`webapp/cage/child.py`), within the limits of a preview; it loads
neither Django nor a database.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from engine.model.messages import Message
from webapp.queries.caged import ROWS, SECONDS, answer_of

if TYPE_CHECKING:
    from engine.model.batch import Batch
    from engine.motion_patterns.progress import PatternProgress
    from webapp.queries.trial_answers import ProgressAnswer

ENTITIES = 200
"""Entities shown at most: those that match, then those with the most steps."""


def progress(*, log_root: str, feed: dict[str, Any], specification: Any, entity: str | None = None) -> ProgressAnswer:
    """The steps that each entity (or one) has done of a checked, frozen motion pattern, at the
    latest evaluation time that the log has reached.

    Raises PreviewFailed.
    """
    request = {"log_root": log_root, "feed": feed, "specification": specification, "entity": entity}
    answer = answer_of(
        __name__,
        request,
        seconds=SECONDS,
        too_long=Message("It took more than {seconds} seconds to read what the windows reach: choose shorter ones.", seconds=f"{SECONDS:g}"),
        broke_off=Message("These windows need too much memory: choose shorter ones."),
    )
    return cast("ProgressAnswer", answer)


def run(request: Mapping[str, Any], data: bytes = b"") -> dict[str, Any]:
    """The program's work."""
    from engine.model.feed import Feed
    from engine.motion_patterns.plan import compile_index
    from engine.motion_patterns.progress import progress as steps_of
    from engine.motion_patterns.progress import reach
    from engine.operator import RegisteredQuery
    from engine.sources.eventlog import EventLog
    from engine.specification import check

    feed = Feed.from_json(request["feed"])
    specification = check(request["specification"], feed, {})
    index = compile_index([RegisteredQuery("0", 1, specification)], feed)
    log = EventLog(request["log_root"], feed.name)
    newest = log.end[1]
    if newest is None:
        return {"at": None, "rows": 0, "total": 0, "entities": []}
    at = newest // specification.every * specification.every
    entity = request["entity"]
    batch = accepted_rows(log, feed, at - reach(index, 0) + 1, at + 1, entity)
    rows = _rows(batch, steps_of(index, 0, batch, at))
    is_ranked = specification.theta is not None and specification.theta.op not in ("<=", ">=")
    if entity is not None and is_ranked and any(row["done"] == row["of"] for row in rows):
        # Whether it matches depends on the scores of all others.
        batch = accepted_rows(log, feed, at - reach(index, 0) + 1, at + 1, None)
        rows = [row for row in _rows(batch, steps_of(index, 0, batch, at)) if row["entity"] == entity]
    sign = -1 if specification.theta is not None and (specification.theta.descending or specification.theta.op in ("max", ">=")) else 1
    ordered = sorted(rows, key=lambda row: (not row["matches"], -row["done"], sign * (row["score"] or 0), row["entity"]))
    return {"at": at, "rows": len(batch), "total": len(ordered), "entities": ordered[:ENTITIES]}


def accepted_rows(log: Any, feed: Any, from_t: int, to_t: int, entity: str | None) -> Batch:
    """The accepted rows (of one entity) with from_t <= t < to_t, sorted by (t, seq). A duplicate
    has its original's entity and t, by which it is recognised."""
    import pyarrow as pa

    from engine.model.batch import Batch, EntityDictionary
    from engine.model.events import stamped_schema
    from engine.runtime.gate import Gate

    table = log.tail(from_t, to_t, lateness=feed.lateness, entities=None if entity is None else [entity])
    if table.num_rows > ROWS:
        raise MemoryError(f"{table.num_rows} rows")
    columns = [table.column(f.name).cast(f.type) if f.name in table.column_names else pa.nulls(len(table), f.type) for f in stamped_schema(feed)]
    batch = Batch(Gate(feed).take(pa.table(columns, schema=stamped_schema(feed)), to_t).ready, EntityDictionary())
    batch.entity  # noqa: B018  Encodes the entities: the dictionary is full from here on.
    return batch


def _rows(batch: Batch, progress: PatternProgress) -> list[dict[str, Any]]:
    """One row for each entity that has done a step."""
    import numpy as np

    t, x, y, names = batch.t, batch.x, batch.y, batch.entities.names

    def witness(code: int, step: int) -> dict[str, Any] | None:
        row = int(progress.row[code, step])
        if row < 0:
            return None
        distance = float(progress.distance[code, step])
        place = {"t": int(t[row]), "x": float(x[row]), "y": float(y[row])}
        return place if math.isnan(distance) else {**place, "distance": distance}

    steps = range(progress.done.shape[1])
    return [
        {
            "entity": names[code],
            "done": int(progress.done[code].sum()),
            "of": len(steps),
            "matches": bool(progress.matches[code]),
            "score": None if math.isnan(progress.score[code]) else float(progress.score[code]),
            "steps": [witness(code, step) for step in steps],
        }
        for code in np.flatnonzero(progress.done.any(axis=1)).tolist()
    ]
