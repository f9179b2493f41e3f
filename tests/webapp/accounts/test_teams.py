"""Teams and people: who may invite, change roles, remove and transfer, and who inherits a
removed member's objects."""

import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from tests.webapp.accounts.outside import mail_server
from tests.webapp.conftest import SQUARE
from tests.webapp.links import opened, page_of
from webapp.accounts.models import Invitation, Membership, Role, Team, User
from webapp.accounts.services import token_create
from webapp.accounts.teams import ownership_transfer
from webapp.audit.models import Entry
from webapp.feeds.models import Feed, Region
from webapp.feeds.services import feed_create, region_create

pytestmark = [pytest.mark.services, pytest.mark.django_db]

Clients = Callable[..., APIClient]


@pytest.fixture
def team(people: SimpleNamespace) -> str:
    return f"/api/v1/teams/{people.harbour.pk}/"


def invite(client: APIClient, team: str, email: str = "new@example.org", role: str = "analyst") -> Any:
    return client.post(f"{team}invitations/", {"email": email, "role": role})


def path_of(answer: Any) -> str:
    found = re.search(r"(/login/invitation/#\S+)", answer.json()["link"])
    assert found is not None
    return found[1]


def refused(client: APIClient, team: str, people: SimpleNamespace) -> list[int]:
    """The responses to all requests that change a team."""
    member = f"{team}members/{people.viewer.pk}/"
    return [
        invite(client, team).status_code,
        client.patch(team, {"name": "x"}).status_code,
        client.patch(member, {"role": "admin"}).status_code,
        client.delete(member).status_code,
        client.post(f"{member}transfer", {"to": people.analyst.pk}).status_code,
    ]


def test_members_see_their_team_and_only_its_admins_change_it(team: str, people: SimpleNamespace, client_of: Clients) -> None:
    for name in ("analyst", "operator", "viewer"):
        client = client_of(getattr(people, name))
        shown = client.get(team).json()
        assert {member["name"] for member in shown["members"]} == set(Role.values) and not shown["manageable"]
        # Removing oneself is leaving, which everybody may.
        wanted = [403] * 5 if name != "viewer" else [403, 403, 403, 204, 404]
        assert refused(client, team, people) == wanted, name
    stranger = client_of(people.stranger)
    assert stranger.get(team).status_code == 404 and refused(stranger, team, people) == [404] * 5
    assert [one["name"] for one in stranger.get("/api/v1/teams/").json()] == ["elsewhere"]
    assert client_of(people.admin).get(team).json()["manageable"]


def test_mail_addresses_are_shown_only_to_managers(team: str, people: SimpleNamespace, client_of: Clients) -> None:
    User.objects.filter(pk=people.viewer.pk).update(email="viewer@example.org")
    assert "viewer@example.org" in client_of(people.admin).get(team).content.decode()
    assert "viewer@example.org" not in client_of(people.analyst).get(team).content.decode()


def test_teams_cannot_be_changed_with_a_token(team: str, people: SimpleNamespace) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(user=people.admin, name='x', scopes=['read', 'write']).text}")
    assert refused(client, team, people) == [403] * 5 and client.get("/api/v1/people/").status_code == 403


def test_only_administrators_of_the_server_make_and_remove_teams_and_see_people(team: str, people: SimpleNamespace, client_of: Clients) -> None:
    admin, root = client_of(people.admin), client_of(people.root)
    assert admin.post("/api/v1/teams/", {"name": "port"}).status_code == 403 and admin.delete(team).status_code == 403
    assert admin.get("/api/v1/people/").status_code == 403
    made = root.post("/api/v1/teams/", {"name": "port"}).json()
    assert root.post("/api/v1/teams/", {"name": "PORT"}).status_code == 400
    assert root.delete(f"/api/v1/teams/{made['id']}/").status_code == 204 and not Team.objects.filter(name="port").exists()
    assert {one["name"] for one in root.get("/api/v1/people/").json()} == {"owner", "stranger", "root", *Role.values}


def test_an_invitation_makes_an_account_in_the_team_and_is_used_up(team: str, people: SimpleNamespace, client_of: Clients) -> None:
    path = path_of(invite(client_of(people.admin), team))
    newcomer = Client()
    link, path = path, page_of(newcomer, path)
    assert b"Join harbour" in newcomer.get(path).content and Client().get(path).status_code == 404
    assert b"too short" in newcomer.post(path, {"username": "newcomer", "password": "short"}).content
    assert b"already taken" in newcomer.post(path, {"username": "Owner", "password": "a phrase of its own"}).content
    assert newcomer.post(path, {"username": "newcomer", "password": "a phrase of its own"}).status_code == 302
    assert newcomer.get("/account/").status_code == 200
    member = Membership.objects.get(user__username="newcomer")
    assert (member.team, member.role, member.user.email) == (people.harbour, "analyst", "new@example.org")
    assert opened(Client(), link).status_code == newcomer.get(path).status_code == 404 and not Invitation.objects.exists()
    assert Entry.objects.filter(action="invitation.accept", actor_name="newcomer").exists()


def test_a_user_with_an_account_joins_with_it_and_keeps_a_greater_role(team: str, people: SimpleNamespace, client_of: Clients) -> None:
    admin = client_of(people.admin)
    for name, role, after in (("stranger", "viewer", "viewer"), ("operator", "viewer", "operator"), ("viewer", "operator", "operator")):
        path = path_of(invite(admin, team, f"{name}@example.org", role))
        client = client_of(getattr(people, name))
        path = page_of(client, path)
        assert client.get(path).status_code == 200 and client.post(path).status_code == 302
        assert Membership.objects.get(user__username=name, team=people.harbour).role == after


def test_invitations_end_by_expiry_revocation_or_loss_of_the_inviters_role(team: str, people: SimpleNamespace, client_of: Clients) -> None:
    admin = client_of(people.admin)
    path = path_of(invite(admin, team))
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert opened(Client(), path).status_code == 404
    path = path_of(invite(admin, team))
    pk = Invitation.objects.get().pk
    assert admin.delete(f"{team}invitations/{pk}/").status_code == 204 and opened(Client(), path).status_code == 404
    path = path_of(invite(admin, team))
    inside = Client()
    address = page_of(inside, path)
    Membership.objects.filter(user=people.admin).update(role="operator")
    assert opened(Client(), path).status_code == inside.get(address).status_code == 404


def test_the_secret_of_an_invitation_is_not_kept_and_not_shown_again(team: str, people: SimpleNamespace, client_of: Clients) -> None:
    admin = client_of(people.admin)
    secret = path_of(invite(admin, team)).partition("#")[2]
    assert secret not in str(list(Invitation.objects.values())) and secret not in admin.get(team).content.decode()
    assert not any(secret in str(entry.__dict__) for entry in Entry.objects.all() if "invitation.create" in entry.action)


def test_an_invitation_goes_out_by_mail(team: str, people: SimpleNamespace, client_of: Clients, settings: Any) -> None:
    assert invite(client_of(people.admin), team).json()["sent"] is False
    with mail_server() as (port, mails):
        settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", "127.0.0.1", port
        settings.EMAIL_GIVEN = True
        answer = invite(client_of(people.admin), team)
        assert answer.json()["sent"] is True and mails[0]["To"] == "new@example.org"
        assert path_of(answer) in mails[0].get_content()


def test_a_team_always_has_an_admin(team: str, people: SimpleNamespace, client_of: Clients) -> None:
    admin = client_of(people.admin)
    own = f"{team}members/{people.admin.pk}/"
    assert admin.patch(own, {"role": "viewer"}).status_code == 400 and admin.delete(own).status_code == 400
    assert admin.patch(f"{team}members/{people.operator.pk}/", {"role": "admin"}).json()["role"] == "admin"
    assert admin.patch(own, {"role": "viewer"}).status_code == 200
    assert Entry.objects.filter(action="membership.change").count() == 2


def test_objects_of_a_removed_member_go_to_another_member(
    team: str, people: SimpleNamespace, client_of: Clients, feed: Any, region: Any, query: Any
) -> None:
    Membership.objects.create(user=people.owner, team=people.harbour, role="operator")
    admin = client_of(people.admin)
    owner = f"{team}members/{people.owner.pk}/"
    assert admin.post(f"{owner}transfer", {"to": people.stranger.pk}).status_code == 400, "the new owner is of the team"
    left = admin.delete(f"{owner}?to={people.analyst.pk}")
    assert left.status_code == 204, left.content
    for thing in (feed, region, query):
        thing.refresh_from_db()
        assert thing.owner == people.analyst and thing.team == people.harbour
    assert client_of(people.owner).get(f"/api/v1/queries/{query.pk}/").status_code == 404
    entry = Entry.objects.filter(action="ownership.transfer").latest("pk")
    assert entry.detail["counts"] == {"feed": 1, "region": 1, "query": 1}


def test_a_team_admin_cannot_change_objects_of_others(team: str, people: SimpleNamespace, client_of: Clients, query: Any) -> None:
    Membership.objects.create(user=people.owner, team=people.harbour, role="operator")
    type(query).objects.update(team=None)
    client_of(people.admin).post(f"{team}members/{people.owner.pk}/transfer", {"to": people.analyst.pk})
    query.refresh_from_db()
    assert query.owner == people.owner
    counts = client_of(people.root).post(f"/api/v1/people/{people.owner.pk}/transfer", {"to": people.analyst.pk}).json()["counts"]
    assert counts["query"] == 1


def test_an_account_is_switched_off_and_on_and_an_administrator_stays(people: SimpleNamespace, client_of: Clients) -> None:
    root, viewer = client_of(people.root), client_of(people.viewer)
    address = f"/api/v1/people/{people.viewer.pk}/"
    assert viewer.get("/api/v1/me").status_code == 200
    assert root.patch(address, {"active": False}).json()["active"] is False
    assert viewer.get("/api/v1/me").status_code == 401
    assert root.patch(address, {"active": True, "administrator": True}).json()["administrator"] is True
    own = f"/api/v1/people/{people.root.pk}/"
    assert root.patch(own, {"active": False}).status_code == 400
    assert root.patch(own, {"administrator": False}).status_code == 200
    assert client_of(User.objects.get(username="viewer")).patch(address, {"administrator": False}).status_code == 400


def test_a_transfer_holds_feeds_before_the_things_in_them(people: SimpleNamespace, feed: Feed, region: Region) -> None:
    first = feed_create(owner=people.operator, name="a-port", title="Port", crs="planar", team=people.harbour)
    for of in (feed, first):
        region_create(owner=people.owner, feed=of, name="b", geometry=SQUARE, team=people.harbour)
    Feed.objects.filter(pk=feed.pk).update(owner=people.operator)
    with CaptureQueriesContext(connection) as asked:
        counts = ownership_transfer(owner=people.owner, new_owner=people.admin, team=people.harbour)
    assert counts == {"region": 3}
    lines = [query["sql"] for query in asked]
    (held,) = [at for at, line in enumerate(lines) if "FOR NO KEY UPDATE" in line]
    changed = [at for at, line in enumerate(lines) if line.startswith("UPDATE")]
    assert 'FROM "feeds_feed"' in lines[held] and " ORDER BY 1 ASC FOR" in lines[held] and held < min(changed)
    with CaptureQueriesContext(connection) as asked:
        assert ownership_transfer(owner=people.operator, new_owner=people.admin, team=None) == {"feed": 2}
    assert len([query for query in asked if "FOR NO KEY UPDATE" in query["sql"]]) == 1
