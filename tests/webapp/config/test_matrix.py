"""Every address of the site, requested by every kind of user: the matrix fails if an
address is not listed here.

`OWNED` addresses belong to an object: who reaches it is in `test_permission_matrix.py`.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from rest_framework.test import APIClient

pytestmark = [pytest.mark.services, pytest.mark.django_db]

OPEN = {"healthz", "account_logout", "shared", "shared-view", "shared-plan", "acknowledge", "acknowledge-message", "api-push-renewal"}
"""No log-in needed: they reveal nothing."""
LOG_IN = {
    "account_login", "account_signup", "account_inactive", "mfa_authenticate", "mfa_login_webauthn", "account_reset_password",
    "account_reset_password_done", "account_reset_password_from_key", "account_reset_password_from_key_done", "openid_connect_login",
    "openid_connect_callback", "socialaccount_login_cancelled", "socialaccount_login_error", "socialaccount_signup",
    "invitation", "invitation-answer", "password-key",
}  # fmt: skip
"""Below /login/: before and during a log-in."""
OWN_ACCOUNT = {
    "account_reauthenticate", "mfa_reauthenticate", "mfa_reauthenticate_webauthn", "account_change_password", "account_set_password", "mfa_index",
    "mfa_activate_totp", "mfa_deactivate_totp", "mfa_view_recovery_codes", "mfa_generate_recovery_codes", "mfa_download_recovery_codes",
    "mfa_list_webauthn", "mfa_add_webauthn", "mfa_edit_webauthn", "mfa_remove_webauthn", "socialaccount_connections", "usersessions_list",
}  # fmt: skip
"""Below /account/: pages about the protection of the user's account."""
ADMIN = {"admin-login", "admin-password"}
"""Apart from Django's admin; tested in tests/webapp/accounts/test_one_log_in.py."""
PAGES = {"live", "queries", "query-new", "alerts", "alert-numbers", "regions", "feeds", "feed-new", "account", "audit", "teams"}
OWNED_PAGES = {"query", "alert", "feed-plan", "feed-entity", "region"}
PERSONAL = {
    "api-me": ["GET", "PATCH"],
    "api-me-quotas": ["GET"],
    "api-me-password": ["POST"],
    "api-tokens": ["GET", "POST"],
    "api-token": ["DELETE"],
    "api-schema": ["GET"],
    "api-base-map-tile": ["GET"],
}
TEAMS = {
    "api-teams": ["GET", "POST"],
    "api-team": ["GET", "PATCH", "DELETE"],
    "api-team-invitations": ["POST"],
    "api-team-invitation": ["DELETE"],
    "api-team-member": ["PATCH", "DELETE"],
    "api-team-transfer": ["POST"],
    "api-team-quotas": ["GET", "PATCH"],
    "api-person-quotas": ["GET", "PATCH"],
    "api-people": ["GET"],
    "api-person": ["PATCH"],
    "api-person-transfer": ["POST"],
}
TWO_IDS = ("api-team-invitation", "api-team-member", "api-team-transfer")
"""Who may do what there: tests/webapp/accounts/test_teams.py."""
LISTS = {
    "api-feeds": ["GET", "POST"],
    "api-uploads": ["GET", "POST"],
    "api-samples": ["GET", "POST"],
    "api-connectors": ["GET", "POST"],
    "api-connectors-kinds": ["GET"],
    "api-connectors-trial": ["POST"],
    "api-regions": ["GET", "POST"],
    "api-regions-import": ["POST"],
    "api-regions-export": ["GET"],
    "api-regions-bulk": ["POST"],
    "api-queries": ["GET", "POST"],
    "api-query-bulk": ["POST"],
    "api-query-remove": ["POST"],
    "api-query-check": ["POST"],
    "api-query-closure": ["POST"],
    "api-query-pattern": ["POST"],
    "api-query-occupancy-of": ["POST"],
    "api-query-progress-of": ["POST"],
    "api-query-preview": ["POST"],
    "api-query-gallery": ["GET", "POST"],
    "api-query-sandbox": ["POST"],
    "api-detections": ["GET"],
    "api-detections-export": ["GET"],
    "api-detections-counts": ["GET"],
    "api-removed-queries": ["GET"],
    "api-detections-scores": ["GET"],
    "api-alerts": ["GET"],
    "api-alert-summary": ["GET"],
    "api-alert-bulk": ["POST"],
    "api-alert-count": ["GET"],
    "api-alert-groups": ["GET"],
    "api-alert-numbers": ["GET"],
    "api-alert-export": ["GET"],
    "api-views": ["GET", "POST"],
    "api-mutes": ["GET", "POST"],
    "api-channels": ["GET", "POST"],
    "api-channels-reach": ["GET"],
    "api-push-key": ["GET"],
    "api-shifts": ["GET", "POST"],
    "api-rules": ["GET", "POST"],
    "api-rules-dry-run": ["GET", "POST"],
    "api-jobs": ["GET", "POST"],
    "api-job": ["GET", "DELETE"],
    "api-job-start": ["POST"],
    "api-job-stop": ["POST"],
    "api-watches": ["GET"],
    "api-audit": ["GET"],
    "api-audit-export": ["GET"],
}
OWNED = {
    "api-feed": ["GET", "PATCH", "DELETE"],
    "api-feed-plan": ["PUT"],
    "api-feed-holdings": ["GET"],
    "api-feed-positions": ["GET"],
    "api-feed-tracks": ["GET"],
    "api-feed-movements": ["GET"],
    "api-feed-entities": ["GET"],
    "api-feed-entity": ["GET"],
    "api-feed-density": ["GET"],
    "api-feed-attribute": ["GET"],
    "api-feed-profile": ["GET", "PUT"],
    "api-feed-registry": ["GET", "POST"],
    "api-feed-registry-csv": ["GET"],
    "api-feed-overlays": ["GET", "POST"],
    "api-feed-overlay": ["GET", "DELETE"],
    "api-region-activity": ["GET"],
    "api-feed-measures": ["GET"],
    "api-feed-histogram": ["GET"],
    "api-dead-letters": ["GET"],
    "api-dead-letters-correct": ["POST"],
    "api-connector": ["GET", "PATCH", "DELETE"],
    "api-upload": ["GET", "PATCH", "DELETE"],
    "api-upload-inspection": ["POST"],
    "api-upload-load": ["POST", "PATCH"],
    "api-dead-letters-csv": ["GET"],
    "api-feed-rows": ["GET"],
    "api-feed-rows-csv": ["GET"],
    "api-region": ["GET", "PATCH", "DELETE"],
    "api-query": ["GET", "PATCH", "DELETE"],
    "api-query-versions": ["GET"],
    "api-query-version": ["GET"],
    "api-query-shapes": ["GET"],
    "api-query-derivation": ["GET"],
    "api-query-occupancy": ["GET"],
    "api-query-progress": ["GET"],
    "api-detection": ["GET"],
    "api-detection-answers": ["GET"],
    "api-detection-evidence": ["GET"],
    "api-alert": ["GET"],
    "api-alert-acknowledge": ["POST"],
    "api-alert-assign": ["POST"],
    "api-alert-feedback": ["POST"],
    "api-alert-reopen": ["POST"],
    "api-alert-resolve": ["POST"],
    "api-alert-seen": ["POST"],
    "api-view": ["GET", "PATCH", "DELETE"],
    "api-rule": ["GET", "PATCH", "DELETE"],
    "api-mute": ["GET", "DELETE"],
    "api-alert-comments": ["POST"],
    "api-channel": ["GET", "PATCH", "DELETE"],
    "api-shift": ["GET", "PATCH", "DELETE"],
    "api-shift-turns": ["GET", "POST"],
    "api-shift-turn": ["PATCH", "DELETE"],
    "api-channel-rotate": ["POST"],
    "api-channel-test": ["POST"],
    "api-channel-deliveries": ["GET"],
    "api-channel-delivery-retry": ["POST"],
}
ELSEWHERE = {"api-feed-events", "api-track", "api-track-token", "api-shares", "api-share", "api-feed-notes", "api-feed-note", "api-feed-watch"}
"""Tested with their own code (tests/webapp/feeds, tests/webapp/live/test_shares.py,
tests/webapp/entities): a token's scope decides there too, or users who see a feed may write notes
about it."""


def named_addresses() -> Iterator[str]:
    def walk(patterns: list[Any]) -> Iterator[str]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                if pattern.app_name != "admin":
                    yield from walk(pattern.url_patterns)
            elif isinstance(pattern, URLPattern):
                yield pattern.name or str(pattern.pattern)

    return walk(get_resolver().url_patterns)


def address_of(name: str, things: dict[str, Any]) -> str:
    if name in ("api-detection", "api-detection-answers", "api-detection-evidence"):
        return reverse(name, args=[(b"k" * 16).hex()])
    if name == "api-base-map-tile":
        return reverse(name, args=[0, 0, 0, 0])
    if name == "api-feed-overlay":
        return reverse(name, args=[things["feed"].name, things["overlay"].pk])
    if name == "feed-entity":
        return reverse(name, args=[things["feed"].name]) + "?id=a"
    if name == "api-channel-delivery-retry":
        return reverse(name, args=[things["channel"].pk, things["delivery"].pk])
    if name == "api-shift-turn":
        return reverse(name, args=[things["shift"].pk, things["turn"].pk])
    if name == "api-query-version":
        return reverse(name, args=[things["query"].pk, 1])
    if name in ("api-job", "api-job-start", "api-job-stop"):
        return reverse(name, args=["main"])
    if name in TEAMS:
        return reverse(name, args=[things["query"].team_id, 1][: 0 if name in ("api-teams", "api-people") else 2 if name in TWO_IDS else 1])
    if name == "api-token":
        return reverse(name, args=[1])
    kind = next(
        (
            kind
            for kind in ("connector", "upload", "region", "query", "channel", "alert", "view", "mute", "rule", "shift")
            if name in (kind, f"api-{kind}") or name.startswith(f"api-{kind}-")
        ),
        None,
    )
    if name in LISTS or name in PERSONAL:
        return reverse(name)
    return reverse(name, args=[things[kind].pk] if kind else [things["feed"].name])


def ask(client: APIClient, method: str, address: str) -> int:
    if method == "GET":
        return int(client.get(address).status_code)
    return int(client.generic(method, address, b"{}", content_type="application/json").status_code)


def test_every_address_is_in_this_matrix() -> None:
    listed = OPEN | LOG_IN | OWN_ACCOUNT | ADMIN | PAGES | OWNED_PAGES | set(PERSONAL) | set(TEAMS) | set(LISTS) | set(OWNED) | ELSEWHERE
    found = set(named_addresses())
    assert found - listed == set(), "add the new addresses to the matrix"
    assert listed - found == set(), "these addresses are gone"


@pytest.mark.parametrize("name", sorted(OWN_ACCOUNT))
def test_pages_of_an_account_ask_for_a_log_in(name: str, client_of: Callable[..., APIClient], db: None) -> None:
    address = reverse(name, args=[1] if name in ("mfa_edit_webauthn", "mfa_remove_webauthn") else [])
    for method in ("get", "post"):
        answer = getattr(client_of(None), method)(address)
        assert answer.status_code == 302 and answer["Location"].startswith("/login/?next="), method


@pytest.mark.parametrize("name", sorted({*PERSONAL, *TEAMS, *LISTS, *OWNED}))
def test_the_api_answers_401_to_anonymous_requests(name: str, things: dict[str, Any], client_of: Callable[..., APIClient]) -> None:
    for method in (PERSONAL | TEAMS | LISTS | OWNED)[name]:
        assert ask(client_of(None), method, address_of(name, things)) == 401, method


@pytest.mark.parametrize("name", sorted({*PERSONAL, *TEAMS, *LISTS, *OWNED}))
def test_other_methods_are_refused(name: str, things: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - set((PERSONAL | TEAMS | LISTS | OWNED)[name]):
        assert ask(client_of(people.root), method, address_of(name, things)) == 405, method


NO_OBJECT = {
    "api-channel-rotate", "api-channel-test", "api-channel-delivery-retry", "api-job-start", "api-job-stop", "api-alert-seen", "api-feed-plan",
    "api-upload", "api-uploads", "api-team-member", "api-team-transfer",
}  # fmt: skip
"""Addresses whose body, if any, is no JSON object, and one of a member that is not there."""


def test_an_unknown_key_of_a_body_is_refused(things: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    type(things["upload"]).objects.update(state="ready")
    client, taken = client_of(people.root), []
    methods = PERSONAL | TEAMS | LISTS | OWNED
    for name in sorted({*methods} - NO_OBJECT):
        address = reverse(name, args=[people.viewer.pk]) if name.startswith("api-person") else address_of(name, things)
        address += "?id=a" if name == "api-feed-profile" else ""
        for method in {"POST", "PUT", "PATCH"} & {*methods[name]}:
            answer = client.generic(method, address, b'{"dry_rum": true}', content_type="application/json")
            if answer.status_code == 415:
                answer = client.post(address, {"dry_rum": "true"}, format="multipart")
            if answer.status_code != 400 or "/dry_rum" not in [fault["pointer"] for fault in answer.json()["faults"]]:
                taken.append((name, method, answer.status_code, answer.content[:200]))
    assert taken == []


def test_a_key_that_a_form_has_twice_is_refused(things: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    form = {"feed": "yard", "file": SimpleUploadedFile("a.json", b"{}"), "dry_run": ["true", "false"]}
    answer = client_of(people.owner).post("/api/v1/regions/import", form, format="multipart")
    assert answer.status_code == 400 and "/dry_run" in [fault["pointer"] for fault in answer.json()["faults"]]


def test_alerts_and_their_counts_are_hidden_from_a_stranger(
    things: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    assert client_of(people.viewer).get("/api/v1/alerts/").json()["results"][0]["id"] == things["alert"].pk
    assert client_of(people.viewer).get("/api/v1/alerts/summary").json()["new"]["low"] == 1
    assert client_of(people.stranger).get("/api/v1/alerts/").json()["results"] == []
    assert client_of(people.stranger).get("/api/v1/alerts/summary").json()["new"]["low"] == 0
    assert client_of(people.stranger).post("/api/v1/alerts/bulk", {"ids": [things["alert"].pk], "action": "resolve"}).json() == {"changed": []}


def test_feeds_of_others_cannot_be_used_by_name(things: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.stranger)
    border = {"family": "border", "region": {"center": [0, 0], "radius": 1}}
    assert client.post("/api/v1/queries/", {"feed": "yard", "name": "x", "specification": border}).status_code == 400
    assert client.post("/api/v1/queries/check", {"feed": "yard", "specification": border}).status_code == 400
    assert client.post("/api/v1/queries/preview", {"feed": "yard", "specification": border}).status_code == 400
    assert client.post("/api/v1/regions/", {"feed": "yard", "name": "x", "geometry": border["region"]}).status_code == 400
    assert client.get("/api/v1/regions/export?feed=yard").status_code == 400
    assert client.get("/api/v1/detections/?feed=yard").status_code == 404
    for kind in ("queries", "regions", "alerts", "connectors"):
        hidden, unknown = (client.get(f"/api/v1/{kind}/?feed={name}") for name in ("yard", "nope"))
        assert (hidden.status_code, hidden.content) == (400, unknown.content.replace(b"nope", b"yard")), kind
    assert client.get(f"/api/v1/detections/?query={things['query'].pk}").json()["results"] == []
    answer = client.post("/api/v1/channels/", {"name": "x", "url": "https://hooks.example.org/", "queries": [things["query"].pk]})
    assert answer.json()["faults"][0]["pointer"].startswith("/queries")


def test_users_cannot_put_objects_into_teams_of_others(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    region = {"feed": "yard", "name": "x", "geometry": {"center": [0, 0], "radius": 1}, "team": people.elsewhere.pk}
    assert client_of(people.owner).post("/api/v1/regions/", region).json()["faults"][0]["pointer"] == "/team"


def test_owner_version_and_similar_fields_are_read_only(things: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    address = address_of("api-query", things)
    before = client_of(people.owner).get(address).json()
    changed = {"owner": people.stranger.pk, "version": 99, "editable": False, "id": 5, "kinds": ["x"]}
    after = client_of(people.owner).patch(address, changed).json()
    assert {**after, "updated_at": None} == {**before, "updated_at": None}
    assert client_of(people.owner).patch(address, {"deleted_at": None}).json()["faults"][0]["pointer"] == "/deleted_at", "there is no such key"


def test_a_session_needs_the_csrf_token(people: SimpleNamespace, things: dict[str, Any]) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(people.owner)
    answer = client.post(address_of("api-alert-acknowledge", things), {})
    assert answer.status_code == 403 and answer.json()["faults"]
    token = client.get("/account/").context["csrf_token"]
    answer = client.post(address_of("api-alert-acknowledge", things), {}, HTTP_X_CSRFTOKEN=str(token))
    assert answer.status_code == 200
