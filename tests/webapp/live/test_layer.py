"""The Redis channel layer: one message for all sockets of a process, a bound for each, and recovery
after an outage of Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis

from webapp.live.layer import SharedMessagesLayer
from webapp.platform.redis import EmbeddedRedis

pytestmark = pytest.mark.services
MESSAGE = {"type": "feed.status", "feed": "yard", "rate": 1.5}


@pytest.fixture
async def layer(redis_url: str) -> AsyncIterator[SharedMessagesLayer]:
    made = SharedMessagesLayer(hosts=[redis_url], prefix="layer-test", capacity=3)
    yield made
    await made.flush()


async def joined(layer: Any, group: str) -> str:
    name: str = await layer.new_channel()
    await layer.group_add(group, name)
    return name


async def heard(layer: Any, name: str) -> dict[str, Any]:
    message: dict[str, Any] = await asyncio.wait_for(layer.receive(name), 10)
    return message


async def test_sockets_of_a_process_share_the_decoded_message(layer: Any) -> None:
    one, two = await joined(layer, "yard"), await joined(layer, "yard")
    await layer.group_send("yard", MESSAGE)
    first, second = await heard(layer, one), await heard(layer, two)
    assert first == MESSAGE and first is second


async def test_a_socket_that_left_its_group_gets_no_messages(layer: Any) -> None:
    stays, leaves = await joined(layer, "yard"), await joined(layer, "yard")
    await layer.group_discard("yard", leaves)
    await layer.group_send("yard", MESSAGE)
    assert await heard(layer, stays) == MESSAGE
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(layer.receive(leaves), 0.3)


async def test_a_full_inbox_drops_messages_of_its_socket_only(layer: Any) -> None:
    slow, quick = await joined(layer, "yard"), await joined(layer, "yard")
    for number in range(5):
        await layer.group_send("yard", {"type": "n", "n": number})
        assert (await heard(layer, quick))["n"] == number
    assert [(await heard(layer, slow))["n"] for _ in range(3)] == [0, 1, 2]
    await layer.group_send("yard", {"type": "n", "n": 5})
    assert (await heard(layer, slow))["n"] == 5


@pytest.fixture
async def own_redis(tmp_path: Path) -> AsyncIterator[EmbeddedRedis]:
    server = EmbeddedRedis(tmp_path)
    await asyncio.to_thread(server.start)
    yield server
    await asyncio.to_thread(server.stop)


async def test_sockets_get_messages_again_after_an_outage_of_redis(own_redis: EmbeddedRedis) -> None:
    layer: Any = SharedMessagesLayer(hosts=[own_redis.url], prefix="layer-test")
    name = await joined(layer, "yard")
    await asyncio.to_thread(own_redis.stop)
    with pytest.raises((redis.RedisError, OSError)):
        await layer.group_send("yard", MESSAGE)
    await asyncio.to_thread(own_redis.start)
    async with asyncio.timeout(30):
        hearing = asyncio.create_task(layer.receive(name))
        while not hearing.done():
            await layer.group_send("yard", MESSAGE)
            await asyncio.sleep(0.2)
    assert hearing.result() == MESSAGE
    await layer.flush()
