"""Alerts to browsers: signed for a push service, encrypted for the browser, only to permitted
addresses, until the browser unsubscribes."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests.webapp.alerts.push_service import Browser, PushService
from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts.deliveries import MOST_BROWSERS, channel_send, deliveries_prepare, notifications_plan
from webapp.alerts.models import Alert, Channel, Delivery
from webapp.alerts.transports import push
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]
ANOTHER_KEY = "YW5vdGhlciBvbmUgb2YgdGhpcnR5LXR3byBieXRlcyE"


@pytest.fixture
def service(settings: Any) -> Iterator[PushService]:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    found = PushService(push.public_key() or "")
    yield found
    found.close()


def subscribe(client: APIClient, service: PushService, browser: Browser, **more: Any) -> Any:
    fields = {"name": "Firefox", "kind": "push", "url": service.address_of(browser), "browser_keys": browser.key_text, **more}
    return client.post("/api/v1/channels/", fields, format="json")


def deliver(channel_id: int) -> None:
    notifications_plan()
    deliveries_prepare()
    channel_send(channel_id=channel_id)


def test_an_alert_reaches_a_browser_encrypted_and_signed(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], service: PushService
) -> None:
    client, browser = client_of(people.owner), service.subscribe()
    assert client.get("/api/v1/channels/push-key").json() == {"key": service.sender}
    made = subscribe(client, service, browser)
    assert made.status_code == 201 and made.json()["url"] == f"https://{service.origin[7:]}/***"
    assert not {"browser_keys", "secret"} & made.json().keys(), "who knows them can send to the browser"
    channel = made.json()["id"]
    record(query, crossing(query, "in", "a\u0007", 10))
    deliver(channel)
    ((headers, content),) = browser.got
    alert, sent = Alert.objects.get(), Delivery.objects.get()
    assert (
        (content["link"], content["tag"]) == (f"/alerts/{alert.pk}", f"alert-{alert.pk}")
        and query.name in content["title"]
        and "\u0007" not in content["body"]
    )
    assert headers["topic"] == sent.webhook_id.hex and headers["urgency"] == "normal" and sent.sent_at is not None

    # Many alerts in one message: it is cut to the size that a push service accepts.
    Channel.objects.update(per_minute=1)
    record(query, *(crossing(query, "in", f"{'ж' * 400}{n}", n) for n in range(20)))
    Alert.objects.update(severity="critical")
    Delivery.objects.update(created_at=timezone.now() - timezone.timedelta(minutes=2))
    deliver(channel)
    assert (browser.got[1][1]["link"], browser.got[1][0]["urgency"], len(browser.got)) == ("/alerts/", "high", 2)

    assert client.post(f"/api/v1/channels/{channel}/test").json()["ok"] is True
    assert browser.got[2][1]["link"] == "/account/" and "test" in browser.got[2][1]["body"]


def test_another_key_is_refused_and_a_busy_service_is_retried_later(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], service: PushService, settings: Any
) -> None:
    browser, key = service.subscribe(), settings.PUSH_KEY
    channel = Channel.objects.get(pk=subscribe(client_of(people.owner), service, browser).json()["id"])
    record(query, crossing(query, "in", "a", 10))
    settings.PUSH_KEY = ANOTHER_KEY
    deliver(channel.pk)
    assert Delivery.objects.get().error == "HTTP 403: the receiver refuses the message." and browser.got == []
    settings.PUSH_KEY = key
    service.statuses = [429]
    Delivery.objects.update(next_at=timezone.now())
    channel_send(channel_id=channel.pk)
    channel.refresh_from_db()
    assert channel.not_before is not None and browser.got == []


@pytest.mark.parametrize("way", ["message", "test"])
def test_a_browser_that_ended_its_subscription_is_forgotten(
    way: str, query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], service: PushService
) -> None:
    client, browser = client_of(people.owner), service.subscribe()
    channel = subscribe(client, service, browser).json()["id"]
    del service.browsers[browser.path]
    if way == "test":
        assert "ended" in client.post(f"/api/v1/channels/{channel}/test").json()["error"]
    else:
        record(query, crossing(query, "in", "a", 10))
        deliver(channel)
    assert not Channel.objects.exists() and Alert.objects.filter(query=query).count() == (way == "message")


def test_a_browser_is_one_channel_of_one_person_who_may_be_a_viewer(
    people: SimpleNamespace, client_of: Callable[..., APIClient], service: PushService
) -> None:
    browser = service.subscribe()
    viewer = client_of(people.viewer)
    first = subscribe(viewer, service, browser).json()["id"]
    viewer.patch(f"/api/v1/channels/{first}/", {"min_severity": "critical"}, format="json")
    again = subscribe(viewer, service, browser).json()
    assert (again["id"], again["min_severity"]) == (first, "critical")
    assert subscribe(viewer, service, service.subscribe(), team=people.harbour.pk).status_code == 400
    assert viewer.patch(f"/api/v1/channels/{first}/", {"public": True}, format="json").status_code == 400
    assert viewer.patch(f"/api/v1/channels/{first}/", {"url": "https://example.org/x"}, format="json").status_code == 400
    # Another person logs in and subscribes in the same browser: it no longer
    # shows the first one's alerts.
    other = subscribe(client_of(people.owner), service, browser).json()["id"]
    assert list(Channel.objects.values_list("pk", "owner__username")) == [(other, people.owner.username)]
    for _ in range(MOST_BROWSERS):
        assert subscribe(viewer, service, service.subscribe()).status_code == 201
    assert subscribe(viewer, service, service.subscribe()).status_code == 400


def test_internal_addresses_and_invalid_keys_are_refused(
    people: SimpleNamespace, client_of: Callable[..., APIClient], service: PushService, settings: Any
) -> None:
    client, browser = client_of(people.owner), service.subscribe()
    for keys in ("", "x", "AA AA", f"{browser.keys['p256dh']} AA", f"{'A' * 87} {browser.keys['auth']}", "ж ж"):
        assert subscribe(client, service, browser, browser_keys=keys).status_code == 400, keys
    settings.WEBHOOK_NETWORKS = []
    assert "url" in str(subscribe(client, service, browser, url="http://127.0.0.1/x").json())
    settings.PUSH_KEY = ""
    assert client.get("/api/v1/channels/push-key").json() == {"key": None}
    assert "VEDETTE_PUSH_KEY" in str(subscribe(client, service, browser).json())
    assert not Channel.objects.exists()


def test_an_internal_address_is_refused_at_sending_too(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], service: PushService, settings: Any
) -> None:
    browser = service.subscribe()
    channel = subscribe(client_of(people.owner), service, browser).json()["id"]
    settings.WEBHOOK_NETWORKS, settings.WEBHOOK_PORTS = [], (service.server.server_port,)
    record(query, crossing(query, "in", "a", 10))
    deliver(channel)
    assert "not a public one" in Delivery.objects.get().error and browser.got == []


def test_a_renewed_subscription_replaces_the_old_one_without_a_log_in(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], service: PushService
) -> None:
    old, fresh = service.subscribe(), service.subscribe()
    channel = subscribe(client_of(people.owner), service, old).json()["id"]

    def renew(was: Browser, keys: str, **more: Any) -> int:
        fields = {"old": {"url": service.address_of(was), "browser_keys": keys}, "url": service.address_of(fresh), "browser_keys": fresh.key_text}
        return int(client_of(None).post("/api/v1/channels/push-renewal", {**fields, **more}, format="json").status_code)

    assert renew(old, fresh.key_text) == 404, "who knows the address alone cannot take it over"
    assert renew(fresh, fresh.key_text) == 404, "no browser has this one"
    assert renew(old, old.key_text, url="http://10.0.0.1/x") == 400, "messages do not go there"
    assert renew(old, old.key_text) == 204
    record(query, crossing(query, "in", "a", 10))
    deliver(channel)
    assert (len(old.got), len(fresh.got)) == (0, 1)
    assert renew(old, old.key_text) == 404, "it is no browser's any more"


@pytest.mark.parametrize("field", ["language", "browser_language"])
def test_a_message_to_a_browser_is_in_its_owners_language(
    people: SimpleNamespace, query: Query, service: PushService, client_of: Callable[..., APIClient], field: str
) -> None:
    setattr(people.owner, field, "de")
    people.owner.save()
    browser = Browser("/one")
    subscribe(client_of(people.owner), service, browser)
    record(query, crossing(query, "in", "a", 10))
    notifications_plan()
    deliveries_prepare()
    content = push.content_of(Delivery.objects.get())
    assert content["title"] == "[Niedrig] In and out: a" and "geöffnet" in content["body"]
