"""Reads of consumers: permissions, a consistent snapshot, the changes after a reader's number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.db import connection, transaction
from django.http import HttpRequest

from engine.sources.segments import LogDamaged
from webapp.accounts import second_factor
from webapp.accounts.models import Scope, User
from webapp.accounts.services import token_authenticate
from webapp.alerts.selectors import alerts_open
from webapp.detections.selectors import detections_recent, outbox_range
from webapp.feeds import recent
from webapp.feeds.heads import FeedStatus, feed_status
from webapp.feeds.selectors import feed_get, feed_of
from webapp.live import positions
from webapp.live.chunks import Chunk, chunks_after
from webapp.queries.selectors import queries_visible

SNAPSHOT_ROWS = 500
"""The most answers in a snapshot, the newest ones. A page requests the rest of its window from the
API; larger snapshots made a hundred pages that open at once wait."""
RESUMED_ROWS = 500
"""A reader that missed more outbox rows than this gets a snapshot instead."""

NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Permission:
    """A feed that the reader may see, and the queries on it whose answers they may see."""

    feed_id: int
    feed: str
    queries: set[int]


def permission(*, user_id: int, feed: str) -> Permission | None:
    """What the user may see of the feed now; None: nothing."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    feed_row = None if user is None else feed_get(user=user, name=feed)
    return None if user is None or feed_row is None else Permission(feed_row.pk, feed_row.name, queries_visible(user=user, feed=feed_row))


def logged_in_until(scope: Mapping[str, Any]) -> datetime | None:
    """When the token or the session that the socket came with expires. None: it is no longer that
    of the same, active user, with a second factor if needed."""
    if "bearer" in scope:
        token = token_authenticate(scope["bearer"], Scope.READ)
        return (token.expires_at or NEVER) if token is not None and token.user_id == scope["user"].pk else None
    # The scope's session is that of the handshake: it is read again from the store.
    fresh = import_module(settings.SESSION_ENGINE).SessionStore(scope["session"].session_key)
    request = HttpRequest()
    request.session = fresh
    request.user = user = get_user(request)
    if not (user.is_authenticated and user.is_active and user.pk == scope["user"].pk) or second_factor.is_missing(request):
        return None
    expires_at: datetime | None = fresh.model.objects.filter(pk=fresh.session_key).values_list("expire_date", flat=True).first()
    return expires_at


def snapshot(*, feed_id: int, queries: list[int], from_t: int | None) -> dict[str, Any]:
    """Answers, alerts and the outbox number that they are true at, read at one moment."""
    with transaction.atomic():
        if len(connection.savepoint_ids) == 0 and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        head = feed_status(feed_id=feed_id)
        newest = detections_recent(feed_id=feed_id, query_ids=queries, from_t=from_t, limit=SNAPSHOT_ROWS + 1)
        is_whole = len(newest) <= SNAPSHOT_ROWS
        return {
            "seq": head["outbox_seq"],
            "detections": newest if is_whole else newest[1:],
            "since": from_t if is_whole else newest[1]["start"] + 1,
            "alerts": alerts_open(feed_id=feed_id, query_ids=queries),
            "clock": head["max_t"],
        }


def missed(*, feed_id: int, since: int) -> list[Chunk] | None:
    """The outbox rows after `since` without a gap; None if they are expired, too many, or
    `since` is in the future."""
    newest = feed_status(feed_id=feed_id)["outbox_seq"]
    if since > newest or newest - since > RESUMED_ROWS:
        return None
    if since == newest:
        return []
    kept = outbox_range(feed_id=feed_id)
    if kept is None or kept[0] > since + 1:
        return None
    return chunks_after(feed_id=feed_id, seq=since, limit=RESUMED_ROWS)


def places(*, feed_id: int) -> dict[str, Any]:
    """The last positions: from the publisher's cache, else from the log."""
    kept = positions.latest(feed_id)
    if kept["entities"]:
        return kept
    try:
        rows = recent.positions(feed_of(pk=feed_id))
    except LogDamaged:
        return dict(positions.NOTHING)
    return {"t": rows.t, "entities": rows.entities}


def status(*, feed_id: int) -> FeedStatus:
    """The state of the feed's processing."""
    return feed_status(feed_id=feed_id)
