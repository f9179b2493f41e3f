"""The demo worlds by name."""

from __future__ import annotations

from collections.abc import Callable

from webapp.demo.simulation.city import City
from webapp.demo.simulation.ocean import Ocean
from webapp.demo.simulation.plaza import Plaza
from webapp.demo.simulation.strait import Strait
from webapp.demo.simulation.warehouse import Warehouse
from webapp.demo.simulation.world import World

WORLDS: dict[str, Callable[[int], World]] = {"city": City, "strait": Strait, "plaza": Plaza, "ocean": Ocean, "warehouse": Warehouse}


def world(name: str, seed: int = 1) -> World:
    """The world `name`. Raises KeyError for an unknown one."""
    return WORLDS[name](seed)
