"""A feed with two queries, and the publisher's notification of permissions. Imported
before settings are fixtures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest


@pytest.fixture
async def no_connection_left() -> AsyncIterator[None]:
    """The thread in which consumers read closes its connection, so that the
    test database can be dropped."""
    from channels.db import database_sync_to_async
    from django.db import connections

    yield
    await database_sync_to_async(connections.close_all)()


@pytest.fixture
async def passing_on(world: SimpleNamespace) -> AsyncIterator[None]:
    """Notifies sockets of changed permissions, as the publisher does."""
    from channels.layers import get_channel_layer
    from django.db import connections

    from webapp.live import access

    listening = psycopg2.connect(**{**connections["default"].get_connection_params(), "cursor_factory": None})
    listening.autocommit = True
    listening.cursor().execute(f"LISTEN {access.CHANNEL}")

    async def pass_on() -> None:
        while True:
            listening.poll()
            if listening.notifies:
                listening.notifies.clear()
                await get_channel_layer().group_send(access.GROUP, {"type": "access.changed"})
            await asyncio.sleep(0.05)

    task = asyncio.create_task(pass_on())
    yield
    task.cancel()
    listening.close()


@pytest.fixture
def world(people: SimpleNamespace, feed: Any, query: Any) -> SimpleNamespace:
    """A feed with two queries: `query` of the team, and the owner's `private`."""
    from webapp.detections.partitions import partitions_ensure, span_of
    from webapp.queries.services import query_register

    private = query_register(owner=people.owner, feed=feed, name="private", specification=query.specification)
    partitions_ensure([span_of(0)])
    return SimpleNamespace(feed=feed, query=query, private=private, people=people)
