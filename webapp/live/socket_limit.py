"""Limits how many sockets one user, or one link to a live view, may have open in this process."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Hashable

OF_A_USER = 20
TIMEOUT_S = 5.0
"""A page that is loaded again opens its new socket before the end of its old one has been noticed:
it waits this long for a free place."""
LOOK_S = 0.02

_taken: Counter[Hashable] = Counter()


async def take(user: Hashable) -> bool:
    """Takes one of the user's places, as soon as one is free; false when none becomes free in
    time."""
    give_up = time.monotonic() + TIMEOUT_S
    while _taken[user] >= OF_A_USER:
        if time.monotonic() > give_up:
            return False
        await asyncio.sleep(LOOK_S)
    _taken[user] += 1
    return True


def give_back(user: Hashable) -> None:
    """Frees a place that `take` gave."""
    _taken[user] -= 1
    if not _taken[user]:
        del _taken[user]
