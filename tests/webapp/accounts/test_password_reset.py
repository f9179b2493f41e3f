"""A forgotten password: a link by e-mail, over a real mail server."""

import re
from email.message import EmailMessage
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from tests.webapp.accounts.outside import mail_server
from tests.webapp.links import opened
from webapp.accounts.models import User
from webapp.accounts.services import token_authenticate, token_create

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def mails(settings: Any, people: SimpleNamespace) -> Any:
    with mail_server() as (port, received):
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_GIVEN = "127.0.0.1", port, True
        settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
        User.objects.filter(username="owner").update(email="owner@example.org")
        yield received


def link_in(mail: EmailMessage) -> str:
    found = re.search(r"http://testserver(/login/password/key/\S+)", mail.get_content())
    assert found is not None, mail.get_content()
    return found[1]


def ask(address: str) -> Any:
    return Client().post("/login/password/", {"email": address})


def test_the_link_sets_a_new_password_once_and_ends_all_sessions(mails: list[EmailMessage], people: SimpleNamespace) -> None:
    token = token_create(user=people.owner, name="gateway", scopes=["read"]).text
    inside = Client()
    inside.post("/login/", {"username": "owner", "password": "owner has a password"})
    assert ask("owner@example.org").status_code == 302
    assert mails[0]["To"] == "owner@example.org" and mails[0]["Subject"] == "[Vedette] A new password"
    client = Client()
    form = opened(client, link_in(mails[0]))
    assert client.post(form.request["PATH_INFO"], {"password1": "short", "password2": "short"}).status_code == 200
    assert client.post(form.request["PATH_INFO"], {"password1": "a phrase of its own", "password2": "a phrase of its own"}).status_code == 302
    assert inside.get("/account/").status_code == 302
    assert token_authenticate(token) is None, "someone who knew the old password may have made it"
    assert Client().post("/login/", {"username": "owner", "password": "a phrase of its own"}).status_code == 302
    assert b"has been used already" in opened(Client(), link_in(mails[0])).content
    assert any("password" in mail["Subject"].lower() and mail is not mails[0] for mail in mails), "the owner is notified"


def test_a_password_changed_on_its_page_ends_tokens_too(people: SimpleNamespace) -> None:
    token = token_create(user=people.owner, name="gateway", scopes=["read"]).text
    client = Client()
    client.post("/login/", {"username": "owner", "password": "owner has a password"})
    given = {"oldpassword": "owner has a password", "password1": "a phrase of its own", "password2": "a phrase of its own"}
    assert client.post("/account/password/", {**given, "oldpassword": "wrong"}).status_code == 200
    assert token_authenticate(token) is not None
    assert client.post("/account/password/", given).status_code == 302
    assert token_authenticate(token) is None


def test_an_address_without_account_gets_the_same_answer_and_no_link(mails: list[EmailMessage]) -> None:
    known, unknown = ask("owner@example.org"), ask("nobody@example.org")
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])
    assert [mail["To"] for mail in mails] == ["owner@example.org", "nobody@example.org"]
    assert "/login/password/key/" not in mails[1].get_content()


def test_the_number_of_reset_links_is_limited(mails: list[EmailMessage]) -> None:
    for _ in range(6):
        ask("owner@example.org")
    assert len(mails) == 3


def test_a_forged_host_header_does_not_appear_in_the_link(mails: list[EmailMessage]) -> None:
    assert Client().post("/login/password/", {"email": "owner@example.org"}, headers={"host": "evil.example"}).status_code == 400
    assert mails == []


def test_without_a_mail_server_the_page_says_whom_to_ask(people: SimpleNamespace) -> None:
    page = Client().get("/login/password/").content.decode()
    assert "Ask an administrator" in page and "<form" not in page
