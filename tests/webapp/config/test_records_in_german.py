"""Records are stored in English and shown in the reader's language: events of jobs and feeds,
deliveries, connectors, samples, sockets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from engine.model.messages import Message
from engine.sources.segments import LogDamaged
from webapp.accounts.language import language_of_socket
from webapp.alerts.models import Channel, Delivery
from webapp.alerts.reasons import reason_of
from webapp.demo.samples import all_samples
from webapp.feeds.damage import feed_set_aside
from webapp.feeds.heads import feed_event_add
from webapp.feeds.models import Connector
from webapp.jobs import services
from webapp.jobs.models import Job, JobEvent
from webapp.live import frames

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def german(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> APIClient:
    people.owner.language = people.operator.language = "de"
    people.owner.save()
    people.operator.save()
    return client_of(people.operator)


def test_events_of_jobs_and_feeds_are_translated(feed: Any, german: APIClient, people: SimpleNamespace) -> None:
    job = Job.objects.get(name="main")
    services.job_stop(job=job, user=people.operator)
    reason = Message("the job {job} is not running ({what})", job="main", what=Message("waiting to start again"))
    feed_event_add(
        feed, JobEvent.Kind.STALLED, Message("{feed}: rows have waited for {seconds} s: {reason}.", feed=feed.name, seconds=12, reason=reason)
    )
    shown = [event["text"] for event in german.get("/api/v1/jobs/main/").json()["events"]]
    stalled = "yard: Zeilen warten seit 12 s: der Job main läuft nicht (wartet auf den nächsten Start)."
    assert shown == [stalled, "Gestoppt von operator."]
    assert [event["text"] for event in german.get(f"/api/v1/feeds/{feed.name}/").json()["events"]] == [stalled]
    assert JobEvent.objects.get(feed=feed).text == "yard: rows have waited for 12 s: the job main is not running (waiting to start again)."


def test_the_reason_of_a_failed_job_is_translated(feed: Any, german: APIClient) -> None:
    Job.objects.update(last_error=str(Message("It gave no sign of life for {seconds} s and was ended by force.", seconds=90)))
    assert german.get("/api/v1/jobs/main/").json()["last_error"] == "Er gab 90 s lang kein Lebenszeichen und wurde gewaltsam beendet."


def test_the_damage_of_a_log_is_translated(feed: Any, german: APIClient, people: SimpleNamespace) -> None:
    feed_set_aside(feed=feed, damage=LogDamaged(feed.name, Message("rows {first} to {last} are missing", first=3, last=5)))
    shown = german.get(f"/api/v1/feeds/{feed.name}/").json()
    assert shown["damage"].startswith("Das Log ist beschädigt (die Zeilen 3 bis 5 fehlen).")
    assert shown["events"][0]["text"] == shown["damage"]


def test_the_reason_of_a_failed_delivery_is_translated(
    feed: Any, people: SimpleNamespace, german: APIClient, client_of: Callable[..., APIClient]
) -> None:
    channel = Channel.objects.create(
        owner=people.owner, name="desk", url="https://hooks.example.org/", disabled_reason="The receiver answered 410 Gone."
    )
    Delivery.objects.create(channel=channel, body="{}", error=reason_of(TimeoutError()))
    mine = client_of(people.owner)
    assert mine.get(f"/api/v1/channels/{channel.pk}/").json()["disabled_reason"] == "Der Empfänger antwortete 410 Gone."
    (delivery,) = mine.get(f"/api/v1/channels/{channel.pk}/deliveries").json()["results"]
    assert delivery["error"] == "Der Empfänger hat nicht rechtzeitig geantwortet."


def test_the_reason_of_a_waiting_connector_is_translated(feed: Any, people: SimpleNamespace, german: APIClient) -> None:
    error = str(Message("The database is away: {why}", why="no connection"))
    now = timezone.now()
    Connector.objects.create(
        feed=feed, name="roof", kind="ais-tcp", state="backoff", seen_at=now, last_error=error,
        next_try_at=now + timedelta(minutes=1),
    )  # fmt: skip
    (shown,) = german.get("/api/v1/connectors/").json()["results"]
    assert shown["last_error"] == "Die Datenbank ist nicht erreichbar: no connection"


def test_samples_are_offered_and_made_in_the_readers_language(german: APIClient) -> None:
    offered = {one["name"]: one for one in german.get("/api/v1/samples/").json()["results"]}
    assert offered["storms"]["title"] == "Atlantische Stürme von 2005"
    assert offered["storms"]["queries"][2] == {
        "name": "Kategorie fünf",
        "description": "Stürme, deren Wind 137 Knoten erreicht und wieder darunter fällt.",
    }
    assert offered["strait"]["queries"][0]["name"] == "Hafen Calance: Ankünfte und Abfahrten"
    untranslated = [
        sample.name for sample in all_samples() if offered[sample.name]["title"] == sample.title or offered[sample.name]["about"] == sample.about
    ]
    assert untranslated == []


@pytest.mark.parametrize(
    ("chosen", "asked", "message"),
    [
        ("de", b"en", "Zu viele Feeds auf einmal."),
        ("", b"de-AT,de;q=0.9", "Zu viele Feeds auf einmal."),
        ("en", b"de", "Too many feeds at once."),
        ("", b"\xff\x00", "Too many feeds at once."),
    ],
)
def test_errors_of_sockets_are_translated(chosen: str, asked: bytes, message: str) -> None:
    scope = {"user": SimpleNamespace(language=chosen), "headers": [(b"accept-language", asked)]}
    assert frames.error("too-many", Message("Too many feeds at once."), language_of_socket(scope))["message"] == message
