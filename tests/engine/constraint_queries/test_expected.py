"""The estimated number of stored events, against the real one; a query is refused, with the figure,
if the estimate is too great."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from engine.constraint_queries import operator
from engine.constraint_queries.estimates import expected_events
from engine.constraint_queries.operator import ConstraintOperator
from engine.model.batch import Batch, EntityDictionary
from engine.model.events import Stamper
from engine.runtime.evaluator import Evaluator
from tests.engine.constraint_queries.worlds import PLANE, table_of
from tests.engine.runs import registered


def document(form: str = "loose", latest: tuple[int, int] = (20, 50)) -> dict[str, Any]:
    """A before B, and C after B and not before A. Of the ten rows of a step two
    may be A, four B and one C."""
    return {
        "family": "constraint",
        "variables": {"A": {"where": [["n", "<", 2]]}, "B": {"where": [["n", "<", 4]]}, "C": {"where": [["n", "=", 9]]}},
        "constraints": [
            {"between": ["A", "B"], "dt": [1, latest[0]], "distance": {"max": 0.5}},
            {"between": ["A", "C"], "dt": [0, latest[1]]},
            {"between": ["B", "C"], "dt": [1, latest[1]]},
        ],
        "expiration": form,
    }


def stream(steps: int) -> pa.Table:
    rows = [{"entity": "e", "t": t, "n": n, "x": float(10 * n + t % 10), "y": 0.0} for t in range(steps) for n in range(10)]
    return Stamper().stamp(table_of(rows))


def expected(one: dict[str, Any], rows: pa.Table) -> float | None:
    index = ConstraintOperator().compile(registered([one], PLANE), PLANE)
    return expected_events(index, Batch(rows.combine_chunks().to_batches()[0], EntityDictionary()))


@pytest.mark.parametrize(("form", "most"), [("loose", 2 * 50), ("domains", 2 * 50), ("tight", 2 * 20)])
def test_as_many_are_expected_as_are_kept_whatever_else_is_stored(form: str, most: int) -> None:
    # A's event is kept for 50, or for the 20 after which no B can come; events of B and C
    # only if an A came before.
    one = document(form)
    found = expected(one, stream(1_000))
    assert found == pytest.approx(most, rel=0.01)
    evaluator = Evaluator.start(PLANE, registered([one], PLANE))
    evaluator.process(stream(200))
    assert evaluator.counters()["constraint"]["peak_events"] >= most


def test_rows_that_cover_no_time_tell_nothing() -> None:
    assert expected(document(latest=(20, 5_000)), stream(2).slice(0, 10)) is None
    assert expected(document(latest=(20, 5_000)), stream(2)) is None
    assert expected(document(latest=(20, 5_000)), stream(7)) is not None


def test_too_much_is_refused_with_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = ConstraintOperator()
    (query,) = registered([document()], PLANE)
    assert stages.refusal(query, PLANE, lambda: stream(1_001)) is None
    monkeypatch.setattr(operator, "MOST_EVENTS", 100)
    reason = stages.refusal(query, PLANE, lambda: stream(1_001))
    assert reason is not None
    assert reason.startswith("at the rate of the feed's last 10,010 rows this query would keep about 100 events at a time; at most 100 are kept")
    monkeypatch.setattr(operator, "MOST_EVENTS", 101)
    assert stages.refusal(query, PLANE, lambda: stream(1_001)) is None
    assert stages.refusal(query, PLANE, lambda: stream(0)) is None


def test_a_query_that_keeps_nothing_for_sure_needs_no_rows() -> None:
    def unread() -> pa.Table:
        raise AssertionError

    (query,) = registered([{"family": "constraint", "variables": {"A": {}}}], PLANE)
    assert ConstraintOperator().refusal(query, PLANE, unread) is None
