"""The cache in which limits are counted: Redis, shared by all processes; while Redis is
unavailable, the memory of this process.

Redis may be lost at any time. Limits on log-ins and requests then hold for each process separately:
they neither fail open nor fail with an error.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

AWAY_SECONDS = 5.0
"""After a failure Redis is not used for this long: with an unreachable host, each attempt costs the
time limit of a connection."""


class Absence:
    """Until when the Redis of an address is assumed to be unavailable; shared by
    the threads of the process."""

    def __init__(self) -> None:
        self.until: dict[str, float] = {}

    def lasts(self, address: str) -> bool:
        return time.monotonic() < self.until.get(address, 0.0)

    def begin(self, address: str, error: Exception) -> None:
        logger.warning("Redis does not answer; limits are counted by this process alone: %s", error)
        self.until[address] = time.monotonic() + AWAY_SECONDS


absence = Absence()


class SharedCache(RedisCache):
    """Django's Redis cache, which counts in memory while Redis does not answer."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self.address = str(server)
        self.memory = LocMemCache(self.address, {**params, "OPTIONS": {}})

    def _either(self, method: str, *arguments: Any, **options: Any) -> Any:
        if not absence.lasts(self.address):
            try:
                return getattr(RedisCache, method)(self, *arguments, **options)
            except RedisError as error:
                absence.begin(self.address, error)
        return getattr(self.memory, method)(*arguments, **options)

    def add(self, *arguments: Any, **options: Any) -> Any:
        return self._either("add", *arguments, **options)

    def get(self, *arguments: Any, **options: Any) -> Any:
        return self._either("get", *arguments, **options)

    def set(self, *arguments: Any, **options: Any) -> Any:
        return self._either("set", *arguments, **options)

    def touch(self, *arguments: Any, **options: Any) -> Any:
        return self._either("touch", *arguments, **options)

    def delete(self, *arguments: Any, **options: Any) -> Any:
        return self._either("delete", *arguments, **options)

    def has_key(self, *arguments: Any, **options: Any) -> Any:
        return self._either("has_key", *arguments, **options)

    def incr(self, *arguments: Any, **options: Any) -> Any:
        return self._either("incr", *arguments, **options)

    def get_many(self, *arguments: Any, **options: Any) -> Any:
        return self._either("get_many", *arguments, **options)

    def set_many(self, *arguments: Any, **options: Any) -> Any:
        return self._either("set_many", *arguments, **options)

    def delete_many(self, *arguments: Any, **options: Any) -> Any:
        return self._either("delete_many", *arguments, **options)

    def clear(self) -> Any:
        return self._either("clear")
