"""Dead letters are repaired and sent again, each row once."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.feeds import corrections
from webapp.feeds.models import Connector, DeadLetter, Upload
from webapp.feeds.recent import newest_rows
from webapp.feeds.selectors import feed_counters, feed_list

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def letters(feed: Any, log_form: str) -> list[DeadLetter]:
    rows = [
        {"entity": "a", "t": 1000, "x": "1,5", "y": "2,25", "speed": "3,5"},
        {"entity": "b", "t": 2000, "x": "1.234,5", "y": 2},
        {"entity": "c", "t": 3000, "x": "east", "y": 2},
    ]
    made = [DeadLetter.objects.create(feed=feed, reason="wrong_type", detail="column 'x' must be of type float", row=row) for row in rows]
    made.append(DeadLetter.objects.create(feed=feed, reason="late", row={"entity": "l", "t": 1, "x": 0, "y": 0}))
    made.append(DeadLetter.objects.create(feed=feed, reason="malformed", row=None))
    return made


def correct(client: APIClient, **asked: Any) -> Any:
    return client.post("/api/v1/feeds/yard/dead-letters/correct", asked, format="json")


def stored(feed: Any) -> list[tuple[Any, ...]]:
    rows = newest_rows(feed, 100, ["entity", "t", "x", "y", "speed"])
    return sorted(tuple(row[name] for name in ("entity", "t", "x", "y", "speed")) for row in rows.to_pylist()) if rows.num_rows else []


def test_a_rule_repairs_dead_letters_and_reports_the_others(
    feed: Any, letters: list[DeadLetter], people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.operator)
    found = correct(client, rule="decimal_comma").json()
    assert (found["sent"], found["wrong"], found["late"], found["left"]) == (2, 1, 0, 0)
    assert [one["id"] for one in found["problems"]] == [letters[2].pk]
    assert stored(feed) == [("a", 1000, 1.5, 2.25, 3.5), ("b", 2000, 1234.5, 2.0, None)]
    assert correct(client, rule="decimal_comma").json()["sent"] == 0, "what was sent is not sent again"
    counters = feed_counters(feed_list(user=people.owner).get())
    assert counters["received"] == 2 and counters["dead"] == 0
    shown = client.get("/api/v1/feeds/yard/dead-letters").json()["results"]
    assert [one["sent_at"] is not None for one in reversed(shown)] == [True, True, False, False, False]


def test_one_dead_letter_is_repaired_by_hand(
    feed: Any, letters: list[DeadLetter], people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.operator)
    right = {"entity": "c", "t": 3000, "x": 7, "y": 2}
    for nul in ({**right, "entity": "\0"}, {**right, "\\\0": 1}):
        refused = correct(client, id=letters[2].pk, row=nul)
        assert refused.status_code == 400 and "the character NUL" in refused.json()["faults"][0]["message"]
    assert correct(client, id=letters[2].pk, row={**right, "x": "west"}).json()["wrong"] == 1
    assert correct(client, id=letters[2].pk, row=right).json()["sent"] == 1
    assert stored(feed) == [("c", 3000, 7.0, 2.0, None)]
    assert correct(client, id=letters[2].pk, row=right).status_code == 400, "it was sent already"
    for wrong in ({}, {"rule": "magic"}, {"id": 1}, {"id": 1, "row": {}, "rule": "as_is"}):
        assert correct(client, **wrong).status_code == 400, wrong


READING = {
    "kind": "csv", "delimiter": ";", "decimal": ",", "entity": ["Gerät"], "time": ["Zeit"], "x": "Ost", "y": "Nord", "crs": "plane",
    "time_format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin", "attributes": [{"source": "km/h", "name": "speed", "type": "float"}],
}  # fmt: skip
AT = 1_795_870_800_000
"""28 November 2026, 13:00 in UTC."""


@pytest.mark.parametrize("by", ["upload", "connector"])
def test_rows_of_a_file_or_stream_are_corrected_in_its_own_columns(
    feed: Any, by: str, people: SimpleNamespace, client_of: Callable[..., APIClient], log_form: str
) -> None:
    """They were read as rows of a request: "the row has no entity", whatever was corrected."""
    if by == "upload":
        Upload.objects.create(owner=people.owner, feed=feed, name="L.csv", size=1, reading=READING)
    else:
        Connector.objects.create(feed=feed, name="L.csv", kind="mqtt", reading={key: READING[key] for key in READING if key != "delimiter"})
    row = {"Gerät": "ST-1", "Zeit": "heute", "Ost": "1,5", "Nord": "2", "km/h": "3,25"}
    made = [DeadLetter.objects.create(feed=feed, reason="wrong_type", row=row, source=f"{by}:L.csv") for _ in range(3)]
    client = client_of(people.operator)
    wrong = correct(client, id=made[0].pk, row={**row, "Zeit": "28.11."}).json()
    assert wrong["wrong"] == 1 and "'Zeit' holds no time" in wrong["problems"][0]["detail"]
    assert correct(client, id=made[0].pk, row={**row, "Zeit": "28.11.2026 14:00"}).json()["sent"] == 1
    assert correct(client, id=made[1].pk, row={"entity": "own", "t": AT, "x": 1, "y": 2}).json()["sent"] == 1, "in the feed's columns as well"
    assert correct(client, rule="as_is").json()["wrong"] == 1
    assert stored(feed) == [("ST-1", AT, 1.5, 2.0, 3.25), ("own", AT, 1.0, 2.0, None)]


def test_repaired_rows_are_sent_once_despite_a_crash(feed: Any, letters: list[DeadLetter], monkeypatch: pytest.MonkeyPatch) -> None:
    sent = corrections.ingest

    def dies_after(*arguments: Any) -> Any:
        sent(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(corrections, "ingest", dies_after)
    with pytest.raises(KeyboardInterrupt):
        corrections.correct_all(feed=feed, rule="decimal_comma")
    monkeypatch.setattr(corrections, "ingest", sent)
    corrections.correct_all(feed=feed, rule="decimal_comma")
    assert [row[0] for row in stored(feed)] == ["a", "b"]
    assert DeadLetter.objects.exclude(sent_at=None).count() == 2


@pytest.mark.parametrize(
    ("rule", "row", "corrected"),
    [
        ("seconds", {"t": "17.5", "x": 1}, {"t": 17500, "x": 1}),
        ("seconds", {"t": "soon"}, {"t": "soon"}),
        ("swapped", {"x": 48.1, "y": 11.5}, {"x": 11.5, "y": 48.1}),
        ("decimal_comma", {"x": "1,2,3", "kind": "1,5", "y": "-0,5"}, {"x": "1,2,3", "kind": "1,5", "y": -0.5}),
        ("as_is", {"x": "1,5"}, {"x": "1,5"}),
    ],
)
def test_repair_rules_change_values(rule: str, row: dict[str, Any], corrected: dict[str, Any], feed: Any) -> None:
    assert corrections.RULES[rule][1](row, feed.engine_feed()) == corrected
