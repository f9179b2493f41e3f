"""Pages are in the language that their reader chose, or else in the one
that the browser asks for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient


def test_the_log_in_comes_in_the_language_of_the_browser(db: None) -> None:
    german = Client().get("/login/", headers={"Accept-Language": "de-AT,de;q=0.9"})
    assert '<html lang="de"' in german.text and "Benutzername" in german.text
    other = Client().get("/login/", headers={"Accept-Language": "fr"})
    assert '<html lang="en-gb"' in other.text and "User name" in other.text
    assert "Accept-Language" in german["Vary"]


def test_the_chosen_language_overrides_the_browsers(people: SimpleNamespace) -> None:
    client = Client(headers={"Accept-Language": "en"})
    client.force_login(people.analyst)
    assert ">Abfragen<" not in client.get("/queries/").text
    people.analyst.language = "de"
    people.analyst.save()
    assert ">Abfragen<" in client.get("/queries/").text


@pytest.mark.parametrize(
    ("path", "headers", "noted"),
    [
        ("/account/", {"Accept-Language": "de-AT,de;q=0.9"}, "de"),
        ("/account/", {}, ""),
        ("/api/v1/me", {"Accept-Language": "de"}, ""),
    ],
)
def test_the_language_in_which_a_page_was_opened_is_remembered(people: SimpleNamespace, path: str, headers: dict[str, str], noted: str) -> None:
    """Requests of programs, and those that a page makes by itself, do not count."""
    client = Client(headers=headers)
    client.force_login(people.analyst)
    assert client.get(path).status_code == 200
    people.analyst.refresh_from_db()
    assert people.analyst.browser_language == noted


def test_the_remembered_language_is_not_written_again(people: SimpleNamespace) -> None:
    client = Client(headers={"Accept-Language": "de"})
    client.force_login(people.analyst)
    client.get("/account/")
    with CaptureQueriesContext(connection) as queries:
        client.get("/account/")
    assert not [query for query in queries if query["sql"].startswith("UPDATE")]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/account/", ["<title>Konto · Vedette"]),
        ("/account/security/", ["Zweiter Faktor", "Wiederherstellungscodes"]),
        ("/account/password/", ["Passwort ändern"]),
        ("/feeds/", ["<title>Feeds und Jobs"]),
        ("/there/is/none/", ["Fehler 404", "Hier ist nichts"]),
    ],
)
def test_pages_that_the_server_makes_are_in_the_chosen_language(people: SimpleNamespace, path: str, words: list[str]) -> None:
    people.analyst.language = "de"
    people.analyst.save()
    client = Client(headers={"Accept-Language": "en"})
    client.force_login(people.analyst)
    page = client.get(path, follow=True).text
    assert all(word in page for word in words)


def test_a_failed_log_in_is_reported_in_the_language_of_the_browser(db: None) -> None:
    answer = Client(headers={"Accept-Language": "de"}).post("/login/", {"username": "nobody", "password": "wrong"})
    assert "Der Name oder das Passwort ist falsch." in answer.text


def test_mails_are_in_the_language_of_their_reader(
    people: SimpleNamespace, client_of: Callable[[Any], APIClient], mailoutbox: list[EmailMessage], settings: Any
) -> None:
    """An English administrator invites a German: the mail names the role in German. An English
    browser requests a German's password reset."""
    settings.EMAIL_GIVEN = True
    people.stranger.email, people.stranger.language = "stranger@example.org", "de"
    people.stranger.save()
    asked = client_of(people.admin).post(f"/api/v1/teams/{people.harbour.pk}/invitations/", {"email": "Stranger@example.org", "role": "viewer"})
    assert asked.status_code == 201 and "mit der Rolle Betrachter" in mailoutbox[0].body and "eingeladen" in mailoutbox[0].subject
    Client(headers={"Accept-Language": "en"}).post("/login/password/", {"email": "stranger@example.org"})
    assert "Passwort" in mailoutbox[1].subject and "Konto" in mailoutbox[1].body


def test_a_refusal_names_the_role_in_the_language_of_the_reader(people: SimpleNamespace, client_of: Callable[[Any], APIClient]) -> None:
    people.analyst.language = "de"
    people.analyst.save()
    answer = client_of(people.analyst).post("/api/v1/feeds/", {"name": "mine", "crs": "planar", "time": "ms"}, format="json")
    assert answer.status_code == 403 and "mindestens Operator sein" in answer.json()["faults"][0]["message"]


def test_quotas_are_named_in_the_language_of_the_reader(people: SimpleNamespace, client_of: Callable[[Any], APIClient]) -> None:
    people.analyst.language = "de"
    people.analyst.save()
    rows = client_of(people.analyst).get("/api/v1/me/quotas").json()
    assert {row["what"] for row in rows} >= {"Abfragen", "Feeds", "Kanäle"}
