"""How many refusals are written down: whoever is refused must not be able to fill the disk."""

from __future__ import annotations

import time
from threading import Lock
from typing import Any

REFUSALS_A_MINUTE = 60


class RefusalLimit:
    """At most REFUSALS_A_MINUTE entries of one actor at one address in a minute and a process, so that refusals cannot fill the disk.

    The first entry after a pause says how many were left out.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._minute = 0
        self._seen: dict[Any, int] = {}
        self._left_out: dict[Any, int] = {}

    def passed(self, key: Any) -> int | None:
        """How many were left out before this one, or None when this one is left out too."""
        with self._lock:
            minute = int(time.monotonic() // 60)
            if minute != self._minute:
                self._minute = minute
                self._left_out = {key: count - REFUSALS_A_MINUTE for key, count in self._seen.items() if count > REFUSALS_A_MINUTE}
                self._seen = {}
            self._seen[key] = self._seen.get(key, 0) + 1
            return self._left_out.pop(key, 0) if self._seen[key] <= REFUSALS_A_MINUTE else None
