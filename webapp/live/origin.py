"""Sockets are opened by this site's own pages and by programs with a token: the rule of Django's
CSRF check, for handshakes.

No browser lets a page set `Authorization` on a handshake, so a handshake with a token does not come
from another site, whatever its origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from channels.db import database_sync_to_async
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from engine.model.messages import Message
from webapp.accounts.language import language_of_socket
from webapp.audit.sockets import socket_refused
from webapp.live import frames

PORTS = {"http": 80, "https": 443}
WANTED = Message(
    "Sockets are opened by this site's own pages (the header Origin names the address that the handshake is sent to) or with the header "
    "Authorization: Bearer <token>, whose token has the scope read."
)
Origin = tuple[str, str, int | None]
"""Scheme, host and port."""


class SameOrigin:
    """Passes on handshakes with a token, and those whose `Origin` has the scheme, the host and the
    port that they were sent to.

    Others get an `error` frame that states what is required, and are closed.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = scope.get("headers", ())
        if bearer(headers) is not None or is_own_page(headers, secure=scope.get("scheme") == "wss"):
            await self.application(scope, receive, send)
        else:
            await database_sync_to_async(socket_refused)(scope, status=403)
            await _refuse(scope, receive, send)


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": frames.encoded(frames.error("wrong-origin", WANTED, language_of_socket(scope)))})
    await send({"type": "websocket.close", "code": frames.NOT_PERMITTED})


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The token that a handshake carries; null without one."""
    value = next((value for name, value in headers if name.lower() == b"authorization"), b"").decode("latin1")
    word, _, text = value.partition(" ")
    return text.strip() if word.lower() == "bearer" else None


def is_own_page(headers: Iterable[tuple[bytes, bytes]], *, secure: bool) -> bool:
    """Whether a handshake with these headers comes from a page of this site. `secure`: it
    came to this process by TLS."""
    by_name = {name.decode("latin1").lower(): value.decode("latin1") for name, value in headers}
    origin, host = by_name.get("origin", ""), by_name.get("host", "")
    if not origin or not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return False
    if settings.SECURE_PROXY_SSL_HEADER:
        header, value = settings.SECURE_PROXY_SSL_HEADER
        secure = by_name.get(header.removeprefix("HTTP_").replace("_", "-").lower(), "").split(",")[0].strip() == value
    here = _parts(f"{'https' if secure else 'http'}://{host}")
    return here is not None and _parts(origin) == here


def _parts(address: str) -> Origin | None:
    """Null for an invalid origin."""
    try:
        parts: SplitResult = urlsplit(address.lower())
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname or parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    return parts.scheme, parts.hostname, port
