"""Frames of clients, and how a subscription handles the publisher's messages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.live.frames import Ack, BadFrame, Subscribe, Unsubscribe, View, parse, within
from webapp.live.subscription import POSITION_BYTES, SELDOM_SECONDS, UNACKED_BYTES, Subscription


def subscription(**fields: Any) -> Subscription:
    return Subscription(**{"feed_id": 1, "feed": "yard", "chosen": None, "allowed": {1, 2}, **fields})


def test_the_four_frames_are_parsed() -> None:
    whole = {"type": "subscribe", "feed": "yard", "queries": [1, "2"], "bbox": [0, 1, 2, 3], "since": 5, "from": -7}
    assert parse(json.dumps(whole)) == Subscribe("yard", frozenset([1, 2]), (0.0, 1.0, 2.0, 3.0), 5, -7)
    assert parse('{"type":"subscribe","feed":"yard"}') == Subscribe("yard", None, None, None, None)
    assert parse('{"type":"view","feed":"yard","bbox":null}') == View("yard", None)
    assert parse('{"type":"unsubscribe","feed":"yard"}') == Unsubscribe("yard")
    assert parse('{"type":"ack","feed":"yard","seq":3}') == Ack("yard", 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        '{"type":"subscribe"}',
        '{"type":"shout","feed":"x"}',
        '{"type":"subscribe","feed":""}',
        '{"type":"subscribe","feed":"' + "x" * 64 + '"}',
        '{"type":"subscribe","feed":"x","queries":"all"}',
        '{"type":"subscribe","feed":"x","queries":[true]}',
        '{"type":"subscribe","feed":"x","queries":["-1"]}',
        '{"type":"subscribe","feed":"x","bbox":[1,2,3]}',
        '{"type":"subscribe","feed":"x","bbox":[1,2,3,NaN]}',
        '{"type":"subscribe","feed":"x","since":1.5}',
        '{"type":"subscribe","feed":"x","since":99999999999999999999}',
        "[" * 60_000,
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(BadFrame):
        parse(text)


@given(
    st.text(max_size=50)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "feed", "bbox", "queries"]), inner),
        max_leaves=8,
    ).map(json.dumps)
)
def test_arbitrary_text_is_refused_without_an_error(text: str) -> None:
    try:
        parse(text)
    except BadFrame as error:
        assert str(error)


def test_a_box_includes_its_edges() -> None:
    places = [["a", 0, 0, 1], ["b", 10, 5, 1], ["c", 11, 5, 1], ["d", -179, 5, 1], ["e", 179, 5, 1]]
    assert [e[0] for e in within((0, 0, 10, 10), places)] == ["a", "b"]
    assert [e[0] for e in within((178, 0, -178, 10), places)] == ["d", "e"]
    assert within(None, places) == places


def chunk(seq: int, *queries: int) -> dict[str, Any]:
    return {
        "seq": seq,
        "detections": [(query, json.dumps({"id": f"{seq}.{query}", "query": query})) for query in queries],
        "alerts": [(query, json.dumps({"id": seq, "query": query})) for query in queries],
        "queries": [],
    }


def test_a_reader_gets_only_visible_requested_changes_but_all_numbers() -> None:
    reader = subscription(chosen=frozenset([2, 3]), last_sent=4)
    frame = reader.take([chunk(5, 1, 2), chunk(6, 3), chunk(7)])
    assert (frame["first"], frame["seq"], reader.last_sent) == (5, 7, 7)
    assert [json.loads(row)["id"] for row in frame["detections"]] == ["5.2"] and [json.loads(row)["query"] for row in frame["alerts"]] == [2]


def test_known_numbers_are_skipped_and_gaps_detected() -> None:
    reader = subscription(last_sent=4)
    assert [c["seq"] for c in reader.fresh([chunk(3), chunk(4), chunk(5)])] == [5]
    assert reader.follows([chunk(5), chunk(6)])
    assert not reader.follows([chunk(6)]) and not reader.follows([chunk(5), chunk(7)])


def test_permission_for_an_unknown_query_is_checked_once() -> None:
    reader = subscription()
    assert reader.unknown_ids([chunk(1, 1, 3)]) == {3}
    reader.learn({1, 2}, {3})
    assert reader.unknown_ids([chunk(2, 3)]) == set()
    reader.learn({1, 2, 3})
    assert reader.sees(3)


def test_a_slow_reader_gets_fewer_positions_and_is_then_resubscribed() -> None:
    reader = subscription()
    assert reader.wants_positions(0.0)
    reader.sent_positions(POSITION_BYTES + 1, now=10.0)
    assert not reader.wants_positions(10.0 + SELDOM_SECONDS / 2) and reader.wants_positions(10.0 + SELDOM_SECONDS)
    reader.sent(UNACKED_BYTES + 1)
    assert reader.behind and not reader.wants_positions(100.0)
    reader.acked(reader.last_sent + 1)
    assert reader.behind, "a number it was never sent proves nothing"
    reader.acked(reader.last_sent)
    assert not reader.behind and reader.wants_positions(10.5)


@given(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=5), max_size=20))
def test_numbers_are_covered_once_in_order_for_any_messages(messages: list[list[int]]) -> None:
    """Lost, repeated and reordered messages: if a number is missing, the changes are read from the
    outbox."""
    reader = subscription()
    covered: list[int] = []
    for numbers in messages:
        chunks: Any = reader.fresh([chunk(seq) for seq in sorted(set(numbers))])
        if chunks and not reader.follows(chunks):
            chunks = [chunk(seq) for seq in range(reader.last_sent + 1, chunks[-1]["seq"] + 1)]
        if chunks:
            frame = reader.take(chunks)
            covered += range(frame["first"], frame["seq"] + 1)
    assert covered == list(range(1, len(covered) + 1))
