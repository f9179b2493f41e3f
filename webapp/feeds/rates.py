"""How fast rows may come over HTTP: token buckets of this process, so that the limits
hold while Redis is away.

A request is admitted while its buckets are not empty, and its rows are subtracted when they have
been counted: a large request may overdraw a bucket, and what follows waits for it. Each web process
counts separately.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from webapp.accounts.models import ApiToken, User
from webapp.accounts.quotas import quota_of
from webapp.feeds.models import Feed

BURST_S = 10.0
"""The burst, in seconds of the rate."""
KEPT = 10_000
NEVER_S = 3600.0
"""Clients with a rate of 0 are asked to retry after this long."""
PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
"""By the first letter, as for the other rates of requests."""


@dataclass(frozen=True)
class Limit:
    """The limit of one counter: `rate` per second of the units named by `what`, for all callers
    with the same `key`."""

    key: tuple[str, int]
    what: str
    rate: float
    of_rows: bool


class Buckets:
    """Levels by key; the least recently used one is dropped first. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: OrderedDict[tuple[str, int], tuple[float, float]] = OrderedDict()

    def wait(self, limit: Limit) -> float:
        """Seconds until something may be taken; 0 when it may be now."""
        with self._lock:
            level = self._level(limit)
        return 0.0 if level > 0 else max(0.001, -level / limit.rate) if limit.rate else NEVER_S

    def take(self, limit: Limit, amount: int) -> None:
        """Takes `amount`, even more than is available."""
        with self._lock:
            self._levels[limit.key] = (self._level(limit) - amount, self._clock())
            self._levels.move_to_end(limit.key)
            while len(self._levels) > KEPT:
                self._levels.popitem(last=False)

    def _level(self, limit: Limit) -> float:
        now = self._clock()
        level, at = self._levels.get(limit.key, (limit.rate * BURST_S, now))
        return min(limit.rate * BURST_S, level + (now - at) * limit.rate)


BUCKETS = Buckets()


def limits_of(token: ApiToken, feed: Feed) -> list[Limit]:
    """The limits for rows sent with this token to this feed."""
    count, _, period = settings.INGEST_RATE.partition("/")
    requests = f"Your quota of {settings.INGEST_RATE} requests with rows"
    return [Limit(("requests", token.user_id), requests, int(count) / PERIODS[period[0]], of_rows=False), *row_limits_of(token.user, feed)]


def row_limits_of(person: User, feed: Feed) -> list[Limit]:
    """The limits for rows that `person` sends to this feed in any way."""
    user = quota_of(person, "rows")
    limits = [Limit(("user", person.pk), f"Your quota of {user:,} rows a second", user, of_rows=True)]
    if feed.team is not None:
        team = quota_of(feed.team, "rows")
        limits.append(Limit(("team", feed.team.pk), f"The quota of {team:,} rows a second of the feed's team", team, of_rows=True))
    return limits
