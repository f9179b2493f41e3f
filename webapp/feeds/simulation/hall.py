"""Feed `hall`: people in an exhibition hall before a camera, on a plan; metres from the lower left corner."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pyarrow as pa

from webapp.feeds.simulation.journeys import Ints, Journey, Journeys, Point, Schedule, Wobble
from webapp.feeds.simulation.world import Happening, Place

WIDTH_M, HEIGHT_M = 40.0, 24.0
PEOPLE = 14
PIXELS_PER_M = 24
DOORS: tuple[Point, ...] = ((1.0, 12.0), (39.0, 12.0))
STANDS: dict[str, tuple[float, float, float, float]] = {
    "Stand A": (6.0, 15.5, 11.0, 20.5),
    "Stand B": (15.0, 15.5, 20.0, 20.5),
    "Stand C": (24.0, 15.5, 29.0, 20.5),
    "Stand D": (8.0, 3.5, 14.0, 8.0),
    "Cafe": (22.0, 3.0, 33.0, 8.5),
}
"""x0, y0, x1, y1 in metres."""


class Hall:
    """The world of one seed (see World)."""

    feed = "hall"

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        chance = np.random.default_rng([seed, 3])
        self.journeys = Journeys([_visit(chance) for _ in range(PEOPLE)], chance.integers(0, 600_000, PEOPLE))
        self.schedule = Schedule(np.full(PEOPLE, 500, np.int64), chance.integers(0, 500, PEOPLE))
        self.wobble = Wobble(chance, np.full(PEOPLE, 0.2))
        self.names = pa.array([f"person-{n + 1:02d}" for n in range(PEOPLE)])

    def rows(self, start: int, end: int, *, rate: float = 1.0) -> pa.Table:
        return self._reports(*self.schedule.reports(start, end), rate)

    def everybody(self, t: int, *, rate: float = 1.0) -> pa.Table:
        return self._reports(np.arange(PEOPLE, dtype=np.int64), np.full(PEOPLE, t, np.int64), rate)

    def _reports(self, person: Ints, t: Ints, rate: float) -> pa.Table:
        x, y, vx, vy = self.journeys.at(person, t if rate == 1.0 else (t * rate).astype(np.int64))
        east, north = self.wobble.at(person, t)
        return pa.table(
            {
                "entity": self.names.take(pa.array(person)),
                "t": t,
                "x": np.round(np.clip(x + east, 0, WIDTH_M), 2),
                "y": np.round(np.clip(y + north, 0, HEIGHT_M), 2),
                "speed": np.round(rate * np.hypot(vx, vy), 2),
            }
        )

    def truth(self, start: int, end: int) -> list[Happening]:
        """Who stands at which stand."""
        names = self.names.to_pylist()
        return [Happening("visit", (names[who],), stop.place, stop.arrive, stop.leave) for who, stop in self.journeys.stops(start, end)]

    def places(self) -> list[Place]:
        return [Place(name, _rectangle(*box), ("stand",)) for name, box in STANDS.items()]


def _rectangle(x0: float, y0: float, x1: float, y1: float) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]]}


def _visit(chance: np.random.Generator) -> Journey:
    """In by a door, to some stands, out by a door, and in again."""
    journey = Journey(DOORS[int(chance.integers(2))])
    pace = chance.uniform(0.9, 1.5)
    for number in chance.permutation(len(STANDS))[: int(chance.integers(2, 5))]:
        name, (x0, y0, x1, y1) = list(STANDS.items())[int(number)]
        spot = (float(chance.uniform(x0 + 1, x1 - 1)), float(chance.uniform(y0 + 1, y1 - 1)))
        # People keep to the aisle in the middle of the hall.
        journey.go((journey.knots[-1][1], 12.0 + chance.uniform(-1.5, 1.5)), pace)
        journey.go((spot[0], 12.0 + chance.uniform(-1.5, 1.5)), pace)
        journey.go(spot, pace)
        journey.wait(int(chance.integers(8_000, 70_000)), name)
    journey.go((journey.knots[-1][1], 12.0), pace)
    journey.close(pace)
    journey.wait(int(chance.integers(5_000, 30_000)))
    return journey


def plan() -> bytes:
    """The hall's plan as a PNG: walls, doors and stands, PIXELS_PER_M pixels a metre, covering 0, 0 to WIDTH_M, HEIGHT_M."""
    width, height = int(WIDTH_M * PIXELS_PER_M), int(HEIGHT_M * PIXELS_PER_M)
    image = np.full((height, width, 3), (246, 247, 249), np.uint8)

    def fill(x0: float, y0: float, x1: float, y1: float, colour: tuple[int, int, int]) -> None:
        rows = slice(round((HEIGHT_M - y1) * PIXELS_PER_M), round((HEIGHT_M - y0) * PIXELS_PER_M))
        image[rows, round(x0 * PIXELS_PER_M) : round(x1 * PIXELS_PER_M)] = colour

    for metre in range(1, int(WIDTH_M)):
        fill(metre, 0, metre + 0.04, HEIGHT_M, (236, 238, 242))
    for metre in range(1, int(HEIGHT_M)):
        fill(0, metre, WIDTH_M, metre + 0.04, (236, 238, 242))
    for x0, y0, x1, y1 in STANDS.values():
        fill(x0, y0, x1, y1, (164, 174, 190))
        fill(x0 + 0.12, y0 + 0.12, x1 - 0.12, y1 - 0.12, (222, 228, 236))
    wall, thick = (74, 84, 102), 0.3
    for edge in (0, HEIGHT_M - thick):
        fill(0, edge, WIDTH_M, edge + thick, wall)
    for edge in (0, WIDTH_M - thick):
        fill(edge, 0, edge + thick, HEIGHT_M, wall)
    for x, y in DOORS:
        fill(0 if x < WIDTH_M / 2 else WIDTH_M - thick, y - 1.5, thick if x < WIDTH_M / 2 else WIDTH_M, y + 1.5, (120, 190, 140))
    return png(image)


def png(image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    """An RGB picture of shape (height, width, 3) as a PNG file."""
    height, width, _ = image.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Each line of a PNG begins with the number of its filter; 0 is none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, width * 3)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
