"""What GET shows of an object can be sent by POST: it makes another one that is the same."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from webapp.alerts.deliveries import channel_create
from webapp.alerts.models import ChannelKind

pytestmark = [pytest.mark.services, pytest.mark.django_db]
BY_OBJECT = {"id", "name", "created_at", "updated_at", "used_by", "head", "known_until"}
"""Those of the one object only."""
BODIES: dict[str, dict[str, Any]] = {
    "feeds": {"name": "port", "crs": "planar", "lateness": 1000, "columns": {"speed": "float"}, "plan_bounds": [0, 0, 9, 9]},
    "queries": {"name": "a", "description": "b", "tags": ["c"], "alert_kinds": ["in"], "enabled": False, "calls": "each"},
    "regions": {"name": "disk", "geometry": {"center": [1, 2], "radius": 3}, "tags": ["c"]},
    "channels": {"name": "desk", "url": "https://hooks.example.org/x", "per_minute": 7},
    "routing-rules": {"name": "night", "from_time": "22:00", "until_time": "06:00", "days": [1], "people": ["owner"]},
    "mutes": {"entities": ["a"], "reason": "ours"},
    "alert-views": {"name": "mine", "parameters": "state=new"},
    "shifts": {"name": "weeks", "zone": "Europe/Athens"},
}


def body_of(kind: str, team: int) -> dict[str, Any]:
    body = {**BODIES[kind], "team": team}
    if kind in ("queries", "regions", "mutes"):
        body["feed"] = "yard"
    if kind == "queries":
        body["specification"] = {"family": "border", "version": 1, "region": {"region": "square"}}
    if kind == "mutes":
        body["until"] = (timezone.now() + timedelta(hours=1)).isoformat()
    return body


@pytest.mark.parametrize("kind", BODIES)
def test_what_is_read_can_be_sent(kind: str, region: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.root)
    made = client.post(f"/api/v1/{kind}/", body_of(kind, people.harbour.pk), format="json")
    assert made.status_code == 201, made.json()
    shown = client.get(f"/api/v1/{kind}/{made.json().get('id') or made.json()['name']}/").json()
    again = client.post(f"/api/v1/{kind}/", {**shown, "name": "another"} if "name" in shown else shown, format="json")
    assert again.status_code == 201, again.json()
    assert again.json()["team"] == {"id": people.harbour.pk, "name": "harbour"}
    differing = {key for key in shown if again.json()[key] != shown[key]}
    assert differing <= BY_OBJECT, {key: (shown[key], again.json()[key]) for key in differing}


@pytest.mark.parametrize("team", [{}, {"name": "harbour"}, {"id": None}, {"id": 1, "role": "admin"}, {"id": 1.5}, {"id": {"id": 1}}])
def test_a_team_without_an_id_is_refused(team: dict[str, Any], feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    body = {**body_of("regions", 0), "team": team}
    refused = client_of(people.root).post("/api/v1/regions/", body, format="json")
    assert refused.status_code == 400
    assert [fault["pointer"] for fault in refused.json()["faults"]] == ["/team"]


def test_an_address_without_its_secret_makes_no_channel(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    channel = channel_create(owner=people.root, name="desk", kind=ChannelKind.MQTT, url="mqtts://ann:secret@mqtt.example.org/alerts")
    client = client_of(people.root)
    shown = client.get(f"/api/v1/channels/{channel.pk}/").json()
    refused = client.post("/api/v1/channels/", {**shown, "name": "another"}, format="json")
    assert (refused.status_code, refused.json()["faults"][0]["pointer"]) == (400, "/url")
    assert client.patch(f"/api/v1/channels/{channel.pk}/", {"url": shown["url"]}, format="json").status_code == 200
