"""Evaluates a program over a period of history: every fluent, including intermediate ones, with the
rule of each edge. For rule editors and evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from engine.event_calculus.conditions import LimitExceeded
from engine.event_calculus.evaluation import Evaluation
from engine.event_calculus.explanation import Cause, Explainer, key_columns
from engine.event_calculus.intervals import INF
from engine.event_calculus.levels import Node
from engine.event_calculus.operator import CalculusOperator
from engine.event_calculus.parser import clause_texts
from engine.event_calculus.shapes import base_name, entities_of
from engine.event_calculus.specification import CalculusSpecification
from engine.event_calculus.tables import FluentTable
from engine.model.batch import SEQ, Batch, EntityDictionary
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.operator import RegisteredQuery
from engine.specification import check

Lane = dict[str, Any]
MAX_INTERVALS = 20_000


def run_sandbox(
    program_text: str,
    specification: Mapping[str, Any],
    feed: Feed,
    table: pa.Table,
    from_t: int,
    to_t: int,
    *,
    regions: Mapping[str, Any] | None = None,
    entities: Collection[str] | None = None,
    limit: int = MAX_INTERVALS,
) -> list[Lane]:
    """All fluents and events of a program over the rows with from_t <= t <= to_t, taken as one
    window that ends at `to_t`.

    `specification`: a document of the family `calculus`; its `program` is replaced by
    `program_text`; its window, step and origin do not count. `table`: checked rows of the feed in
    any order (other columns are ignored); rows outside the period are left out. `entities`: only
    lanes with one of these among the arguments. `regions`: the stored ones by name.

    A lane, in order of (level, fluent, arguments, value), is
        {"fluent": name, "args": [names], "value": name | None,
         "kind": "input" | "simple" | "derived" | "event", "level": int, "is_output": bool,
         "intervals": [{"start": t, "end": t | None,
                        "rule_start": rule | None, "rule_end": rule | None}]}
    Intervals are half-open [start, end), with end None if it holds at `to_t`; an event of the
    program has value None and start == end. `level` is 0 for inputs, else one more than the
    greatest level that is read. A rule is
        {"line": int, "text": the clause as written, "t": when it fired,
         "because": ["happensAt(start(walking(id1)=true), 680)", ...]};
    None for edges of inputs (they come from rows), and for starts of intervals
    that held before the period.

    Raises Refused with all faults of the program or the document, LimitExceeded for more than
    `limit` intervals or a query beyond its limits.
    """
    document = {**specification, "program": program_text, "window": max(1, to_t - from_t + 1), "step": max(1, to_t - from_t + 1), "origin": to_t}
    checked: CalculusSpecification = check(document, feed, regions)
    evaluation = _evaluate(checked, feed, table, from_t, to_t)
    lanes = list(_lanes(checked, evaluation, limit, None if entities is None else frozenset(entities)))
    return sorted(lanes, key=lambda lane: (lane["level"], lane["fluent"], lane["args"], lane["value"] or ""))


def _evaluate(checked: CalculusSpecification, feed: Feed, table: pa.Table, from_t: int, to_t: int) -> Evaluation:
    """The window of the period; like in the operator, its rows include the
    critical points of a synopsis."""
    times = np.asarray(table["t"])
    mine = np.flatnonzero((times >= from_t) & (times <= to_t))
    mine = mine[np.argsort(times[mine], kind="stable")]
    rows = table.take(pa.array(mine)).combine_chunks()
    if SEQ not in rows.column_names:
        rows = rows.append_column(SEQ, pa.array(np.arange(len(mine))))
    operator = CalculusOperator()
    index = operator.compile([RegisteredQuery("sandbox", 1, checked)], feed)
    compiled = index.queries[0]
    state = compiled.windows.initial()
    keyed = operator.keyed.initial(index)
    batches = rows.to_batches()
    if batches:
        # Gaps are known when the clock has passed them: once with the rows, once
        # with the end of the period.
        for batch in (batches[0], batches[0].slice(0, 0)):
            emitted = operator.keyed.step(index, keyed, Batch(batch, EntityDictionary()), to_t + 1).emitted
            if emitted is not None and emitted.num_rows:
                compiled.take(state, emitted)
    state.earliest = from_t
    return compiled.windows.evaluate(state, to_t, final=True)[0]


def _lanes(checked: CalculusSpecification, evaluation: Evaluation, limit: int, entities: frozenset[str] | None) -> Iterator[Lane]:
    explainer = Explainer(evaluation, clause_texts(checked.text))
    levels = checked.plan.levels
    left = limit
    for name, node, table in _fluents(evaluation):
        for lane in _fluent_lanes(evaluation, explainer, name, node, table, entities):
            left = _within(left, limit, len(lane["intervals"]))
            yield {**lane, "level": 0 if node is None else levels[node], "is_output": base_name(name) in checked.outputs}
    for node in checked.plan.nodes:
        if node.kind == "event":
            for lane in _event_lanes(evaluation, explainer, node, entities):
                left = _within(left, limit, len(lane["intervals"]))
                yield {**lane, "level": levels[node], "is_output": base_name(node.name) in checked.outputs}


def _within(left: int, limit: int, more: int) -> int:
    if more > left:
        raise LimitExceeded(Message("the period holds more than {limit:,} intervals; choose a shorter one or fewer entities", limit=limit))
    return left - more


def _fluents(evaluation: Evaluation) -> Iterator[tuple[str, Node | None, FluentTable]]:
    for (name, _), table in evaluation.inputs.items():
        yield name, None, table
    for node, table in evaluation.fluents.items():
        yield node.name, node, table


def _fluent_lanes(
    evaluation: Evaluation, explainer: Explainer, name: str, node: Node | None, table: FluentTable, entities: frozenset[str] | None
) -> Iterator[Lane]:
    names = evaluation.kb.symbols.names
    keys = [column.tolist() for column in table.keys]
    for row in range(table.n):
        key = tuple(column[row] for column in keys)
        *args, value = (names[code] for code in key)
        part = slice(table.lists.ptr[row], table.lists.ptr[row + 1])
        if not _has_entity(args, entities) or part.start == part.stop:
            continue
        intervals = []
        for s, e in zip(table.lists.s[part].tolist(), table.lists.e[part].tolist(), strict=True):
            causes = (None, None) if node is None else (explainer.explain_start(node, key, s), explainer.explain_end(node, key, e))
            intervals.append(_interval(s, None if e == INF else e, *causes))
        kind = "input" if node is None else node.kind
        yield {"fluent": base_name(name), "args": entities_of(name, args), "value": value, "kind": kind, "intervals": intervals}


def _event_lanes(evaluation: Evaluation, explainer: Explainer, node: Node, entities: frozenset[str] | None) -> Iterator[Lane]:
    names = evaluation.kb.symbols.names
    moments = evaluation.events[node].t
    assert moments is not None
    columns = key_columns(evaluation, node)
    found: dict[tuple[int, ...], list[int]] = {}
    for row, t in enumerate(moments.tolist()):
        found.setdefault(tuple(column[row] for column in columns), []).append(t)
    for key, times in found.items():
        args = [names[code] for code in key]
        if _has_entity(args, entities):
            intervals = [_interval(t, t, explainer.explain_event(node, key, t), None) for t in sorted(times)]
            yield {"fluent": base_name(node.name), "args": entities_of(node.name, args), "value": None, "kind": "event", "intervals": intervals}


def _has_entity(args: Collection[str], entities: frozenset[str] | None) -> bool:
    return entities is None or not args or not entities.isdisjoint(args)


def _interval(start: int, end: int | None, began: Cause | None, ended: Cause | None) -> Lane:
    return {"start": start, "end": end, "rule_start": began.to_json() if began else None, "rule_end": ended.to_json() if ended else None}
