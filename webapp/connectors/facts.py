"""Facts about entities that streams contain in addition to events (a ship's name, its size), for
the registry."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from django.db import DatabaseError, InterfaceError, close_old_connections
from django.dispatch import Signal

from engine.sources.live import SourceKind
from engine.sources.reading import Reading
from webapp.feeds.models import Feed

log = logging.getLogger(__name__)

entities_described = Signal()
"""Sent with `feed` and `facts`: entity to its facts as texts, each time all known ones. The
registry is in a layer above the feeds, so it receives a signal."""


class EntityFacts:
    """The facts of one connector's entities that have not been stored yet;
    the newest ones of each entity."""

    def __init__(self, feed: Feed, kind: SourceKind, reading: Reading | None) -> None:
        self._feed = feed
        # Facts are of the entities that the kind names: under another reading
        # these are not the feed's.
        self._fits = kind.reading is not None and reading is not None and list(kind.reading["entity"]) == list(reading.entity)
        self._waiting: dict[str, Mapping[str, str]] = {}

    def add(self, facts: Mapping[str, Mapping[str, str]]) -> None:
        """Facts that came."""
        if self._fits:
            self._waiting.update(facts)

    def close(self) -> None:
        """Passes on the waiting facts, at the end of a stream."""
        self.store()

    def store(self) -> None:
        """Passes on the waiting facts. While the database is unavailable they keep waiting."""
        if not self._waiting:
            return
        try:
            entities_described.send(sender=EntityFacts, feed=self._feed, facts=self._waiting)
            self._waiting = {}
        except (DatabaseError, InterfaceError) as error:
            log.warning("facts of entities of %s wait: %s", self._feed.name, error)
            close_old_connections()
