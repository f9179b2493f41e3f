"""The count over time in the API: the stepped line that a page draws over the region."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Crs, Feed, TimeUnit
from engine.occupancy.course import course
from engine.specification import check
from tests.webapp.conftest import BORDER

HALL = {
    "family": "occupancy",
    "version": 1,
    "region": {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]},
    "count": [">=", 2],
}


def rows(*points: tuple[str, int, float]) -> list[dict[str, Any]]:
    return [{"entity": entity, "t": t, "x": x, "y": 5.0} for entity, t, x in points]


@pytest.mark.services
@pytest.mark.django_db
def test_the_count_follows_entering_and_leaving_entities(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    from webapp.queries.services import query_register

    received(feed, rows(("a", 1000, 5), ("b", 2000, 5), ("c", 2000, 99), ("a", 4000, 99), ("b", 5000, 6)))
    client = client_of(people.viewer)
    answer = client.post("/api/v1/queries/occupancy", {"feed": "yard", "specification": HALL, "minutes": 10})
    assert answer.status_code == 200, answer.content
    assert answer.json() == {"from": 5000 - 600_000, "to": 5000, "rows": 5, "steps": [[1000, 1], [2000, 2], [4000, 1]]}
    query = query_register(owner=people.owner, feed=feed, name="hall", specification={**HALL, "stale": 1500}, team=people.harbour)
    found = client.get(f"/api/v1/queries/{query.pk}/occupancy?from=2000&to=4500").json()
    assert found == {"from": 2000, "to": 4500, "rows": 4, "steps": [[2000, 2], [2500, 1], [3500, 0]]}


@pytest.mark.services
@pytest.mark.django_db
def test_queries_without_a_count_have_no_course(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.viewer)
    refused = client.post("/api/v1/queries/occupancy", {"feed": "yard", "specification": BORDER})
    assert (refused.status_code, refused.json()["faults"][0]["pointer"]) == (400, "/specification/family")
    wrong = client.post("/api/v1/queries/occupancy", {"feed": "yard", "specification": {**HALL, "stale": -1}})
    assert (wrong.status_code, wrong.json()["faults"][0]["pointer"]) == (400, "/specification/stale")
    nothing = client.post("/api/v1/queries/occupancy", {"feed": "yard", "specification": HALL})
    assert nothing.json() == {"from": None, "to": None, "rows": 0, "steps": []}


SEEN = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12), st.booleans()), min_size=1, max_size=12)


@given(SEEN.map(lambda found: sorted(found, key=lambda one: one[1])), st.sampled_from([None, 1, 4]))
def test_the_count_at_each_instant_agrees_with_the_definition(seen: list[tuple[str, int, bool]], stale: int | None) -> None:
    feed = Feed("yard", Crs.PLANAR, TimeUnit.TICKS)
    specification = check({**HALL, "stale": stale}, feed, {})
    steps = course(specification, feed, batch_of(seen), 14)
    for instant in range(seen[0][1], 15):
        last = {entity: (t, inside) for entity, t, inside in seen if t <= instant}
        wanted = sum(inside and (stale is None or instant < t + stale) for t, inside in last.values())
        assert [count for t, count in steps if t <= instant][-1] == wanted
    assert [t for t, _ in steps] == sorted({t for t, _ in steps})


def batch_of(seen: list[tuple[str, int, bool]]) -> Batch:
    import pyarrow as pa

    columns = {
        "event": pa.array(["position"] * len(seen)),
        "entity": pa.array([entity for entity, _, _ in seen]),
        "t": pa.array([t for _, t, _ in seen], pa.int64()),
        "x": pa.array([5.0 if inside else 50.0 for _, _, inside in seen]),
        "y": pa.array([5.0] * len(seen)),
        "seq": pa.array(range(len(seen)), pa.int64()),
    }
    return Batch(pa.RecordBatch.from_pydict(columns), EntityDictionary())
