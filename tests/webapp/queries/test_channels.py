"""A query's channels, chosen with the query."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.alerts import deliveries
from webapp.alerts.models import Channel
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def channels(people: SimpleNamespace) -> SimpleNamespace:
    """One for all queries, one for chosen ones, one of the team for chosen
    ones, and one of a stranger."""
    make = deliveries.channel_create
    common = {"url": "https://hooks.example.org/x"}
    return SimpleNamespace(
        everything=make(owner=people.owner, name="everything", **common),
        chosen=make(owner=people.owner, name="chosen", all_queries=False, **common),
        team=make(owner=people.operator, name="team", team=people.harbour, all_queries=False, **common),
        foreign=make(owner=people.stranger, name="foreign", all_queries=False, **common),
    )


def carried(channel: Channel) -> list[str]:
    return [query.name for query in channel.queries.all()]


@pytest.fixture
def edit(query: Query, client_of: Callable[..., APIClient]) -> Callable[..., Any]:
    """Chooses the query's channels as a user."""

    def send(user: Any, *chosen: Channel) -> Any:
        return client_of(user).patch(f"/api/v1/queries/{query.pk}/", {"channels": [channel.pk for channel in chosen]})

    return send


def test_channels_are_chosen_with_the_query(edit: Callable[..., Any], channels: SimpleNamespace, people: SimpleNamespace) -> None:
    answer = edit(people.owner, channels.chosen)
    assert answer.status_code == 200 and answer.json()["channels"] == [channels.chosen.pk]
    assert answer.json()["version"] == 1
    assert carried(channels.chosen) == ["In and out"] and carried(channels.everything) == []
    assert edit(people.owner).json()["channels"] == []
    channels.chosen.refresh_from_db()
    assert carried(channels.chosen) == [] and not channels.chosen.all_queries


def test_a_new_query_brings_its_channels(
    channels: SimpleNamespace, people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]
) -> None:
    body = {"feed": "yard", "name": "new", "specification": query.specification, "channels": [channels.chosen.pk, channels.everything.pk]}
    made = client_of(people.owner).post("/api/v1/queries/", body)
    assert made.status_code == 201 and made.json()["channels"] == [channels.chosen.pk]


def test_hidden_channels_cannot_be_chosen_and_stay_unchanged(
    edit: Callable[..., Any], channels: SimpleNamespace, people: SimpleNamespace, query: Query
) -> None:
    refused = edit(people.owner, channels.foreign)
    assert refused.status_code == 400 and refused.json()["faults"][0]["pointer"].startswith("/channels")
    channels.foreign.queries.add(query)
    assert edit(people.owner, channels.chosen).json()["channels"] == [channels.chosen.pk]
    assert carried(channels.foreign) == ["In and out"]


def test_who_sees_a_channel_but_may_not_change_it_cannot_choose_it(
    edit: Callable[..., Any], channels: SimpleNamespace, people: SimpleNamespace
) -> None:
    # An analyst may edit the team's queries; its channels are the operators'.
    refused = edit(people.analyst, channels.team)
    assert refused.status_code == 400 and refused.json()["faults"][0]["pointer"] == "/channels"
    assert carried(channels.team) == []
    assert edit(people.operator, channels.team).status_code in (200, 403)
    assert edit(people.stranger).status_code == 404


@pytest.mark.parametrize(("given", "expected"), [({}, True), ({"all_queries": False}, False)])
def test_a_channel_is_for_all_queries_by_default(
    given: dict[str, bool], expected: bool, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    made = client_of(people.owner).post("/api/v1/channels/", {"name": "desk", "url": "https://hooks.example.org/x", **given})
    assert made.status_code == 201 and made.json()["all_queries"] is expected


def test_a_channel_with_queries_is_only_for_them(people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    made = client.post("/api/v1/channels/", {"name": "desk", "url": "https://hooks.example.org/x", "queries": [query.pk]}).json()
    assert made["all_queries"] is False
    assert client.patch(f"/api/v1/channels/{made['id']}/", {"queries": []}).json()["all_queries"] is True
