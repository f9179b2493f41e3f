"""The world of a crash test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.crash.world import World
    from webapp.platform.postgres import EmbeddedPostgres


@pytest.fixture
def own_server(transactional_db: None, tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A separate PostgreSQL for the test, migrated, in place of the run's: it may be killed."""
    from django.core.management import call_command
    from django.db import connection

    from tests.crash.outage import pointed_at
    from webapp.platform.postgres import EmbeddedPostgres, fresh_database, with_database

    server = EmbeddedPostgres(tmp_path / "postgres")
    server.start()
    try:
        with pointed_at(with_database(server.url, "crash"), fresh_database(server.owner_url, "crash")):
            call_command("migrate", verbosity=0)
            yield server
            connection.close()
    finally:
        server.stop()


@pytest.fixture
def world(transactional_db: None, tmp_path: Path, settings: Any) -> Iterator[World]:
    """A feed, two queries and two made of their answers, no process yet; whatever was
    started is ended afterwards."""
    from tests.crash.world import World

    before = os.environ["VEDETTE_VAR"]
    for name in ("VAR", "VEDETTE_LOG_STORE", "EVENT_LOG_ROOT", "CHECKPOINT_ROOT"):
        setattr(settings, name, getattr(settings, name))
    made = World(tmp_path, deriving=True)
    try:
        yield made
    finally:
        made.close()
        os.environ["VEDETTE_VAR"] = before
