"""A time limit for a whole SMTP session: a server that sends single bytes stays within the limit of
each read."""

from __future__ import annotations

import smtplib
import socket
import threading
from typing import Any

from django.core.mail.backends.smtp import EmailBackend

SESSION_SECONDS = 60.0


class _Bounded(smtplib.SMTP):
    """Closes its connection when the session has taken too long; waiting reads then fail."""

    _connected: socket.socket | None = None
    _timer: threading.Timer | None = None

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        self._connected = connection = super()._get_socket(host, port, timeout)  # type: ignore[misc]  # not in the stubs
        self._timer = threading.Timer(SESSION_SECONDS, self._end)
        self._timer.daemon = True
        self._timer.start()
        return connection  # type: ignore[no-any-return]

    def _end(self) -> None:
        # After TLS has begun the connection is another object.
        for one in (self.sock, self._connected):
            try:
                if one is not None:
                    one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().close()


class _BoundedTls(smtplib.SMTP_SSL, _Bounded):
    """The same with TLS from the beginning, including the handshake."""


class Backend(EmailBackend):
    """Django's backend, with limited sessions."""

    @property
    def connection_class(self) -> Any:
        return _BoundedTls if self.use_ssl else _Bounded
