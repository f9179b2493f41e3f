"""The heat map's counts compared with a row-by-row count, and the values that colour entities."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from tests.webapp.answers import a_head, facts, match
from webapp.cage import slots
from webapp.entities.density import Grid, _within
from webapp.entities.models import Record
from webapp.feeds.history import READS
from webapp.supervisor import sink

Client = Callable[..., APIClient]
YARD = "/api/v1/feeds/yard"

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), max_size=20)
SPANS = st.lists(
    st.tuples(st.lists(st.sampled_from("abcd"), min_size=1, max_size=2), st.integers(-3, 15), st.none() | st.integers(0, 6)).map(
        lambda one: (one[0], one[1], None if one[2] is None else one[1] + one[2])
    ),
    max_size=6,
)


@given(ROWS, SPANS)
def test_counts_of_reports_equal_a_row_by_row_count(rows: list[tuple[str, int]], spans: list[tuple[list[str], int, int | None]]) -> None:
    def holds(entity: str, t: int) -> bool:
        return any(entity in names and start <= t and (end is None or t < end or t == start) for names, start, end in spans)

    table = pa.table({"entity": pa.array([name for name, _ in rows], pa.string()), "t": pa.array([t for _, t in rows], pa.int64())})
    assert _within(table, spans).tolist() == [holds(*row) for row in rows]


def test_heat_map_cells_have_equal_size_on_the_screen() -> None:
    grid = Grid((0.0, -80.0, 10.0, 80.0), 2, 4, True)
    places = pa.table({"x": [0.0, 5.0, 10.0, 10.1, 0.0], "y": [-80.0, 1.0, 80.0, 0.0, 55.0]})
    assert grid.cells(places["x"].to_numpy(), places["y"].to_numpy()).tolist() == [0, 5, 7, 4], "55 degrees is below Mercator's upper quarter"
    assert Grid((0.0, 0.0, 0.0, 0.0), 3, 3, False).cells(places["x"].to_numpy()[:1] * 0, places["y"].to_numpy()[:1] * 0).tolist() == [0]


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
def test_the_heat_of_reports_and_of_answers(feed: Any, query: Any, people: SimpleNamespace, client_of: Client, received: Callable[..., None]) -> None:
    client = client_of(people.viewer)
    asked = f"{YARD}/density?bbox=0,0,10,10&columns=2&rows=2"
    assert client.get(f"{asked}&from=0&to=9000").json() == {"from": 0, "to": 9000, "total": 0, "counts": [0, 0, 0, 0]}
    received(feed, [{"entity": "a", "t": t, "x": x, "y": 1.0} for t, x in ((1000, 1.0), (2000, 1.0), (3000, 9.0))])
    received(feed, [{"entity": "b", "t": 3500, "x": 9.0, "y": 9.0}, {"entity": "b", "t": 4000, "x": 99.0, "y": 9.0}])
    assert client.get(f"{asked}&from=0&to=9000").json()["counts"] == [2, 1, 0, 1]
    assert client.get(f"{asked}&from=2000&to=3500").json()["counts"] == [1, 1, 0, 0]
    a_head(feed)
    sink.commit(sink.FencedWrite(feed_id=feed.pk, epoch=1, checkpoint=1, batch=0, facts=facts([match(query, "a", 2000, 3000)])), timeout_s=5)
    assert client.get(f"{asked}&from=0&to=9000&of=answers").json()["counts"] == [1, 0, 0, 0]
    assert client_of(people.stranger).get(f"{asked}&from=0&to=9000").status_code == 404
    for wrong in ("from=9&to=3", "from=0&to=9&columns=0", "from=0&to=9&columns=400&rows=400", "from=0&to=9&of=x", "from=0&to=9&bbox=1,2"):
        assert client.get(f"{asked}&{wrong}").status_code == 400, wrong


@pytest.mark.services
@pytest.mark.django_db
@pytest.mark.parametrize("address", ["density?bbox=0,0,10,10&columns=2&rows=2&", "movements?step=5&"])
def test_concurrent_reads_of_history_by_one_user_are_limited(
    address: str, feed: Any, people: SimpleNamespace, client_of: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads up to two million rows into the web process."""
    monkeypatch.setattr(slots, "WAIT_S", 0.0)
    asked = f"{YARD}/{address}from=0&to=9000"
    with slots.requested_by(lambda: people.viewer.pk), READS.slot(), READS.slot():
        refused = client_of(people.viewer).get(asked)
        assert (refused.status_code, refused.get("Retry-After")) == (503, "10")
        assert client_of(people.owner).get(asked).status_code == 200
    assert client_of(people.viewer).get(asked).status_code == 200


@pytest.mark.services
@pytest.mark.django_db
def test_values_come_from_the_registry_or_the_last_report(
    feed: Any, people: SimpleNamespace, client_of: Client, received: Callable[..., None]
) -> None:
    feed.columns = {"kind": "string"}
    feed.save()
    client = client_of(people.viewer)
    received(feed, [{"entity": name, "t": t, "x": 1.0, "y": 1.0, "kind": kind} for name, t, kind in (("a", 1, "x"), ("a", 2, "y"), ("b", 3, "z"))])
    Record.objects.create(feed=feed, entity="b", attributes={"kind": "tug", "flag": "NO"})
    assert client.get(f"{YARD}/attribute").json() == {"names": ["kind", "flag"], "values": {}}
    assert client.get(f"{YARD}/attribute?name=kind").json()["values"] == {"a": "y", "b": "tug"}
    assert client.get(f"{YARD}/attribute?name=flag").json()["values"] == {"b": "NO"}
    assert client.get(f"{YARD}/attribute?name=none").json()["values"] == client.get(f"{YARD}/attribute?name={10**30}").json()["values"] == {}
