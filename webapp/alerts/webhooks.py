"""Sends one signed message to an address that a user typed in (Standard Webhooks), without access
to the internal network (SSRF).

The host is resolved once; every address it has must be public (or in a network that the operator of
this installation named), and the connection goes to the address that was checked. No redirects, no
more than 64 KB read, ten seconds in all.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import ipaddress
import secrets
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from engine.model.messages import Message, message_of, untranslated
from webapp.alerts.reasons import reason_of
from webapp.config.outside import RefusedAddress, is_named

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 10.0
READ_BYTES = 65_536
LONGEST_WAIT = timedelta(days=1)
"""If a receiver asks for a longer wait, it is tried again after this time."""
REDIRECTIONS = (301, 302, 303, 307, 308)
SECRET_PREFIX = "whsec_"  # noqa: S105  what secrets are recognised by

NO_ERROR = untranslated("")


@dataclass(frozen=True)
class Answer:
    """The receiver's response: the HTTP status, or none and the reason. `retry_after`: the
    receiver asked to wait this long."""

    status: int | None
    error: Message = NO_ERROR
    retry_after: timedelta | None = None

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """The receiver asked for no further messages."""
        return self.status == 410


def new_secret() -> str:
    """A fresh signing secret of 256 bits in the form that receivers' libraries read."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(*, secret: str, webhook_id: str, timestamp: int, body: bytes) -> str:
    """`v1,<base64 of HMAC-SHA256 over id.timestamp.body>`.

    >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> webhook_id, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}'
    >>> signature(secret=secret, webhook_id=webhook_id, timestamp=1614265330, body=body)
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def post(*, url: str, secrets_in_use: Sequence[str], webhook_id: str, body: str, now: datetime) -> Answer:
    """Sends `body` (JSON) once; never raises for failures of the receiver or the network."""
    data = body.encode()
    timestamp = int(now.timestamp())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Vedette",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret=secret, webhook_id=webhook_id, timestamp=timestamp, body=data) for secret in secrets_in_use),
    }
    return post_bytes(url, data, headers)


def post_bytes(url: str, data: bytes, headers: Mapping[str, str]) -> Answer:
    """Sends `data` once, if permitted; never raises for failures of the receiver or the network."""
    try:
        parts = check_url(url)
        return _exchange(parts, resolve(parts), data, headers)
    except RefusedAddress as error:
        return Answer(None, message_of(error))
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        return Answer(None, reason_of(error))


def check_url(url: str) -> SplitResult:
    """The parts of an acceptable address. Raises RefusedAddress; looks nothing up."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise RefusedAddress(Message("This is not an address.")) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RefusedAddress(Message("The address begins with https:// (or http://) and names a host."))
    if parts.username is not None or parts.password is not None:
        raise RefusedAddress(Message("The address must not carry a user name or password."))
    if not url.isascii():
        raise RefusedAddress(Message("The address must be in ASCII: the host as xn--..., other letters as %C3%A9 and the like."))
    if any(ord(c) <= 32 or ord(c) == 127 for c in url):
        raise RefusedAddress(Message("The address must not hold spaces or control characters."))
    if port is not None and port not in settings.WEBHOOK_PORTS and not settings.WEBHOOK_NETWORKS:
        raise RefusedAddress(
            Message("Port {port} is not a port to which messages are sent: {known}.", port=port, known=", ".join(map(str, settings.WEBHOOK_PORTS)))
        )
    return parts


def resolve(parts: SplitResult) -> tuple[str, int]:
    """The address and port to connect to. Raises RefusedAddress unless every address of the host is
    permitted, OSError when there is none."""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    infos = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    addresses = [str(sockaddr[0]) for *_, sockaddr in infos]
    for address in addresses:
        check_address(address, port)
    return addresses[0], port


def check_address(text: str, port: int) -> None:
    """Raises RefusedAddress unless messages may be sent there."""
    if not is_named(text) and port not in settings.WEBHOOK_PORTS:
        raise RefusedAddress(Message("Port {port} is not a port to which messages are sent.", port=port))


class _Pinned(http.client.HTTPConnection):
    """A connection to the checked address, under the requested host name."""

    def __init__(self, parts: SplitResult, address: str, port: int) -> None:
        super().__init__(parts.hostname or "", port, timeout=CONNECT_SECONDS)
        self.address = address
        self.secure = parts.scheme == "https"
        self.default_port = 443 if self.secure else 80  # left out of the Host header

    def connect(self) -> None:
        connection = socket.create_connection((self.address, self.port), CONNECT_SECONDS)
        if ipaddress.ip_address(connection.getpeername()[0].split("%")[0]) != ipaddress.ip_address(self.address.split("%")[0]):
            connection.close()
            raise OSError("connected to another address")
        connection.settimeout(TOTAL_SECONDS)
        self.sock = ssl.create_default_context().wrap_socket(connection, server_hostname=self.host) if self.secure else connection


def _exchange(parts: SplitResult, target: tuple[str, int], data: bytes, headers: Mapping[str, str]) -> Answer:
    connection = _Pinned(parts, *target)
    late = threading.Event()
    # A receiver that sends single bytes would stay within the time-out of each read.
    timer = threading.Timer(TOTAL_SECONDS, _abort, [connection, late])
    timer.daemon = True
    timer.start()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body=data, headers=headers)
        response = connection.getresponse()
        response.read(READ_BYTES)
        status, retry = response.status, response.headers.get("Retry-After")
    except (OSError, http.client.HTTPException) as error:
        if late.is_set():
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
        connection.close()
    return Answer(status) if 200 <= status < 300 else Answer(status, _words_of(status), wait_of(retry, datetime.now(UTC)))


def _words_of(status: int) -> Message:
    """Why a message did not arrive: the status in words."""
    if status in REDIRECTIONS:
        return Message("HTTP {status}: the receiver redirects to another address. Messages do not follow: enter that address here.", status=status)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Message("HTTP {status}: the receiver gets too many messages.", status=status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Message("HTTP {status}: the receiver has an error.", status=status)
    return Message("HTTP {status}: the receiver refuses the message.", status=status)


def wait_of(retry_after: str | None, now: datetime) -> timedelta | None:
    """What the header `Retry-After` asks for, in seconds or as a date (RFC 9110, 10.2.3); None
    without it, or when it cannot be read.

    >>> wait_of("120", datetime(2026, 11, 21, 12, tzinfo=UTC))
    datetime.timedelta(seconds=120)
    >>> wait_of("Sat, 21 Nov 2026 12:00:30 GMT", datetime(2026, 11, 21, 12, tzinfo=UTC))
    datetime.timedelta(seconds=30)
    >>> wait_of("soon", datetime(2026, 11, 21, 12, tzinfo=UTC))
    """
    try:
        text = (retry_after or "").strip()
        wait = timedelta(seconds=int(text)) if text.isdecimal() else parsedate_to_datetime(text).astimezone(UTC) - now
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta()), LONGEST_WAIT)


def _abort(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    if connection.sock is not None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
