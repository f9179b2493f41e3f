"""Trackers send to an address with the token: rows, dead letters, and permissions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.fuzz.streams import CLIENT, FORWARDED, NOW
from webapp.accounts.services import token_create
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed
from webapp.feeds.services import feed_create

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool_connections")]


@pytest.fixture
def vans(people: SimpleNamespace) -> Feed:
    columns = {"speed": "float", "battery": "float", "name": "string"}
    return feed_create(owner=people.owner, name="vans", title="Vans", crs="geographic", team=people.harbour, columns=columns, ahead=None)


def test_reports_of_all_kinds_reach_the_log(people: SimpleNamespace, vans: Feed) -> None:
    token = token_create(user=people.owner, name="phones", scopes=["ingest"], feed=vans).text
    client, address = APIClient(), f"/api/v1/track/vans/{token}"
    query = "?id=van7&lat=52.5&lon=13.4&timestamp=1767348000&speed=10.5&batt=71.5"
    assert client.get(address + query).status_code == 202
    second = client.post(address + query.replace("van7", "van8"))
    assert second.status_code == 202, second.content
    form = "id=van9&lat=52.5&lon=13.4&timestamp=1767348000"
    assert client.generic("POST", address, form.encode(), "application/x-www-form-urlencoded").json()["appended"] == 1
    assert client.post(address, CLIENT, format="json").json()["appended"] == 1
    kept = client.post("/api/v1/track/vans", FORWARDED, format="json", HTTP_AUTHORIZATION=f"Bearer {token}")
    assert kept.status_code == 202
    rows: list[dict[str, Any]] = [row for table in event_log("vans").read() for row in table.to_pylist()]
    assert [(row["entity"], row["t"], row["x"], row["y"]) for row in rows] == [
        (entity, NOW, 13.4, 52.5) for entity in ("van7", "van8", "van9", "8675309", "8675309")
    ]
    assert (rows[0]["speed"], rows[0]["battery"], rows[4]["name"]) == (10.5, 71.5, "Van")
    refused = client.get(f"{address}?lat=91&lon=13.4&id=van7")
    assert (refused.status_code, refused.json()["dead"]) == (202, 1), "a tracker would send it again and again"
    assert client.post(address, b"no report", content_type="text/plain").json()["dead"] == 1
    assert set(DeadLetter.objects.values_list("reason", flat=True)) == {"out_of_range", "malformed"}


def test_trackers_need_a_valid_token(people: SimpleNamespace, vans: Feed, feed: Feed) -> None:
    client, query = APIClient(), "?id=a&lat=1&lon=2"
    mine = token_create(user=people.owner, name="phones", scopes=["ingest"], feed=vans).text
    reader = token_create(user=people.owner, name="reader", scopes=["read"]).text
    stranger = token_create(user=people.stranger, name="x", scopes=["ingest"]).text
    for name, token, status in (
        ("vans", "vdt_wrong", 401),
        ("vans", reader, 403),
        ("vans", stranger, 404),
        ("yard", mine, 403),
        ("yard", token_create(user=people.owner, name="all", scopes=["ingest"]).text, 400),
    ):
        assert client.get(f"/api/v1/track/{name}/{token}{query}").status_code == status, (name, status)
    assert client.get(f"/api/v1/track/vans{query}").status_code == 401
