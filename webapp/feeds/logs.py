"""Where a feed's event log is: the one place that knows whether logs lie in a folder of this machine or on shared storage."""

from __future__ import annotations

import os
import shutil
import threading
from functools import cache
from pathlib import Path

from django.conf import settings

from engine.sources.eventlog import EventLog
from engine.sources.mirror import copy_whole, mirror
from engine.sources.shared_log import SharedLog, moved_in
from engine.sources.store import files_of
from webapp.feeds.log_order import NOTICES, DatabaseOrder
from webapp.feeds.models import Feed

_logs_lock = threading.Lock()


def is_shared() -> bool:
    """Whether logs lie on shared storage."""
    return bool(settings.VEDETTE_LOG_STORE)


def event_log(feed_name: str) -> EventLog:
    """This process's own log object for a feed: appends through it share segments."""
    with _logs_lock:
        return _event_log(settings.VEDETTE_LOG_STORE, settings.EVENT_LOG_ROOT, feed_name, os.getpid())


@cache
def _event_log(store: str, root: Path, feed_name: str, pid: int) -> EventLog:
    return SharedLog(DatabaseOrder(feed_name), files_of(store), feed_name) if store else EventLog(root, feed_name)


def listen() -> None:
    """From now on this process hears when a log on shared storage grows."""
    if is_shared():
        NOTICES.start()


def folder_of_logs(feed: Feed) -> str:
    """A folder with the feed's newest rows, for a process that has neither network nor database."""
    if not is_shared():
        return str(settings.EVENT_LOG_ROOT)
    root = _mirrors()
    log = event_log(feed.name)
    assert isinstance(log, SharedLog)
    mirror(log, EventLog(root, feed.name))
    return str(root)


def log_forget(feed_name: str) -> None:
    """Removes the files of a feed that is no more."""
    log = event_log(feed_name)
    if isinstance(log, SharedLog):
        log.remove_all()
        shutil.rmtree(_mirrors() / feed_name, ignore_errors=True)


def _mirrors() -> Path:
    return Path(settings.VAR) / "log-mirrors"


def logs_copy(target: Path) -> None:
    """All logs of a store as folders in `target`, as the database knows them in this transaction. Raises LogDamaged, OSError."""
    for name in Feed.objects.values_list("name", flat=True):
        log = event_log(name)
        assert isinstance(log, SharedLog)
        copy_whole(log, target / name)


def log_move(feed: Feed) -> int:
    """Copies the log of a feed from its folder into the store; how many rows. Nothing may run meanwhile. Raises ValueError, LogDamaged, OSError."""
    return moved_in(DatabaseOrder(feed.name), files_of(settings.VEDETTE_LOG_STORE), EventLog(settings.EVENT_LOG_ROOT, feed.name))
