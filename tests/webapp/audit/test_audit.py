"""The audit log: every change, log-in and refusal is in it; users read only what
concerns them; nobody changes it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest
from django.db import connection
from rest_framework.test import APIClient

from tests.webapp.links import opened, page_of
from webapp.audit.models import Entry
from webapp.audit.services import record
from webapp.platform.postgres import with_database

pytestmark = [pytest.mark.services, pytest.mark.django_db]

Clients = Callable[[Any], APIClient]
REGION = {"feed": "yard", "name": "Gate", "geometry": {"center": [0, 0], "radius": 1}}


def last(**wanted: Any) -> Entry:
    found = Entry.objects.filter(**wanted).first()
    assert found is not None, [str(entry) for entry in Entry.objects.all()]
    return found


def test_an_entry_names_user_action_object_and_address(people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
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


def test_reads_and_checks_are_not_recorded(people: SimpleNamespace, query: Any, client_of: Clients) -> None:
    client = client_of(people.owner)
    before = Entry.objects.count()
    client.get("/api/v1/queries/")
    client.get("/queries/")
    client.post("/api/v1/queries/check", {"feed": "yard", "specification": query.specification})
    occupancy = {"family": "occupancy", "version": 1, "region": {"region": "square"}, "where": [], "count": [">=", 1], "stale": None, "lasting": None}
    assert client.post("/api/v1/queries/occupancy", {"feed": "yard", "specification": occupancy}).status_code == 200
    assert client.post("/api/v1/routing-rules/dry-run", {"name": "a", "people": ["owner"]}).status_code == 200
    assert Entry.objects.count() == before


@pytest.mark.parametrize("address", ["detections/export?feed=yard", "feeds/yard/registry.csv", "feeds/yard/rows.csv", "alerts/export"])
def test_exports_are_recorded(address: str, people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
    assert client_of(people.viewer).get(f"/api/v1/{address}").status_code == 200
    assert last(actor=people.viewer.pk).request == f"GET /api/v1/{address.split('?')[0]}"


def test_a_trial_of_a_connector_holds_no_transaction_meanwhile(
    people: SimpleNamespace, feed: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import connection

    from webapp.connectors import services

    depths: list[int] = []

    def tried(**_: Any) -> Any:
        depths.append(len(connection.savepoint_ids))
        return {**services._NO_ROWS, "records": [], "said": ""}

    monkeypatch.setattr(services, "connector_try", tried)
    outside = len(connection.savepoint_ids)
    assert client_of(people.owner).post("/api/v1/connectors/trial", {"feed": "yard", "kind": "ais-udp"}).status_code == 200
    assert depths == [outside] and last(actor=people.owner.pk).action == "connector.trial"


def test_requests_for_objects_of_others_are_recorded_as_refusals(people: SimpleNamespace, query: Any, client_of: Clients) -> None:
    client_of(people.stranger).get(f"/api/v1/queries/{query.pk}/")
    entry = last(actor=people.stranger.pk, outcome="refused")
    assert (entry.status, entry.object_type, entry.object_id) == (404, "query", str(query.pk))
    client_of(people.viewer).delete(f"/api/v1/queries/{query.pk}/")
    assert last(actor=people.viewer.pk, outcome="refused").status == 403
    client_of(people.stranger).get(f"/queries/{query.pk}")
    assert last(actor=people.stranger.pk).request == f"GET /queries/{query.pk}"


def test_anonymous_and_throttled_requests_are_recorded_as_refusals(
    people: SimpleNamespace, feed: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    from webapp.config.throttling import PerUser

    client_of(None).get("/api/v1/feeds/")
    assert last(means="nobody").status == 401
    monkeypatch.setattr(PerUser, "get_rate", lambda self: "1/min")
    client = client_of(people.owner)
    answers = [client.get("/api/v1/feeds/") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert re.fullmatch(r"Too many requests\. Try again in \d+ s\.", answers[1].json()["faults"][0]["message"])
    assert int(answers[1]["Retry-After"]) > 0
    assert last(actor=people.owner.pk).status == 429


def test_refusals_cannot_fill_the_disk(people: SimpleNamespace, feed: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    import webapp.audit.limits as limits

    monkeypatch.setattr(limits, "REFUSALS_A_MINUTE", 3)
    minute = 60.0
    monkeypatch.setattr(limits.time, "monotonic", lambda: minute)
    client = client_of(people.stranger)
    for _ in range(8):
        client.get("/api/v1/feeds/yard/")
    refusals = Entry.objects.filter(actor=people.stranger.pk, outcome="refused")
    assert refusals.count() == 3
    minute = 120.0
    client.get("/api/v1/feeds/yard/")
    assert refusals[0].detail == {"unrecorded": 5}


def test_malformed_requests_are_refusals_with_a_lower_limit(
    people: SimpleNamespace, feed: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    import webapp.audit.limits as limits

    monkeypatch.setattr(limits, "MALFORMED_A_MINUTE", 4)
    client = client_of(people.owner)
    asked: list[tuple[int, Callable[[], Any]]] = [
        (400, lambda: client.post("/api/v1/regions/", {"feed": "yard"})),
        (400, lambda: client.get("/api/v1/feeds/?nonsense=1")),
        (405, lambda: client.put("/api/v1/feeds/", {})),
        (415, lambda: client.post("/api/v1/regions/", "<a/>", content_type="text/xml")),
    ]
    for status, ask in asked:
        assert ask().status_code == status
        assert last(actor=people.owner.pk).status == status and last(actor=people.owner.pk).outcome == "refused"
    client.get("/api/v1/feeds/?nonsense=1")
    assert Entry.objects.filter(actor=people.owner.pk, outcome="refused").count() == 4
    # Refusals about objects of others have a separate limit, so that they cannot be hidden
    # behind many of the other kind.
    client.get("/api/v1/queries/999999/")
    assert last(actor=people.owner.pk).status == 404


def test_refusals_are_limited_for_all_addresses_of_a_host(
    people: SimpleNamespace, feed: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    import webapp.audit.limits as limits

    monkeypatch.setattr(limits, "REFUSALS_A_MINUTE", 2)
    client = client_of(None)
    for last_part in range(1, 6):
        client.get("/api/v1/feeds/", REMOTE_ADDR=f"2001:db8:0:7::{last_part}")
    assert Entry.objects.filter(means="nobody", outcome="refused").count() == 2


def test_entries_name_a_token_by_its_prefix(people: SimpleNamespace, feed: Any) -> None:
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
    opened = last(action="session.open", outcome="done")
    assert (opened.actor, opened.detail) == (people.owner.pk, {"by": ["password"]})
    client.post("/logout/")
    assert last(action="session.close").actor == people.owner.pk


def test_blocked_log_ins_are_recorded_as_refusals(people: SimpleNamespace, client_of: Clients) -> None:
    client = client_of(None)
    for _ in range(11):
        client.post("/login/", {"username": "owner", "password": "wrong"}, format="multipart")
    assert Entry.objects.filter(action="session.open", outcome="failed").count() == 10
    assert last(action="session.open", outcome="refused").object_name == "owner"


def test_a_password_typed_as_a_user_name_is_not_stored(people: SimpleNamespace, client_of: Clients) -> None:
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


def test_entries_name_management_commands(db: None) -> None:
    record("secret.rotate")
    entry = last(action="secret.rotate")
    assert entry.means == "command" and entry.actor is None and entry.request


# -- one transaction with the change ---------------------------------------------------------------

CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "region.create": ("/api/v1/regions/", REGION, "feeds_region"),
    "apitoken.create": ("/api/v1/tokens/", {"name": "gateway", "scopes": ["ingest"]}, "accounts_apitoken"),
    "team.create": ("/api/v1/teams/", {"name": "Pilots"}, "accounts_team"),
}


@pytest.fixture
def as_owner(transactional_db: None) -> Iterator[Callable[[str], None]]:
    """Runs a statement as the role that owns the tables; rows that it added to
    `audit_entry` are removed at the end."""
    url = with_database(os.environ.get("DATABASE_OWNER_URL", os.environ["DATABASE_URL"]), connection.settings_dict["NAME"])
    owner = psycopg2.connect(url)
    owner.autocommit = True

    def run(text: str) -> None:
        owner.cursor().execute(text)

    yield run
    connection.close()
    run("ALTER TABLE audit_entry DROP CONSTRAINT IF EXISTS no_room")
    run("DROP TRIGGER IF EXISTS no_room ON audit_entry")
    run("DROP FUNCTION IF EXISTS no_room()")
    owner.close()


def rows_of(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


NEVER = "CHECK (action NOT IN ('region.create', 'apitoken.create', 'team.create')) NOT VALID"
AT_THE_END = "AFTER INSERT ON audit_entry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no_room()"


@pytest.mark.parametrize("when", ["at once", "at the very end"])
def test_a_change_and_its_entry_are_stored_together_or_not_at_all(
    as_owner: Callable[[str], None], people: SimpleNamespace, feed: Any, client_of: Clients, when: str
) -> None:
    """The database refuses the entry at once, or both at the commit."""
    client = client_of(people.root)
    client.raise_request_exception = False
    if when == "at once":
        as_owner(f"ALTER TABLE audit_entry ADD CONSTRAINT no_room {NEVER}")
    else:
        as_owner("CREATE FUNCTION no_room() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'no room'; END $$ LANGUAGE plpgsql")
        as_owner(f"CREATE CONSTRAINT TRIGGER no_room {AT_THE_END}")
    before = {action: rows_of(table) for action, (_, _, table) in CHANGES.items()}
    for action, (address, body, table) in CHANGES.items():
        assert client.post(address, body).status_code == 500
        assert rows_of(table) == before[action], f"{action} was made without its entry"
    assert not Entry.objects.filter(action__in=CHANGES).exists()
    as_owner("ALTER TABLE audit_entry DROP CONSTRAINT no_room" if when == "at once" else "DROP TRIGGER no_room ON audit_entry")
    for action, (address, body, table) in CHANGES.items():
        assert client.post(address, body).status_code == 201
        assert rows_of(table) == before[action] + 1 and last(action=action).actor == people.root.pk


def test_a_refused_change_is_rolled_back_and_recorded(people: SimpleNamespace, feed: Any, client_of: Clients, settings: Any) -> None:
    settings.USER_QUOTAS = {**settings.USER_QUOTAS, "vertices": 0}
    assert client_of(people.analyst).post("/api/v1/regions/", REGION).status_code == 403
    assert client_of(people.analyst).get("/api/v1/regions/").json()["count"] == 0
    assert last(actor=people.analyst.pk, status=403).outcome == "refused"


@pytest.mark.django_db(transaction=True)
def test_no_entry_holds_the_secret_of_a_link(people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
    from webapp.accounts.models import Role, Scope
    from webapp.accounts.services import token_create
    from webapp.accounts.teams import invitation_create

    secret = invitation_create(team=people.harbour, email="new@example.org", role=Role.VIEWER, by=people.root).text
    client = client_of(None)
    assert opened(client, f"/shared/#{secret}").status_code == opened(client, f"/acknowledge/#{secret}").status_code == 404
    given = {"username": "newcomer", "password": "a phrase of its own"}
    page = page_of(client, f"/login/invitation/#{secret}")
    assert client.post(page, given, format="multipart").status_code == 302
    # A tracker's token is in its address, even if the rest of the request is invalid.
    token = token_create(user=people.owner, name="van", scopes=[Scope.INGEST]).text
    assert client.post(f"/api/v1/track/nowhere/{token}", {}).status_code == 404
    assert client.post(f"/api/v1/track/yard/{token}x", {}).status_code == 401
    written = json.dumps(list(Entry.objects.values()), default=str)
    assert "newcomer" in written and "POST /shared/" in written and "/track/yard/..." in written
    assert secret not in written and token not in written and token[8:] not in written


# -- who reads it ----------------------------------------------------------------------------------


def test_a_superuser_reads_all_and_an_admin_what_concerns_the_team(people: SimpleNamespace, feed: Any, client_of: Clients) -> None:
    client_of(people.analyst).post("/api/v1/regions/", {**REGION, "team": people.harbour.pk})
    client_of(people.analyst).post("/api/v1/regions/", {**REGION, "name": "Own"})
    assert {row["object_name"] for row in client_of(people.root).get("/api/v1/audit/").json()["results"]} >= {"Gate", "Own"}
    assert [row["object_name"] for row in client_of(people.admin).get("/api/v1/audit/?action=region.").json()["results"]] == ["Gate"]
    assert client_of(people.stranger).get("/api/v1/audit/?action=region.").json()["results"] == []


@pytest.mark.parametrize("name", ["viewer", "analyst", "operator", "owner"])
def test_other_users_cannot_read_the_audit_log(people: SimpleNamespace, client_of: Clients, name: str) -> None:
    for address in ("/api/v1/audit/", "/api/v1/audit/export", "/audit/"):
        assert client_of(getattr(people, name)).get(address).status_code == 403


def test_entries_can_be_filtered(people: SimpleNamespace, feed: Any, query: Any, client_of: Clients) -> None:
    client_of(people.stranger).get(f"/api/v1/queries/{query.pk}/", REMOTE_ADDR="192.0.2.1")
    client_of(people.owner).patch(f"/api/v1/queries/{query.pk}/", {"severity": "high"})
    root = client_of(people.root)

    def found(question: str) -> list[str]:
        return [row["action"] for row in root.get(f"/api/v1/audit/?{question}").json()["results"]]

    assert found("action=query.&outcome=refused") == ["query.retrieve"]
    assert found(f"object_type=query&object_id={query.pk}") == ["query.change", "query.retrieve", "query.create"]
    assert found("actor=stranger&address=192.0.2.1&action=query") == found("actor=stra&action=query") == ["query.retrieve"]
    assert found("actor=ranger&action=query") == []
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
