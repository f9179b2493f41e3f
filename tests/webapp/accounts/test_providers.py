"""Log-in by OpenID Connect, with a certified provider on loopback: discovery, code flow
with PKCE, signed tokens."""

import re
import urllib.parse
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from tests.webapp.accounts.outside import code_of_app, consent, identity_provider, providers
from webapp.accounts.models import User
from webapp.config.settings.identity import oidc_apps

pytestmark = [pytest.mark.services, pytest.mark.django_db]

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with identity_provider() as address:
        yield address


@pytest.fixture
def trusted(issuer: str, settings: Any) -> Any:
    """Sets both providers up; the settings given are those of the first."""

    def use(**more: Any) -> None:
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": oidc_apps(providers(issuer, **more))}}

    use()
    return use


def client() -> Client:
    return Client(headers={"host": HOST})


def go(client: Client, provider: str, name: str, **more: str) -> Any:
    """Logs in at the provider as `name`; returns Vedette's response to the callback."""
    began = client.post(f"/login/with/{provider}/?{urllib.parse.urlencode(more)}")
    found = re.search(r'content="0;url=([^"]+)"', began.content.decode())
    assert found is not None, began.content
    back = urllib.parse.urlsplit(consent(found[1].replace("&amp;", "&"), name))
    assert back.hostname == HOST
    return client.get(f"{back.path}?{back.query}")


def is_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_a_provider_log_in_creates_an_account_once_without_a_team(trusted: Any, people: SimpleNamespace) -> None:
    for _ in range(2):
        browser = client()
        answer = go(browser, "corp", "grace", next="/feeds/")
        assert answer.status_code == 302 and answer["Location"] == "/feeds/"
        assert is_in(browser)
    user = User.objects.get(username="grace")
    assert user.email == "grace@example.org" and not user.memberships.exists()
    assert not user.has_usable_password() and not user.is_staff and not user.is_superuser


def test_the_log_in_page_offers_every_provider(trusted: Any, db: None) -> None:
    page = client().get("/login/").content.decode()
    assert "Log in with Example Corp" in page and "Log in with Second Harbour" in page
    browser = client()
    go(browser, "second", "ida")
    assert is_in(browser)


def test_two_factors_at_a_provider_count_when_it_says_so(trusted: Any, settings: Any, db: None) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    for name, more, opens in (("strongada", {}, True), ("ida", {}, False), ("ida", {"second_factor": "trusted"}, True)):
        trusted(**more)
        browser = client()
        go(browser, "corp", name)
        answer = browser.get("/feeds/")
        assert (answer.status_code == 200) is opens, (name, answer.status_code)
        assert opens or answer["Location"] == "/account/security/"
    with pytest.raises(ImproperlyConfigured, match="second_factor is"):
        trusted(second_factor=5)


def test_a_matching_mail_address_alone_does_not_open_an_account(trusted: Any, people: SimpleNamespace) -> None:
    User.objects.filter(username="owner").update(email="owner@example.org")
    browser = client()
    answer = go(browser, "corp", "owner")
    assert answer.status_code == 409 and b"has the address owner@example.org already" in answer.content and not is_in(browser)


def test_a_provider_trusted_with_addresses_opens_accounts_with_verified_addresses(trusted: Any, people: SimpleNamespace) -> None:
    trusted(trust_email=True)
    User.objects.filter(username="owner").update(email="owner@example.org")
    User.objects.filter(username="viewer").update(email="unverified-v@example.org")
    browser, other = client(), client()
    go(browser, "corp", "owner")
    assert browser.get("/api/v1/me").json()["name"] == "owner"
    assert go(other, "corp", "unverified-v").status_code == 409 and not is_in(other)


def test_users_can_connect_a_provider_and_log_in_with_it(trusted: Any, people: SimpleNamespace) -> None:
    trusted(sign_up=False)
    browser = client()
    browser.post("/login/", {"username": "owner", "password": "owner has a password"})
    assert go(browser, "corp", "somebody", process="connect")["Location"].startswith("/account/confirm/"), "the password is asked for first"
    browser.post("/account/confirm/", {"password": "owner has a password"})
    other = client()
    go(other, "corp", "somebody")
    assert other.get("/api/v1/me").json()["name"] == "owner"
    assert b"Example Corp" in browser.get("/account/providers/").content


def test_without_sign_up_unknown_users_are_refused(trusted: Any, people: SimpleNamespace) -> None:
    trusted(sign_up=False)
    before = User.objects.count()
    browser = client()
    assert b"No account" in go(browser, "corp", "mallory").content
    assert not is_in(browser) and User.objects.count() == before


def test_a_second_factor_is_asked_for_after_a_provider_too(trusted: Any, people: SimpleNamespace) -> None:
    browser = client()
    go(browser, "corp", "hedy")
    page = browser.get("/account/security/app/").content.decode()
    secret = re.search(r'id="secret" readonly value="(\w+)"', page)
    assert secret is not None
    browser.post("/account/security/app/", {"code": code_of_app(secret[1])})
    other = client()
    assert go(other, "corp", "hedy")["Location"].startswith("/login/second-factor/") and not is_in(other)


def test_a_provider_callback_without_a_log_in_request_is_refused(trusted: Any, people: SimpleNamespace) -> None:
    victim, attacker = client(), client()
    began = attacker.post("/login/with/corp/")
    found = re.search(r'content="0;url=([^"]+)"', began.content.decode())
    assert found is not None
    back = urllib.parse.urlsplit(consent(found[1].replace("&amp;", "&"), "mallory"))
    assert b"Not logged in" in victim.get(f"{back.path}?{back.query}").content and not is_in(victim)
    assert b"Not logged in" in attacker.get(f"{back.path}?state=made-up&code=made-up").content and not is_in(attacker)


def test_an_inactive_user_cannot_log_in_with_a_provider(trusted: Any, people: SimpleNamespace) -> None:
    go(client(), "corp", "grace")
    User.objects.filter(username="grace").update(is_active=False)
    browser = client()
    go(browser, "corp", "grace")
    assert not is_in(browser)


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[{"id": "x"}]', '[{"id":"x","name":"x","issuer":"x","client_id":"x","signup":true}]'])
def test_faults_of_the_setting_have_pointers(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="VEDETTE_OIDC_PROVIDERS"):
        oidc_apps(text)
