"""Limits on recorded refusals: a refused client must not be able to fill the disk."""

from __future__ import annotations

import time
from threading import Lock
from typing import Any

from webapp.config.addresses import host_of

REFUSALS_A_MINUTE = 60
MALFORMED_A_MINUTE = 10
"""For malformed requests: a misconfigured program sends the same one for days."""


class RefusalLimit:
    """At most this many entries (REFUSALS_A_MINUTE, or MALFORMED_A_MINUTE) per actor,
    address, minute and process.

    The first entry after a pause has the number of those left out.
    """

    def __init__(self, *, malformed: bool = False) -> None:
        self.malformed = malformed
        self._lock = Lock()
        self._minute = 0
        self._seen: dict[Any, int] = {}
        self._left_out: dict[Any, int] = {}

    @property
    def most(self) -> int:
        return MALFORMED_A_MINUTE if self.malformed else REFUSALS_A_MINUTE

    def passed(self, actor: int | str | None, address: str | None) -> int | None:
        """How many were left out before this one, or None if this one is left out too."""
        key = (actor, host_of(address or ""))
        with self._lock:
            minute = int(time.monotonic() // 60)
            if minute != self._minute:
                self._minute = minute
                self._left_out = {key: count - self.most for key, count in self._seen.items() if count > self.most}
                self._seen = {}
            self._seen[key] = self._seen.get(key, 0) + 1
            return self._left_out.pop(key, 0) if self._seen[key] <= self.most else None
