"""`check`: a query's document against its feed and the stored regions, completely, before anything runs (CONTRACT 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.model.conditions import Conditions, read_conditions
from engine.model.documents import Faults, Node
from engine.model.durations import read_bound, read_duration
from engine.model.faults import unknown_name
from engine.model.feed import ColumnType, Feed, TimeUnit
from engine.model.region import Region, read_region

COMMON_KEYS = ("family", "version", "name", "where", "description")


@dataclass(frozen=True)
class Context:
    """What a family's checker may ask for: the feed, the stored regions, and readers that note faults where they find them."""

    feed: Feed
    regions: Mapping[str, Region]

    def name(self, node: Node) -> str:
        return node.get("name").text(default="") or ""

    def where(self, node: Node) -> Conditions:
        """The conditions under `where` of an object."""
        return read_conditions(node.get("where"), self.feed)

    def region(self, node: Node) -> Region | None:
        return read_region(node, self.feed.crs, self.regions)

    def bound(self, node: Node, *, default: int | None = None, required: bool = False) -> int | None:
        """A time bound of either sign in the unit of `t`."""
        return read_bound(node, milliseconds=self.feed.time is TimeUnit.MS, default=default, required=required)

    def duration(self, node: Node, *, default: int | None = None, required: bool = False) -> int | None:
        """A time bound that is not negative."""
        return read_duration(node, milliseconds=self.feed.time is TimeUnit.MS, default=default, required=required)

    def column(self, node: Node, name: str, *, numeric: bool = False) -> bool:
        """Whether `name` is a column of the feed (and holds numbers, if asked); else the fault is noted at `node`."""
        kind = self.feed.schema.get(name)
        if kind is None:
            node.fault(unknown_name(name, self.feed.schema, what="column"))
        elif numeric and kind not in (ColumnType.INT, ColumnType.FLOAT):
            node.fault(f"column {name!r} holds {kind.value}s; a column of numbers is needed")
            return False
        return kind is not None


def check(document: Any, feed: Feed, regions: Mapping[str, Region] | None = None) -> Any:
    """The checked specification, of its family's own type; running it discovers nothing.

    `regions` are the stored ones by name. Raises Refused with every fault of the document and its JSON pointer.
    """
    from engine.families import CHECKERS

    faults = Faults()
    node = Node(document, "", faults)
    if not isinstance(document, dict):
        node.expect_object(())
        faults.raise_if_any()
    family = node.get("family").choice(sorted(CHECKERS), required=True)
    if node.has("version"):
        node.get("version").integer(least=1, most=1)
    specification = CHECKERS[family](node, Context(feed, regions or {})) if family else None
    faults.raise_if_any()
    return specification
