"""Ingest in a separate process that may be killed, forked from one that has loaded everything:
a new Python would load Django and Arrow each time."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import django
import pyarrow as pa
from django.apps import apps
from django.conf import settings
from django.db import connections

if not apps.ready:
    django.setup()

from engine.failpoints import VARIABLE
from engine.model.events import DeadLetter, Reason, check_rows
from webapp.feeds.ingest import Delivery, Receipt, ingest
from webapp.feeds.models import Feed

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])
TIME_S = 300


def run_ingest(key: str, failpoints: str = "") -> tuple[int | None, Receipt | None]:
    """Sends two rows and a dead letter to the feed `yard` under a key. The process's exit code, and
    its receipt if it was not killed."""
    default = connections["default"].settings_dict
    database = {name: default[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    received, sent = PROCESSES.Pipe(duplex=False)
    place = (str(settings.EVENT_LOG_ROOT), settings.VEDETTE_LOG_STORE)
    process = PROCESSES.Process(target=_ingest, args=(database, place, key, failpoints, sent))
    process.start()
    sent.close()
    process.join(TIME_S)
    try:
        return process.exitcode, received.recv()
    except EOFError:
        return process.exitcode, None


def _ingest(database: dict[str, Any], place: tuple[str, str], key: str, failpoints: str, sent: Connection) -> None:
    connections["default"].settings_dict.update(database)
    settings.EVENT_LOG_ROOT, settings.VEDETTE_LOG_STORE = Path(place[0]), place[1]
    os.environ[VARIABLE] = failpoints
    feed = Feed.objects.get(name="yard")
    rows = check_rows(pa.table({"entity": ["a", "b"], "t": [1, 2]}), feed.engine_feed())[0]
    sent.send(ingest(feed, Delivery(rows, [DeadLetter(Reason.MALFORMED, "bad", None, 3)], "test", key, "digest")))
