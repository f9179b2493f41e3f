"""Alerts to chats by Apprise: over real HTTP on loopback, from a process that reaches
permitted addresses and no file."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts.deliveries import channel_create, channel_send, deliveries_prepare, notifications_plan
from webapp.alerts.models import Channel, Delivery
from webapp.alerts.transports import apprise
from webapp.cage.confinement import child_environment
from webapp.platform.folders import ROOT
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@contextmanager
def chat(status: int = 200, location: str | None = None) -> Iterator[SimpleNamespace]:
    """A message server on loopback; `heard` has (path, body) of each request."""
    heard: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append((self.path, self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_arguments: Any) -> None:
            """No log output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield SimpleNamespace(port=server.server_address[1], heard=heard)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def alerted(query: Query, owner: Any, url: str) -> Delivery:
    """The delivery of an alert to a channel with this address, after one attempt."""
    channel = channel_create(owner=owner, name="chat", kind="apprise", url=url)
    record(query, crossing(query, "in", "Aurora", 10))
    notifications_plan()
    deliveries_prepare()
    channel_send(channel_id=channel.pk)
    return Delivery.objects.get()


def test_an_alert_reaches_two_kinds_of_chats(query: Query, people: SimpleNamespace, settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    with chat() as server:
        sent = alerted(query, people.owner, f"ntfy://127.0.0.1:{server.port}/harbour")
        assert sent.sent_at is not None and sent.error == ""
        Channel.objects.update(url=f"mmost://127.0.0.1:{server.port}/keykeykeykeykeykeykeykey")
        Delivery.objects.update(sent_at=None, next_at=timezone.now())
        channel_send(channel_id=sent.channel_id)
    (_, first), (path, second) = server.heard
    assert path == "/hooks/keykeykeykeykeykeykeykey"
    assert all("Aurora" in body and query.name in body for body in (first, second))


def test_a_service_that_refuses_is_tried_again_and_its_key_is_not_in_the_log(query: Query, people: SimpleNamespace, settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    with chat(status=500) as server:
        waiting = alerted(query, people.owner, f"mmost://127.0.0.1:{server.port}/keykeykeykeykeykeykeykey")
    assert waiting.sent_at is None and waiting.next_at > timezone.now()
    assert waiting.error and "keykey" not in waiting.error


@contextmanager
def endless() -> Iterator[int]:
    """The port of a server with endless responses."""

    def answer(listener: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    connection.sendall(bytes(1 << 20))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""From a small process: a child's peak memory includes that of its parent at the fork."""


def test_memory_for_an_endless_response_is_bounded() -> None:
    """As many messages are sent concurrently as there are threads: each
    gets a share of the machine."""
    with endless() as port:
        message = {
            "url": f"mmost://127.0.0.1:{port}/keykeykeykeykeykeykeykey",
            "title": "",
            "body": "x",
            "networks": ["127.0.0.0/8"],
            "public": False,
        }
        command = [sys.executable, "-c", MEASURED, sys.executable, "-m", "webapp.alerts.apprise_child"]
        used = subprocess.run(command, input=json.dumps(message).encode(), stdout=subprocess.PIPE, env=child_environment(), cwd=ROOT, check=True)
    assert 0 < int(used.stdout) < 450_000, f"{int(used.stdout):,} kB"


def test_internal_addresses_are_refused_directly_and_by_redirect(query: Query, people: SimpleNamespace, settings: Any) -> None:
    with chat() as inner:
        refused = alerted(query, people.owner, f"ntfy://127.0.0.1:{inner.port}/harbour")
        assert refused.sent_at is None and inner.heard == []
        settings.WEBHOOK_NETWORKS = ["127.0.0.1/32"]
        with chat(status=307, location=f"http://127.0.0.2:{inner.port}/harbour") as outer:
            Channel.objects.update(url=f"ntfy://127.0.0.1:{outer.port}/harbour")
            Delivery.objects.update(next_at=timezone.now())
            channel_send(channel_id=refused.channel_id)
        assert len(outer.heard) >= 1 and inner.heard == []
    assert Delivery.objects.get().sent_at is None


@pytest.mark.parametrize(
    ("url", "is_good"),
    [
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", True),
        ("ntfys://ntfy.example.org/topic", True),
        ("tgram://123456789:abcdefg_hijklmnop/12315544", True),
        ("workflows://prod-x.example.org:443/a/b", True),
        ("windows://", False),
        ("dbus://x", False),
        ("macosx://x", False),
        ("syslog://x", False),
        ("fcm://project@key/?keyfile=/etc/passwd", False),
        ("mailtos://a:b@example.org", False),
        ("json://example.org", False),
        ("https://example.org", False),
        ("slack://a b", False),
        ("slack", False),
        ("", False),
    ],
)
def test_addresses_must_name_a_service_reached_over_http(url: str, is_good: bool) -> None:
    assert (apprise.refuse({"url": url}) == {}) is is_good


def test_every_listed_service_exists_in_apprise() -> None:
    from apprise.plugins import N_MGR

    assert apprise.SERVICES - set(N_MGR.schemas()) == set()


def test_the_address_stays_secret_and_unchanged(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    made = client.post("/api/v1/channels/", {"name": "t", "kind": "apprise", "url": "slack://aaaa/bbbb/cccc"}, format="json").json()
    assert made["url"] == "slack://***"
    changed = client.patch(f"/api/v1/channels/{made['id']}/", {"name": "u", "url": made["url"]}, format="json").json()
    assert (changed["name"], changed["url"]) == ("u", "slack://***")
    assert Channel.objects.get().url == "slack://aaaa/bbbb/cccc"
    assert client.patch(f"/api/v1/channels/{made['id']}/", {"url": "windows://"}, format="json").status_code == 400


ATTEMPTS = {
    "open('/etc/passwd')": "needs no file",
    "open('made-by-a-message', 'w')": "needs no file",
    "__import__('subprocess').run(['true'])": "needs no",
    "__import__('os').system('true')": "needs no",
    "__import__('socket').socket(__import__('socket').AF_UNIX).connect('/tmp/x')": "only over TCP",
    "__import__('socket').create_connection(('169.254.169.254', 80), 1)": "not a public one",
    "__import__('socket').socket(type=__import__('socket').SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))": "needs no",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_sending_process_has_no_access_to_files_or_secrets(attempt: str) -> None:
    guarded = (
        f"import sys, os, socket, subprocess; from webapp.alerts.apprise_child import _Guard; sys.addaudithook(_Guard([], public=True)); {attempt}"
    )
    ended = subprocess.run([sys.executable, "-c", guarded], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode != 0
    assert ATTEMPTS[attempt] in ended.stderr.splitlines()[-1]
