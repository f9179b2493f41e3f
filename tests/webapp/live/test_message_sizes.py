"""Messages to pages stay below the size that daphne refuses to send."""

import json
from typing import Any

import pytest

from webapp.live import frames


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "start": n, "text": "x" * 68} for n in range(count)]


def test_a_snapshot_that_fits_is_complete() -> None:
    made = frames.snapshot("city", seq=7, detections=rows(3), alerts=rows(2), positions=[["a", 1.0, 2.0, 3]], clock=5)
    assert (made["detections"], made["alerts"], made["positions"], made["seq"]) == (rows(3), rows(2), [["a", 1.0, 2.0, 3]], 7)
    assert made["since"] is None


def test_a_snapshot_that_is_too_large_keeps_the_newest_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MESSAGE_BYTES", 3_000)
    made = frames.snapshot("city", seq=7, detections=rows(100), alerts=rows(100), positions=[], clock=5)
    assert len(frames.encoded(made)) <= 3_200
    assert made["detections"] == rows(100)[-len(made["detections"]) :]
    assert made["alerts"] == rows(100)[: len(made["alerts"])]
    assert made["since"] == made["detections"][0]["start"] + 1, "others may have begun with the oldest"
    assert (len(made["detections"]) >= 15, len(made["alerts"]) >= 8) == (True, True)


def test_the_newest_positions_that_fit_a_message_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MESSAGE_BYTES", 3_000)
    places = [[f"taxi {n}", 116.25, 39.5, (n * 7) % 500] for n in range(500)]
    text = frames.positions("city", t=499, entities=places)
    times = [row[3] for row in json.loads(text)["entities"]]
    assert times == list(range(499, 499 - len(times), -1))
    assert len(times) >= 80
    assert len(text) <= 3_200
    whole = frames.snapshot("city", seq=7, detections=rows(100), alerts=rows(100), positions=places, clock=5)
    assert len(frames.encoded(whole)) <= 3_200
    assert min(map(len, (whole["positions"], whole["alerts"], whole["detections"]))) >= 4


def test_a_message_holds_the_positions_of_the_readers_own_box() -> None:
    places = [[f"Höhe {n}", n, 0.0, n] for n in range(-180, 180, 10)]
    for box in (None, (0, -1, 20, 1), (160, -1, -170, 1), (0, 1, 20, 2)):
        frame = json.loads(frames.positions("city", t=9, entities=places, box=box))
        assert frame == {"type": "positions", "feed": "city", "t": 9, "entities": frames.within(box, places)}


def test_a_reused_memory_address_is_not_taken_for_the_same_message() -> None:
    for n in range(50):
        frame = json.loads(frames.positions("city", t=9, entities=[[f"e{n}", n, 0.0, n]]))
        assert frame["entities"] == [[f"e{n}", n, 0.0, n]]


def test_texts_are_ascii() -> None:
    text = frames.encoded({"name": "Höhe €"})
    assert text.isascii()
    assert json.loads(text) == {"name": "Höhe €"}
