"""Connections that a thread returns are kept for the next one.

Under ASGI each request has a separate thread, and so a separate connection. A new connection costs
the server a process, a log-in and the first look at every table: often more than the request
itself. Only the web server keeps connections (`keep_connections`).
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import IsolationLevel
from psycopg2 import extensions

KEPT = 8
IDLE_S, LONGEST_S = 60.0, 600.0
"""A connection unused for this long is closed, and an older one is not kept, which frees the
memory of its server process."""


@dataclass
class _IdleConnection:
    raw: Any
    key: str
    since: float


@dataclass
class IdleConnections:
    """A pool of open, unused connections, newest last. Thread-safe."""

    limit: int = 0
    _kept: list[_IdleConnection] = field(default_factory=list)
    _first_given: WeakKeyDictionary[Any, float] = field(default_factory=WeakKeyDictionary)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str) -> Any:
        """A live connection with these parameters; null if there is none."""
        while (idle := self._pop(key)) is not None:
            if _is_quiet(idle.raw):
                return idle.raw
            idle.raw.close()
        return None

    def give(self, key: str, raw: Any) -> bool:
        """Whether it is kept; if not, the caller closes it."""
        now = time.monotonic()
        with self._lock:
            first = self._first_given.setdefault(raw, now)
            old = [idle for idle in self._kept if now - idle.since > IDLE_S]
            self._kept = [idle for idle in self._kept if now - idle.since <= IDLE_S]
            is_kept = len(self._kept) < self.limit and now - first < LONGEST_S and _is_idle(raw)
            if is_kept:
                self._kept.append(_IdleConnection(raw, key, now))
        for idle in old:
            idle.raw.close()
        return is_kept

    def close(self) -> None:
        """Closes all that are kept."""
        with self._lock:
            kept, self._kept = self._kept, []
        for idle in kept:
            idle.raw.close()

    def _pop(self, key: str) -> _IdleConnection | None:
        with self._lock:
            for position in range(len(self._kept) - 1, -1, -1):
                if self._kept[position].key == key:
                    return self._kept.pop(position)
        return None


IDLE_CONNECTIONS = IdleConnections()


def keep_connections() -> None:
    """From now on this process keeps returned connections."""
    IDLE_CONNECTIONS.limit = KEPT


def _is_idle(raw: Any) -> bool:
    """Whether it is whole, and in no transaction."""
    return not raw.closed and raw.info.transaction_status == extensions.TRANSACTION_STATUS_IDLE


def _is_quiet(raw: Any) -> bool:
    """Whether it is still open: a server that has ended has sent a message, or closed its end."""
    return _is_idle(raw) and not select.select([raw], [], [], 0)[0]


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's, taking from and giving to IDLE_CONNECTIONS."""

    def get_new_connection(self, conn_params: Mapping[str, Any]) -> Any:
        raw = IDLE_CONNECTIONS.take(_key(conn_params))
        if raw is None:
            return super().get_new_connection(conn_params)
        self.isolation_level = IsolationLevel.READ_COMMITTED
        return raw

    def _close(self) -> None:
        raw = self.connection
        if raw is not None and IDLE_CONNECTIONS.limit and IDLE_CONNECTIONS.give(_key(self.get_connection_params()), raw):
            return
        super()._close()  # type: ignore[misc]  # of BaseDatabaseWrapper, which the stubs leave out


def _key(parameters: Mapping[str, Any]) -> str:
    return repr(sorted(parameters.items(), key=lambda one: one[0]))
