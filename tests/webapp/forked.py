"""Runs a function in a separate process, which failpoints may kill. The process is forked from one
that has loaded everything: a new Python would load Django and Arrow each time."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import django
from django.apps import apps
from django.conf import settings
from django.db import connections

if not apps.ready:
    django.setup()

from engine.failpoints import VARIABLE
from webapp.feeds import folders, ingest  # noqa: F401  Loaded once, for all processes.

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])
TIME_S = 300


class Ended(NamedTuple):
    """How a process ended; `result`: what the function returned, null if it did not return."""

    exit_code: int | None
    result: Any


class _Place(NamedTuple):
    """The database and the log of the test."""

    database: Mapping[str, Any]
    folder: str
    store: str

    @classmethod
    def here(cls) -> _Place:
        default = connections["default"].settings_dict
        database = {name: default[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
        return cls(database, str(settings.EVENT_LOG_ROOT), settings.VEDETTE_LOG_STORE)

    def use(self) -> None:
        connections["default"].settings_dict.update(self.database)
        settings.EVENT_LOG_ROOT, settings.VEDETTE_LOG_STORE = Path(self.folder), self.store


def forked(function: Callable[..., Any], *arguments: Any, failpoints: str = "") -> Ended:
    """Calls a function of a module, on the test's database and log."""
    received, sent = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_call, args=(_Place.here(), failpoints, sent, function, arguments))
    process.start()
    sent.close()
    result = None
    # At its end without a result the pipe is at its end, too.
    with suppress(EOFError):
        assert received.poll(TIME_S), "the process does not end"
        result = received.recv()
    process.join()
    return Ended(process.exitcode, result)


def _call(place: _Place, failpoints: str, sent: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    place.use()
    os.environ[VARIABLE] = failpoints
    sent.send(function(*arguments))
