"""Makes this process wait for PostgreSQL only as long as the server responds. One that hangs is
noticed within about two seconds.

libpq waits forever for the answer to a statement. Here each long wait checks whether the server
still answers new clients; a statement that only takes long continues, up to PostgreSQL's own
limits. Not for processes that COPY: psycopg2 cannot do both.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import closing
from typing import Any

import psycopg2
from psycopg2 import extensions

QUIET_S, PROBE_S = 0.7, 0.5
"""After this long without an answer the server is probed, and has the second time to respond."""
KNOWN_S = 1.0
"""How long a server that did not answer is assumed to hang."""
SSL_REQUEST = struct.pack("!ii", 8, 80877103)
"""A request that any client may begin with; the server answers with one
byte, before authentication."""

LONG_AGO = -60.0
_hung_at = LONG_AGO


class ServerHangs(psycopg2.OperationalError):
    """PostgreSQL accepts connections but does not answer."""


def limit_waits() -> None:
    """From now on no thread of this process waits for a server that hangs."""
    extensions.set_wait_callback(_wait)


def hangs() -> bool:
    """Whether the server did not answer recently."""
    return time.monotonic() - _hung_at < KNOWN_S


def _wait(connection: Any) -> None:
    """psycopg2's: until the operation under way is done. Raises ServerHangs; the
    connection is then closed."""
    global _hung_at
    while (state := connection.poll()) != extensions.POLL_OK:
        sockets = [connection.fileno()]
        reads, writes = (sockets, []) if state == extensions.POLL_READ else ([], sockets)
        while not any(select.select(reads, writes, [], 0.1 if hangs() else QUIET_S)):
            if not _answers(connection):
                _hung_at = time.monotonic()
                raise ServerHangs("the database server does not answer")
    _hung_at = LONG_AGO


def _answers(connection: Any) -> bool:
    """Whether the server of the connection answers a new client."""
    host, port = connection.info.host or "/var/run/postgresql", connection.info.port
    is_path = host.startswith("/")
    with closing(socket.socket(socket.AF_UNIX) if is_path else _tcp(host, port)) as probe:
        probe.settimeout(PROBE_S)
        try:
            if is_path:
                probe.connect(f"{host}/.s.PGSQL.{port}")
            probe.sendall(SSL_REQUEST)
            return len(probe.recv(1)) == 1
        except OSError:
            return False


def _tcp(host: str, port: int) -> socket.socket:
    try:
        return socket.create_connection((host, port), timeout=PROBE_S)
    except OSError:
        # Code that uses the connection then fails and reports the error.
        return socket.socket()
