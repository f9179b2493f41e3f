"""Positions in the past: each entity's last sample of every step, as the
live page plays them back."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from webapp.feeds import history
from webapp.feeds.models import Feed

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def places(found: history.Movements, at: int) -> dict[str, tuple[float, float]]:
    """The positions at the instant `at`: the last sample of each entity."""
    result: dict[str, tuple[float, float]] = {}
    for entity, t, x, y in zip(found.entity, found.t, found.x, found.y, strict=True):
        if t <= at:
            result[found.entities[entity]] = (float(x), float(y))
    return result


def test_history_gives_the_last_position_at_any_instant(feed: Feed, received: Callable[..., None]) -> None:
    generator = np.random.default_rng(5)
    rows = [{"entity": f"e{n % 7}", "t": int(t), "x": n, "y": -n} for n, t in enumerate(np.sort(generator.integers(0, 3000, 400)))]
    for begin in range(0, 400, 50):
        received(feed, rows[begin : begin + 50])
    found = history.movements(feed, 1000, 2000, 1)
    assert (found.from_t, found.to_t, found.begin) == (1000, 2000, rows[0]["t"])
    for at in (1000, 1001, 1500, 1999):
        wanted = {row["entity"]: (float(row["x"]), float(row["y"])) for row in rows if row["t"] <= at}
        assert places(found, at) == wanted


def test_a_step_keeps_the_last_sample_of_each(feed: Feed, received: Callable[..., None]) -> None:
    received(feed, [{"entity": "a", "t": t, "x": t, "y": 0} for t in range(0, 1000, 10)])
    found = history.movements(feed, 500, 800, 100)
    assert [t for t in found.t.tolist() if t >= 500] == [590, 690, 790]
    assert places(found, 500) == {"a": (490.0, 0.0)}


def test_the_last_samples_before_the_span_are_sent(feed: Feed, received: Callable[..., None]) -> None:
    received(feed, [{"entity": f"e{n % 2}", "t": 10 * n, "x": n, "y": 0} for n in range(200)])
    found = history.movements(feed, 1500, 1600, 1)
    before = [(found.entities[entity], t) for entity, t in zip(found.entity, found.t.tolist(), strict=True) if t < 1500]
    assert before == [("e0" if n % 2 == 0 else "e1", 10 * n) for n in range(150 - 2 * history.BEFORE_SAMPLES, 150)]


def test_entities_not_yet_stale_are_included_however_many_rows_followed(
    feed: Feed, received: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten entities report every 10; one fell silent 40 of these periods before the span, 400 rows
    ago, another 100 periods before."""
    monkeypatch.setattr(history, "BEFORE_STEP", 60)
    rows = [{"entity": f"e{n % 10}", "t": n, "x": n, "y": 0} for n in range(3000)]
    rows += [{"entity": "gone", "t": 1000, "x": 1, "y": 1}, {"entity": "quiet", "t": 1600, "x": 2, "y": 2}]
    rows.sort(key=lambda row: int(str(row["t"])))
    for begin in range(0, len(rows), 250):
        received(feed, rows[begin : begin + 250])
    found = places(history.movements(feed, 2000, 2100, 1), 2000)
    assert found["quiet"] == (2.0, 2.0)
    assert "gone" not in found and len(found) == 11, "and is read back no further"


def test_late_rows_and_rows_without_a_place_are_left_out(feed: Feed, received: Callable[..., None]) -> None:
    received(feed, [{"entity": "a", "t": 10_000, "x": 1, "y": 1}, {"entity": "b", "t": 10_001}])
    received(feed, [{"entity": "a", "t": 1, "x": 9, "y": 9}])
    found = history.movements(feed, 0, 20_000, 1)
    assert found.entities == ["a"] and found.t.tolist() == [10_000]


def test_an_empty_log_and_a_span_outside_it_give_nothing(feed: Feed, received: Callable[..., None]) -> None:
    assert history.movements(feed, 0, 10, 1).begin is None
    received(feed, [{"entity": "a", "t": 1000, "x": 1, "y": 1}])
    assert len(history.movements(feed, 0, 10, 1).t) == 0
    assert places(history.movements(feed, 5000, 6000, 1), 5000) == {"a": (1.0, 1.0)}, "where it was last"


def test_a_response_with_too_many_rows_is_cut_at_an_instant(feed: Feed, received: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SPAN_ROWS", 50)
    for begin in range(0, 1000, 100):
        received(feed, [{"entity": "a", "t": t, "x": t, "y": 0} for t in range(begin * 100, begin * 100 + 10_000, 100)])
    found = history.movements(feed, 20_000, 90_000, 1)
    assert 20_000 < found.to_t < 90_000
    assert places(found, found.to_t - 1)["a"][0] == (found.to_t - 1) // 100 * 100


def test_the_answer_is_a_header_and_columns(
    feed: Feed, people: SimpleNamespace, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(feed, [{"entity": "a", "t": 1000, "x": 1.5, "y": 2.5}, {"entity": "é", "t": 1001, "x": 3.5, "y": 4.5}])
    answer = client_of(people.owner).get(f"/api/v1/feeds/{feed.name}/movements?from=900&to=1100")
    assert answer.status_code == 200
    (length,) = struct.unpack_from("<I", answer.content)
    header: dict[str, Any] = json.loads(answer.content[4 : 4 + length])
    assert header == {"from": 900, "to": 1100, "begin": 1000, "entities": ["a", "é"], "count": 2} and (4 + length) % 8 == 0
    columns = np.frombuffer(answer.content, "<f8", 6, 4 + length)
    assert columns.tolist() == [1000, 1001, 1.5, 3.5, 2.5, 4.5]
    assert np.frombuffer(answer.content, "<i4", 2, 4 + length + 48).tolist() == [0, 1]
    for query in ("", "?from=5", "?from=5&to=5", "?from=x&to=9"):
        assert client_of(people.owner).get(f"/api/v1/feeds/{feed.name}/movements{query}").status_code == 400
