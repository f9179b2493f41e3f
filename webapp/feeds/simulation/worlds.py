"""The demo worlds by name."""

from __future__ import annotations

from collections.abc import Callable

from webapp.feeds.simulation.city import City
from webapp.feeds.simulation.ocean import Ocean
from webapp.feeds.simulation.plaza import Plaza
from webapp.feeds.simulation.strait import Strait
from webapp.feeds.simulation.warehouse import Warehouse
from webapp.feeds.simulation.world import World

WORLDS: dict[str, Callable[[int], World]] = {"city": City, "strait": Strait, "plaza": Plaza, "ocean": Ocean, "warehouse": Warehouse}


def world(name: str, seed: int = 1) -> World:
    """The world `name`. Raises KeyError for one that there is not."""
    return WORLDS[name](seed)
