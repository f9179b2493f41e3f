"""The channel layer by Redis's publish and subscribe: a message reaches each web process once,
whatever the number of its pages.

With lists in Redis every page fetches its own copy of each message: a hundred pages took 3.9 s
where they now take half a second.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer, RedisPubSubLoopLayer
from channels_redis.utils import _wrap_close

DECODED = 16
"""Messages that are kept decoded for the sockets that have not fetched them yet."""
CAPACITY = 500
"""The most messages that wait for one socket."""


class Inbox(asyncio.Queue[bytes]):
    """The messages that one socket has not fetched yet. When it is full, messages are dropped:
    readers request missing numbers again."""

    def put_nowait(self, item: bytes) -> None:
        if not self.full():
            super().put_nowait(item)


class _LoopLayer(RedisPubSubLoopLayer):  # type: ignore[misc]
    def __init__(self, *args: Any, capacity: int = CAPACITY, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.capacity = capacity

    async def _subscribe_to_channel(self, channel: str) -> None:
        self.channels[channel] = Inbox(self.capacity)
        await self._get_shard(channel).subscribe(channel)


class SharedMessagesLayer(RedisPubSubChannelLayer):  # type: ignore[misc]
    """Sockets of a process share the decoded message, and must not change it. `capacity`: the most
    messages that wait for a socket."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Sockets get the same bytes object, whose hash is computed once.
        self.deserialize = functools.lru_cache(DECODED)(super().deserialize)

    def _get_layer(self) -> _LoopLayer:
        loop = asyncio.get_running_loop()
        if loop not in self._layers:
            self._layers[loop] = _LoopLayer(*self._args, **self._kwargs, channel_layer=self)
            _wrap_close(self, loop)
        layer: _LoopLayer = self._layers[loop]
        return layer
