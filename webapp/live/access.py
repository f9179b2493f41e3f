"""Makes open sockets check permissions again as soon as someone logs out or a permission changes.
The change sends a NOTIFY; the publisher listens and forwards it to all sockets. If the message is
lost, the sockets notice within a minute.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models.signals import post_delete, post_save

from webapp.accounts.models import ApiToken, Membership, Team, User
from webapp.feeds.models import Feed
from webapp.live.models import SharedView
from webapp.queries.models import Query

CHANNEL = "vedette_access"
"""The channel of LISTEN."""
GROUP = "sockets"
"""The channel group of all open sockets."""
DECIDING: dict[Any, Collection[str]] = {
    User: ("is_active", "is_staff", "is_superuser", "password"),
    Membership: ("user", "team", "role"),
    Feed: ("owner", "team", "public"),
    Query: ("owner", "team", "public", "deleted_at"),
}
"""Fields that decide who may see an object. Only their changes notify the publisher."""


def watch() -> None:
    """Connects the signals; called once when the program starts."""
    for model in DECIDING:
        post_save.connect(_saved, sender=model, dispatch_uid=f"access saved {model.__name__}")
    for model in (*DECIDING, Team, Session, ApiToken, SharedView):
        post_delete.connect(_changed, sender=model, dispatch_uid=f"access deleted {model.__name__}")


def _saved(sender: Any, created: bool, update_fields: Collection[str] | None, **more: Any) -> None:
    if not created and (update_fields is None or set(update_fields) & set(DECIDING[sender])):
        _changed()


def _changed(**more: Any) -> None:
    transaction.on_commit(notify)


def notify() -> None:
    """Notifies that permissions or log-ins may have changed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, '')", [CHANNEL])
