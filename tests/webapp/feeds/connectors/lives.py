"""`manage.py connect` as a separate process, killed at critical points and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.db import connection

from webapp.feeds.logs import event_log
from webapp.platform.folders import ROOT
from webapp.platform.postgres import with_database

WAIT_S = 60.0
MOST_LIVES = 10


def wait_for(fact: Callable[[], Any], what: str | Callable[[], str]) -> Any:
    """The value of `fact` once it returns one."""
    end = time.monotonic() + WAIT_S
    while not (found := fact()):
        assert time.monotonic() < end, what if isinstance(what, str) else what()
        time.sleep(0.05)
    return found


def rows_of(feed: str) -> list[dict[str, Any]]:
    """All rows of the log."""
    return [row for table in event_log(feed).read() for row in table.to_pylist()]


def begun(folder: Path, killed_at: Sequence[str], **environment: str) -> subprocess.Popen[bytes]:
    """The connector process, in `folder`; it dies once at each of the failpoints."""
    (folder / "once").mkdir(exist_ok=True)
    given = {
        **os.environ,
        "DATABASE_URL": with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"]),
        "REDIS_URL": "",
        "VEDETTE_VAR": str(folder),
        "VEDETTE_WEBHOOK_NETWORKS": "127.0.0.0/8",
        "VEDETTE_FAILPOINTS": ",".join(killed_at),
        "VEDETTE_FAILPOINTS_ONCE": str(folder / "once"),
        **environment,
    }
    with (folder / "connect.log").open("ab") as log:
        return subprocess.Popen([sys.executable, "manage.py", "connect"], cwd=ROOT, env=given, stdout=log, stderr=log)


def run_through_kills(folder: Path, killed_at: Sequence[str], done: Callable[[int], Any], **environment: str) -> int:
    """Starts the process in `folder` until it survives and `done(lives)` is true. Returns the
    number of starts: each failpoint kills once."""
    said = folder / "connect.log"
    for lives in range(1, MOST_LIVES):
        child = begun(folder, killed_at, **environment)
        try:
            wait_for(lambda: child.poll() is not None or done(lives), said.read_text)  # noqa: B023  called in the same round
        finally:
            is_dead = child.poll() is not None
            if not is_dead:
                child.send_signal(signal.SIGTERM)
            code = child.wait(20)
        if not is_dead:
            assert code == 0, said.read_text()
            return lives
        assert code == -signal.SIGKILL, said.read_text()
    raise AssertionError(said.read_text())
