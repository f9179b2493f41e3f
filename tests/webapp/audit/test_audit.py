"""The audit log: every change, log-in and refusal is in it, nobody reads what is not theirs, nobody changes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.audit.models import Entry
from webapp.audit.services import record

pytestmark = [pytest.mark.services, pytest.mark.django_db]

Clients = Callable[[Any], APIClient]
REGION = {"feed": "yard", "name": "Gate", "geometry": {"center": [0, 0], "radius": 1}}


def last(**wanted: Any) -> Entry:
    found = Entry.objects.filter(**wanted).first()
    assert found is not None, [str(entry) for entry in Entry.objects.all()]
    return found


def test_a_change_tells_who_did_what_to_which_object_from_where(people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
    made = client_of(people.analyst).post("/api/v1/regions/", {**REGION, "team": people.harbour.pk}, REMOTE_ADDR="192.0.2.7")
    assert made.status_code == 201
    entry = last(action="region.create")
    assert (entry.actor, entry.actor_name, entry.means, entry.address) == (people.analyst.pk, "analyst", "session", "192.0.2.7")
    assert (entry.object_type, entry.object_id, entry.object_name) == ("region", str(made.json()["id"]), "Gate")
    assert (entry.outcome, entry.team) == ("done", people.harbour.pk)
    assert entry.request == "POST /api/v1/regions/"


def test_each_kind_of_change_has_its_own_action(people: SimpleNamespace, query: Any, client_of: Clients) -> None:
    client = client_of(people.owner)
    assert client.patch(f"/api/v1/queries/{query.pk}/", {"severity": "high"}).status_code == 200
    assert client.delete(f"/api/v1/queries/{query.pk}/").status_code == 204
    assert last(action="query.change").object_id == str(query.pk)
    assert last(action="query.remove").object_id == str(query.pk)


def test_reading_and_checking_leave_no_entry(people: SimpleNamespace, query: Any, client_of: Clients) -> None:
    client = client_of(people.owner)
    before = Entry.objects.count()
    client.get("/api/v1/queries/")
    client.get("/queries/")
    client.post("/api/v1/queries/check", {"feed": "yard", "specification": query.specification})
    client.post("/api/v1/regions/", {"feed": "yard"})
    assert Entry.objects.count() == before


def test_an_export_is_a_reading_that_is_recorded(people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
    assert client_of(people.viewer).get("/api/v1/detections/export?feed=yard").status_code == 200
    assert last(actor=people.viewer.pk).request == "GET /api/v1/detections/export"


def test_a_foreign_object_that_is_asked_for_is_a_refusal(people: SimpleNamespace, query: Any, client_of: Clients) -> None:
    client_of(people.stranger).get(f"/api/v1/queries/{query.pk}/")
    entry = last(actor=people.stranger.pk, outcome="refused")
    assert (entry.status, entry.object_type, entry.object_id) == (404, "query", str(query.pk))
    client_of(people.viewer).delete(f"/api/v1/queries/{query.pk}/")
    assert last(actor=people.viewer.pk, outcome="refused").status == 403
    client_of(people.stranger).get(f"/queries/{query.pk}")
    assert last(actor=people.stranger.pk).request == f"GET /queries/{query.pk}"


def test_a_call_without_log_in_and_one_too_many_are_refusals(
    people: SimpleNamespace, feed: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    from webapp.config.throttling import PerUser

    client_of(None).get("/api/v1/feeds/")
    assert last(means="nobody").status == 401
    monkeypatch.setattr(PerUser, "get_rate", lambda self: "1/min")
    client = client_of(people.owner)
    assert [client.get("/api/v1/feeds/").status_code for _ in range(2)] == [200, 429]
    assert last(actor=people.owner.pk).status == 429


def test_refusals_cannot_fill_the_disk(people: SimpleNamespace, feed: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    import webapp.audit.middleware as middleware

    monkeypatch.setattr(middleware, "REFUSALS_A_MINUTE", 3)
    minute = 60.0
    monkeypatch.setattr(middleware.time, "monotonic", lambda: minute)
    client = client_of(people.stranger)
    for _ in range(8):
        client.get("/api/v1/feeds/yard/")
    refusals = Entry.objects.filter(actor=people.stranger.pk, outcome="refused")
    assert refusals.count() == 3
    minute = 120.0
    client.get("/api/v1/feeds/yard/")
    assert refusals[0].detail == {"unrecorded": 5}


def test_a_token_is_named_by_what_it_begins_with(people: SimpleNamespace, feed: Any) -> None:
    from webapp.accounts.services import token_create

    new = token_create(user=people.analyst, name="gateway", scopes=["read", "write"])
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {new.text}")
    assert client.post("/api/v1/regions/", REGION).status_code == 201
    entry = last(action="region.create")
    assert (entry.actor_name, entry.means, entry.token) == ("analyst", "token", new.token.prefix)
    assert new.text not in json.dumps(list(Entry.objects.values()), default=str)


def test_logging_in_failing_to_and_logging_out_are_recorded(people: SimpleNamespace, client_of: Clients) -> None:
    client = client_of(None)
    client.post("/login/", {"username": "owner", "password": "wrong"}, format="multipart", REMOTE_ADDR="192.0.2.9")
    failed = last(action="session.open", outcome="failed")
    assert (failed.object_name, failed.address, failed.means) == ("owner", "192.0.2.9", "nobody")
    client.post("/login/", {"username": "owner", "password": "owner has a password"}, format="multipart")
    assert last(action="session.open", outcome="done").actor == people.owner.pk
    client.post("/logout/")
    assert last(action="session.close").actor == people.owner.pk


def test_a_log_in_that_is_barred_is_a_refusal(people: SimpleNamespace, client_of: Clients) -> None:
    client = client_of(None)
    for _ in range(11):
        client.post("/login/", {"username": "owner", "password": "wrong"}, format="multipart")
    assert Entry.objects.filter(action="session.open", outcome="failed").count() == 10
    assert last(action="session.open", outcome="refused").object_name == "owner"


def test_a_password_typed_as_a_name_is_not_kept(people: SimpleNamespace, client_of: Clients) -> None:
    client_of(None).post("/login/", {"username": "my secret password", "password": "x"}, format="multipart")
    entry = last(action="session.open", outcome="failed")
    assert entry.object_name == "" and entry.detail == {"account": "unknown"}


def test_an_address_with_a_nul_is_recorded_too(people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
    assert client_of(people.stranger).get("/api/v1/detections/?feed=yard&kind=%00").status_code < 500
    client_of(people.stranger).get("/api/v1/feeds/ya%00rd/")


def test_what_a_service_records_is_not_recorded_twice(people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
    from django.http import HttpResponse
    from django.test import RequestFactory
    from django.urls import resolve

    from webapp.audit.middleware import Audit

    request = RequestFactory().post("/api/v1/regions/")
    request.user, request.resolver_match = people.owner, resolve("/api/v1/regions/")

    def service(_: Any) -> HttpResponse:
        record("region.invent", feed, why="to try")
        return HttpResponse(status=201)

    before = Entry.objects.count()
    Audit(service)(request)
    assert Entry.objects.count() == before + 1
    entry = last(action="region.invent")
    assert (entry.actor_name, entry.object_name, entry.team, entry.detail) == ("owner", "yard", people.harbour.pk, {"why": "to try"})


def test_a_command_on_the_server_is_named(db: None) -> None:
    record("secret.rotate")
    entry = last(action="secret.rotate")
    assert entry.means == "command" and entry.actor is None and entry.request


# -- who reads it -----------------------------------------------------------------------------------------------------------------


def test_a_superuser_reads_all_and_an_admin_what_concerns_the_team(people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
    client_of(people.analyst).post("/api/v1/regions/", {**REGION, "team": people.harbour.pk})
    client_of(people.analyst).post("/api/v1/regions/", {**REGION, "name": "Own"})
    assert {row["object_name"] for row in client_of(people.root).get("/api/v1/audit/").json()["results"]} >= {"Gate", "Own"}
    assert [row["object_name"] for row in client_of(people.admin).get("/api/v1/audit/?action=region.").json()["results"]] == ["Gate"]
    assert client_of(people.stranger).get("/api/v1/audit/?action=region.").json()["results"] == []


@pytest.mark.parametrize("name", ["viewer", "analyst", "operator", "owner"])
def test_others_read_nothing(people: SimpleNamespace, client_of: Clients, name: str) -> None:
    for address in ("/api/v1/audit/", "/api/v1/audit/export", "/audit/"):
        assert client_of(getattr(people, name)).get(address).status_code == 403


def test_the_filters(people: SimpleNamespace, feed: Any, query: Any, client_of: Clients) -> None:
    client_of(people.stranger).get(f"/api/v1/queries/{query.pk}/", REMOTE_ADDR="192.0.2.1")
    client_of(people.owner).patch(f"/api/v1/queries/{query.pk}/", {"severity": "high"})
    root = client_of(people.root)

    def found(question: str) -> list[str]:
        return [row["action"] for row in root.get(f"/api/v1/audit/?{question}").json()["results"]]

    assert found("action=query.&outcome=refused") == ["query.retrieve"]
    assert found(f"object_type=query&object_id={query.pk}") == ["query.change", "query.retrieve", "query.create"]
    assert found("actor=stranger&address=192.0.2.1&action=query") == ["query.retrieve"]
    assert found("from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z") == []
    for wrong in ("address=abc", "from=yesterday", "outcome=good", "actor=%00"):
        assert root.get(f"/api/v1/audit/?{wrong}").status_code == 400, wrong


def test_the_export_gives_json_lines_and_is_recorded(
    people: SimpleNamespace, query: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    import webapp.audit.api as api

    monkeypatch.setattr(api, "AT_ONCE", 2)
    for number in range(5):
        record("test.count", number=number)
    answer = client_of(people.root).get("/api/v1/audit/export?action=test.")
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    assert [line["detail"]["number"] for line in lines] == [4, 3, 2, 1, 0]
    assert "attachment" in answer.headers["Content-Disposition"]
    assert last().action == "entry.export"
