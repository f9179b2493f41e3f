"""E-mail about alerts, with a real mail server: retried until it arrives, with
a link that acknowledges."""

import io
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone, translation
from PIL import Image
from rest_framework.test import APIClient

from tests.webapp.accounts.outside import mail_server
from tests.webapp.alerts.test_lifecycle import crossing, record
from tests.webapp.links import opened, page_of
from webapp.accounts.models import User
from webapp.alerts.deliveries import channel_create, channel_send, channel_test, deliveries_prepare, notifications_plan
from webapp.alerts.models import Alert, Channel, Delivery
from webapp.alerts.picture import EVIDENCE, REGION, TRACKS
from webapp.alerts.rules import rule_save
from webapp.alerts.transports import smtp_session
from webapp.alerts.transports.mail import line_of
from webapp.detections.models import Detection
from webapp.detections.partitions import partitions_ensure, span_of
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def mails(settings: Any) -> Iterator[list[EmailMessage]]:
    with mail_server() as (port, received):
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_GIVEN, settings.PUBLIC_URL = "127.0.0.1", port, True, "https://watch.example.org"
        yield received


@pytest.fixture
def channel(people: SimpleNamespace) -> Channel:
    return channel_create(owner=people.owner, name="Duty officer", kind="mail", recipient="duty@example.org")


def deliver(channel: Channel) -> int:
    notifications_plan()
    deliveries_prepare()
    return channel_send(channel_id=channel.pk)


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content())


def test_an_alert_reaches_a_mailbox_as_text_and_html(mails: list[EmailMessage], channel: Channel, query: Query) -> None:
    record(query, crossing(query, "in", "<b>car\n1</b>", 10))
    assert deliver(channel) == 1
    (mail,) = mails
    assert (mail["To"], mail["Subject"]) == ("duty@example.org", "[Low] In and out: <b>car 1</b>")
    alert, delivery = Alert.objects.get(), Delivery.objects.get()
    assert mail["Message-ID"] == f"<{delivery.webhook_id}@vedette>"
    assert f"https://watch.example.org/alerts/{alert.pk}" in text_of(mail) and "(Entered)" in text_of(mail)
    assert "&lt;b&gt;car" in text_of(mail, "html") and "<b>car" not in text_of(mail, "html")
    assert delivery.sent_at is not None and deliver(channel) == 0


def test_a_mail_about_nobody_names_the_query_alone() -> None:
    alert = {"severity": "high", "query_name": "Door forced open", "entities": [], "kind": "detected", "opened_at": "2026-01-01T00:00:00+00:00"}
    assert line_of(alert).startswith("High: Door forced open (")
    assert line_of({**alert, "entities": ["a", "b"]}).startswith("High: Door forced open, a, b (")


def test_a_mail_names_the_rule_that_sent_it(mails: list[EmailMessage], channel: Channel, query: Query) -> None:
    rule_save(user=channel.owner, name="Night shift", channels=[channel], after_minutes=5)
    record(query, crossing(query, "in", "a", 10))
    Alert.objects.update(opened_at=timezone.now() - timedelta(minutes=5))
    deliver(channel)
    text = " ".join(" ".join(text_of(mail).split()) for mail in mails)
    assert "Sent by the rule “Night shift”: nobody acknowledged it within 5 min" in text


def test_a_mail_of_more_alerts_than_it_lists_leads_to_all(
    mails: list[EmailMessage], channel: Channel, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.alerts.transports.mail.LISTED", 2)
    rule_save(user=channel.owner, name="hourly", channels=[channel], digest="hourly")
    channel.all_queries = False
    channel.save()
    for t in (10, 20, 30):
        record(query, crossing(query, "in", f"car-{t}", t))
    notifications_plan()
    deliveries_prepare(timezone.now() + timedelta(hours=1))
    Delivery.objects.update(next_at=timezone.now())
    assert channel_send(channel_id=channel.pk) == 1
    (mail,) = mails
    assert "and 1 more\n  https://watch.example.org/alerts/" in text_of(mail).replace("\r", "")
    assert '<a href="https://watch.example.org/alerts/">and 1 more</a>' in text_of(mail, "html")


def test_a_mail_says_when_the_alert_was_opened_in_the_zone_of_its_reader(mails: list[EmailMessage], channel: Channel, query: Query) -> None:
    record(query, crossing(query, "in", "a", 10))
    Alert.objects.update(opened_at=datetime(2026, 1, 31, 22, 5, 7, 597_873, tzinfo=UTC))
    channel.owner.time_zone = "Europe/Athens"
    channel.owner.save()
    deliver(channel)
    assert "opened 1 February 2026, 00:05:07 EET" in text_of(mails[0])


def test_a_mail_is_in_the_language_of_its_reader_not_of_its_sender(
    mails: list[EmailMessage], channel: Channel, query: Query, people: SimpleNamespace
) -> None:
    """The language of the address's account comes before that of the channel's owner; without a
    choice, it is the installation's."""
    record(query, crossing(query, "in", "a", 10))
    with translation.override("de"):
        deliver(channel)
    people.owner.language = "de"
    people.owner.save()
    record(query, crossing(query, "in", "b", 20))
    deliver(channel)
    people.analyst.email, people.analyst.language = "Duty@example.org", "en-gb"
    people.analyst.save()
    record(query, crossing(query, "in", "c", 30))
    deliver(channel)
    assert [mail["Subject"] for mail in mails] == ["[Low] In and out: a", "[Niedrig] In and out: b", "[Low] In and out: c"]
    assert "Bestätigen: https://" in text_of(mails[1]) and ">Bestätigen</a>" in text_of(mails[1], "html")
    assert "(Hineingekommen), geöffnet" in text_of(mails[1])


def test_a_mail_is_in_the_language_of_the_pages_that_its_reader_opened_last(
    mails: list[EmailMessage], channel: Channel, query: Query, people: SimpleNamespace
) -> None:
    """Without a choice it is the browser's: of the address's account, else of the channel's
    owner."""
    for number, (reader, language) in enumerate([(people.owner, "de-AT,de;q=0.9"), (people.analyst, "en"), (people.analyst, "de")]):
        opens_a_page(reader, language)
        record(query, crossing(query, "in", f"car{number}", number))
        deliver(channel)
        people.analyst.email = "duty@example.org"
        people.analyst.save()
    assert [mail["Subject"] for mail in mails] == ["[Niedrig] In and out: car0", "[Low] In and out: car1", "[Niedrig] In and out: car2"]


def opens_a_page(user: User, language: str) -> None:
    client = Client(headers={"Accept-Language": language})
    client.force_login(user)
    assert client.get("/account/").status_code == 200


def test_a_test_of_a_channel_is_in_its_owners_language(mails: list[EmailMessage], channel: Channel) -> None:
    channel.owner.language = "de"
    channel.owner.save()
    channel_test(channel=channel)
    (mail,) = mails
    assert (mail["Subject"], text_of(mail).strip()) == ("Ein Test der Alarme von Vedette", "Ein Test des Kanals Duty officer.")


def test_mail_is_sent_once_after_an_outage_of_the_server(mails: list[EmailMessage], channel: Channel, query: Query, settings: Any) -> None:
    record(query, crossing(query, "in", "a", 10))
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    assert deliver(channel) == 1
    waiting = Delivery.objects.get()
    assert waiting.sent_at is None and waiting.next_at > timezone.now() and "cannot be reached: Connection refused" in waiting.error
    settings.EMAIL_PORT = port
    Delivery.objects.update(next_at=timezone.now())
    assert (deliver(channel), deliver(channel), len(mails)) == (1, 0, 1)


def test_a_hanging_mail_server_is_given_up_and_retried(channel: Channel, query: Query, settings: Any) -> None:
    record(query, crossing(query, "in", "a", 10))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.EMAIL_BACKEND, settings.EMAIL_TIMEOUT = "django.core.mail.backends.smtp.EmailBackend", 0.3
        settings.EMAIL_HOST, settings.EMAIL_PORT = silent.getsockname()
        assert deliver(channel) == 1
    waiting = Delivery.objects.get()
    assert waiting.sent_at is None and waiting.claimed_until is None and waiting.error == "The mail server did not answer in time."


def test_a_dripping_mail_server_does_not_delay_others(channel: Channel, query: Query, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes within the limit of one answer, the line never ends."""
    monkeypatch.setattr(smtp_session, "SESSION_SECONDS", 0.5)
    record(query, crossing(query, "in", "a", 10))
    ended = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            while not ended.wait(0.05):
                try:
                    connection.send(b"2")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.getsockname()
        threading.Thread(target=drip, args=(server,), daemon=True).start()
        try:
            assert deliver(channel) == 1
        finally:
            ended.set()
    waiting = Delivery.objects.get()
    assert waiting.sent_at is None and waiting.claimed_until is None and waiting.error


def test_the_mail_link_acknowledges_after_confirmation_as_the_owner(mails: list[EmailMessage], channel: Channel, query: Query) -> None:
    record(query, crossing(query, "in", "a", 10))
    deliver(channel)
    found = re.search(r"https://watch\.example\.org(/acknowledge/#\S+)", text_of(mails[0]))
    assert found is not None
    stranger = Client(enforce_csrf_checks=True)
    assert stranger.post("/acknowledge/", {"secret": "x"}).status_code == 403, "another site cannot open it"
    address = page_of(Client(), found[1])
    assert stranger.get(address).status_code == 404, "who has not opened the link does not see it by its number"
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', stranger.get("/acknowledge/").content.decode())
    assert token is not None
    assert stranger.post("/acknowledge/", {"secret": found[1].partition("#")[2], "csrfmiddlewaretoken": token[1]})["Location"] == address
    page = stranger.get(address)
    assert b"Acknowledge 1 alert?" in page.content and Alert.objects.get().state == "new", "mail programs follow links by themselves"
    assert stranger.post(address).status_code == 403, "another site cannot press the button"
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.content.decode())
    assert token is not None
    assert b"Acknowledged" in stranger.post(address, {"csrfmiddlewaretoken": token[1]}).content
    alert = Alert.objects.get()
    assert (alert.state, alert.acknowledged_by, alert.steps.get().text) == (
        "acknowledged",
        channel.owner,
        "By the link in a message to duty@example.org",
    )
    assert b"Nothing left" in stranger.post(address, {"csrfmiddlewaretoken": token[1]}).content
    again = stranger.get(address).content
    assert b"Nothing left" in again and b"<button" not in again, "it does not ask for what is acknowledged"
    assert opened(Client(), found[1][:-3] + "xxx").status_code == 404
    Channel.objects.update(enabled=False)
    assert opened(Client(), found[1]).status_code == 404 and stranger.get(address).status_code == 404


def test_a_channel_is_checked_by_its_kind_when_it_is_saved(
    mails: list[EmailMessage], people: SimpleNamespace, client_of: Callable[..., APIClient], settings: Any
) -> None:
    client = client_of(people.owner)
    made = client.post("/api/v1/channels/", {"name": "mail", "kind": "mail", "recipient": "duty@example.org"})
    assert made.status_code == 201 and made.json()["kind"] == "mail"
    assert client.post("/api/v1/channels/", {"name": "x", "kind": "mail", "recipient": "nobody"}).status_code == 400
    assert client.post("/api/v1/channels/", {"name": "x", "kind": "mail"}).json()["faults"][0]["pointer"] == "/recipient"
    assert client.post("/api/v1/channels/", {"name": "x"}).json()["faults"][0]["pointer"] == "/url"
    assert client.patch(f"/api/v1/channels/{made.json()['id']}/", {"kind": "webhook"}).status_code == 400
    assert channel_test(channel=Channel.objects.get()).ok and mails[0]["Subject"] == "A test of Vedette's alerts"
    settings.EMAIL_GIVEN = False
    assert "EMAIL_URL" in client.post("/api/v1/channels/", {"name": "x", "kind": "mail", "recipient": "a@example.org"}).json()["faults"][0]["message"]


def test_a_mail_about_one_alert_shows_where_it_was(
    mails: list[EmailMessage], channel: Channel, query: Query, received: Callable[[Any, Any], None]
) -> None:
    """The picture is attached to the mail: nothing is fetched, and it is shown without
    access to the installation."""
    received(query.feed, [{"entity": "a", "t": t, "x": t / 1000, "y": 5.0, "speed": 1.0, "kind": "x"} for t in range(-5000, 15_000, 1000)])
    fact = crossing(query, "in", "a", 0)
    partitions_ensure([span_of(0)])
    there = [{"entity": "a", "t": 0, "x": 0.0, "y": 5.0, "seq": 1}]
    Detection.objects.create(
        feed=query.feed, key=fact.key, query=query, version=1, kind="in", entities=["a"], start=0, end=0, seq=1, detected_at=1, evidence=there
    )
    record(query, fact)
    deliver(channel)
    (part,) = [part for part in mails[0].walk() if part.get_content_type() == "image/png"]
    assert f"cid:{part['Content-ID'].strip('<>')}" in text_of(mails[0], "html") and part.get_content_disposition() == "inline"
    image = Image.open(io.BytesIO(part.get_payload(decode=True)))  # type: ignore[arg-type]
    if folder := os.environ.get("SCREENSHOTS"):
        image.save(f"{folder}/mail-picture.png")
    colours = {colour for _, colour in image.getcolors(1 << 16)}  # type: ignore[misc, union-attr]
    assert {tuple(bytes.fromhex(hexa[1:])) for hexa in (REGION, EVIDENCE, TRACKS[0])} <= colours
    assert image.getpixel((image.width // 20, image.height // 2))[:3] != tuple(bytes.fromhex(REGION[1:])), "west of the region"  # type: ignore[index]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"RCPT": "550 5.1.1 no such user"}, "The mail server refuses the recipient: 550 5.1.1 no such user"),
        (
            {"MAIL": "553 5.7.1 not your domain"},
            "The mail server refuses the sender vedette@localhost, which an operator sets in VEDETTE_MAIL_FROM: 553 5.7.1 not your domain",
        ),
        ({"DATA": "554 5.6.0 spam"}, "The mail server refuses the message: 554 5.6.0 spam"),
        ({"DATA": "421 closing"}, "The mail server refuses the message: 421 closing"),
    ],
)
def test_a_refusal_of_the_mail_server_is_explained(refusals: dict[str, str], channel: Channel, reply: dict[str, str], words: str) -> None:
    refusals.update(reply)
    assert channel_test(channel=channel).error == words


@pytest.fixture
def refusals(settings: Any) -> Iterator[dict[str, str]]:
    """The mail server's replies, by command; a command that is not in it succeeds."""
    replies: dict[str, str] = {}
    with mail_server(replies=replies) as (port, _):
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_GIVEN = "127.0.0.1", port, True
        yield replies
