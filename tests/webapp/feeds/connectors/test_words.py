"""Texts of the engine about protocols are in the reader's language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.connectors.services import kinds
from webapp.connectors.words import TEXTS

NO_WORDS = {"Port", "Host", "Kafka", "MQTT", "CSV", "JSON", "WebSocket", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "5", "3.1.1", "Topic", "Topics"}


def said_by_kinds() -> Iterator[str]:
    for kind in kinds().values():
        yield from (kind.title, kind.guarantee)
        for one in kind.fields:
            yield from filter(None, (one.label, one.hint, *(label for _, label in one.choices)))


def test_exactly_the_texts_of_protocols_are_marked_for_translation() -> None:
    assert set(said_by_kinds()) == set(TEXTS)


@pytest.mark.services
def test_fields_of_connectors_are_in_the_language_of_the_user(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    people.operator.language = "de"
    people.operator.save()
    translated = client_of(people.operator).get("/api/v1/connectors/kinds").json()
    kafka = next(kind for kind in translated if kind["name"] == "kafka")
    assert kafka["fields"][0]["hint"] == "host:9092, durch Kommas getrennt." and kafka["guarantee"].startswith("Genau einmal")
    texts = {one[key] for kind in translated for one in kind["fields"] for key in ("label", "hint")} - {""}
    assert texts & set(TEXTS) <= NO_WORDS


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("mqtt", {"host": "127.0.0.1", "topic": "yard/#/x"}, "yard/#/x: + und # stehen für ganze Ebenen"),
        ("mqtt", {"host": "127.0.0.1", "topic": "yard/x{id}"}, "yard/x{id}: Ein Name in geschweiften Klammern"),
        ("poll", {"url": "ftp://example.org"}, "Sie muss mit https:// oder http:// beginnen"),
    ],
)
@pytest.mark.services
@pytest.mark.django_db
def test_faults_of_settings_are_in_the_language_of_the_user(
    feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient], kind: str, given: dict[str, str], said: str
) -> None:
    people.operator.language = "de"
    people.operator.save()
    asked = {"feed": feed.name, "kind": kind, "settings": given, "reading": {"entity": ["id"], "time": ["received"]}}
    answered = client_of(people.operator).post("/api/v1/connectors/trial", asked, format="json")
    assert answered.json()["faults"][0]["message"].startswith(said)
