"""Webhooks: signed, sent only to permitted addresses, retried until they
arrive, each with one id."""

import hmac
import json
import socket
import threading
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests.webapp.alerts.receiver import Receiver, deliver
from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts import deliveries, webhooks
from webapp.alerts.models import Alert, Channel, Delivery, Notification
from webapp.alerts.webhooks import check_address, check_url, new_secret, post, resolve, signature
from webapp.config.outside import RefusedAddress
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """An independent verifier, as a receiver would write it."""
    key = b64decode(secret.removeprefix("whsec_"))
    wanted = hmac.new(key, f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body, sha256).digest()
    return any(hmac.compare_digest(b64decode(part.removeprefix("v1,")), wanted) for part in headers["webhook-signature"].split())


# -- signing ---------------------------------------------------------------------------------------


def test_the_published_example_is_signed_as_published() -> None:
    example = signature(
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", webhook_id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330, body=b'{"test": 2432232314}'
    )
    assert example == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_is_signed_over_id_time_and_body(receiver: Receiver) -> None:
    secret = new_secret()
    assert post(url=receiver.url, secrets_in_use=[secret], webhook_id="w1", body='{"a": "é"}', now=NOW).ok
    headers, body = receiver.got[0]
    assert is_signed(headers, body, secret) and headers["webhook-id"] == "w1" and headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert not is_signed(headers, body + b" ", secret)
    assert not is_signed({**headers, "webhook-id": "w2"}, body, secret)
    assert not is_signed({**headers, "webhook-timestamp": "1"}, body, secret)
    assert not is_signed(headers, body, new_secret())


def test_during_a_rotation_both_secrets_sign(channel: Channel, receiver: Receiver) -> None:
    old = channel.secret
    new = deliveries.channel_rotate(channel=channel)
    channel.refresh_from_db()
    deliveries.channel_test(channel=channel)
    headers, body = receiver.got[0]
    assert is_signed(headers, body, old) and is_signed(headers, body, new)
    Channel.objects.update(old_secret_until=timezone.now() - timedelta(seconds=1))
    channel.refresh_from_db()
    deliveries.channel_test(channel=channel)
    assert not is_signed(*receiver.got[1], old) and is_signed(*receiver.got[1], new)


# -- where messages may go -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001::1",
        "::127.0.0.1",
        "2001:db8::1",
        "fec0::1",
        "3fff::1",
        "192.88.99.1",
        "192.0.0.9",
        "5f00::1",
        "100::1",
        "4000::1",
    ],
)
def test_non_public_addresses_are_refused(address: str) -> None:
    with pytest.raises(RefusedAddress, match="VEDETTE_WEBHOOK_NETWORKS"):
        check_address(address, 443)


@pytest.mark.parametrize(
    "address", ["https://127.0.0.1/hook", "http://localhost/", "https://[fd00::1]/", "http://169.254.169.254/latest", "http://2130706433/"]
)
def test_an_internal_address_is_refused_when_the_channel_is_saved(
    address: str, people: SimpleNamespace, client_of: Callable[..., APIClient], settings: Any
) -> None:
    client = client_of(people.owner)
    refused = client.post("/api/v1/channels/", {"name": "desk", "url": address})
    assert (refused.status_code, refused.json()["faults"][0]["pointer"]) == (400, "/url")
    settings.WEBHOOK_NETWORKS = ["0.0.0.0/0", "::/0"]
    assert client.post("/api/v1/channels/", {"name": "desk", "url": address}).status_code == 201


def test_operators_can_permit_named_networks(settings: Any) -> None:
    settings.PUBLIC_ADDRESSES, settings.WEBHOOK_NETWORKS = False, ["192.0.2.0/24"]
    check_address("192.0.2.7", 443)
    with pytest.raises(RefusedAddress, match="only to networks that its operator named"):
        check_address("8.8.8.8", 443)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"])
def test_public_addresses_are_accepted(address: str) -> None:
    check_address(address, 443)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "https://example.org/\N{LATIN SMALL LETTER E WITH ACUTE}",
        "https://ex\N{LATIN SMALL LETTER A WITH DIAERESIS}mple.org/",
        "file:///etc/passwd",
        "gopher://x/",
        "//example.org/",
        "example.org",
        "",
        "http://",
        "http://user@example.org/",
        "http://u:p@example.org/",
        "http://example.org:22/",
        "http://example.org:5432/",
        "http://example.org:6379/",
        "http://example.org:99999/",
        "http://exa mple.org/",
        "http://example.org/\r\nX: y",
        "http://[::1",
    ],
)
def test_malformed_addresses_are_refused_without_a_look_up(url: str) -> None:
    with pytest.raises(RefusedAddress):
        check_url(url)


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::ffff:127.0.0.1]"])
def test_all_spellings_of_loopback_are_refused(host: str) -> None:
    answer = post(url=f"http://{host}/", secrets_in_use=[new_secret()], webhook_id="x", body="{}", now=NOW)
    assert answer.status is None and answer.error


def test_a_name_with_any_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(webhooks.socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(RefusedAddress):
        resolve(check_url("https://example.org/"))


def test_a_name_is_resolved_once_and_the_checked_address_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    port = receiver.server.server_port
    asked: list[str] = []
    connected: list[Any] = []
    real = socket.create_connection

    def lookup(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1" if len(asked) == 1 else "10.9.9.9", port))]

    def connect(address: Any, *rest: Any) -> Any:
        connected.append(address)
        plain = socket.socket()
        plain.connect(("127.0.0.1", port))
        return plain

    monkeypatch.setattr(webhooks.socket, "getaddrinfo", lookup)
    monkeypatch.setattr(webhooks.socket, "create_connection", connect)
    assert post(url=f"http://rebind.example:{port}/", secrets_in_use=[new_secret()], webhook_id="x", body="{}", now=NOW).ok
    assert asked == ["rebind.example"] and connected == [("127.0.0.1", port)]
    assert receiver.got[0][0]["host"] == f"rebind.example:{port}"
    assert real is not connect


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    receiver.statuses = [302]
    answer = post(url=receiver.url, secrets_in_use=[new_secret()], webhook_id="x", body="{}", now=NOW)
    assert answer.status == 302 and not answer.ok and len(receiver.got) == 1
    assert answer.error.endswith("Messages do not follow: enter that address here.")


def test_a_receiver_that_drips_is_cut_off(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 0.5)
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        answer = post(url=f"http://127.0.0.1:{server.getsockname()[1]}/", secrets_in_use=[new_secret()], webhook_id="x", body="{}", now=NOW)
        stop.set()
        thread.join()
    assert (answer.status, answer.error) == (None, "The receiver did not answer in time.")


def test_a_receiver_may_take_longer_to_answer_than_to_connect(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "CONNECT_SECONDS", 0.1)
    receiver.seconds = 0.3
    assert post(url=receiver.url, secrets_in_use=[new_secret()], webhook_id="x", body="{}", now=NOW).ok


# -- from alert to message -------------------------------------------------------------------------


def test_an_alert_reaches_the_channel_once(query: Query, channel: Channel, receiver: Receiver) -> None:
    record(query, crossing(query, "in", "a", 10))
    assert deliver() == 1
    assert deliver() == 0
    (headers, body), message = receiver.got[0], json.loads(receiver.got[0][1])
    assert is_signed(headers, body, channel.secret)
    assert message["type"] == "alerts.opened" and message["data"]["count"] == 1
    listed = message["data"]["alerts"][0]
    assert (listed["entities"], listed["query_name"], listed["feed"], listed["start"]) == (["a"], "In and out", "yard", 10)
    assert Delivery.objects.get().sent_at is not None


def test_failed_deliveries_are_retried_with_the_same_id_and_body(query: Query, channel: Channel, receiver: Receiver) -> None:
    receiver.statuses = [500, 503]
    record(query, crossing(query, "in", "a", 10))
    deliver()
    delivery = Delivery.objects.get()
    assert delivery.sent_at is None and delivery.status_code == 500
    assert 3 <= (delivery.next_at - timezone.now()).total_seconds() <= 7
    assert deliver() == 0, "not before it is due"
    for _ in range(2):
        Delivery.objects.update(next_at=timezone.now())
        assert deliver() == 1
    assert Delivery.objects.get().sent_at is not None
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1 and len({body for _, body in receiver.got}) == 1
    assert Channel.objects.get().failures == 0


def test_a_delivery_is_given_up_after_the_last_attempt(query: Query, channel: Channel, receiver: Receiver) -> None:
    record(query, crossing(query, "in", "a", 10))
    receiver.statuses = [500] * 20
    for _ in range(20):
        Delivery.objects.update(next_at=timezone.now())
        Channel.objects.update(not_before=None)
        deliver()
    delivery = Delivery.objects.get()
    assert delivery.attempts == len(deliveries.RETRY_AFTER) + 1 == len(receiver.got)
    assert delivery.failed_at is not None and delivery.sent_at is None


def test_a_crash_between_sending_and_marking_sends_again_with_the_same_id(
    query: Query, channel: Channel, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(query, crossing(query, "in", "a", 10))
    with monkeypatch.context() as patched:

        def crash(**_: Any) -> None:
            raise KeyboardInterrupt

        patched.setattr(deliveries, "delivery_settle", crash)
        with pytest.raises(KeyboardInterrupt):
            deliver()
    assert deliver() == 0, "the claim holds for a while"
    Delivery.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    assert deliver() == 1
    assert len(receiver.got) == 2 and receiver.got[0][0]["webhook-id"] == receiver.got[1][0]["webhook-id"]


def test_two_senders_at_once_send_once(query: Query, channel: Channel, receiver: Receiver) -> None:
    record(query, crossing(query, "in", "a", 10))
    deliveries.notifications_plan()
    deliveries.deliveries_prepare()
    delivery = Delivery.objects.get()
    now = timezone.now()
    assert deliveries._claim(delivery, now)
    assert not deliveries._claim(delivery, now)


def test_a_storm_is_sent_in_few_messages_and_nothing_is_lost(query: Query, channel: Channel, receiver: Receiver) -> None:
    record(query, *(crossing(query, "in", f"car {i:04}", i) for i in range(3000)))
    for _ in range(4):
        deliver()
    assert len(receiver.got) <= channel.per_minute
    assert sum(json.loads(body)["data"]["count"] for _, body in receiver.got) == 3000
    assert all(len(json.loads(body)["data"]["alerts"]) <= 100 for _, body in receiver.got)
    assert not Notification.objects.filter(delivery=None).exists()


def test_alerts_above_the_rate_wait_for_the_next_minute(query: Query, channel: Channel, receiver: Receiver) -> None:
    Channel.objects.update(per_minute=2)
    for i in range(5):
        record(query, crossing(query, "in", f"car {i}", i))
        deliver()
    assert len(receiver.got) == 2
    deliver(timezone.now() + timedelta(seconds=61))
    deliveries.channel_send(channel_id=channel.pk)
    Delivery.objects.update(next_at=timezone.now())
    deliver()
    assert sum(json.loads(body)["data"]["count"] for _, body in receiver.got) == 5 and len(receiver.got) == 3


def test_a_channel_gets_alerts_by_severity_query_and_visibility(query: Query, people: SimpleNamespace, receiver: Receiver, feed: Any) -> None:
    common = {"url": receiver.url}
    for name, fields in {
        "all": {},
        "high": {"min_severity": "high"},
        "chosen": {"queries": [query]},
        "off": {"enabled": False},
    }.items():
        deliveries.channel_create(owner=people.owner, name=name, **common, **fields)
    deliveries.channel_create(owner=people.stranger, name="stranger", **common)
    deliveries.channel_create(owner=people.viewer, name="viewer", **common)
    record(query, crossing(query, "in", "a", 10))
    deliveries.notifications_plan()
    assert set(Notification.objects.values_list("channel__name", flat=True)) == {"all", "chosen", "viewer"}


def test_alerts_from_before_the_channel_are_not_sent(query: Query, people: SimpleNamespace, receiver: Receiver) -> None:
    record(query, crossing(query, "in", "a", 10))
    deliveries.notifications_plan()
    deliveries.channel_create(owner=people.owner, name="late", url=receiver.url)
    assert deliver() == 0 and Alert.objects.filter(planned_at=None).count() == 0


def test_the_test_button_shows_what_the_receiver_said(
    channel: Channel, receiver: Receiver, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    receiver.statuses = [200, 418]
    address = f"/api/v1/channels/{channel.pk}/test"
    assert client_of(people.owner).post(address).json() == {"ok": True, "status": 200, "error": ""}
    assert client_of(people.owner).post(address).json() == {"ok": False, "status": 418, "error": "HTTP 418: the receiver refuses the message."}
    assert json.loads(receiver.got[0][1])["type"] == "test"


def test_a_channel_shows_its_secret_once_and_refuses_a_private_address_when_it_sends(
    people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    made = client.post("/api/v1/channels/", {"name": "desk", "url": "https://hooks.example.org/hook"}).json()
    assert made["secret"].startswith("whsec_")
    shown = client.get(f"/api/v1/channels/{made['id']}/").json()
    assert "secret" not in shown and made["secret"] not in str(shown)
    # Its name has been pointed elsewhere since it was saved.
    Channel.objects.filter(pk=made["id"]).update(url="https://127.0.0.1/hook")
    answer = client.post(f"/api/v1/channels/{made['id']}/test").json()
    assert answer["ok"] is False and "public" in answer["error"]
    refused = client.post("/api/v1/channels/", {"name": "x", "url": "http://user:secret@example.org/"})
    assert refused.status_code == 400 and refused.json()["faults"][0]["pointer"] == "/url"


def test_a_given_up_message_can_be_retried_by_hand(
    query: Query, channel: Channel, receiver: Receiver, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    record(query, crossing(query, "in", "a", 10))
    receiver.statuses = [500, 204]
    deliver()
    failed = Delivery.objects.get()
    Delivery.objects.update(failed_at=timezone.now(), attempts=8)
    address = f"/api/v1/channels/{channel.pk}/deliveries/{failed.pk}/retry"
    assert client_of(people.stranger).post(address).status_code == 404
    assert client_of(people.owner).post(address).json()["failed_at"] is None
    assert (deliver(), Delivery.objects.get().sent_at is not None) == (1, True)
    assert client_of(people.owner).post(address).status_code == 400, "it arrived"
