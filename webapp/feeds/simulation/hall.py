"""Feed `hall`: people in an exhibition hall before a camera, on a plan; metres from the lower left corner."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from webapp.feeds.simulation.journeys import Ints, Journey, Journeys, Point, Schedule, Wobble
from webapp.feeds.simulation.plans import Colour, Drawing
from webapp.feeds.simulation.world import Happening, Place

WIDTH_M, HEIGHT_M = 40.0, 24.0
PEOPLE = 14
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
    """The hall's plan as a PNG: walls, doors and stands."""
    drawing = Drawing(WIDTH_M, HEIGHT_M)
    drawing.grid()
    for box in STANDS.values():
        drawing.block(*box)
    drawing.walls()
    for x, y in DOORS:
        left = 0.0 if x < WIDTH_M / 2 else WIDTH_M - 0.3
        drawing.fill(left, y - 1.5, left + 0.3, y + 1.5, Colour.DOOR)
    return drawing.png()
