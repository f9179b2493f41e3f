"""Where a feed's event log and its states are: the only place that knows whether they are in local
folders or on shared storage."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from django.conf import settings

from engine.runtime.snapshots import SnapshotUnusable, parsed
from engine.sources.eventlog import EventLog
from engine.sources.mirror import copy_whole, mirror
from engine.sources.shared_log import SharedLog, moved_in
from engine.sources.store import Files, files_of
from webapp.feeds.log_order import NOTICES, DatabaseSegmentOrder
from webapp.feeds.models import Feed

STATE = "state"

_logs_lock = threading.Lock()


def is_shared() -> bool:
    """Whether logs are on shared storage."""
    return bool(settings.VEDETTE_LOG_STORE)


def event_log(feed_name: str) -> EventLog:
    """This process's own log object for a feed: appends through it share segments."""
    with _logs_lock:
        return _event_log(settings.VEDETTE_LOG_STORE, settings.EVENT_LOG_ROOT, feed_name, os.getpid())


@cache
def _event_log(store: str, root: Path, feed_name: str, pid: int) -> EventLog:
    return SharedLog(DatabaseSegmentOrder(feed_name), files_of(store), feed_name) if store else EventLog(root, feed_name)


def states_of(feed_name: str) -> Files:
    """Where the snapshots of a feed's states are: next to its log if that is on shared storage."""
    root = files_of(settings.VEDETTE_LOG_STORE if is_shared() else settings.CHECKPOINT_ROOT)
    return root.within(f"{feed_name}/{STATE}")


def states_forget(feed_name: str) -> None:
    """Removes all states of a feed: they are built again from the log."""
    states = states_of(feed_name)
    states.remove_all(states.names())


def states_copy(snapshots: Mapping[str, str], target: Path) -> bool:
    """The snapshots of these names, by feed, with their parts in `target`; false when one has been
    replaced meanwhile. Raises OSError."""
    for feed_name, name in snapshots.items():
        states, copied = states_of(feed_name), dict[str, bytes]()
        try:
            if name:
                copied[name] = states.read(name)
                copied.update((part, states.read(part)) for part in parsed(name, copied[name]).parts)
        except FileNotFoundError:
            return False
        except SnapshotUnusable:
            # A restored installation builds the state from the log, as a job does here.
            pass
        for file, content in copied.items():
            (target / feed_name).mkdir(parents=True, exist_ok=True)
            (target / feed_name / file).write_bytes(content)
    return True


def listen() -> None:
    """From now on this process is notified when a log on shared storage grows."""
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
    """Removes the files of a feed that was removed."""
    log = event_log(feed_name)
    if isinstance(log, SharedLog):
        log.remove_all()
        shutil.rmtree(_mirrors() / feed_name, ignore_errors=True)


def _mirrors() -> Path:
    return Path(settings.VAR) / "log-mirrors"


def logs_copy(target: Path) -> None:
    """All logs of a store as folders in `target`, as the database knows them in this transaction.
    Raises LogDamaged, OSError."""
    for name in Feed.objects.values_list("name", flat=True):
        log = event_log(name)
        assert isinstance(log, SharedLog)
        copy_whole(log, target / name)


def log_move(feed: Feed) -> int:
    """Copies the log of a feed and its states from their folders into the store; how many rows.
    No other process may run meanwhile.

    Raises ValueError, LogDamaged, OSError.
    """
    here, there = files_of(settings.CHECKPOINT_ROOT).within(f"{feed.name}/{STATE}"), states_of(feed.name)
    for name in here.names():
        there.put(name, here.read(name))
    return moved_in(DatabaseSegmentOrder(feed.name), files_of(settings.VEDETTE_LOG_STORE), EventLog(settings.EVENT_LOG_ROOT, feed.name))
