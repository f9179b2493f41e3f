"""Limits on what a client may send and keep open."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.webapp.live.pages import page
from webapp.live import consumers, socket_limit

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_connection_left")]


async def test_invalid_frames_are_answered_with_the_reason(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.socket.send_to(text_data="{")
        assert (await reader.hear())["type"] == "error"
        await reader.say(type="subscribe")
        assert (await reader.hear())["type"] == "snapshot"


async def test_long_or_binary_frames_close_the_socket(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.socket.send_to(text_data="x" * 65_537)
        assert await reader.closed() == 4413
    async with page(world.people.viewer) as reader:
        await reader.socket.send_to(bytes_data=b"x")
        assert await reader.closed() == 4413


async def test_a_flood_of_frames_closes_the_socket(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "BURST", 5)
    monkeypatch.setattr(consumers, "PER_SECOND", 0.0)
    async with page(world.people.viewer) as reader:
        for _ in range(6):
            await reader.say(type="ack", seq=1)
        assert await reader.closed() == 4429


async def test_sockets_per_user_are_limited_and_released(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_limit, "OF_A_USER", 1)
    monkeypatch.setattr(socket_limit, "TIMEOUT_S", 0.1)
    async with page(world.people.viewer):
        async with page(world.people.viewer) as second:
            assert await second.closed() == 4429
        async with page(world.people.owner) as other:
            await other.say(type="subscribe")
            await other.hear("snapshot")
    async with page(world.people.viewer) as again:
        await again.say(type="subscribe")
        await again.hear("snapshot")
