"""The answers that a query would have given in a period of history, computed in a separate process
that can be killed.

`run` is what that process does (`webapp/cage/child.py`); it loads neither Django nor a database.
Only the rows of the period are evaluated: an entity's first row in it is its first row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from engine.model.faults import refuse
from engine.model.messages import Message, untranslated
from webapp.queries.caged import ROWS, SECONDS, Period, PreviewFailed, answer_of

if TYPE_CHECKING:
    from webapp.queries.trial_answers import Preview

ANSWERS = 1_000
"""At most this many are shown, the newest."""
ANSWERS_FOUND = 250_000
"""The search ends at this number. A job stops a query that finds as many in one step, but not one
that finds them over several."""


def preview(*, log_root: str, feed: dict[str, Any], specification: Any, period: Period, above: Mapping[str, Any] | None = None) -> Preview:
    """Answers of a checked, frozen specification on a period of the log.

    `above`: `name` and `specification` of all that it derives from, by id.

    Raises PreviewFailed, also for too many answers, and Refused when a job would stop the query.
    """
    request = {"log_root": log_root, "feed": feed, "specification": specification, "period": asdict(period), "above": dict(above or {})}
    started = time.monotonic()
    answer = answer_of(
        __name__,
        request,
        seconds=SECONDS,
        too_long=Message(
            "The preview took more than {seconds} seconds: choose a shorter period or, for rules, a longer step.", seconds=f"{SECONDS:g}"
        ),
        broke_off=Message("The preview needed too much memory or failed: choose a shorter period."),
    )
    if "stopped" in answer:
        raise refuse("", Message("A job would stop this query: {reason}.", reason=untranslated(answer["stopped"])))
    if "too_many" in answer:
        text = Message("More than {most:,} answers in {rows:,} rows: choose a shorter period.", most=ANSWERS_FOUND, rows=answer["too_many"])
        raise PreviewFailed(text)
    return cast("Preview", {**answer, "seconds": round(time.monotonic() - started, 2)})


def run(request: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
    """The program's work."""
    import pyarrow.compute as pc

    from engine.derive import sources_of
    from engine.families import family_of
    from engine.model.feed import Feed
    from engine.operator import QueryStopped, RegisteredQuery
    from engine.runtime.derived import GraphEvaluator
    from engine.runtime.steps import MOST_ANSWERS, STEP_ROWS
    from engine.sinks.answer_rows import answer_text
    from engine.sinks.facts import Fact, facts_of
    from engine.sources.eventlog import EventLog
    from engine.specification import check
    from webapp.queries.unmet_conditions import UnmetConditions

    feed = Feed.from_json(request["feed"])
    log = EventLog(request["log_root"], feed.name)
    newest = log.end[1]
    if newest is None:
        return {"from": None, "to": None, "rows": 0, "truncated": False, "total": 0, "answers": [], "lacks_places": False, "unmet": []}
    from_t, to_t = Period(**request["period"]).ends(newest)
    read, truncated = _rows_to_read(log, from_t, to_t, feed.lateness)
    names = {key: one["name"] for key, one in request["above"].items()}
    documents = {"0": request["specification"], **{key: one["specification"] for key, one in request["above"].items()}}
    queries = [RegisteredQuery(key, 1, check(one, feed, {}), sources_of(one, names)) for key, one in documents.items()]
    evaluator = GraphEvaluator.local(feed, queries)
    if read.start > 0:
        evaluator.skip_to(read.start - 1)
    facts: dict[bytes, Fact] = {}
    unmet = UnmetConditions(request["specification"], feed)
    rows, places, oldest = 0, 0, to_t
    try:
        for changes, count, placed, least in _outcomes(evaluator, _seen(unmet, _tables(log, read, from_t, to_t, STEP_ROWS)), to_t):
            rows += count
            places += placed
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
    asked = queries[0].specification
    return {
        "from": oldest if rows else from_t,
        "to": to_t,
        "rows": rows,
        "truncated": truncated,
        "total": len(asserted),
        "answers": answers,
        "lacks_places": rows > 0 and places == 0 and family_of(asked).uses_places(asked),
        "unmet": unmet.texts() if rows else [],
    }


def _rows_to_read(log: Any, from_t: int, to_t: int, lateness: int) -> tuple[range, bool]:
    """The numbers of the rows to be read, and whether ROWS cut the period short."""
    import pyarrow.compute as pc

    span = log.numbers_of(from_t, to_t + 1, lateness)
    earliest = max(log.start, span.first)
    first = max(earliest, span.stop - ROWS)
    before = log.read(earliest, first, columns=["t"]) if first > earliest else ()
    return range(first, span.stop), any(pc.any(_inside(table, from_t, to_t)).as_py() for table in before)


def _inside(table: Any, from_t: int, to_t: int) -> Any:
    import pyarrow.compute as pc

    return pc.and_(pc.greater_equal(table.column("t"), from_t), pc.less_equal(table.column("t"), to_t))


def _tables(log: Any, read: range, from_t: int, to_t: int, step: int) -> Iterator[Any]:
    """The rows of the period, in tables of at most `step` rows of the log, as a job takes them."""
    for segment in log.read(read.start, read.stop):
        for begin in range(0, segment.num_rows, step):
            table = segment.slice(begin, step)
            yield table.filter(_inside(table, from_t, to_t))


def _seen(unmet: Any, tables: Iterator[Any]) -> Iterator[Any]:
    for table in tables:
        unmet.see(table)
        yield table


def _outcomes(evaluator: Any, tables: Iterator[Any], to_t: int) -> Iterator[tuple[Any, int, int, int]]:
    """(changes, rows, rows with a place, least t) of each table, then those of the period's end."""
    import pyarrow.compute as pc

    for table in tables:
        if table.num_rows:
            placed = table.num_rows - table.column("x").null_count
            yield evaluator.process(table).changes, table.num_rows, placed, pc.min(table.column("t")).as_py()
    yield evaluator.finish(to_t).changes, 0, 0, to_t
