"""The end of a feed, with everything that is stored about it."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from engine.model.faults import Fault
from engine.model.messages import Message
from webapp.accounts.models import User
from webapp.config.faults import InUse
from webapp.detections.services import detections_forget, detections_held
from webapp.feeds.logs import log_forget
from webapp.feeds.models import Feed
from webapp.feeds.recent import log_of
from webapp.queries.selectors import names_in_the_way


@transaction.atomic
def feed_delete(*, feed: Feed, user: User) -> None:
    """Removes a feed with everything stored about it, its log too. Raises Refused while queries that `user` may change are registered on it.

    Those of others end with the feed: who may not remove them could not remove the feed, and must not learn their names.
    """
    names = names_in_the_way(feed.queries, user=user)
    if names:
        raise InUse([Fault("", Message("Queries still watch this feed: {names}.", names=", ".join(names)))])
    detections_forget(feed_id=feed.pk)
    feed.queries.all().delete()
    feed.delete()
    folders = [Path(root) / feed.name for root in (settings.EVENT_LOG_ROOT, settings.CHECKPOINT_ROOT)]
    # A feed made later under the same name begins with an empty log.
    for folder in folders:
        transaction.on_commit(partial(shutil.rmtree, folder, ignore_errors=True))
    transaction.on_commit(partial(log_forget, feed.name))


def feed_holdings(*, feed: Feed, user: User) -> dict[str, Any]:
    """What would go with the feed: rows in its log, regions, answers, connectors; and the queries that stand in the way, by name."""
    log = log_of(feed)
    return {
        "rows": log.end[0] - log.start,
        "regions": feed.regions.count(),
        "queries": feed.queries.filter(deleted_at=None).count(),
        "in_the_way": names_in_the_way(feed.queries, user=user),
        "answers": detections_held(feed_id=feed.pk),
        "connectors": feed.connectors.count(),
    }
