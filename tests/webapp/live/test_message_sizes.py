"""Messages to pages: nothing that daphne would refuse to send."""

import json
from typing import Any

import pytest

from webapp.live import frames


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "text": "x" * 80} for n in range(count)]


def test_a_snapshot_that_fits_is_whole() -> None:
    made = frames.snapshot("city", seq=7, detections=rows(3), alerts=rows(2), positions=[["a", 1.0, 2.0, 3]], clock=5)
    assert (made["detections"], made["alerts"], made["positions"], made["seq"]) == (rows(3), rows(2), [["a", 1.0, 2.0, 3]], 7)


def test_of_one_that_is_too_large_the_newest_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MESSAGE_BYTES", 3_000)
    made = frames.snapshot("city", seq=7, detections=rows(100), alerts=rows(100), positions=[], clock=5)
    assert len(frames.encoded(made)) <= 3_200
    assert made["detections"] == rows(100)[-len(made["detections"]) :]
    assert made["alerts"] == rows(100)[: len(made["alerts"])]
    assert (len(made["detections"]) >= 15, len(made["alerts"]) >= 8) == (True, True)


def test_texts_are_ascii() -> None:
    text = frames.encoded({"name": "Höhe €"})
    assert text.isascii()
    assert json.loads(text) == {"name": "Höhe €"}
