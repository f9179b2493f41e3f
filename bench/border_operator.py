"""The operator of the family `border` and the evaluator around it, in one process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from bench import Layer, Row, compared
from bench.border_baselines import tree_bulk
from bench.border_worlds import FEED, WORLDS, mixed_queries, rectangles, stream_batches, write_log
from engine.border_monitoring.operator import BorderOperator
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.sources.eventlog import EventLog

PLANE = Feed("plane", Crs.PLANAR, TimeUnit.MS)


def operators(quick: bool) -> Iterator[Row]:
    """10,000 entities and 1,000 regions: the operator without the gate, the evaluator with it."""
    count, entities = (20_000, 1000) if quick else (2_000_000, 10_000)
    regions = (100,) if quick else (1000, 0)
    batches = stream_batches(entities, count, count if quick else 100_000, np.random.default_rng(7))
    for n in regions:
        queries = mixed_queries(n, np.random.default_rng(8), PLANE)
        yield _operator(batches, queries)
        yield _evaluator(batches, queries)
    yield _beside_tree(quick)


def _operator(batches: list[Any], queries: list[Any]) -> Row:
    stage, index = BorderOperator.keyed, BorderOperator().compile(queries, PLANE)
    rates, answer_count = [], 0
    for _ in range(3):
        state, dictionary, answer_count = stage.initial(index), EntityDictionary(), 0
        begin = time.thread_time()
        for batch in batches:
            output = stage.step(index, state, Batch(batch, dictionary), batch.column("t")[-1].as_py())
            state, answer_count = output.state, answer_count + output.changes.num_rows
        rates.append(sum(batch.num_rows for batch in batches) / (time.thread_time() - begin))
    return Row(f"operator, {len(queries)} regions", Layer.ENGINE, sorted(rates)[1], "rows/s", less_is_better=False, facts={"answers": answer_count})


def _evaluator(batches: list[Any], queries: list[Any]) -> Row:
    from engine.runtime.evaluator import Evaluator

    rates, answer_count = [], 0
    for _ in range(3):
        running, answer_count = Evaluator.start(PLANE, queries), 0
        begin = time.thread_time()
        for batch in batches:
            answer_count += running.process(pa.Table.from_batches([batch])).changes.num_rows
        answer_count += running.finish().changes.num_rows
        rates.append(sum(batch.num_rows for batch in batches) / (time.thread_time() - begin))
    return Row(f"evaluator, {len(queries)} regions", Layer.ENGINE, sorted(rates)[1], "rows/s", less_is_better=False, facts={"answers": answer_count})


# -- compared with shapely's tree
# -------------------------------------------------------------------------


def _beside_tree(quick: bool) -> Row:
    """1,000 rectangles: the operator compared with a vectorised program over shapely's STRtree.
    Both get batches of Arrow rows, keep each entity's last position, and find who enters or
    leaves."""
    queries, count = rectangles(), 30_000 if quick else 1_000_000
    with TemporaryDirectory() as folder:
        log = EventLog(Path(folder), FEED.name)
        write_log(log, count, WORLDS["rectangles"])
        batches = [batch for table in log.read() for batch in table.combine_chunks().to_batches(max_chunksize=100_000)]
    methods = {"ours": lambda: _crossings(batches, queries), "STRtree in bulk": lambda: _crossings_by_tree(batches, queries)}
    seconds = compared(methods, lambda found: found)
    rates = {name: sum(batch.num_rows for batch in batches) / spent for name, spent in seconds.items()}
    answers = len(_crossings(batches, queries))
    return Row("operator, 1,000 rectangles", Layer.ENGINE, rates.pop("ours"), "rows/s", rates, less_is_better=False, facts={"answers": answers})


def _crossings(batches: Sequence[pa.RecordBatch], queries: Sequence[RegisteredQuery]) -> np.ndarray:
    """(query, time, what) of each crossing as a number, ascending."""
    stage, index = BorderOperator.keyed, BorderOperator().compile(queries, FEED)
    state, dictionary, found = stage.initial(index), EntityDictionary(), []
    for batch in batches:
        output = stage.step(index, state, Batch(batch, dictionary), batch.column("t")[-1].as_py())
        state = output.state
        found.append(output.changes)
    table = pa.concat_tables(found)
    query, t = (table.column(name).cast(pa.int64()).to_numpy() for name in ("query", "start"))
    return _numbered(query, t, np.asarray(pa.compute.equal(table.column("kind").cast(pa.string()), "in")))


def _crossings_by_tree(batches: Sequence[pa.RecordBatch], queries: Sequence[RegisteredQuery]) -> np.ndarray:
    tree = shapely.STRtree(shapely.box(*np.array([query.specification.region.bounds for query in queries]).T))
    dictionary, last, found = EntityDictionary(), np.full((WORLDS["rectangles"].entities, 2), np.nan), []
    for batch in batches:
        entity = dictionary.encode(batch.column("entity"))
        order = np.argsort(entity, kind="stable")
        at = np.column_stack([batch.column("x").to_numpy(), batch.column("y").to_numpy()])[order]
        own = entity[order]
        begins = np.diff(own, prepend=-1) != 0
        before = np.concatenate([at[:1], at[:-1]])
        before[begins] = last[own[begins]]
        last[own[np.diff(own, append=-1) != 0]] = at[np.diff(own, append=-1) != 0]
        known = np.flatnonzero(~np.isnan(before[:, 0]))
        row, query, what = tree_bulk(tree, before[known], at[known]).T
        found.append(_numbered(query, batch.column("t").to_numpy()[order][known[row]], what == 1))
    return np.sort(np.concatenate(found))


def _numbered(query: np.ndarray, t: np.ndarray, is_in: np.ndarray) -> np.ndarray:
    return np.sort(t.astype(np.int64) << 11 | query.astype(np.int64) << 1 | is_in)
