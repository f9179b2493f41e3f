"""Pages come in the language that their reader chose, or else in the one that the browser asks for."""

from __future__ import annotations

from types import SimpleNamespace

from django.test import Client


def test_the_log_in_comes_in_the_language_of_the_browser(db: None) -> None:
    german = Client().get("/login/", headers={"Accept-Language": "de-AT,de;q=0.9"})
    assert '<html lang="de"' in german.text and "Benutzername" in german.text
    other = Client().get("/login/", headers={"Accept-Language": "fr"})
    assert '<html lang="en-gb"' in other.text and "User name" in other.text
    assert "Accept-Language" in german["Vary"]


def test_the_chosen_language_goes_before_the_browsers(people: SimpleNamespace) -> None:
    client = Client(headers={"Accept-Language": "en"})
    client.force_login(people.analyst)
    assert ">Abfragen<" not in client.get("/queries/").text
    people.analyst.language = "de"
    people.analyst.save()
    assert ">Abfragen<" in client.get("/queries/").text
