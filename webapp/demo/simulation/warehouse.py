"""Feed `warehouse`: tagged items, pallets and badges read by the antennas of a warehouse with
a shop, on a plan; metres."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from webapp.demo.simulation.plans import Colour, Drawing
from webapp.demo.simulation.world import Place, TruthEvent

WIDTH_M, HEIGHT_M = 60.0, 36.0
READERS: dict[str, tuple[float, float]] = {
    "dock-1": (4.0, 9.0),
    "dock-2": (4.0, 27.0),
    "store-in": (18.0, 18.0),
    "conveyor-1": (24.0, 6.0),
    "conveyor-2": (34.0, 6.0),
    "shelf-1": (26.0, 28.0),
    "shelf-2": (32.0, 28.0),
    "shelf-3": (38.0, 28.0),
    "checkout-1": (48.0, 22.0),
    "checkout-2": (48.0, 27.0),
    "exit": (57.0, 18.0),
    "strongroom": (14.0, 29.6),
    "archive": (50.0, 11.5),
}
"""Where each antenna hangs."""
KINDS = {
    "urn:epc:id:sgtin:0614141.": "item",
    "urn:epc:id:sscc:": "pallet",
    "urn:epc:id:sgtin:0614142.": "parcel",
    "urn:epc:id:giai:0614141.": "valuable",
    "door-": "door",
}
"""The kind of a tag's item, by the beginning of its code; all others are badges of people."""
ZONES = {
    "Docks": (0.5, 3.0, 9.0, 33.0),
    "Shop": (22.0, 24.0, 42.0, 32.0),
    "Checkouts": (45.0, 20.0, 51.0, 29.0),
    "Way out": (54.0, 14.0, 59.5, 22.0),
}
"""x0, y0, x1, y1 in metres."""
ITEMS, PALLETS, PARCELS, VALUABLES, DOORS = 240, 12, 40, 5, 1
ITEM_ROUND_MS, PALLET_ROUND_MS, PARCEL_ROUND_MS, VALUABLE_ROUND_MS, DOOR_ROUND_MS = 600_000, 300_000, 240_000, 240_000, 45_000
THEFT_EVERY, RESTLESS_EVERY, ALONE_EVERY, LOST_EVERY, UNGUARDED_EVERY, FORCED_EVERY = 97, 61, 9, 31, 7, 8
"""In one of this many rounds of an item (pallet, parcel, valuable, door) something goes wrong."""
GUARD_MS = 8_000
"""A guard's badge is read at most this long before or after a valuable; a badge at most this
long before a door opens."""
SHELF_READS, SHELF_EVERY_MS = 12, 30_000


@dataclass(frozen=True)
class Read:
    """A tag before an antenna, `at` milliseconds after the beginning of the tag's round."""

    at: int
    tag: str
    reader: str


@dataclass(frozen=True)
class Course:
    """The `count` things of one kind that go round every `period` ms: the reads of one of them in
    its n-th round, and the ground truth."""

    count: int
    period: int
    reads: Callable[[int, int], list[Read]]
    truth_events: Callable[[int, int], list[tuple[str, tuple[str, ...], int, int]]]


class Warehouse:
    """The world of one seed (see World)."""

    feed = "warehouse"

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        chance = np.random.default_rng([seed, 5])
        self.courses = (
            Course(ITEMS, ITEM_ROUND_MS, lru_cache(2 * ITEMS)(self._item), self._item_truth),
            Course(PALLETS, PALLET_ROUND_MS, lru_cache(2 * PALLETS)(self._pallet), self._pallet_truth),
            Course(PARCELS, PARCEL_ROUND_MS, lru_cache(2 * PARCELS)(self._parcel), self._parcel_truth),
            Course(VALUABLES, VALUABLE_ROUND_MS, lru_cache(2 * VALUABLES)(self._valuable), self._valuable_truth),
            Course(DOORS, DOOR_ROUND_MS, lru_cache(2 * DOORS)(self._door), self._door_truth),
        )
        # Pallets come to a dock one after the other, so that each is alone there with its escort.
        self.phases: list[list[int]] = [
            chance.integers(0, ITEM_ROUND_MS, ITEMS).tolist(),
            [pallet * (PALLET_ROUND_MS // PALLETS) for pallet in range(PALLETS)],
            chance.integers(0, PARCEL_ROUND_MS, PARCELS).tolist(),
            # Valuables at the door of the strongroom are alone too.
            [valuable * (VALUABLE_ROUND_MS // VALUABLES) for valuable in range(VALUABLES)],
            [0] * DOORS,
        ]

    # -- rows for ingest -----------------------------------------------------------------------

    def rows(self, start: int, end: int, *, rate: float = 1.0) -> pa.Table:
        """All reads with start <= t < end in order of time. `rate` has no effect on antennas."""
        rounds = self._rounds(start, end)
        reads = ((began + read.at, read.tag, read.reader) for course, thing, nth, began in rounds for read in course.reads(thing, nth))
        return _table(sorted(read for read in reads if start <= read[0] < end))

    def snapshot(self, t: int, *, rate: float = 1.0) -> pa.Table:
        """Nothing: queries would take a read that no antenna made as real."""
        return _table([])

    def _rounds(self, start: int, end: int) -> Iterator[tuple[Course, int, int, int]]:
        """(course, thing, number of its round, beginning) of all rounds
        that overlap [start, end)."""
        for course, phases in zip(self.courses, self.phases, strict=True):
            for thing, phase in enumerate(phases):
                for nth in range((start - phase) // course.period, (end - 1 - phase) // course.period + 1):
                    yield course, thing, nth, phase + nth * course.period

    # -- items -------------------------------------------------------------------------------------

    def _item(self, item: int, nth: int) -> list[Read]:
        """From the dock to the shelf, some minutes there, to the checkout and out; a
        thief leaves the checkout out."""
        tag, chance = _item_tag(item), self._chance(1, item, nth)
        shelf = f"shelf-{1 + item % 3}"
        reads = [Read(0, tag, f"dock-{1 + item % 2}"), Read(15_000, tag, "store-in")]
        reads += [Read(35_000 + k * SHELF_EVERY_MS + int(chance.integers(2_000)), tag, shelf) for k in range(SHELF_READS)]
        if _is_restless(item, nth):
            other = f"shelf-{1 + (item + 1) % 3}"
            reads += [Read(405_000 + 8_000 * k, tag, other if k % 2 == 0 else shelf) for k in range(4)]
        if not _is_stolen(item, nth):
            reads.append(Read(470_000, tag, f"checkout-{1 + int(chance.integers(2))}"))
        return [*reads, Read(490_000, tag, "exit")]

    def _item_truth(self, item: int, nth: int) -> list[tuple[str, tuple[str, ...], int, int]]:
        found: list[tuple[str, tuple[str, ...], int, int]] = []
        if _is_stolen(item, nth):
            found.append(("theft", (_item_tag(item),), 35_000, 490_000))
        if _is_restless(item, nth):
            found.append(("back-and-forth", (_item_tag(item),), 365_000, 429_000))
        return found

    # -- pallets and their escorts -----------------------------------------------------------------

    def _pallet(self, pallet: int, nth: int) -> list[Read]:
        """Through a dock into the store; the badge of its escort is read a few
        seconds later, or never."""
        dock = f"dock-{1 + pallet % 2}"
        reads = [Read(0, _pallet_tag(pallet), dock), Read(20_000, _pallet_tag(pallet), "store-in")]
        if not _is_alone(pallet, nth):
            reads.append(Read(3_000 + int(self._chance(2, pallet, nth).integers(9_000)), f"badge-{pallet + 1:02d}", dock))
        return sorted(reads, key=lambda read: read.at)

    def _pallet_truth(self, pallet: int, nth: int) -> list[tuple[str, tuple[str, ...], int, int]]:
        return [("unescorted", (_pallet_tag(pallet),), 0, 15_000)] if _is_alone(pallet, nth) else []

    # -- parcels on the conveyor -------------------------------------------------------------------

    def _parcel(self, parcel: int, nth: int) -> list[Read]:
        """From the conveyor's beginning to its end within twelve seconds, unless it falls off."""
        tag = _parcel_tag(parcel)
        first = Read(0, tag, "conveyor-1")
        return [first] if _is_lost(parcel, nth) else [first, Read(8_000 + int(self._chance(3, parcel, nth).integers(4_000)), tag, "conveyor-2")]

    def _parcel_truth(self, parcel: int, nth: int) -> list[tuple[str, tuple[str, ...], int, int]]:
        return [("lost", (_parcel_tag(parcel),), 0, 20_000)] if _is_lost(parcel, nth) else []

    # -- valuables and their guards ----------------------------------------------------------------

    def _valuable(self, valuable: int, nth: int) -> list[Read]:
        """Through the door of the strongroom; a guard is there a little
        earlier or later, or never."""
        reads = [Read(GUARD_MS, _valuable_tag(valuable), "strongroom")]
        if not _is_unguarded(valuable, nth):
            reads.append(Read(int(self._chance(4, valuable, nth).integers(2 * GUARD_MS)), f"badge-g{1 + (valuable + nth) % 3}", "strongroom"))
        return sorted(reads, key=lambda read: read.at)

    def _valuable_truth(self, valuable: int, nth: int) -> list[tuple[str, tuple[str, ...], int, int]]:
        return [("unguarded", (_valuable_tag(valuable),), 0, 2 * GUARD_MS)] if _is_unguarded(valuable, nth) else []

    # -- doors that open to a badge ----------------------------------------------------------------

    def _door(self, door: int, nth: int) -> list[Read]:
        """Someone holds a badge before the door and opens it, or forces it open without."""
        opened = Read(GUARD_MS, _door_tag(door), "archive")
        if _is_forced(door, nth):
            return [opened]
        return [Read(int(self._chance(5, door, nth).integers(GUARD_MS)), f"badge-a{1 + nth % 4}", "archive"), opened]

    def _door_truth(self, door: int, nth: int) -> list[tuple[str, tuple[str, ...], int, int]]:
        return [("forced", (_door_tag(door),), 0, GUARD_MS)] if _is_forced(door, nth) else []

    def _chance(self, kind: int, thing: int, nth: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 5, kind, thing, nth % 2**32])

    # -- ground truth ------------------------------------------------------------------------------

    def truth(self, start: int, end: int) -> list[TruthEvent]:
        """Thefts, restless items, pallets without an escort, parcels that fell off, valuables
        without a guard, doors forced open."""
        truth_events = []
        for course, thing, nth, began in self._rounds(start, end):
            for kind, entities, first, last in course.truth_events(thing, nth):
                if began + first < end and began + last >= start:
                    truth_events.append(TruthEvent(kind, entities, None, began + first, began + last))
        return sorted(truth_events, key=lambda one: (one.start, one.kind, one.entities))

    def places(self) -> list[Place]:
        return [Place(name, _rectangle(*box), ("zone",)) for name, box in ZONES.items()]


def _item_tag(item: int) -> str:
    return f"urn:epc:id:sgtin:0614141.1{item % 6:05d}.{item + 1:04d}"


def _pallet_tag(pallet: int) -> str:
    return f"urn:epc:id:sscc:0614141.{pallet + 1:010d}"


def _parcel_tag(parcel: int) -> str:
    return f"urn:epc:id:sgtin:0614142.200000.{parcel + 1:04d}"


def _valuable_tag(valuable: int) -> str:
    return f"urn:epc:id:giai:0614141.{valuable + 1:04d}"


def _door_tag(door: int) -> str:
    return f"door-{door + 1:02d}"


def _kind(tag: str) -> str:
    return next((kind for start, kind in KINDS.items() if tag.startswith(start)), "badge")


def _is_stolen(item: int, nth: int) -> bool:
    return (item + 7 * nth) % THEFT_EVERY == 0


def _is_restless(item: int, nth: int) -> bool:
    return (item + 5 * nth) % RESTLESS_EVERY == 1


def _is_alone(pallet: int, nth: int) -> bool:
    return (pallet + nth) % ALONE_EVERY == 0


def _is_lost(parcel: int, nth: int) -> bool:
    return (parcel + 3 * nth) % LOST_EVERY == 0


def _is_unguarded(valuable: int, nth: int) -> bool:
    return (valuable + 2 * nth) % UNGUARDED_EVERY == 3


def _is_forced(door: int, nth: int) -> bool:
    return (door + 3 * nth) % FORCED_EVERY == 5


def _table(reads: list[tuple[int, str, str]]) -> pa.Table:
    places = [READERS[reader] for _, _, reader in reads]
    return pa.table(
        {
            "entity": pa.array([tag for _, tag, _ in reads], pa.string()),
            "t": pa.array([t for t, _, _ in reads], pa.int64()),
            "x": pa.array([x for x, _ in places], pa.float64()),
            "y": pa.array([y for _, y in places], pa.float64()),
            "reader": pa.array([reader for _, _, reader in reads], pa.string()),
            "kind": pa.array([_kind(tag) for _, tag, _ in reads], pa.string()),
        }
    )


def _rectangle(x0: float, y0: float, x1: float, y1: float) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]]}


def plan() -> bytes:
    """The warehouse's plan as a PNG: walls, docks, shelves, conveyor, checkouts and antennas."""
    drawing = Drawing(WIDTH_M, HEIGHT_M)
    drawing.grid()
    for y in (9.0, 27.0):
        drawing.fill(0.0, y - 3, 1.2, y + 3, Colour.DOOR)
    drawing.fill(12.0, 0.0, 12.3, 13.0, Colour.WALL)
    drawing.fill(12.0, 23.0, 12.3, HEIGHT_M, Colour.WALL)
    drawing.fill(16.0, 28.5, 16.3, HEIGHT_M, Colour.WALL)
    drawing.fill(12.0, 28.5, 13.0, 28.8, Colour.WALL)
    drawing.fill(15.0, 28.5, 16.3, 28.8, Colour.WALL)
    drawing.fill(42.0, 0.0, 42.3, 11.0, Colour.WALL)
    drawing.fill(42.0, 10.7, 48.5, 11.0, Colour.WALL)
    drawing.fill(51.5, 10.7, WIDTH_M, 11.0, Colour.WALL)
    for x in (26.0, 32.0, 38.0):
        drawing.block(x - 2, 24.0, x + 2, 32.0)
    drawing.block(22.0, 4.5, 36.0, 7.5)
    for y in (22.0, 27.0):
        drawing.block(46.0, y - 1.2, 50.0, y + 1.2)
    drawing.walls()
    drawing.fill(WIDTH_M - 0.3, 15.0, WIDTH_M, 21.0, Colour.DOOR)
    for x, y in READERS.values():
        drawing.fill(x - 0.35, y - 0.35, x + 0.35, y + 0.35, Colour.READER)
    return drawing.png()
