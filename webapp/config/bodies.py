"""The maximum length of a request's body: checked while it is received, because the web server
passes on only complete requests.

A client with neither a token nor a session may send as much as a log-in needs; the others as much
as the largest upload needs. The views refuse bodies that are too long for them, and users who may
not send anything.
"""

from __future__ import annotations

from typing import Any

from daphne.http_protocol import WebRequest
from django.conf import settings

ANONYMOUS_BYTES = 65_536
GREATEST_BYTES = 25_000_000
"""More than any address takes (`feeds.bodies.BODY_BYTES`,
`feeds.exchange.FILE_BYTES`), with the form around it."""


def allowed_bytes(authorization: bytes | None, cookies: bytes) -> int:
    """The longest body of a request with these headers. The views check whether the headers are
    true."""
    known = authorization is not None or f"{settings.SESSION_COOKIE_NAME}=".encode() in cookies
    return GREATEST_BYTES if known else ANONYMOUS_BYTES


class BoundedRequest(WebRequest):  # type: ignore[misc]
    """A request whose connection ends as soon as its body is too long."""

    refused = False
    taken = 0

    def gotLength(self, length: int | None) -> None:
        headers = self.requestHeaders
        cookies = b"; ".join(headers.getRawHeaders(b"cookie") or [])
        self.allowed = allowed_bytes(headers.getRawHeaders(b"authorization", [None])[0], cookies)
        super().gotLength(min(length or 0, self.allowed) if length is not None else None)
        if length is not None and length > self.allowed:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:
        self.taken += len(data)
        if self.taken > self.allowed:
            self._refuse()
        if not self.refused:
            super().handleContentChunk(data)

    def process(self) -> None:
        if not self.refused:
            super().process()

    def _refuse(self) -> None:
        """Answers and closes the connection without reading the rest."""
        if self.refused:
            return
        self.refused = True
        anonymous = self.allowed == ANONYMOUS_BYTES
        status, text = ("401 Unauthorized", "Log in or send a token.") if anonymous else ("413 Content Too Large", "The body is too long.")
        body = f'{{"faults": [{{"pointer": "", "message": "{text}"}}]}}'.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        transport: Any = self.channel.transport
        transport.write(head.encode() + body)
        self.channel.loseConnection()


def bound() -> None:
    """Makes daphne use this request class, for which it has no setting."""
    from daphne import http_protocol

    http_protocol.WebRequest = BoundedRequest
