"""Sockets are opened by this site's own pages alone: the rule of Django's CSRF check, for handshakes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int | None]
"""Scheme, host and port."""


class SameOrigin:
    """Passes on handshakes whose `Origin` has the scheme, the host and the port that they were sent to; denies others (403)."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        allowed = is_own_page(scope.get("headers", ()), secure=scope.get("scheme") == "wss")
        await (self.application if allowed else WebsocketDenier())(scope, receive, send)


def is_own_page(headers: Iterable[tuple[bytes, bytes]], *, secure: bool) -> bool:
    """Whether a handshake with these headers comes from a page of this site. `secure`: it came to this process by TLS."""
    found = {name.decode("latin1").lower(): value.decode("latin1") for name, value in headers}
    origin, host = found.get("origin", ""), found.get("host", "")
    if not origin or not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return False
    if settings.SECURE_PROXY_SSL_HEADER:
        header, value = settings.SECURE_PROXY_SSL_HEADER
        secure = found.get(header.removeprefix("HTTP_").replace("_", "-").lower(), "").split(",")[0].strip() == value
    here = _parts(f"{'https' if secure else 'http'}://{host}")
    return here is not None and _parts(origin) == here


def _parts(address: str) -> Origin | None:
    """Null for what is no origin."""
    try:
        parts: SplitResult = urlsplit(address.lower())
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname or parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    return parts.scheme, parts.hostname, port
