"""One log-in for everything, Django's admin included, with limits that hold while Redis is away."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from rest_framework.test import APIClient

from webapp.platform.folders import next_free_port

pytestmark = [pytest.mark.services, pytest.mark.django_db]

ADMIN_PAGES = ("/admin/", "/admin/login/", "/admin/login/?next=/admin/", "/admin/accounts/user/", "/admin/password_change/")


@pytest.fixture
def redis_is_away(settings: Any) -> None:
    """The cache's address is a loopback port on which nothing listens."""
    reservation = next_free_port(6400)
    reservation.release()
    settings.CACHES = {"default": {"BACKEND": "webapp.config.cache.SharedCache", "LOCATION": f"redis://127.0.0.1:{reservation.port}/0"}}
    # The cache in this process's memory, in which other tests have counted too.
    cache.clear()


def log_in(client: Client, password: str, name: str = "owner", **more: Any) -> Any:
    return client.post("/login/", {"username": name, "password": password}, **more)


@pytest.mark.parametrize("page", ADMIN_PAGES)
def test_the_admin_redirects_to_the_log_in_page(page: str, people: SimpleNamespace) -> None:
    for method in ("get", "post"):
        answer = getattr(Client(), method)(page, {"username": "root", "password": "root has a password"})
        assert answer.status_code == 302 and answer["Location"].startswith("/login/?next="), method


def test_the_admin_accepts_no_passwords(people: SimpleNamespace) -> None:
    client = Client()
    for _ in range(15):
        client.post("/admin/login/?next=/admin/", {"username": "root", "password": "wrong", "next": "/admin/"})
    client.post("/admin/login/?next=/admin/", {"username": "root", "password": "root has a password", "next": "/admin/"})
    assert "_auth_user_id" not in client.session


def test_the_admin_opens_only_for_logged_in_staff(people: SimpleNamespace) -> None:
    client = Client()
    answer = client.post("/login/?next=/admin/", {"username": "root", "password": "root has a password"})
    assert answer["Location"] == "/admin/" and client.get("/admin/").status_code == 200
    other = Client()
    other.post("/login/", {"username": "owner", "password": "owner has a password"})
    assert other.get("/admin/").status_code in (302, 403) and other.get("/admin/login/").status_code == 403


def test_guesses_are_counted_while_redis_is_away(people: SimpleNamespace, redis_is_away: None) -> None:
    client = Client()
    for _ in range(10):
        assert log_in(client, "wrong").status_code == 200
    assert log_in(client, "owner has a password").status_code == 200 and "_auth_user_id" not in client.session


def test_people_log_in_while_redis_is_away(people: SimpleNamespace, redis_is_away: None) -> None:
    assert log_in(Client(), "owner has a password").status_code == 302


def test_requests_of_the_api_are_counted_while_redis_is_away(
    people: SimpleNamespace, redis_is_away: None, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    from webapp.config.throttling import PerUser

    monkeypatch.setattr(PerUser, "THROTTLE_RATES", {"user": "5/min"})
    client = client_of(people.owner)
    assert [client.get("/api/v1/me").status_code for _ in range(6)] == [200] * 5 + [429]


def test_another_host_name_gives_no_more_guesses(people: SimpleNamespace) -> None:
    for host in ("localhost", "127.0.0.1"):
        for _ in range(5):
            log_in(Client(), "wrong", headers={"host": host})
    client = Client()
    log_in(client, "owner has a password")
    assert "_auth_user_id" not in client.session


def test_the_limit_on_guesses_ignores_case(people: SimpleNamespace) -> None:
    for name in ("owner", "Owner", "OWNER", " owner ", "oWner") * 2:
        log_in(Client(), "wrong", name)
    client = Client()
    log_in(client, "owner has a password")
    assert "_auth_user_id" not in client.session
