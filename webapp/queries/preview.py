"""The answers that a query would have given in the last minutes or days, computed in a separate
process that can be killed.

`run` is what that process does (`webapp/cage/child.py`); it loads neither Django nor a database.
The evaluation begins with the span: an entity's first row in it is its first row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from engine.model.faults import refuse
from engine.model.messages import Message, untranslated
from webapp.queries.caged import ROWS, SECONDS, PreviewFailed, answer_of

if TYPE_CHECKING:
    from webapp.queries.trial_answers import Preview

ANSWERS = 1_000
"""At most this many are shown, the newest."""
ANSWERS_FOUND = 250_000
"""The search ends at this number. A job stops a query that finds as many in one step, but not one
that finds them over several."""


def preview(*, log_root: str, feed: dict[str, Any], specification: Any, span: int, above: Mapping[str, Any] | None = None) -> Preview:
    """Answers of a checked, frozen specification on the last `span` (in
    the feed's unit) of the log.

    `above`: `name` and `specification` of all that it derives from, by id.

    Raises PreviewFailed, also for too many answers, and Refused when a job would stop the query.
    """
    request = {"log_root": log_root, "feed": feed, "specification": specification, "span": span, "above": dict(above or {})}
    started = time.monotonic()
    answer = answer_of(
        __name__,
        request,
        seconds=SECONDS,
        too_long=Message("The preview took more than {seconds} seconds: choose a shorter span.", seconds=f"{SECONDS:g}"),
        broke_off=Message("The preview needed too much memory or failed: choose a shorter span."),
    )
    if "stopped" in answer:
        raise refuse("", Message("A job would stop this query: {reason}.", reason=untranslated(answer["stopped"])))
    if "too_many" in answer:
        text = Message("More than {most:,} answers in {rows:,} rows: choose a shorter span.", most=ANSWERS_FOUND, rows=answer["too_many"])
        raise PreviewFailed(text)
    return cast("Preview", {**answer, "seconds": round(time.monotonic() - started, 2)})


def run(request: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
    """The program's work."""
    import pyarrow.compute as pc

    from engine.derive import sources_of
    from engine.model.feed import Feed
    from engine.operator import QueryStopped, RegisteredQuery
    from engine.runtime.derived import GraphEvaluator
    from engine.runtime.steps import MOST_ANSWERS, STEP_ROWS
    from engine.sinks.answer_rows import answer_text
    from engine.sinks.facts import Fact, facts_of
    from engine.sources.eventlog import EventLog
    from engine.specification import check

    feed = Feed.from_json(request["feed"])
    log = EventLog(request["log_root"], feed.name)
    next_seq, newest = log.end
    if newest is None:
        return {"from": None, "to": None, "rows": 0, "truncated": False, "total": 0, "answers": []}
    from_t = newest - int(request["span"])
    first, truncated = _first_row(log, from_t, newest, next_seq)
    names = {key: one["name"] for key, one in request["above"].items()}
    documents = {"0": request["specification"], **{key: one["specification"] for key, one in request["above"].items()}}
    queries = [RegisteredQuery(key, 1, check(one, feed, {}), sources_of(one, names)) for key, one in documents.items()]
    evaluator = GraphEvaluator.local(feed, queries)
    if first > 0:
        evaluator.skip_to(first - 1)
    facts: dict[bytes, Fact] = {}
    rows, oldest = 0, newest
    try:
        for changes, count, least in _outcomes(evaluator, log, first, next_seq, STEP_ROWS):
            rows += count
            oldest = min(oldest, least)
            changes = changes.filter(pc.equal(changes.column("query"), "0"))
            if changes.num_rows > MOST_ANSWERS:
                return {"stopped": Message("it finds more than {most:,} answers in {rows:,} rows", most=MOST_ANSWERS, rows=count)}
            facts.update((fact.key, fact) for fact in facts_of(changes))
            if len(facts) > ANSWERS_FOUND:
                return {"too_many": rows}
    except QueryStopped as stop:
        return {"stopped": stop.reason}
    asserted = sorted((fact for fact in facts.values() if fact.weight), key=lambda fact: (fact.start, fact.key))
    answers = [{**json.loads(answer_text(fact, backfill=True, detected_at=0)), "query": None} for fact in asserted[-ANSWERS:]]
    return {"from": max(from_t, oldest), "to": newest, "rows": rows, "truncated": truncated, "total": len(asserted), "answers": answers}


def _first_row(log: Any, from_t: int, newest: int, next_seq: int) -> tuple[int, bool]:
    """The number of the first row to be read, and whether ROWS cut the span short."""
    import pyarrow.compute as pc

    limit = max(log.start, next_seq - ROWS)
    earliest = log.numbers_of(from_t, newest + 1, 0).first
    if earliest >= limit:
        table = log.tail(from_t, columns=["seq"])
        return max(pc.min(table.column("seq")).as_py() if table.num_rows else next_seq, limit), False
    # A long span of a large log: only what may be evaluated is looked at, and one earlier row.
    cut = any(pc.max(table.column("t")).as_py() >= from_t for table in log.read(earliest, limit, columns=["t"]) if table.num_rows)
    inside = (table.filter(pc.greater_equal(table.column("t"), from_t)) for table in log.read(limit, next_seq, columns=["seq", "t"]))
    return min((pc.min(table.column("seq")).as_py() for table in inside if table.num_rows), default=next_seq), cut


def _outcomes(evaluator: Any, log: Any, first: int, next_seq: int, step: int) -> Iterator[tuple[Any, int, int]]:
    """(changes, rows, least t) of each table of at most `step` rows, as a job takes them, then
    those of the input's end."""
    import pyarrow.compute as pc

    least = 2**62
    for segment in log.read(first, next_seq):
        for begin in range(0, segment.num_rows, step):
            table = segment.slice(begin, step)
            least = pc.min(table.column("t")).as_py()
            yield evaluator.process(table).changes, table.num_rows, least
    yield evaluator.finish().changes, 0, least
