"""The connectors of all feeds, in and out, each in a thread: started, watched, restarted with
growing pauses, and ended when changed or disabled."""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.utils import timezone

from engine.failpoints import failpoint
from engine.model.faults import Refused
from engine.model.messages import Message, all_of, message_of, untranslated
from engine.sinks.live import SinkKind
from engine.sources.files import CheckedChunk
from engine.sources.live import LINGER_S, Batch, Source, SourceKind, SourceUnavailable
from webapp.config.connections import give_back
from webapp.connectors.answers import answers_of, beginning
from webapp.connectors.facts import EntityFacts
from webapp.connectors.network import GuardedNetwork
from webapp.connectors.outages import REPORTED_AFTER, connector_keeps_failing, connector_recovers
from webapp.connectors.rows import reading_for, rows_of
from webapp.connectors.services import kind_of, settings_of
from webapp.feeds.damage import damage_isolated
from webapp.feeds.ingest import Delivery, ingest, settle
from webapp.feeds.models import Connector, ConnectorState
from webapp.feeds.offsets import connector_begins, connector_sent, reached
from webapp.feeds.rates import BUCKETS, row_limits_of

log = logging.getLogger(__name__)

LOOK_S, REPORT_S, AWAY_S = 1.0, 2.0, 1.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
WELL_AFTER_S = 30.0
"""A connector that ran for this long, or stored something, starts over with the shortest pause."""
RATE_S = 10.0

Signature = tuple[Any, ...]
"""The settings that a run was started with: other settings need another run."""


class Connectors:
    """All enabled connectors."""

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}

    def serve(self, end: threading.Event) -> None:
        """Runs until `end`. While the database is unavailable, running connectors continue."""
        try:
            while not end.is_set():
                try:
                    self.round()
                except (DatabaseError, InterfaceError) as error:
                    log.warning("connectors: trying again: %s", error)
                close_old_connections()
                end.wait(LOOK_S)
        finally:
            self.stop()

    def round(self) -> None:
        """Ends connectors that are no longer wanted, starts new ones, and reports that the process
        runs."""
        enabled = {connector.pk: connector for connector in Connector.objects.filter(enabled=True, feed__damage=None).select_related("feed")}
        for pk, run in list(self._runs.items()):
            if pk not in enabled or run.signature != signature_of(enabled[pk]):
                run.over.set()
            if not run.is_alive():
                del self._runs[pk]
        for pk, connector in enabled.items():
            if pk not in self._runs:
                self._runs[pk] = Run(connector)
                self._runs[pk].start()
        # Not by the runs: one may wait for its broker for longer than a process may be silent.
        Connector.objects.filter(pk__in=self._runs).update(seen_at=timezone.now())

    def stop(self) -> None:
        """Ends all; each finishes its present batch."""
        for run in self._runs.values():
            run.over.set()
        for run in self._runs.values():
            run.join(10.0)
        self._runs.clear()


def signature_of(connector: Connector) -> Signature:
    """Of the connector, and of the feed for which it makes rows."""
    feed = connector.feed
    return (connector.revision, feed.name, feed.team_id, feed.owner_id, feed.ahead, feed.lateness, tuple(sorted(feed.columns.items())))


class Run(threading.Thread):
    """Runs one connector until `over`."""

    def __init__(self, connector: Connector) -> None:
        super().__init__(daemon=True, name=f"connector-{connector.pk}")
        self.connector, self.signature = connector, signature_of(connector)
        self.over = threading.Event()
        self._failures = 0
        self._began_at, self._failed_at = 0.0, timezone.now()
        self._is_known_to_fail = connector.failing_since is not None
        self._reported_at = 0.0
        self._came: deque[tuple[float, int]] = deque()
        self._last_message: Any = None
        self._deliveries = 0
        self._identity = uuid.uuid4().hex

    def run(self) -> None:
        try:
            while not self.over.is_set():
                self._began_at = time.monotonic()
                error = self._attempt()
                if error is None:
                    break
                why = error.replace("\x00", " ")[:1_000]
                self._fail(why)
                self._pause(why)
        finally:
            self._report(ConnectorState.STOPPED)
            connection.close()

    def _fail(self, why: str) -> None:
        """Counts the failure; many in a row are recorded as an event, once."""
        self._failures += 1
        if self._failures == 1:
            self._failed_at = timezone.now()
        if self._failures >= REPORTED_AFTER and not self._is_known_to_fail:
            self._is_known_to_fail = self._record(lambda: connector_keeps_failing(self.connector, since=self._failed_at, why=why))

    def _run_well(self) -> None:
        """It stored something, or has run for a while: failures are counted from 0 again."""
        self._failures = 0
        if self._is_known_to_fail:
            self._is_known_to_fail = not self._record(lambda: connector_recovers(self.connector))

    def _attempt(self) -> Message | None:
        """Runs until `over` (null), or until an error."""
        try:
            self._report(ConnectorState.STARTING)
            ended_well = False
            with damage_isolated(self.connector.feed):
                kind = kind_of(self.connector.kind)
                self._send(kind) if isinstance(kind, SinkKind) else self._follow(kind)
                ended_well = True
            return None if ended_well else Message("The feed's log is damaged.")
        except Refused as refused:
            return all_of([fault.message for fault in refused.faults])
        except (SourceUnavailable, OSError) as error:
            return message_of(error) if str(error) else untranslated(type(error).__name__)
        except (DatabaseError, InterfaceError) as error:
            close_old_connections()
            return Message("The database is away: {why}", why=error)
        except Exception as error:
            # A third-party source may raise anything; only this connector is affected.
            log.exception("connector %s", self.connector.pk)
            return untranslated(f"{type(error).__name__}: {error}")

    def _offset(self) -> Any:
        return Connector.objects.filter(pk=self.connector.pk, revision=self.connector.revision).values_list("offset", flat=True).first()

    def _send(self, kind: SinkKind) -> None:
        """Sends answers until `over`. Answers written but not recorded when the
        process dies are written again."""
        connector = self.connector
        if (offset := self._offset()) is None:
            offset = beginning(connector)
            connector_begins(connector, offset)
        with closing(kind.open(settings_of(connector), GuardedNetwork(), f"{connector.feed.name}-{connector.pk}")) as sink:
            for part in answers_of(connector, offset):
                if part.records:
                    sink.write(part.records)
                    failpoint("connector.after_write")
                    self._run_well()
                else:
                    sink.check()
                if part.offset != offset:
                    connector_sent(connector, part.offset, len(part.records))
                    offset = part.offset
                elif self.over.wait(LINGER_S):
                    return
                self._count(len(part.records))
                if self.over.is_set():
                    return
                self._report_now_and_then()
                give_back()

    def _follow(self, kind: SourceKind) -> None:
        connector, feed = self.connector, self.connector.feed
        settle(feed)
        offset = self._offset()
        engine_feed = feed.engine_feed()
        reading = reading_for(connector.reading, kind, engine_feed)
        facts = EntityFacts(feed, kind, reading)
        with closing(kind.open(settings_of(connector), GuardedNetwork(), f"{connector.feed.name}-{connector.pk}")) as source, closing(facts):
            held = Batch()
            for batch in source.batches(offset):
                facts.add(batch.facts)
                held = replace(batch, messages=held.messages + batch.messages, merged=held.merged + batch.merged)
                self._count(batch.messages)
                if batch.records:
                    self._deliver(source, held, rows_of(batch.records, reading, engine_feed))
                    held = Batch()
                elif batch.messages:
                    source.acknowledge(batch.offset)
                if offset is None and batch.offset is not None:
                    offset = batch.offset
                    connector_begins(connector, offset)
                if self.over.is_set():
                    return
                if self._report_now_and_then():
                    facts.store()
                # There may be more connectors than PostgreSQL has connections.
                give_back()
        raise SourceUnavailable(Message("The stream ended."))

    def _deliver(self, source: Source, batch: Batch, piece: CheckedChunk) -> None:
        """Stores the rows, without a time limit: the other side waits meanwhile. Stored messages
        are acknowledged."""
        self._deliveries += 1
        key = f"connector-{self.connector.pk}-{self._identity}-{self._deliveries}"
        delivery = Delivery(piece.rows, piece.dead(), f"connector:{self.connector.name}", key, self._identity, reached(self.connector, batch))
        self._wait_for_quota(delivery.received)
        while True:
            try:
                failpoint("connector.before_delivery")
                ingest(self.connector.feed, delivery)
                break
            except (DatabaseError, InterfaceError, OSError) as error:
                log.warning("connector %s: trying again: %s", self.connector.pk, error)
                close_old_connections()
                if self.over.wait(AWAY_S):
                    return
        failpoint("connector.after_delivery")
        source.acknowledge(batch.offset)
        self._run_well()

    def _wait_for_quota(self, rows: int) -> None:
        for limit in row_limits_of(self.connector.feed.owner, self.connector.feed):
            while (wait := BUCKETS.wait(limit)) and not self.over.wait(min(wait, LOOK_S)):
                self._report_now_and_then()
            BUCKETS.take(limit, rows)

    def _count(self, messages: int) -> None:
        now = time.monotonic()
        self._came.append((now, messages))
        while now - self._came[0][0] > RATE_S:
            self._came.popleft()
        if messages:
            self._last_message = timezone.now()

    def _report_now_and_then(self) -> bool:
        """Reports the status every REPORT_S; whether it did."""
        is_due = time.monotonic() - self._reported_at > REPORT_S
        if is_due:
            if time.monotonic() - self._began_at > WELL_AFTER_S:
                self._run_well()
            self._report(ConnectorState.RUNNING)
        return is_due

    def _report(self, state: ConnectorState, **more: Any) -> None:
        """Writes the status into the database; a failure is ignored."""
        self._reported_at = time.monotonic()
        rate = sum(count for _, count in self._came) / RATE_S if state is ConnectorState.RUNNING else 0.0
        values = {"state": state, "rate": round(rate, 1), "failures": self._failures, **more}
        if self._last_message is not None:
            values["last_message_at"] = self._last_message
        self._write(**values)

    def _write(self, **values: Any) -> None:
        self._record(lambda: Connector.objects.filter(pk=self.connector.pk, revision=self.connector.revision).update(**values))

    def _record(self, write: Callable[[], Any]) -> bool:
        """Writes into the database; whether that succeeded."""
        try:
            write()
        except (DatabaseError, InterfaceError) as error:
            log.warning("connector %s: %s", self.connector.pk, error)
            close_old_connections()
            return False
        finally:
            give_back()
        return True

    def _pause(self, why: str) -> None:
        """Waits twice as long after each failure, with jitter, so that not all
        connectors return at once."""
        seconds = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._failures - 1, 10)) * random.uniform(0.8, 1.2)  # noqa: S311  no secret
        now = timezone.now()
        self._report(
            ConnectorState.BACKOFF,
            last_error=why,
            last_error_at=now,
            next_try_at=now + timedelta(seconds=seconds),
        )
        self.over.wait(seconds)
