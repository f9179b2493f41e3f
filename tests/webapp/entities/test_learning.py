"""Attributes from streams reach the registry: once, when they change, and without overwriting
users' values."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.entities import learning
from webapp.entities.learning import learn, registry_learn
from webapp.entities.models import Record
from webapp.entities.services import record_put

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def known(entity: str = "1") -> tuple[str, dict[str, str]]:
    record = Record.objects.get(entity=entity)
    return record.name, record.attributes


def test_reported_attributes_are_stored_when_they_change(feed: Any, django_assert_num_queries: Any) -> None:
    assert registry_learn(feed=feed, facts={"1": {"name": "AURORA", "length": "120"}, "2": {"type": "tug"}}) == 2
    assert known() == ("AURORA", {"length": "120"}) and known("2") == ("", {"type": "tug"})
    with django_assert_num_queries(4) as asked:
        assert registry_learn(feed=feed, facts={"1": {"name": "AURORA", "length": "120"}, "2": {"type": "tug"}}) == 0
    assert not [query for query in asked if query["sql"].startswith(("UPDATE", "INSERT"))]
    assert registry_learn(feed=feed, facts={"1": {"name": "BOREALIS", "length": "120"}}) == 1
    assert known() == ("BOREALIS", {"length": "120"})


def test_attributes_edited_by_users_are_not_overwritten(feed: Any) -> None:
    record_put(feed=feed, entity="1", name="Our ferry", attributes={"owner": "us"})
    registry_learn(feed=feed, facts={"1": {"name": "AURORA", "length": "120", "type": "passenger"}})
    assert known() == ("Our ferry", {"owner": "us", "length": "120", "type": "passenger"})
    record_put(feed=feed, entity="1", name="Our ferry", attributes={"owner": "us", "length": "121"})
    registry_learn(feed=feed, facts={"1": {"name": "BOREALIS", "length": "122", "type": "cargo"}})
    assert known() == ("Our ferry", {"owner": "us", "length": "121"}), "what they changed or removed is theirs"
    record_put(feed=feed, entity="1", name="BOREALIS", attributes={})
    registry_learn(feed=feed, facts={"1": {"name": "CERES"}})
    assert known()[0] == "CERES", "the stream's own name again: it is the stream's to change"


def test_the_number_of_entities_learned_from_a_stream_is_limited(feed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "RECORDS", 3)
    monkeypatch.setattr(learning, "TOGETHER", 2)
    learn(feed=feed, facts={str(n): {"name": "x"} for n in range(9)} | {"n" * 501: {"name": "x"}, "c": {"name": "\x07"}})
    assert sorted(Record.objects.values_list("entity", flat=True)) == ["0", "1", "2"]
