"""The removal of a feed, with everything stored about it."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TypedDict

from django.conf import settings
from django.db import transaction

from engine.model.faults import Fault
from engine.model.messages import Message
from webapp.accounts.models import User
from webapp.config.faults import InUse
from webapp.detections.services import detections_forget, detections_held, outbox_append
from webapp.feeds.logs import log_forget
from webapp.feeds.models import Feed, IngestCounter, LogHead
from webapp.feeds.recent import log_of
from webapp.jobs.models import FeedHead
from webapp.queries.selectors import blocking_names

ALERTS_AT_ONCE = 1_000


def feed_delete(*, feed: Feed, user: User) -> None:
    """Removes a feed with everything stored about it, its log too. Raises Refused while queries
    that `user` may change are registered on it.

    Other users' queries end with the feed: otherwise their owners could block the removal, and the
    error would reveal their names.
    """
    _check_unwatched(feed, user)
    _thin_out(feed)
    with transaction.atomic():
        _lock(feed)
        # Again: a query may have been registered meanwhile.
        _check_unwatched(feed, user)
        detections_forget(feed_id=feed.pk)
        feed.queries.all().delete()
        feed.delete()
        folders = [Path(root) / feed.name for root in (settings.EVENT_LOG_ROOT, settings.CHECKPOINT_ROOT)]
        # A feed made later under the same name begins with an empty log.
        for folder in folders:
            transaction.on_commit(partial(shutil.rmtree, folder, ignore_errors=True))
        transaction.on_commit(partial(log_forget, feed.name))


def _check_unwatched(feed: Feed, user: User) -> None:
    names = blocking_names(feed.queries, user=user)
    if names:
        raise InUse([Fault("", Message("Queries still watch this feed: {names}.", names=", ".join(names)))])


def _thin_out(feed: Feed) -> None:
    """Large tables come first: while the head row is locked the feed's batch waits, and with
    it the job's other feeds."""
    detections_forget(feed_id=feed.pk)
    while alerts := list(feed.alerts.values_list("pk", flat=True)[:ALERTS_AT_ONCE]):
        with transaction.atomic():
            # In turn with batches, which change alerts under this lock.
            outbox_append(feed_id=feed.pk)
            feed.alerts.filter(pk__in=alerts).delete()


def _lock(feed: Feed) -> None:
    """Locks the rows that writers of the feed lock, in the same order and before anything is
    deleted, which prevents deadlocks.

    A change of queries locks the feed, then its head; a batch of the job the head; a correction of
    the clock the head, then the counter (`config.room` has the order of all). The feed's key comes
    last: writers of rows that refer to it have committed by then, and there are no new ones.
    """
    list(Feed.objects.select_for_update(no_key=True).filter(pk=feed.pk).values_list("pk"))
    for model in (FeedHead, IngestCounter, LogHead):
        list(model.objects.select_for_update().filter(feed=feed).values_list("pk"))
    list(Feed.objects.select_for_update().filter(pk=feed.pk).values_list("pk"))


class FeedContents(TypedDict):
    """What would be removed with a feed; `in_the_way`: names of queries that prevent it."""

    rows: int
    regions: int
    queries: int
    in_the_way: list[str]
    answers: int
    connectors: int


def feed_holdings(*, feed: Feed, user: User) -> FeedContents:
    """What would be removed with the feed: rows in its log, regions, answers, connectors; and the
    names of queries that prevent the removal."""
    log = log_of(feed)
    return {
        "rows": log.end[0] - log.start,
        "regions": feed.regions.count(),
        "queries": feed.queries.filter(deleted_at=None).count(),
        "in_the_way": blocking_names(feed.queries, user=user),
        "answers": detections_held(feed_id=feed.pk),
        "connectors": feed.connectors.count(),
    }
