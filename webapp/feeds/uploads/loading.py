"""Loads uploaded files into the log: reads them in order of time into a spool, then sends the rows,
as history immediately or in real time.

Each row arrives once, even if this process dies: the rows of one delivery, and how their times are
moved, are recorded before it is sent, under a key made of their positions. Reading starts again
after a restart; only dead letters have been sent by then, each under its own key.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import DatabaseError, InterfaceError, close_old_connections, transaction

from engine.external_sort import ExternalSort
from engine.failpoints import failpoint
from engine.model.columns import TIME
from engine.model.events import DeadLetter, row_schema
from engine.model.faults import Refused, refuse
from engine.model.feed import Crs
from engine.model.messages import Message
from engine.sources.reading import reading_of
from webapp.feeds.damage import damage_isolated
from webapp.feeds.ingest import Delivery, ingest
from webapp.feeds.models import Feed, Upload, UploadState
from webapp.feeds.playback import Move
from webapp.feeds.recent import log_of
from webapp.feeds.uploads.existing import completed, not_before, oldest_useful
from webapp.feeds.uploads.extent import Extent
from webapp.feeds.uploads.inspection import pieces
from webapp.feeds.uploads.store import ACTIVE, file_of, folder_of, uploads_expire

log = logging.getLogger(__name__)

CHUNK_ROWS = 50_000
"""Rows of a history that are sent at once."""
PACED_ROWS = 5_000
SPOOL_ROWS = 32_768
SORT_BYTES, SORT_PIECE_ROWS = 16 << 20, 8_192
MOST_ROWS = 100_000_000
IDLE_S, AWAY_S, EXPIRE_EVERY_S = 0.5, 2.0, 600.0
MOST_HOURS = 24 * 3660
"""The greatest retention of a feed."""
SLACK_MS = 1_000

Steps = Iterator[float]
"""The work on one upload, in steps; each returns how many seconds the next may wait."""


class Loads:
    """All uploads that are being loaded, in turns."""

    def __init__(self) -> None:
        self._steps: dict[Any, Steps] = {}
        self._due: dict[Any, float] = {}
        self._expired = time.monotonic()

    def serve(self, end: threading.Event) -> None:
        """Works until `end`. Waits for an unavailable database or disk."""
        while not end.is_set():
            try:
                wait = self.round()
            except (DatabaseError, InterfaceError, OSError) as error:
                log.warning("uploads: trying again: %s", error)
                close_old_connections()
                wait = AWAY_S
            end.wait(wait)

    def round(self) -> float:
        """One step of each upload that is due; returns how long until the next is."""
        self._expire()
        active = list(Upload.objects.filter(state__in=ACTIVE, feed__damage=None).values_list("pk", flat=True))
        paused = set(Upload.objects.filter(state=UploadState.PAUSED).values_list("pk", flat=True))
        for gone in set(self._steps) - set(active) - paused:
            self._drop(gone)
        now = time.monotonic()
        for pk in active:
            if self._due.get(pk, 0.0) <= now:
                self._step(pk)
        waits = [self._due.get(pk, 0.0) - time.monotonic() for pk in active]
        return min(IDLE_S, max(0.0, min(waits, default=IDLE_S)))

    def _step(self, pk: Any) -> None:
        upload = Upload.objects.select_related("feed").filter(pk=pk).first()
        if upload is None or upload.feed is None:
            return
        steps = self._steps.setdefault(pk, Loading(upload).steps())
        try:
            with damage_isolated(upload.feed):
                self._due[pk] = time.monotonic() + next(steps, 0.0)
                return
        except Refused as refused:
            Upload.objects.filter(pk=pk).update(state=UploadState.FAILED, error=" ".join(fault.message for fault in refused.faults))
        except Upload.DoesNotExist:
            # Its feed was removed meanwhile.
            pass
        except BaseException:
            self._drop(pk)
            raise
        self._drop(pk)

    def _drop(self, pk: Any) -> None:
        steps = self._steps.pop(pk, None)
        self._due.pop(pk, None)
        if steps is not None:
            steps.close()  # type: ignore[attr-defined]

    def _expire(self) -> None:
        if time.monotonic() - self._expired > EXPIRE_EVERY_S:
            self._expired = time.monotonic()
            uploads_expire()


class Loading:
    """One upload. `upload` is as the database has it, except for `state`: others
    may change that at any time."""

    def __init__(self, upload: Upload) -> None:
        assert upload.feed is not None
        self.upload, self.feed = upload, upload.feed
        self.reading = reading_of(upload.reading)
        self.spool = folder_of(upload) / "rows.arrow"

    def steps(self) -> Steps:
        """All remaining steps. Raises Refused when the file cannot be read."""
        if self.upload.rows is None:
            yield from self._read()
        elif not self.spool.exists():
            # Backups contain no uploaded files.
            raise refuse("/file", Message("The file is no longer on this server: upload it again. The rows already loaded are in the feed."))
        yield from self._send()
        self._note(state=UploadState.DONE)
        shutil.rmtree(folder_of(self.upload), ignore_errors=True)

    def _note(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self.upload, name, value)
        only = {"state__in": ACTIVE} if "state" in changes else {}
        if not Upload.objects.filter(pk=self.upload.pk, **only).update(**changes) and not only:
            raise Upload.DoesNotExist

    # -- reading -----------------------------------------------------------------------------------

    def _read(self) -> Steps:
        keys = [TIME] if self.upload.ordered else []
        unfinished = self.spool.with_suffix(".part")
        schema = row_schema(self.feed.engine_feed())
        for left in folder_of(self.upload).glob("vedette-sort-*"):
            shutil.rmtree(left, ignore_errors=True)
        read = rows = dead = late = 0
        # Late rows would stay in the log and never be evaluated. A new feed has no clock yet.
        first = None if self.upload.as_now else oldest_useful(self.feed)
        span: list[int] = []
        extent = Extent()
        with ExternalSort(keys, run_bytes=SORT_BYTES, piece_rows=SORT_PIECE_ROWS, folder=folder_of(self.upload)) as sort:
            for number, piece in enumerate(pieces(file_of(self.upload), self.reading)):
                useful = not_before(piece.rows, first)
                read, rows, late = read + piece.read, rows + useful.num_rows, late + piece.rows.num_rows - useful.num_rows
                if rows > MOST_ROWS:
                    raise refuse("/file", Message("The file has more than {most:,} rows: load it in parts.", most=MOST_ROWS))
                if piece.dead_count:
                    dead += piece.dead_count
                    self._store_dead_letters(number, piece.dead())
                if useful.num_rows:
                    sort.add(completed(useful, self.feed))
                    extent.add(useful)
                    span += pc.min_max(useful.column(TIME)).as_py().values()
                    span = [min(span), max(span)]
                self._note(read=read, dead=dead, late=late)
                yield 0.0
            if not rows and late:
                raise refuse(
                    "/file",
                    Message(
                        "All rows of the file are older than the feed's newest rows: its time only moves forward. Create a new feed from the file."
                    ),
                )
            if not rows:
                raise refuse(
                    "/file", Message("No row of the file could be read: look at the dead letters of the feed, and choose other columns or formats.")
                )
            yield from self._write(unfinished, schema, sort)
        unfinished.replace(self.spool)
        self._keep_all(span)
        self._open_map_at(extent)
        failpoint("upload.after_reading")
        self._note(rows=rows, moved_since=span[0], moved_to=span[0])
        self._note(state=UploadState.SENDING)

    def _write(self, path: Path, schema: pa.Schema, sort: ExternalSort) -> Steps:
        options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
            for table in sort.sorted():
                writer.write_table(table, max_chunksize=SPOOL_ROWS)
                yield 0.0

    def _store_dead_letters(self, number: int, dead: list[DeadLetter]) -> None:
        nothing = row_schema(self.feed.engine_feed()).empty_table()
        ingest(self.feed, Delivery(nothing, dead, self._source, f"upload-{self.upload.pk}-dead-{self._attempt}-{number}", self.upload.pk.hex))

    @property
    def _attempt(self) -> str:
        """The same for a file that is read in the same way again."""
        return hashlib.sha256(json.dumps(self.upload.reading, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def _source(self) -> str:
        return f"upload:{self.upload.name}"

    def _open_map_at(self, extent: Extent) -> None:
        """A view that the user chose is kept."""
        with transaction.atomic():
            feed = Feed.objects.select_for_update(of=("self",)).get(pk=self.feed.pk)
            if not feed.view and (view := extent.view(Crs(feed.crs))) is not None:
                feed.view = view
                feed.save(update_fields=["view"])

    def _keep_all(self, span: list[int]) -> None:
        """Retention counts back from the newest row: no row of the file may be dropped
        before users have seen it."""
        if self.feed.time != "ms":
            return
        if not self.upload.as_now and (oldest := log_of(self.feed).first_t) is not None:
            span = [min(oldest, span[0]), span[1]]
        hours = min(MOST_HOURS, timedelta(milliseconds=span[1] - span[0]) // timedelta(hours=1) + 1)
        Feed.objects.filter(pk=self.feed.pk, retention_hours__lt=hours).update(retention_hours=hours)

    # -- sending -----------------------------------------------------------------------------------

    def _send(self) -> Steps:
        # Read and not mapped: pages of a mapped file stay with the process until it ends.
        with pa.OSFile(str(self.spool)) as raw:
            spool = _Spool(pa.ipc.open_file(raw))
            has_restarted = True
            while self.upload.position < (self.upload.rows or 0):
                if self.upload.sending <= self.upload.position:
                    rest = spool.rows(self.upload.position, PACED_ROWS if self.upload.as_now else CHUNK_ROWS)
                    count, wait = self._due(rest, has_restarted)
                    has_restarted = False
                    if wait > 0:
                        yield wait
                        continue
                    self._note(sending=self.upload.position + count, moved_since=self.upload.moved_since, moved_to=self.upload.moved_to)
                self._deliver(spool.rows(self.upload.position, self.upload.sending - self.upload.position))
                yield 0.0

    def _deliver(self, rows: pa.Table) -> None:
        upload = self.upload
        key = f"upload-{upload.pk}-{upload.position}-{upload.sending}"
        failpoint("upload.before_delivery")
        receipt = ingest(self.feed, Delivery(self._move.moved(rows), (), self._source, key, upload.pk.hex))
        failpoint("upload.after_delivery")
        self._note(position=upload.sending, late=upload.late + receipt.late, dead=upload.dead + receipt.dead)

    @property
    def _move(self) -> Move:
        upload = self.upload
        return Move(upload.moved_since, upload.moved_to, upload.rate) if upload.as_now else Move()

    def _due(self, rest: pa.Table, has_restarted: bool) -> tuple[int, float]:
        """How many of the next rows to send now, and how long to wait if there are none yet."""
        if not self.upload.as_now:
            return rest.num_rows, 0.0
        now = time.time_ns() // 1_000_000
        first = rest.column(TIME)[0].as_py()
        behind = now - self._move.moved(rest.slice(0, 1)).column(TIME)[0].as_py()
        # The wall clock advanced while nothing was sent: the next row gets the present
        # time, so that it is not late.
        if (has_restarted and behind > 0) or behind > max(SLACK_MS, self.feed.lateness // 2):
            self.upload.moved_since, self.upload.moved_to = first, now
        times = self._move.moved(rest).column(TIME).to_numpy()
        count = int(np.searchsorted(times, now, side="right"))
        return (count, 0.0) if count else (0, min(IDLE_S, (int(times[0]) - now) / 1000 + 0.001))


class _Spool:
    """Rows of a file by their places."""

    def __init__(self, file: Any) -> None:
        self._file = file
        sizes = [file.get_batch(number).num_rows for number in range(file.num_record_batches)]
        self._starts = [0, *np.cumsum(sizes).tolist()]

    def rows(self, first: int, count: int) -> pa.Table:
        """At most `count` rows from the place `first` on."""
        numbers = range(first, min(first + count, self._starts[-1]))
        parts = []
        for number, (begin, end) in enumerate(pairwise(self._starts)):
            low, high = max(begin, numbers.start), min(end, numbers.stop)
            if low < high:
                parts.append(pa.Table.from_batches([self._file.get_batch(number).slice(low - begin, high - low)]))
        return pa.concat_tables(parts)
