"""The maritime program on real AIS positions has the same answers row by row, with restarts, in
several partitions, and in one batch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.plain_ais import COLUMNS, document, positions
from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.engine.event_calculus.recordings import DATA, add, answers

pytestmark = pytest.mark.data

LATENESS_S = 60
FEED = Feed.from_json({"name": "ais", "crs": "geographic", "time": "ticks", "tick": 1, "lateness": LATENESS_S, "columns": COLUMNS})


def recording(folder: str) -> tuple[pa.Table, str]:
    """Positions in order of arrival, up to a minute late, t in seconds; and
    the vessels' types as facts."""
    found, facts = positions(DATA / folder)
    delays = np.random.default_rng(5).integers(0, LATENESS_S + 1, len(found))
    good, _ = check_rows(found.take(pa.array(np.argsort(np.asarray(found["t"]) + delays, kind="stable"))), FEED)
    return Stamper().stamp(good), facts


@pytest.mark.parametrize(("folder", "least"), [("ais_northsea_2022", 300), ("ais_us_2022", 3_000)])
def test_as_rows_come_and_all_at_once(folder: str, least: int) -> None:
    stamped, facts = recording(folder)
    asked = RegisteredQuery("q", 1, check(document(facts, 7_200, 600), FEED))
    distributed = RegisteredQuery("q", 1, check(document(facts, 7_200, 600) | {"distributed": True}, FEED))
    whole = answers(distributed, FEED, stamped, partitions=2)
    evaluator = Evaluator.start(FEED, [asked])
    live: Counter[tuple[Any, ...]] = Counter()
    for start in range(0, len(stamped), 4_001):
        add(live, evaluator.process(stamped.slice(start, 4_001)).changes)
        evaluator = Evaluator.load(FEED, [asked], evaluator.dump())
    add(live, evaluator.finish().changes)
    assert live == whole
    assert sum(whole.values()) > least
    # Shown by pytest -s.
    print(folder, len(stamped), sum(whole.values()), Counter(kind for kind, *_ in whole.elements()))
