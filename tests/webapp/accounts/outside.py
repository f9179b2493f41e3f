"""Outside services that a log-in needs, as real programs on loopback: an OpenID Connect provider, a
mail server, an authenticator app."""

from __future__ import annotations

import asyncio
import base64
import hmac
import html
import json
import os
import re
import shutil
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.cookiejar import CookieJar
from typing import Any

from aiosmtpd.controller import Controller

from webapp.platform.folders import ROOT, PortReservation
from webapp.platform.node import npm_command


class _Inbox:
    """Accepts every mail; acknowledges it only while `held` is not set. `replies`, by command,
    refuse it."""

    def __init__(self, held: threading.Event, replies: Mapping[str, str]) -> None:
        self.mails: list[EmailMessage] = []
        self.held = held
        self.replies = replies

    async def handle_MAIL(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        envelope.mail_from = address
        return self.replies.get("MAIL", "250 OK")

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        envelope.rcpt_tos.append(address)
        return self.replies.get("RCPT", "250 OK")

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if "DATA" in self.replies:
            return self.replies["DATA"]
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))  # type: ignore[arg-type]
        while self.held.is_set():
            await asyncio.sleep(0.01)
        return "250 OK"


@contextmanager
def mail_server(held: threading.Event | None = None, replies: Mapping[str, str] | None = None) -> Iterator[tuple[int, list[EmailMessage]]]:
    """The port of an SMTP server, and the mails that it received. While `held` is
    set it does not acknowledge; `replies` are its refusals, by command."""
    reservation = PortReservation()
    reservation.release()
    inbox = _Inbox(held or threading.Event(), {} if replies is None else replies)
    controller = Controller(inbox, hostname="127.0.0.1", port=reservation.port)
    controller.start()
    try:
        yield reservation.port, inbox.mails
    finally:
        controller.stop()


@contextmanager
def identity_provider() -> Iterator[str]:
    """The issuer URL of a running provider (`frontend/dev/identity_provider.mjs`)."""
    reservation = PortReservation()
    reservation.release()
    _, environment = npm_command()
    node = shutil.which("node", path=environment["PATH"])
    assert node is not None
    process = subprocess.Popen(
        [node, "dev/identity_provider.mjs", str(reservation.port)], cwd=ROOT / "frontend", env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        yield f"http://127.0.0.1:{reservation.port}"
    finally:
        process.kill()
        process.wait()


def providers(issuer: str, **more: Any) -> str:
    """`VEDETTE_OIDC_PROVIDERS` for both clients of the provider; `more`
    are settings of the first."""
    first = {"id": "corp", "name": "Example Corp", "issuer": issuer, "client_id": "vedette", "secret": "a secret of tests", **more}
    second = {"id": "second", "name": "Second Harbour", "issuer": issuer, "client_id": "vedette-two", "secret": "a secret of tests"}
    return json.dumps([first, second])


class _KeepRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def consent(address: str, name: str) -> str:
    """A user's actions at the provider, starting at `address`: logs in as `name`, consents. Returns
    the redirect address."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()), _KeepRedirects())
    provider = urllib.parse.urlsplit(address).netloc
    body = None
    while urllib.parse.urlsplit(address).netloc == provider:
        try:
            with opener.open(address, body, timeout=10) as answer:
                page = answer.read().decode()
            action = re.search(r'<form[^>]*action="([^"]+)"', page)
            assert action is not None, page
            prompt = re.search(r'name="prompt" value="(\w+)"', page)
            assert prompt is not None, page
            fields = {"prompt": prompt[1], **({"login": name, "password": "any"} if prompt[1] == "login" else {})}
            address, body = urllib.parse.urljoin(address, html.unescape(action[1])), urllib.parse.urlencode(fields).encode()
        except urllib.error.HTTPError as answer:
            assert answer.code in (302, 303), answer.read()
            address, body = urllib.parse.urljoin(address, answer.headers["Location"]), None
    return address


def code_of_app(secret: str, steps: int = 0) -> str:
    """The code of an authenticator app (RFC 6238) for the secret, `steps`
    times 30 seconds from now."""
    counter = struct.pack(">Q", int(time.time()) // 30 + steps)
    digest = hmac.digest(base64.b32decode(secret), counter, "sha1")
    offset = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[offset : offset + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"
