"""Sentences of the engine in German: with their values, from the database, and in responses
of the API (decision 42)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from django.utils import translation
from rest_framework.test import APIClient

from engine.model.faults import unknown_name
from engine.model.messages import PLACE, Message, either, message_from_json
from engine.sources.reading import read_rows, reading_of
from webapp.config.framework_texts import TEXTS as FRAMEWORK_TEXTS
from webapp.config.wording import _forms, translated


@pytest.fixture
def german() -> Iterator[None]:
    with translation.override("de"):
        yield


def test_values_are_placed_as_the_translation_orders_them(german: None) -> None:
    said = unknown_name("widht", ["width", "height"], what=Message("column"))
    assert said == "unknown column 'widht'; did you mean 'width'? Known: height, width"
    assert translated(said) == "Spalte 'widht' ist unbekannt; meinten Sie 'width'? Bekannt: height, width"


def test_messages_within_messages_are_translated(german: None) -> None:
    said = Message("unexpected {found}; expected {expected}", found="'x'", expected=either([Message("a number"), Message("a name")]))
    assert translated(said) == "'x' ist hier unerwartet; erwartet: eine Zahl oder ein Name"


def test_frameworks_address_the_reader_as_the_pages_do(german: None) -> None:
    said = [translation.gettext(text) for text in FRAMEWORK_TEXTS]
    assert set(said).isdisjoint(FRAMEWORK_TEXTS)
    assert not [text for text in said if re.search(r"\b([Gg]ib|[Dd]u|[Dd]eine?|[Ss]telle)\b", text)]


@pytest.mark.parametrize("form", ["numbers", "lat_lon"])
def test_a_place_off_the_earth_is_said_in_one_language(german: None, form: str) -> None:
    """Stored, its two parts were not recognised."""
    reading = reading_of({"kind": "csv", "x": "Ort", "y": "Breite", "place_format": form, "entity": ["id"], "time": ["t"]})
    rows = pa.table({"id": ["a"], "t": ["2026-11-28T14:00:00Z"], "Ort": ["1" if form == "numbers" else "152.5, 1"], "Breite": ["152.5"]})
    (letter,) = read_rows(rows, reading, reading.feed("made")).checked.dead()
    said = translated(str.__str__(letter.detail))
    assert "muss die Länge in" in said or "muss in [-180, 180] liegen" in said
    assert "Berichtigen Sie den Wert" in said


def test_numbers_are_grouped_as_the_language_groups_them(german: None) -> None:
    said = Message("the text has {count:,} characters; at most {most:,} are allowed", count=1_234_567, most=200_000)
    assert said == "the text has 1,234,567 characters; at most 200,000 are allowed"
    assert translated(said) == translated(str.__str__(said)) == "der Text hat 1.234.567 Zeichen; höchstens 200.000 sind erlaubt"


def test_english_readers_get_the_sentence_unchanged() -> None:
    assert translated(Message("must be a number")) == "must be a number"


@pytest.mark.parametrize(
    "given", ["{count:,} {what} {0} %s", "{self.__class__}", "{name!r:>99999999}", "}{", "unknown column {what}. Known: {known}"]
)
def test_user_text_is_not_read_as_a_message_text(german: None, given: str) -> None:
    assert translated(Message("the key {key} is missing", key=given)) == f"der Schlüssel {given} fehlt"


@pytest.mark.parametrize("given", ["{count:,} {what} {0} %s", "{self.__class__}", "{name!r:>99999999}", "}{"])
def test_stored_user_text_is_not_read_as_a_message_text(german: None, given: str) -> None:
    assert translated(f"the key {given} is missing") == f"der Schlüssel {given} fehlt"


@pytest.mark.parametrize("written", [["{a.__class__} {a!r:>999999999}", {"a": "x"}], ["{a}" * 50, {}]])
def test_a_text_of_a_child_process_cannot_use_format_syntax(written: Any) -> None:
    assert len(message_from_json(written)) < 200


@pytest.mark.parametrize("written", ["x", ["x"], ["x", []], [1, {}], ["{a}", {"a": [1]}], None])
def test_invalid_messages_of_a_child_process_are_refused(written: Any) -> None:
    with pytest.raises(ValueError, match="no message"):
        message_from_json(written)


def test_a_message_survives_serialisation() -> None:
    said = Message("{what} must be a variable, a name or a number, not {term}", what=Message("the length of a list"), term="f(X)")
    again = message_from_json(json.loads(json.dumps(said.to_json())))
    assert again == said and again.values["what"] == Message("the length of a list")
    with translation.override("de"):
        assert translated(again) == "die Länge einer Liste muss eine Variable, ein Name oder eine Zahl sein, nicht f(X)"


def test_stored_sentences_are_recognised(german: None) -> None:
    """Each text with values, stored as an English sentence, is translated as if its
    message were still there."""
    wrong = []
    for form in _forms("de"):
        values = {name: 7_000 + at if f"{{{name}:,}}" in form.text else f"<{at}>" for at, name in enumerate(form.names)}
        said = Message.of(form.text, values)
        if translated(str.__str__(said)) != translated(said):
            wrong.append((form.text, translated(str.__str__(said))))
    assert wrong == [] and len(_forms("de")) > 300


def test_the_depth_of_nested_sentences_is_limited(german: None) -> None:
    assert translated("line 1, column 1: " * 200).startswith("Zeile 1, Spalte 1: Zeile 1, Spalte 1: ")
    assert "must be " in translated("must be " * 400)


@pytest.mark.parametrize(
    ("specification", "words"),
    [
        ({"family": "border", "version": 1, "name": "b", "regoin": {}}, ["Schlüssel 'regoin' ist unbekannt; meinten Sie 'region'?", "muss entweder"]),
        ({"family": "constraint", "version": 1, "trigger": "CREATE TRIGGER x FOR E AS A WHEN A.t ="}, ["Zeile 1, Spalte", "der Text endet zu früh"]),
        ({"family": "calculus", "version": 1, "name": "c", "program": "happensAt(a(X), T"}, ["Zeile 1, Spalte", "der Text endet in einer Klausel"]),
        ({"family": "composite", "version": 1, "name": "p", "primitives": {"A": {}}, "pattern": "A : : A"}, ["ist hier unerwartet; erwartet:"]),
    ],
)
def test_faults_of_a_query_are_in_the_readers_language(
    people: SimpleNamespace, feed: Any, client_of: Callable[[Any], APIClient], specification: dict[str, Any], words: list[str]
) -> None:
    people.analyst.language = "de"
    people.analyst.save()
    client = client_of(people.analyst)
    body = {"feed": feed.name, "specification": specification}
    faults = client.post("/api/v1/queries/check", body, format="json").json()["faults"]
    said = " ".join(fault["message"] for fault in faults)
    assert all(word in said for word in words), said
    people.analyst.language = ""
    people.analyst.save()
    english = client.post("/api/v1/queries/check", body, format="json").json()["faults"]
    assert [fault["pointer"] for fault in english] == [fault["pointer"] for fault in faults] and "ist " not in str(english)
    asked = client.post("/api/v1/queries/check", body, format="json", headers={"Accept-Language": "de"}).json()["faults"]
    assert asked == faults


def test_the_gallery_is_in_the_readers_language(people: SimpleNamespace, feed: Any, client_of: Callable[[Any], APIClient]) -> None:
    client = client_of(people.analyst)
    german = client.get("/api/v1/queries/gallery", {"feed": feed.name}, headers={"Accept-Language": "de"}).json()["templates"]
    english = client.get("/api/v1/queries/gallery", {"feed": feed.name}).json()["templates"]
    assert [one["name"] for one in german] == [one["name"] for one in english]
    assert all(one["title"] != other["title"] and one["sentence"] != other["sentence"] for one, other in zip(german, english, strict=True))
    assert all(
        set(re.findall(r"{\w+}", one["sentence"])) == set(re.findall(r"{\w+}", other["sentence"])) for one, other in zip(german, english, strict=True)
    )
    assert PLACE.search(german[0]["sentence"]) is not None
