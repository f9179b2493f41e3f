"""Second factors and sessions: an authenticator app, recovery codes, the list of sessions.
Passkeys: tests/browser/test_log_in.py."""

import re
import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from tests.webapp.accounts.outside import code_of_app
from webapp.accounts.services import token_create
from webapp.live.selectors import logged_in_until

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def logged_in(name: str) -> Client:
    client = Client()
    assert client.post("/login/", {"username": name, "password": f"{name} has a password"}).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def set_up_app(client: Client) -> str:
    """Sets the app up in a session whose password was confirmed; returns the app's secret."""
    assert client.get("/account/security/app/").status_code == 302, "the password is asked for first"
    client.post("/account/confirm/", {"password": client.password})  # type: ignore[attr-defined]
    page = client.get("/account/security/app/").content.decode()
    found = re.search(r'id="secret" readonly value="(\w+)"', page)
    assert found is not None
    # A code is valid for 30 seconds, which may end on the way: the second attempt has all of them.
    assert 302 in [client.post("/account/security/app/", {"code": code_of_app(found[1])}).status_code for _ in range(2)]
    return found[1]


@pytest.fixture
def owner(people: SimpleNamespace) -> Client:
    client = logged_in("owner")
    client.password = "owner has a password"  # type: ignore[attr-defined]
    return client


def test_an_account_with_an_authenticator_needs_more_than_the_password(owner: Client) -> None:
    secret = set_up_app(owner)
    other = Client()
    answer = other.post("/login/?next=/feeds/", {"username": "owner", "password": "owner has a password"})
    assert answer["Location"].startswith("/login/second-factor/") and not is_in(other)
    assert other.post("/login/second-factor/", {"code": "000000"}).status_code == 200 and not is_in(other)
    # The code of these 30 seconds was used to set the app up, and no code works
    # twice: forget that it was used.
    cache.clear()
    other.post("/login/second-factor/", {"code": code_of_app(secret)})
    assert is_in(other)


def test_a_recovery_code_works_once(owner: Client) -> None:
    set_up_app(owner)
    page = owner.get("/account/security/codes/").content.decode()
    codes = re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.S)
    assert codes is not None
    code = codes[1].split()[0]
    assert len(codes[1].split()) == 10
    for opens in (True, False):
        other = Client()
        other.post("/login/", {"username": "owner", "password": "owner has a password"})
        other.post("/login/second-factor/", {"code": code})
        assert is_in(other) is opens


def test_guessing_of_codes_is_limited(owner: Client) -> None:
    set_up_app(owner)
    code = owner.get("/account/security/codes/").content.decode().split("<textarea")[1].split(">")[1].split()[0]
    other = Client()
    other.post("/login/", {"username": "owner", "password": "owner has a password"})
    for _ in range(10):
        other.post("/login/second-factor/", {"code": "123456"})
    other.post("/login/second-factor/", {"code": code.removesuffix("</textarea")})
    assert not is_in(other)


def test_the_admin_asks_for_the_second_factor_too(people: SimpleNamespace) -> None:
    root = logged_in("root")
    root.password = "root has a password"  # type: ignore[attr-defined]
    set_up_app(root)
    other = Client()
    other.post("/login/?next=/admin/", {"username": "root", "password": "root has a password"})
    assert other.get("/admin/").status_code == 302 and other.get("/admin/login/").status_code == 302


def test_every_page_about_an_account_can_be_shown(owner: Client) -> None:
    set_up_app(owner)
    pages = ["", "confirm/", "password/", "security/", "security/app/remove/", "security/codes/", "security/codes/new/", "security/passkeys/",
             "security/passkeys/new/", "providers/", "sessions/", "confirm/second-factor/"]  # fmt: skip
    for page in pages:
        answer = owner.get(f"/account/{page}")
        assert answer.status_code == 200, page
        assert b"<script>" not in answer.content and b"onclick" not in answer.content, page


def test_users_see_their_sessions_and_can_end_the_others(owner: Client) -> None:
    there = Client(headers={"user-agent": "Another browser"})
    there.post("/login/", {"username": "owner", "password": "owner has a password"})
    page = owner.get("/account/sessions/").content.decode()
    assert "Another browser" in page and "This session" in page
    stranger = logged_in("stranger")
    assert "Another browser" not in stranger.get("/account/sessions/").content.decode()
    owner.post("/account/sessions/")
    assert is_in(owner) and is_in(stranger) and not is_in(there)


def test_a_code_works_once_across_processes(owner: Client) -> None:
    """Without Redis each web process has a separate cache: one does not
    know what another stored."""
    secret = set_up_app(owner)
    if time.time() % 30 > 20:
        time.sleep(31 - time.time() % 30)
    code = code_of_app(secret)
    opened = []
    for _ in range(2):
        cache.clear()
        other = Client()
        other.post("/login/", {"username": "owner", "password": "owner has a password"})
        other.post("/login/second-factor/", {"code": code})
        opened.append(is_in(other))
    assert opened == [True, False]


def test_users_without_a_required_second_factor_reach_only_its_set_up(owner: Client, settings: Any, people: SimpleNamespace) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    assert owner.get("/feeds/")["Location"] == "/account/security/"
    assert "requires a second factor of every user" in owner.get("/account/security/").content.decode()
    assert owner.get("/api/v1/feeds/").status_code == 403
    assert owner.get("/healthz").status_code == 200
    assert Client().get("/feeds/")["Location"].startswith("/login/")
    token = token_create(user=people.owner, name="reader", scopes=["read"]).text
    assert Client().get("/api/v1/feeds/", HTTP_AUTHORIZATION=f"Bearer {token}").status_code == 200, "tokens are no sessions"
    session = owner.session
    scope = {"session": session, "user": people.owner}
    assert not logged_in_until(scope)
    set_up_app(owner)
    assert owner.get("/feeds/").status_code == 200 and owner.get("/api/v1/feeds/").status_code == 200
    assert logged_in_until({"session": owner.session, "user": people.owner})


@pytest.mark.parametrize(("proved", "status"), [("corp", 200), ("second", 302), (None, 302)])
def test_a_second_factor_at_the_provider_counts(owner: Client, settings: Any, proved: str | None, status: int) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    session = owner.session
    session["account_authentication_methods"] = [{"method": "socialaccount", "at": 0, "provider": "corp", "uid": "1"}]
    session["provider_proved"] = proved
    session.save()
    assert owner.get("/feeds/").status_code == status
