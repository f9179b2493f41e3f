"""Logging in and out, and the pages that work without a log-in."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def log_in(client: Client, password: str, name: str = "owner") -> Any:
    return client.post("/login/", {"username": name, "password": password})


def test_every_page_asks_for_a_log_in_first(people: SimpleNamespace) -> None:
    for page in ("/", "/queries/", "/queries/new", "/queries/1", "/alerts/", "/regions/", "/feeds/", "/account/", "/feeds/yard/plan"):
        answer = Client().get(page)
        assert answer.status_code == 302 and answer["Location"].startswith("/login/?next="), page


def test_the_right_password_opens_the_live_page(people: SimpleNamespace) -> None:
    client = Client()
    answer = log_in(client, "owner has a password")
    assert answer.status_code == 302 and answer["Location"] == "/"
    assert client.get("/").status_code == 200


def test_log_in_returns_only_to_pages_of_this_site(people: SimpleNamespace) -> None:
    answer = Client().post("/login/?next=/feeds/", {"username": "owner", "password": "owner has a password"})
    assert answer["Location"] == "/feeds/"
    answer = Client().post("/login/?next=https://evil.example/", {"username": "owner", "password": "owner has a password"})
    assert answer["Location"] == "/"


def test_ten_failures_block_the_account_even_with_the_right_password(people: SimpleNamespace) -> None:
    client = Client()
    for _ in range(10):
        assert log_in(client, "wrong").status_code == 200
    answer = log_in(client, "owner has a password")
    assert answer.status_code == 200 and b"Too many" in answer.content
    assert log_in(Client(), "viewer has a password", "viewer").status_code == 302


def test_an_unknown_name_and_a_wrong_password_get_the_same_answer(people: SimpleNamespace) -> None:
    known, unknown = log_in(Client(), "wrong"), log_in(Client(), "wrong", "nobody")
    assert known.context["form"].non_field_errors() == unknown.context["form"].non_field_errors()


def test_logging_out_is_a_post_and_ends_the_session(people: SimpleNamespace) -> None:
    client = Client()
    log_in(client, "owner has a password")
    assert client.get("/").headers["Cache-Control"] == "no-store", "no cache keeps what was seen, the browser's included"
    assert client.get("/logout/").status_code == 405
    client.post("/logout/")
    assert client.get("/").status_code == 302


def test_a_new_password_ends_all_other_sessions(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    here, there = client_of(people.owner), client_of(people.owner)
    answer = here.post("/api/v1/me/password", {"old": "owner has a password", "new": "another long phrase"})
    assert answer.status_code == 204
    assert here.get("/api/v1/me").status_code == 200
    assert there.get("/api/v1/me").status_code == 401


def test_weak_passwords_and_wrong_old_passwords_are_refused(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    assert client.post("/api/v1/me/password", {"old": "nonsense", "new": "another long phrase"}).json()["faults"][0]["pointer"] == "/old"
    assert client.post("/api/v1/me/password", {"old": "owner has a password", "new": "short"}).json()["faults"][0]["pointer"] == "/new"


def test_guessing_of_the_old_password_in_a_session_is_limited(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    for _ in range(10):
        assert client.post("/api/v1/me/password", {"old": "nonsense", "new": "another long phrase"}).status_code == 400
    right = client.post("/api/v1/me/password", {"old": "owner has a password", "new": "another long phrase"})
    assert right.status_code == 400 and "Too many" in right.json()["faults"][0]["message"]


def test_me_lists_teams_and_takes_a_time_zone(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.analyst)
    assert client.get("/api/v1/me").json()["teams"] == [{"id": people.harbour.pk, "name": "harbour", "role": "analyst"}]
    assert client.patch("/api/v1/me", {"time_zone": "Europe/Oslo"}).json()["time_zone"] == "Europe/Oslo"
    assert client.patch("/api/v1/me", {"time_zone": "Mars/Olympus"}).status_code == 400
    assert client.patch("/api/v1/me", {"units": "nautical"}).json()["units"] == "nautical"
    assert client.patch("/api/v1/me", {"units": "cubits"}).status_code == 400
    assert client.patch("/api/v1/me", {"language": "de"}).json()["language"] == "de"
    assert client.patch("/api/v1/me", {"language": "tlh"}).status_code == 400
    refused = client.patch("/api/v1/me", {"superuser": True, "id": 1})
    assert refused.status_code == 400 and [fault["pointer"] for fault in refused.json()["faults"]] == ["/superuser", "/id"]
    assert client.get("/api/v1/me").json()["superuser"] is False


def test_health_is_shown_without_a_log_in(db: None) -> None:
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"database": True, "jobs": True})
