"""A channel, and its receiver of webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.webapp.alerts.receiver import Receiver
    from webapp.alerts.models import Channel


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    from tests.webapp.alerts.receiver import Receiver

    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    found = Receiver()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def channel(people: SimpleNamespace, receiver: Receiver) -> Channel:
    from webapp.alerts.deliveries import channel_create

    return channel_create(owner=people.owner, name="desk", url=receiver.url)
