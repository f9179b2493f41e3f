"""Tokens: shown once, stored as a digest, valid for their scopes until they end."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from webapp.accounts.models import ApiToken
from webapp.accounts.services import token_authenticate, token_create, token_revoke

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def bearer(text: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


def test_a_token_is_good_until_it_is_revoked(people: SimpleNamespace) -> None:
    new = token_create(user=people.owner, name="gateway", scopes=["read"])
    found = token_authenticate(new.text, "read")
    assert found is not None and found.user == people.owner
    token_revoke(token=new.token)
    assert token_authenticate(new.text) is None


def test_the_secret_is_nowhere_in_the_row(people: SimpleNamespace) -> None:
    new = token_create(user=people.owner, name="gateway", scopes=["read"])
    row = ApiToken.objects.values().get(pk=new.token.pk)
    assert new.text not in str(row)
    assert len(new.text) - len("vdt_") >= 43


def test_two_tokens_are_never_alike(people: SimpleNamespace) -> None:
    assert len({token_create(user=people.owner, name="x", scopes=["read"]).text for _ in range(20)}) == 20


@pytest.mark.parametrize("scopes", [[], ["root"], ["read", "root"]])
def test_unknown_or_no_scopes_are_refused(people: SimpleNamespace, scopes: list[str]) -> None:
    with pytest.raises(ValueError, match="scopes"):
        token_create(user=people.owner, name="x", scopes=scopes)


def test_expired_tokens_foreign_scopes_and_inactive_users_are_refused(people: SimpleNamespace) -> None:
    new = token_create(user=people.owner, name="x", scopes=["read"], expires_at=timezone.now() + timedelta(hours=1))
    assert token_authenticate(new.text, "write") is None
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert token_authenticate(new.text) is None
    ApiToken.objects.update(expires_at=None)
    people.owner.is_active = False
    people.owner.save()
    assert token_authenticate(new.text) is None


@pytest.mark.parametrize("text", ["", "vdt_", "vdt_wrong", "Bearer", "x" * 5000, "vdt_" + "é" * 20])
def test_only_the_exact_token_is_accepted(people: SimpleNamespace, text: str) -> None:
    token_create(user=people.owner, name="x", scopes=["read"])
    assert token_authenticate(text) is None


def test_last_use_is_noted_once_a_minute(people: SimpleNamespace, django_assert_num_queries: Any) -> None:
    new = token_create(user=people.owner, name="x", scopes=["read"])
    token_authenticate(new.text)
    assert ApiToken.objects.get().last_used_at is not None
    with django_assert_num_queries(1):
        token_authenticate(new.text)


def test_a_read_token_reads_and_does_not_write(people: SimpleNamespace, feed: Any) -> None:
    client = bearer(token_create(user=people.owner, name="x", scopes=["read"]).text)
    assert client.get("/api/v1/feeds/").status_code == 200
    answer = client.post("/api/v1/regions/", {"feed": "yard", "name": "x", "geometry": {"center": [0, 0], "radius": 1}})
    assert answer.status_code == 403
    assert "The token lacks the scope write" in answer.json()["faults"][0]["message"]


def test_a_write_token_does_not_read(people: SimpleNamespace, feed: Any) -> None:
    client = bearer(token_create(user=people.owner, name="x", scopes=["write"]).text)
    assert client.get("/api/v1/feeds/").status_code == 403


def test_a_wrong_token_is_refused_with_the_reason(people: SimpleNamespace) -> None:
    answer = bearer("vdt_wrong").get("/api/v1/feeds/")
    assert answer.status_code == 401
    assert answer.json()["faults"][0]["message"]


@pytest.mark.parametrize("header", [None, "vdt_without_bearer", "Token vdt_x"])
def test_a_request_without_a_token_learns_how_to_send_one(header: str | None, db: None) -> None:
    client = APIClient()
    if header is not None:
        client.credentials(HTTP_AUTHORIZATION=header)
    answer = client.get("/api/v1/feeds/")
    assert answer.status_code == 401
    assert "Authorization: Bearer <token>" in answer.json()["faults"][0]["message"]


def test_a_token_cannot_make_tokens_or_change_the_password(people: SimpleNamespace) -> None:
    client = bearer(token_create(user=people.owner, name="x", scopes=["read", "write"]).text)
    assert client.post("/api/v1/tokens/", {"name": "y", "scopes": ["read"]}).status_code == 403
    assert client.get("/api/v1/tokens/").status_code == 403
    assert client.post("/api/v1/me/password", {"old": "a", "new": "b"}).status_code == 403


def test_a_session_makes_a_token_that_is_shown_once(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    answer = client.post("/api/v1/tokens/", {"name": "gateway", "scopes": ["ingest"]})
    assert answer.status_code == 201
    assert token_authenticate(answer.json()["token"], "ingest") is not None
    listed = client.get("/api/v1/tokens/").json()
    assert [token["name"] for token in listed] == ["gateway"]
    assert "token" not in listed[0]


def test_users_cannot_revoke_tokens_of_others(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    new = token_create(user=people.owner, name="x", scopes=["read"])
    assert client_of(people.stranger).delete(f"/api/v1/tokens/{new.token.pk}/").status_code == 404
    assert client_of(people.owner).delete(f"/api/v1/tokens/{new.token.pk}/").status_code == 204
    assert token_authenticate(new.text) is None


def test_the_command_makes_a_token_and_prints_nothing_else(people: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("token", "owner", "--scope", "ingest", "--name", "boats", "--days", "3")
    text = capsys.readouterr().out.strip()
    token = token_authenticate(text, "ingest")
    assert token is not None and (token.user, token.name, token.scopes) == (people.owner, "boats", ["ingest"])
    assert token.expires_at is not None and token_authenticate(text, "read") is None
    call_command("token", "owner")
    assert token_authenticate(capsys.readouterr().out.strip(), "read") is not None


def test_the_command_names_the_users_there_are(people: SimpleNamespace) -> None:
    with pytest.raises(CommandError, match=r"Known: .*owner"):
        call_command("token", "onwer")
