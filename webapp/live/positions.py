"""The latest positions of each feed, cached in Redis for pages that are
opened; may be lost at any time."""

from __future__ import annotations

import json
import zlib
from functools import cache
from typing import Any

import redis
from django.conf import settings

PREFIX = "vedette:positions:"
"""The prefix of the feed's id, because another feed may get the name later."""
KEPT_S = 24 * 3600
NOTHING: dict[str, Any] = {"t": None, "entities": []}


def client() -> redis.Redis | None:
    """The process's connections, which wait two seconds at most; None without Redis."""
    return _client(settings.REDIS_URL) if settings.REDIS_URL else None


@cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2)


def keep(connection: redis.Redis, feed_id: int, t: int | None, entities: list[list[Any]]) -> None:
    """Replaces the feed's positions `[[id, x, y, t], ...]`; `t` is the greatest time seen."""
    content = zlib.compress(json.dumps({"t": t, "entities": entities}).encode(), 1)
    connection.set(f"{PREFIX}{feed_id}", content, ex=KEPT_S)


def latest(feed_id: int) -> dict[str, Any]:
    """`{"t", "entities": [[id, x, y, t], ...]}` as stored last; empty if there is none
    or Redis does not answer."""
    connection = client()
    if connection is None:
        return dict(NOTHING)
    try:
        content: Any = connection.get(f"{PREFIX}{feed_id}")
    except redis.RedisError:
        return dict(NOTHING)
    return dict(NOTHING) if content is None else json.loads(zlib.decompress(content))
