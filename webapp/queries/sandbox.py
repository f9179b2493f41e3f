"""A rule program tried on a period of a feed's history, in a separate process that can be killed.

`run` is what that process does (`webapp/cage/child.py`); it loads neither Django nor a database.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from engine.model.messages import Message
from webapp.queries.caged import ROWS, Period, answer_of

if TYPE_CHECKING:
    from webapp.queries.trial_answers import Sandbox

SECONDS = 60.0
"""Twice that of a preview, for busy machines."""
INTERVALS = 8_000
"""Shown at most, over all lanes; of a period that holds more, those of a few entities are."""
FEW = (60, 20, 6)
"""The numbers of entities to try, in this order, when all entities have too many intervals."""
EVENTS = 10
"""Names of events that are listed at most."""
REASONS = 8
"""Sentences for one edge."""
TOO_LONG, TOO_MUCH = 3, 4
"""Exit statuses of the process: more rows, or more intervals, than it may take."""
FAILURES = {
    TOO_LONG: Message("The period holds more than {most:,} events: choose a shorter one.", most=ROWS),
    TOO_MUCH: Message("Even a few entities have too many intervals: choose a shorter period, or name the entities to look at."),
}


def sandbox(
    *,
    log_root: str,
    feed: dict[str, Any],
    specification: Any,
    period: Period,
    entities: Sequence[str] = (),
    above: Mapping[str, Any] | None = None,
) -> Sandbox:
    """Every fluent and event of a checked, frozen rule program over a period of the log,
    with the rules of its edges.

    `entities`: only facts about one of them; empty for all. `above`: as in `preview`.

    Raises PreviewFailed.
    """
    request = {"log_root": log_root, "feed": feed, "specification": specification, "period": asdict(period)}
    request |= {"entities": list(entities), "above": dict(above or {})}
    started = time.monotonic()
    answer = answer_of(
        __name__,
        request,
        seconds=SECONDS,
        too_long=Message("The rules took more than {seconds} seconds: choose a shorter period, or a longer step.", seconds=f"{SECONDS:g}"),
        broke_off=Message("The rules needed too much memory or failed: choose a shorter period."),
        failures=FAILURES,
    )
    return cast("Sandbox", {**answer, "seconds": round(time.monotonic() - started, 2)})


def run(request: Mapping[str, Any], data: bytes = b"") -> dict[str, Any]:
    """The program's work. Raises SystemExit with one of the statuses of FAILURES."""
    from engine.model.feed import Feed
    from engine.sources.eventlog import EventLog

    feed, specification = Feed.from_json(request["feed"]), request["specification"]
    log = EventLog(request["log_root"], feed.name)
    newest = log.end[1]
    if newest is None:
        return {"from": None, "to": None, "rows": 0, "absent": [], "events": [], "entities": None, "rules": [], "lanes": []}
    first, last = Period(**request["period"]).ends(newest)
    table = _accepted(log, feed, first, last)
    rows = table.num_rows
    if request.get("above"):
        feed, table = _with_events(specification, feed, table, request["above"])
    lanes, chosen = _lanes(specification, feed, table, first, last, request["entities"])
    return {"from": first, "to": last, "rows": rows, **_absent(specification, feed, table), "entities": chosen, **_with_rules(lanes)}


def _absent(specification: Any, feed: Any, table: Any) -> dict[str, list[str]]:
    """The inputs that the program names and no row of `table` is, and the events that there are: a
    misspelt event is a valid input without rows."""
    import pyarrow.compute as pc

    from engine.event_calculus.synopsis import INPUTS
    from engine.specification import check

    there = Counter({one["values"]: one["counts"] for one in pc.value_counts(table.column("event").drop_null()).to_pylist()})
    made = INPUTS if "synopsis" in specification else {}
    named = {name for name, _ in check(specification, feed, {}).program.inputs}
    absent = sorted(name for name in named if name not in there and name not in made)
    return {"absent": absent, "events": [name for name, _ in there.most_common(EVENTS)] if absent else []}


def _accepted(log: Any, feed: Any, from_t: int, to_t: int) -> Any:
    """The rows with from_t <= t <= to_t that a job would take: neither late nor repeated."""
    import pyarrow as pa

    from engine.model.events import stamped_schema
    from engine.runtime.gate import Gate

    table = log.tail(from_t, to_t + 1, lateness=feed.lateness)
    if table.num_rows > ROWS:
        raise SystemExit(TOO_LONG)
    columns = [table.column(f.name).cast(f.type) if f.name in table.column_names else pa.nulls(len(table), f.type) for f in stamped_schema(feed)]
    return pa.Table.from_batches([Gate(feed).take(pa.table(columns, schema=stamped_schema(feed)), to_t + 1).ready])


def _with_events(specification: Any, feed: Any, table: Any, above: Mapping[str, Any]) -> tuple[Any, Any]:
    """The feed with the columns of answers, and the rows with the answers that
    are events of the program."""
    import pyarrow as pa

    from engine.derive import sources_of, with_answers
    from engine.operator import RegisteredQuery
    from engine.runtime.derived import rows_with_events
    from engine.runtime.gate import single_batch
    from engine.specification import check

    names = {key: one["name"] for key, one in above.items()}
    documents = {"0": specification, **{key: one["specification"] for key, one in above.items()}}
    query, *others = [RegisteredQuery(key, 1, check(one, feed, {}), sources_of(one, names)) for key, one in documents.items()]
    return with_answers(feed), pa.Table.from_batches([rows_with_events(feed, query, others, single_batch(table))])


def _lanes(
    specification: Any, feed: Any, table: Any, from_t: int, to_t: int, entities: Sequence[str]
) -> tuple[list[dict[str, Any]], list[str] | None]:
    """The lanes and the entities they are restricted to; null for all."""
    from engine.event_calculus.conditions import LimitExceeded
    from engine.event_calculus.sandbox import run_sandbox

    def tried(names: Sequence[str] | None) -> list[dict[str, Any]]:
        return run_sandbox(specification["program"], specification, feed, table, from_t, to_t, entities=names, limit=INTERVALS)

    try:
        return tried(entities or None), list(entities) or None
    except LimitExceeded:
        if entities:
            raise SystemExit(TOO_MUCH) from None
    ranked = _ranked(specification, feed, table, to_t - from_t + 1, to_t)
    for number in FEW:
        try:
            return tried(ranked[:number]), ranked[:number]
        except LimitExceeded:
            continue
    raise SystemExit(TOO_MUCH)


def _ranked(specification: Any, feed: Any, table: Any, span: int, to_t: int) -> list[str]:
    """The entities of the rows: those with the most answers first, then
    those with the most rows."""
    import pyarrow.compute as pc

    from engine.operator import QueryStopped, RegisteredQuery
    from engine.runtime.evaluator import Evaluator
    from engine.specification import check

    document = {**specification, "window": span, "step": span, "origin": to_t}
    evaluator = Evaluator.start(feed, [RegisteredQuery("0", 1, check(document, feed, {}))])
    answers: Counter[str] = Counter()
    # With all entities the program may exceed its limits: then those with the most rows are tried.
    with suppress(QueryStopped):
        for changes in (evaluator.process(table).changes, evaluator.finish().changes):
            answers.update(entity for who in changes.column("entities").to_pylist() for entity in who)
    rows = Counter({one["values"]: one["counts"] for one in pc.value_counts(table.column("entity")).to_pylist()})
    return sorted((name for name in rows if name), key=lambda name: (-answers[name], -rows[name], name))


def _with_rules(lanes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The lanes with each rule given once: edges name it by its place in `rules`."""
    rules: dict[tuple[int, str], int] = {}

    def edge(cause: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if cause is None:
            return None
        number = rules.setdefault((cause["line"], cause["text"]), len(rules))
        return {"rule": number, "because": list(cause["because"][:REASONS])}

    shown = [
        {
            **lane,
            "intervals": [
                {"start": one["start"], "end": one["end"], "began": edge(one["rule_start"]), "ended": edge(one["rule_end"])}
                for one in lane["intervals"]
            ],
        }
        for lane in lanes
    ]
    return {"rules": [{"line": line, "text": text} for line, text in rules], "lanes": shown}
