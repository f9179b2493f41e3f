"""What tests of feeds share."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.db import connections


@pytest.fixture
def pool_connections() -> Iterator[None]:
    """The ingest pool's lasting connections would keep the test database from being
    emptied: they are closed."""
    yield
    from webapp.feeds import ingest_views

    def close() -> None:
        connections.close_all()
        time.sleep(0.05)

    for done in [ingest_views._pool.submit(close) for _ in range(ingest_views.WORKERS)]:
        done.result()
