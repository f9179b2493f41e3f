"""Jobs of teams: only users who may change all feeds of a job may stop it, and a team's
feeds have their own job."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.accounts.models import Membership
from webapp.feeds.models import Feed
from webapp.feeds.services import feed_create
from webapp.jobs.models import FeedHead, Job

pytestmark = [pytest.mark.services, pytest.mark.django_db]
STOP = "/api/v1/jobs/main/stop"


def test_operators_cannot_stop_jobs_of_other_teams(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    feed_create(owner=people.stranger, name="elsewhere", title="Elsewhere", crs="planar", time="ms", team=people.elsewhere)
    for user in (people.stranger, people.operator):
        for action in ("stop", "start"):
            assert client_of(user).post(f"/api/v1/jobs/main/{action}").status_code == 403
        assert client_of(user).get("/api/v1/jobs/main/").json()["editable"] is False
    Feed.objects.update(public=True)
    assert client_of(people.stranger).post(STOP).status_code == 403, "to see all its feeds is not enough"
    assert Job.objects.get().desired_state == "running"
    assert client_of(people.root).post(STOP).status_code == 200
    Feed.objects.filter(name="elsewhere").delete()
    assert client_of(people.operator).post(STOP).status_code == 200


@pytest.fixture
def quay(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> Any:
    answer = client_of(people.operator).post("/api/v1/jobs/", {"name": "quay", "team": people.harbour.pk})
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_a_team_has_a_job_for_its_feeds(quay: Any, feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    assert quay["team"]["name"] == "harbour" and quay["feeds"] == [] and quay["desired_state"] == "stopped"
    operator = client_of(people.operator)
    FeedHead.objects.update(epoch=7)
    given = operator.patch("/api/v1/feeds/yard/", {"job": "quay"})
    assert given.status_code == 200 and given.json()["head"]["job"] == "quay"
    assert FeedHead.objects.get().epoch == 0, "no start of the former job writes any more"
    assert operator.post("/api/v1/jobs/quay/start").json()["desired_state"] == "running"
    assert operator.post(STOP).status_code == 403, "the default job has no feed of theirs any more"
    assert client_of(people.viewer).post("/api/v1/jobs/quay/stop").status_code == 403
    assert operator.delete("/api/v1/jobs/quay/").status_code == 409
    assert operator.patch("/api/v1/feeds/yard/", {"job": "main"}).status_code == 200
    assert operator.delete("/api/v1/jobs/quay/").status_code == 204


def test_a_job_of_a_team_is_hidden_from_others(quay: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    feed_create(owner=people.stranger, name="elsewhere", title="Elsewhere", crs="planar", time="ms", team=people.elsewhere)
    stranger = client_of(people.stranger)
    assert stranger.patch("/api/v1/feeds/elsewhere/", {"job": "quay"}).status_code == 400
    assert stranger.get("/api/v1/jobs/quay/").status_code == 404
    assert [job["name"] for job in stranger.get("/api/v1/jobs/").json()] == ["main"]
    for user in (people.viewer, people.analyst, people.stranger):
        assert client_of(user).post("/api/v1/jobs/", {"name": "another", "team": people.harbour.pk}).status_code == 403
    over = client_of(people.operator).post("/api/v1/jobs/", {"name": "another", "team": people.harbour.pk})
    assert over.status_code == 403 and "The quota of jobs of the team harbour is 1" in over.content.decode()


def test_a_feed_that_leaves_the_team_leaves_its_job(quay: Any, feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    Membership.objects.create(user=people.owner, team=people.harbour, role="operator")
    owner = client_of(people.owner)
    assert owner.patch("/api/v1/feeds/yard/", {"job": "quay"}).status_code == 200
    assert owner.patch("/api/v1/feeds/yard/", {"team": None}).json()["head"]["job"] == "main"
