"""Constraint queries over the TAO buoys: the three forms of expiration and every way of delivery
agree, and slices agree with the oracle."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.constraint_worlds import calibrated, shapes, sorted_columns
from engine.constraint_queries.reader import EXPIRATIONS
from engine.model.events import Stamper, check_rows
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.runtime.evaluator import Evaluator
from tests.engine.runs import registered
from tests.oracles.constraint_queries import Answer, answers

pytestmark = pytest.mark.data
DAY = 86_400_000
MEASURED = ("sst", "air_temp", "humidity", "zon_wind", "mer_wind")
FEED = Feed("tao", Crs.GEOGRAPHIC, TimeUnit.MS, columns=dict.fromkeys(MEASURED, ColumnType.FLOAT), lateness=0, dedupe=True)
SLICES = {2: (30, 6), 3: (14, 4), 4: (8, 2), 5: (6, 2)}
"""By the number of variables: rows of a slice, of which the oracle
enumerates all tuples, and queries."""


def buoys(data: Path) -> pa.Table:
    """All measurements as rows of FEED."""
    names = {"id": "entity", "ts": "t", "lon": "x", "lat": "y", **{name: name for name in MEASURED}}
    table = pq.read_table(data / "buoys_tao" / "measurements.parquet", columns=list(names)).rename_columns(list(names.values()))
    good, dead = check_rows(table, FEED)
    assert not dead
    return good


def stamped(rows: pa.Table) -> pa.Table:
    return Stamper().stamp(rows)


def evaluated(rows: pa.Table, documents: list[dict[str, Any]], batch: int, partitions: int) -> Counter[Answer]:
    """Answers of the evaluator over stamped rows, `batch` at a time."""
    evaluator = Evaluator.start(FEED, registered(documents, FEED), partitions)
    found = Counter[Answer]()
    for first in range(0, len(rows), batch):
        _add(found, evaluator.process(rows.slice(first, batch)).changes)
    _add(found, evaluator.finish().changes)
    evaluator.check()
    return found


def _add(found: Counter[Answer], changes: pa.Table) -> None:
    for row in changes.select(["query", "entities", "start", "end", "evidence"]).to_pylist():
        seqs = tuple(item["seq"] for item in row["evidence"])
        found[int(row["query"]), tuple(row["entities"]), row["start"], row["end"], seqs] += 1


def forms(documents: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [[{**one, "expiration": form} for one in documents] for form in EXPIRATIONS]


def queries(count: int, verbosity: float, sample: pa.Table) -> list[dict[str, Any]]:
    """`count` graphs of 2 to 5 variables, each completed by about `verbosity` of the events."""
    made = shapes(count, (2, 3, 4, 5), MEASURED, (2, 10), DAY, (300_000.0, 2_000_000.0))
    return calibrated(made, verbosity, sample, FEED, MEASURED)


@pytest.mark.parametrize("verbosity", [0.001, 0.01, 0.05])
def test_the_three_forms_of_expiration_agree_on_the_buoys(verbosity: float, data_folder: Path) -> None:
    rows = stamped(buoys(data_folder).slice(90_000, 6_000))
    documents = queries(8, verbosity, rows.slice(0, 3_000))
    first, *others = (
        evaluated(rows, some, batch, partitions) for some, batch, partitions in zip(forms(documents), (6_000, 500, 1_700), (1, 3, 2), strict=True)
    )

    assert others == [first, first]
    assert sum(first.values()) > 8 * 6_000 * verbosity / 4


@pytest.mark.parametrize("variables", SLICES)
def test_answers_in_slices_of_the_buoys_are_those_of_all_tuples(variables: int, data_folder: Path) -> None:
    whole = buoys(data_folder)
    length, count = SLICES[variables]
    chance = np.random.default_rng(variables)
    values = sorted_columns(whole, MEASURED)
    made = shapes(count, (variables,), MEASURED, (2, 10), DAY, (800_000.0, 3_000_000.0), seed=variables)
    compare = [["V1.sst", "<", "V2.sst"]]
    documents = [one.document(0.6 if one.symmetric else 0.9, values, report="first" if n % 3 else "all") for n, one in enumerate(made)]
    for document in documents[:4:2]:
        document["constraints"].append({"between": ["V1", "V2"], "compare": compare})
    found = 0
    for _ in range(3):
        rows = stamped(_neighbourhood(whole, int(chance.integers(60_000, 100_000)), length))
        listed = rows.select(["seq", "entity", "t", "x", "y", *MEASURED]).to_pylist()
        expected = answers(listed, documents, geographic=True)
        found += sum(expected.values())
        for some, batch, partitions in zip(forms(documents), (100, 3, 1), (1, 3, 2), strict=True):
            assert evaluated(rows, some, batch, partitions) == expected
    assert found > 0


def _neighbourhood(whole: pa.Table, anchor: int, count: int) -> pa.Table:
    """`count` rows from `anchor` on of the buoys within 10 degrees of longitude."""
    x, y = whole.column("x").to_numpy(), whole.column("y").to_numpy()
    near = (np.abs((x - x[anchor] + 180) % 360 - 180) <= 10) & (np.abs(y - y[anchor]) <= 6) & (np.arange(len(x)) >= anchor)
    return whole.take(pa.array(np.flatnonzero(near)[:count]))
