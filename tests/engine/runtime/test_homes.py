"""An entity's home partition depends only on the bytes of its name."""

from __future__ import annotations

import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.feed import Feed
from engine.runtime import evaluator
from engine.runtime.evaluator import Evaluator, entity_partitions


@given(st.lists(st.lists(st.one_of(st.none(), st.text())), max_size=4), st.integers(1, 70), st.integers(0, 3))
def test_the_home_is_that_of_the_bucket_by_the_check_sum_of_the_name(chunks: list[list[str | None]], partitions: int, cut: int) -> None:
    names = pa.chunked_array([pa.array(chunk, pa.string()).slice(cut) for chunk in chunks], pa.string())
    expected = [zlib.crc32((name or "").encode()) % max(64, partitions) % partitions for name in names.to_pylist()]
    assert entity_partitions(names, partitions).tolist() == expected
    assert entity_partitions(names.dictionary_encode(), partitions).tolist() == expected


@pytest.mark.parametrize("changed", ["BUCKETS", "ROUTES"])
def test_a_state_of_partitions_with_other_entities_or_routes_is_not_loaded(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks", "tick": 1, "lateness": 0})
    one, two = (Evaluator.start(feed, [], partitions).dump() for partitions in (1, 2))
    assert len(Evaluator.load(feed, [], two)._keyed) == 2
    monkeypatch.setattr(evaluator, changed, 65)
    Evaluator.load(feed, [], one)
    with pytest.raises(ValueError, match="other partitions"):
        Evaluator.load(feed, [], two)
