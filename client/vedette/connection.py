"""Requests to one server, repeated while that may help."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

AGAIN = {429, 500, 502, 503, 504}
"""Statuses after which the same request may be accepted later."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0
GONE = 410


@dataclass(frozen=True)
class Fault:
    """What is wrong with a request, and where: `pointer` is a JSON pointer, empty for the whole."""

    pointer: str
    message: str


class Refused(Exception):
    """The server refused the request: repeating it will not help."""

    def __init__(self, status: int, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{fault.pointer} {fault.message}".strip() for fault in faults) or f"status {status}")
        self.status, self.faults = status, faults


class Forgotten(Refused):
    """The server no longer keeps the changes after this number: read the answers again, and follow
    from now on."""


class Unavailable(ConnectionError):
    """The server could not be reached, or did not take the request, for longer than `retry_for`."""


class Connection:
    """Connections to one server, one for each calling thread. Thread-safe."""

    def __init__(self, url: str, token: str, *, retry_for: float, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address: it begins with https:// or http:// and names a host.")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._base = parts.hostname, parts.port, parts.path.rstrip("/")
        self._token, self._retry_for, self._timeout = token, retry_for, timeout
        self._own = threading.local()

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON at a path below `/api/v1/`; parameters that are None are left out. Raises
        Refused, Forgotten, Unavailable."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return self.request("GET", path + (f"?{urlencode(given)}" if given else ""))

    def request(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON of an answer of 2xx. Repeats requests that may be repeated. Raises Refused,
        Forgotten, Unavailable."""
        give_up, pause = time.monotonic() + self._retry_for, FIRST_PAUSE_S
        while True:
            wait = pause * random.uniform(0.8, 1.2)  # noqa: S311  so that not all come back at once
            try:
                status, answer, retry_after = self._attempt(method, path, body, headers or {})
            except (OSError, http.client.HTTPException) as error:
                self._forget()
                fault = f"{type(error).__name__}: {error}"
            else:
                if status < 300:
                    return json.loads(answer) if answer else None
                if status not in AGAIN:
                    raise (Forgotten if status == GONE else Refused)(status, _faults(answer))
                fault = f"{status} {answer[:500].decode(errors='replace')}"
                wait = max(wait, retry_after)
            if time.monotonic() + wait > give_up:
                raise Unavailable(fault)
            time.sleep(wait)
            pause = min(LONGEST_PAUSE_S, pause * 2)

    def close(self) -> None:
        """Ends this thread's connection; the next request makes another."""
        self._forget()

    def _attempt(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes, float]:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._kind(self._host, self._port, timeout=self._timeout)
        known = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **headers}
        connection.request(method, f"{self._base}/api/v1/{path}", body, known)
        response = connection.getresponse()
        after = response.getheader("Retry-After") or "0"
        return response.status, response.read(), float(after) if after.isdigit() else 0.0

    def _forget(self) -> None:
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None


def _faults(answer: bytes) -> list[Fault]:
    try:
        return [Fault(str(one["pointer"]), str(one["message"])) for one in json.loads(answer)["faults"]]
    except (ValueError, TypeError, KeyError):
        return [Fault("", answer[:500].decode(errors="replace"))]
