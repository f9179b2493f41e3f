"""Links to a live view: created and revoked by users who may change the feed, and their content."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from engine.model.messages import Message
from webapp.accounts.models import User
from webapp.audit.services import record
from webapp.config.algorithms import digest_of, digests_of
from webapp.config.opened_links import is_opened
from webapp.config.room import room_check
from webapp.feeds.models import Feed
from webapp.feeds.selectors import feed_get, feed_row
from webapp.live.models import SharedView
from webapp.live.selectors import Permission
from webapp.queries.regions import region_list
from webapp.queries.selectors import queries_visible, query_list

SHARED = "shared"
"""The kind of these links, in sessions."""
SHARES = 200
"""Of one feed, that have not expired."""
SIGNER = Signer(salt="webapp.live.shares")
"""Forged links are refused before the database is read."""


@dataclass(frozen=True)
class NewShare:
    """A new link; `text` is the only copy of its secret."""

    share: SharedView
    text: str


@transaction.atomic
def share_create(*, maker: User, feed: Feed, name: str, expires_at: datetime, queries: Collection[int] | None = None) -> NewShare:
    """A link of 256 random bits to the feed, with these queries of it, or with null
    all that the maker sees now. Raises Refused."""
    full = Message("A feed has at most {most} links that have not expired: revoke one first.", most=SHARES)
    room_check(share_list(feed=feed), SHARES, of=feed, full=full)
    secret = secrets.token_urlsafe(32)
    share = SharedView.objects.create(feed=feed, maker=maker, name=name, expires_at=expires_at, digest=digest_of(secret))
    visible = queries_visible(user=maker, feed=feed)
    share.queries.set(visible if queries is None else visible & set(queries))
    record("share.create", feed, share=share.pk, until=expires_at.isoformat())
    return NewShare(share, SIGNER.sign(secret))


def share_revoke(*, share: SharedView) -> None:
    """Ends the link immediately; viewers who look at it now are cut off."""
    record("share.remove", share.feed, share=share.pk)
    share.delete()


def share_list(*, feed: Feed) -> QuerySet[SharedView]:
    """The links to a feed that have not expired."""
    return SharedView.objects.filter(feed=feed, expires_at__gt=timezone.now()).select_related("maker").prefetch_related("queries")


def share_find(text: str) -> SharedView | None:
    """The valid link with this secret; null if there is none, it has expired, or its author may no
    longer see the feed."""
    try:
        secret = SIGNER.unsign(text)
    except BadSignature:
        return None
    share = SharedView.objects.select_related("feed", "maker").filter(digest__in=digests_of(secret)).first()
    return None if share is None or share_shows(share.pk) is None else share


def share_opened(session: Any, pk: int) -> SharedView | None:
    """The link, when this session has opened it and it shows something now."""
    if not is_opened(session, SHARED, pk) or share_shows(pk) is None:
        return None
    return SharedView.objects.filter(pk=pk).first()


def share_shows(pk: int) -> Permission | None:
    """The current content of the link; null: nothing any more."""
    share = SharedView.objects.select_related("feed", "maker").filter(pk=pk, expires_at__gt=timezone.now(), maker__is_active=True).first()
    feed = None if share is None else feed_get(user=share.maker, name=share.feed.name)
    if share is None or feed is None or feed.pk != share.feed_id:
        return None
    chosen = set(share.queries.values_list("pk", flat=True))
    return Permission(feed.pk, feed.name, chosen & queries_visible(user=share.maker, feed=feed))


def share_page(share: SharedView, permission: Permission) -> dict[str, Any]:
    """The data of the page behind the link: the feed, the queries and the regions that they use."""
    queries: list[Any] = list(query_list(user=share.maker).filter(pk__in=permission.queries))
    named = {region.pk for query in queries for region in query.regions.all()}
    regions = region_list(user=share.maker).filter(pk__in=named)
    return {
        "feed": {**feed_row(share.feed), "editable": False},
        "queries": [
            {
                "id": query.pk, "feed": query.feed_id, "name": query.name, "family": query.family, "specification": query.specification,
                "version": query.version, "left_at": query.left_at, "enabled": query.enabled, "severity": query.severity, "kinds": [],
                "editable": False,
                "regions": [{"id": region.pk, "name": region.name} for region in query.regions.all()],
            }
            for query in queries
        ],
        "regions": [{"id": one.pk, "name": one.name, "geometry": one.geometry, "bbox": one.bbox, "editable": False} for one in regions],
        "expires_at": share.expires_at.isoformat(),
    }  # fmt: skip
