"""Feed `city`: cars on the streets of a fictional city, garages that they enter, pass and leave,
advertisements, and a tour of banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from webapp.demo.simulation.journeys import Floats, Ints, Journey, Journeys, Plane, Point, Schedule, Wobble, course
from webapp.demo.simulation.roads import CENTRE, LINES, Node, Roads
from webapp.demo.simulation.world import Place, TruthEvent

PLANE = Plane(7.46, 51.96)
CARS, GARAGES, ADVERTISEMENTS = 2_000, 60, 200
GARAGE_M = 30.0
GARAGE_OFFSET_M = 24.0
"""From the middle of the street to the middle of the garage: a receiver's error can
carry a passing car inside."""
VISITORS = 0.3
"""The part of the cars that call at a garage in each round."""

BANKS: tuple[Node, ...] = ((14, 14), (15, 14), (16, 15), (15, 16), (14, 15))
"""Crossings with a bank, in the order in which the suspect calls at them."""
TOUR: tuple[Node, ...] = ((14, 14), (15, 14), (16, 14), (16, 15), (16, 16), (15, 16), (14, 16), (14, 15))
"""The suspect's way, and from the end to the beginning again."""
BANK_M, CAMERA_M = 60.0, 120.0
SUSPECT_SPEED, SUSPECT_CALL_MS = 16.0, 8_000
CAMERAS: tuple[Node, ...] = ((15, 15), (13, 13), (13, 15), (13, 17), (15, 13), (15, 17), (17, 13), (17, 15), (17, 17))
"""Crossings that cameras watch: the suspect keeps away from them."""


@dataclass(frozen=True)
class Garage:
    """A square beside a street: between crossings `a` and `b`, `door` on the street,
    `along` the street's direction."""

    name: str
    a: Node
    b: Node
    door: Point
    centre: Point
    along: Point

    def ring(self) -> list[Point]:
        (cx, cy), (ax, ay), half = self.centre, self.along, GARAGE_M / 2
        return [(cx + half * (p * ax - q * ay), cy + half * (p * ay + q * ax)) for p, q in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


class City:
    """The world of one seed. All its methods are pure functions of the seed and the given times."""

    feed = "city"

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        chance = np.random.default_rng([seed, 0])
        self.roads = Roads.build(chance)
        self.garages = self._garages(chance)
        self.advertisements = self._advertisements(chance)
        journeys = [self._journey(np.random.default_rng([seed, 1, car])) for car in range(CARS - 1)]
        journeys.append(self._tour())
        self.journeys = Journeys(journeys, chance.integers(0, 3_600_000, CARS))
        self.schedule = Schedule(chance.integers(2_000, 5_001, CARS), chance.integers(0, 5_000, CARS))
        self.wobble = Wobble(chance, 4.0 + 11.0 * chance.random(CARS) ** 2)
        self.names = pa.array([f"car-{car + 1:04d}" for car in range(CARS)])

    # -- rows for ingest -----------------------------------------------------------------------

    def rows(self, start: int, end: int, *, rate: float = 1.0) -> pa.Table:
        """All reports with start <= t < end in order of time. `rate`: how many times
        faster than life cars move."""
        return self._reports(*self.schedule.reports(start, end), rate)

    def snapshot(self, t: int, *, rate: float = 1.0) -> pa.Table:
        """One report of every car at `t`: puts all of them on a map immediately."""
        return self._reports(np.arange(CARS, dtype=np.int64), np.full(CARS, t, np.int64), rate)

    def _reports(self, car: Ints, t: Ints, rate: float) -> pa.Table:
        moved = t if rate == 1.0 else (t * rate).astype(np.int64)
        x, y, vx, vy = self.journeys.at(car, moved)
        east, north = self.wobble.at(car, t)
        lon, lat = PLANE.to_degrees(x + east, y + north)
        speed: Floats = np.round(3.6 * rate * np.hypot(vx, vy), 1)
        return pa.table({"entity": self.names.take(pa.array(car)), "t": t, "x": lon, "y": lat, "speed": speed, "heading": course(vx, vy)})

    # -- ground truth ------------------------------------------------------------------------------

    def truth(self, start: int, end: int) -> list[TruthEvent]:
        """Which cars visit which garage or bank, when they stand inside (at rate 1), and the
        suspect's tours."""
        names = self.names.to_pylist()
        visits = [TruthEvent("visit", (names[car],), stop.place, stop.arrive, stop.leave) for car, stop in self.journeys.stops(start, end)]
        return sorted([*visits, *self._tours(start, end)], key=lambda one: (one.start, one.kind, one.entities))

    def _tours(self, start: int, end: int) -> list[TruthEvent]:
        """From the suspect's call at the first bank to the one at the last."""
        suspect = CARS - 1
        journey, phase, period = self.journeys.journeys[suspect], int(self.journeys.phase[suspect]), int(self.journeys.period[suspect])
        first, last = journey.stops[0].arrive, journey.stops[-1].leave
        begins = range(phase + first + ((start - phase - last) // period + 1) * period, end, period)
        return [TruthEvent("tour", (self.names[suspect].as_py(),), None, at, at + last - first) for at in begins]

    def places(self) -> list[Place]:
        """Garages, advertisement areas, banks and the cameras' fields of view as regions."""
        garages = [Place(g.name, self._polygon(g.ring()), ("garage",)) for g in self.garages]
        advertisements = [Place(name, self._polygon(ring), ("advertisement",)) for name, ring in self.advertisements]
        banks = [Place(f"Bank {n}", self._polygon(self._square(node, BANK_M)), ("bank",)) for n, node in enumerate(BANKS, 1)]
        seen = [[PLANE.ring(self._square(node, CAMERA_M))] for node in CAMERAS]
        return [*garages, *advertisements, *banks, Place("Camera areas", {"type": "MultiPolygon", "coordinates": seen}, ("cameras",))]

    def streets(self) -> dict[str, Any]:
        """All streets as GeoJSON lines, as a map of roads would show them."""
        lines = [[(i, j) for j in range(LINES)] for i in range(LINES)] + [[(i, j) for i in range(LINES)] for j in range(LINES)]
        return {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "properties": {"name": f"Street {number}"},
                    "geometry": {
                        "type": "LineString",
                        "coordinates": [[float(part) for part in PLANE.to_degrees(*self.roads.point(node))] for node in line],
                    },
                }
                for number, line in enumerate(lines, 1)
            ],
        }

    def _square(self, node: Node, side: float) -> list[Point]:
        """A square of `side` metres about a crossing."""
        (x, y), half = self.roads.point(node), side / 2
        return [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)]

    @staticmethod
    def _polygon(ring: list[Point]) -> dict[str, Any]:
        return {"type": "Polygon", "coordinates": [PLANE.ring(ring)]}

    # -- building ----------------------------------------------------------------------------------

    def _node(self, chance: np.random.Generator) -> Node:
        """A crossing, more often near the centre."""
        i, j = np.clip(np.round(chance.normal(CENTRE, 6.5, 2)), 0, LINES - 1).astype(int)
        return int(i), int(j)

    def _street(self, chance: np.random.Generator) -> tuple[Node, Node]:
        i, j = (min(k, LINES - 2) for k in self._node(chance))
        return ((i, j), (i + 1, j)) if chance.random() < 0.5 else ((i, j), (i, j + 1))

    def _streets(self, chance: np.random.Generator, n: int) -> list[tuple[Node, Node]]:
        """`n` different streets."""
        streets: dict[tuple[Node, Node], None] = {}
        while len(streets) < n:
            streets[self._street(chance)] = None
        return list(streets)

    def _garages(self, chance: np.random.Generator) -> list[Garage]:
        garages = []
        for number, (a, b) in enumerate(self._streets(chance, GARAGES), 1):
            (ax, ay), (bx, by) = self.roads.point(a), self.roads.point(b)
            length = float(np.hypot(bx - ax, by - ay))
            ux, uy = (bx - ax) / length, (by - ay) / length
            door = ((ax + bx) / 2, (ay + by) / 2)
            side = 1 if chance.random() < 0.5 else -1
            centre = (door[0] - side * GARAGE_OFFSET_M * uy, door[1] + side * GARAGE_OFFSET_M * ux)
            garages.append(Garage(f"Garage {number:02d}", a, b, door, centre, (ux, uy)))
        return garages

    def _advertisements(self, chance: np.random.Generator) -> list[tuple[str, list[Point]]]:
        """Strips over the street, 100 to 300 m long and 50 m wide."""
        areas = []
        for number, (a, b) in enumerate(self._streets(chance, ADVERTISEMENTS), 1):
            (ax, ay), (bx, by) = self.roads.point(a), self.roads.point(b)
            length = float(np.hypot(bx - ax, by - ay))
            ux, uy = (bx - ax) / length, (by - ay) / length
            half = min(length / 2 - 10, chance.uniform(50, 150))
            cx, cy = (ax + bx) / 2, (ay + by) / 2
            ring = [(cx + p * half * ux - q * 25 * uy, cy + p * half * uy + q * 25 * ux) for p, q in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            areas.append((f"Advertisement {number:03d}", ring))
        return areas

    def _journey(self, chance: np.random.Generator) -> Journey:
        """From home over a few stops, perhaps a garage, and home again."""
        home = self._node(chance)
        journey, here, speed_factor = Journey(self.roads.point(home)), home, chance.uniform(0.85, 1.15)
        stops: list[Node | Garage] = [self._node(chance) for _ in range(int(chance.integers(2, 5)))]
        if chance.random() < VISITORS:
            stops.insert(int(chance.integers(0, len(stops) + 1)), self.garages[int(chance.integers(GARAGES))])
        for stop in [*stops, home]:
            if isinstance(stop, Garage):
                self._drive(journey, here, stop.a, speed_factor, chance)
                self._call_at(journey, stop, speed_factor, chance)
                here = stop.b
            else:
                self._drive(journey, here, stop, speed_factor, chance)
                here = stop
                if stop is not home:
                    journey.wait(int(chance.integers(10_000, 120_000)))
        journey.wait(int(chance.integers(10_000, 60_000)))
        return journey

    def _tour(self) -> Journey:
        """The suspect: from bank to bank for a few seconds each, round and round,
        and never before a camera."""
        journey = Journey(self.roads.point(TOUR[0]))
        for node in TOUR:
            journey.go(self.roads.point(node), SUSPECT_SPEED)
            if node in BANKS:
                journey.wait(SUSPECT_CALL_MS, f"Bank {BANKS.index(node) + 1}")
        journey.close(SUSPECT_SPEED)
        journey.wait(30_000)
        return journey

    def _drive(self, journey: Journey, a: Node, b: Node, speed_factor: float, chance: np.random.Generator) -> None:
        before = a
        for node in self.roads.route(a, b, chance):
            journey.go(self.roads.point(node), speed_factor * self.roads.speed(before, node))
            before = node

    def _call_at(self, journey: Journey, garage: Garage, speed_factor: float, chance: np.random.Generator) -> None:
        """In, a short call or a long one, and out to the street's other end."""
        kinds = ((5_000, 25_000), (40_000, 110_000), (150_000, 600_000))
        shortest, longest = kinds[int(chance.choice(3, p=(0.4, 0.3, 0.3)))]
        bay = (garage.centre[0] + chance.uniform(-4, 4), garage.centre[1] + chance.uniform(-4, 4))
        speed = speed_factor * self.roads.speed(garage.a, garage.b)
        journey.go(garage.door, speed)
        journey.go(bay, 3.0)
        journey.wait(int(chance.integers(shortest, longest)), garage.name)
        journey.go(garage.door, 3.0)
        journey.go(self.roads.point(garage.b), speed)
