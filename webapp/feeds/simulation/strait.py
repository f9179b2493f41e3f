"""Feed `strait`: vessels between two coasts: through traffic in its lanes, ferries, fishing boats, a pursuit, and a passage that is not allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from webapp.feeds.simulation.journeys import Floats, Ints, Journey, Journeys, Plane, Point, Schedule, Wobble, course
from webapp.feeds.simulation.world import Happening, Place

PLANE = Plane(1.6, 51.0)
KNOT = 1852 / 3600
VESSELS = 400
CARGO, FERRIES, FISHING, PLEASURE = 250, 36, 62, 44
"""Through traffic, ferries, fishing boats, pleasure craft; the rest smuggle, patrol, flee and pursue."""

LanePoints = tuple[tuple[float, float], ...]
SOUTHWEST: LanePoints = ((2.62, 51.62), (2.05, 51.36), (1.72, 51.21), (1.47, 51.05), (1.15, 50.88), (0.72, 50.70), (0.20, 50.55))
NORTHEAST: LanePoints = ((0.20, 50.33), (0.80, 50.50), (1.22, 50.70), (1.46, 50.93), (1.68, 51.07), (2.10, 51.20), (2.72, 51.42))
PORTS: dict[str, tuple[float, float]] = {
    "Port of Eastness": (1.37, 51.105),
    "Port of Ramsholm": (1.47, 51.325),
    "Port of Calance": (1.84, 50.992),
    "Port of Dunmark": (2.18, 51.062),
    "Port of Bellevoie": (1.54, 50.735),
}
SEAWARD: dict[str, Point] = {
    "Port of Eastness": (0.5, -0.85),
    "Port of Ramsholm": (0.95, -0.3),
    "Port of Calance": (-0.2, 0.98),
    "Port of Dunmark": (0.0, 1.0),
    "Port of Bellevoie": (-1.0, 0.1),
}
"""Unit vectors from each port to open water."""
FERRY_LINES = (
    ("Port of Eastness", "Port of Calance"),
    ("Port of Eastness", "Port of Dunmark"),
    ("Port of Ramsholm", "Port of Dunmark"),
)
PROTECTED: dict[str, LanePoints] = {
    "Varne bank reserve": ((1.22, 50.96), (1.33, 51.02), (1.40, 51.00), (1.30, 50.93)),
    "South Falls reserve": ((1.75, 51.24), (1.82, 51.36), (1.90, 51.34), (1.84, 51.23)),
    "Ridens reserve": ((1.20, 50.62), (1.24, 50.72), (1.36, 50.74), (1.34, 50.63)),
    "Sandettie reserve": ((1.88, 51.13), (1.95, 51.18), (2.10, 51.17), (2.02, 51.10)),
}
CLOSED: LanePoints = ((1.52, 50.965), (1.585, 51.015), (1.625, 50.99), (1.56, 50.94))
"""A closed area between the lanes: through traffic never enters, smugglers cross it."""


@dataclass(frozen=True)
class Vessel:
    """One vessel: who it is, what it does, and its round."""

    name: str
    ship_type: str
    journey: Journey


class Strait:
    """The world of one seed (see World)."""

    feed = "strait"

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        chance = np.random.default_rng([seed, 2])
        self.vessels = list(_fleet(chance))
        phase = chance.integers(0, 86_400_000, VESSELS)
        # The pursuer keeps its distance because it goes the same round a little later.
        phase[-1] = phase[-2] + PURSUIT_LAG_MS
        self.journeys = Journeys([vessel.journey for vessel in self.vessels], phase)
        self.schedule = Schedule(chance.integers(3_000, 9_000, VESSELS), chance.integers(0, 9_000, VESSELS))
        self.wobble = Wobble(chance, chance.uniform(2, 8, VESSELS))
        self.names = pa.array([vessel.name for vessel in self.vessels])
        self.types = pa.array([vessel.ship_type for vessel in self.vessels])

    def rows(self, start: int, end: int, *, rate: float = 1.0) -> pa.Table:
        return self._reports(*self.schedule.reports(start, end), rate)

    def everybody(self, t: int, *, rate: float = 1.0) -> pa.Table:
        return self._reports(np.arange(VESSELS, dtype=np.int64), np.full(VESSELS, t, np.int64), rate)

    def _reports(self, vessel: Ints, t: Ints, rate: float) -> pa.Table:
        x, y, vx, vy = self.journeys.at(vessel, t if rate == 1.0 else (t * rate).astype(np.int64))
        east, north = self.wobble.at(vessel, t)
        lon, lat = PLANE.to_degrees(x + east, y + north)
        speed: Floats = np.round(rate * np.hypot(vx, vy) / KNOT, 1)
        over_ground = course(vx, vy)
        return pa.table(
            {
                "entity": self.names.take(pa.array(vessel)),
                "t": t,
                "x": lon,
                "y": lat,
                "sog": speed,
                "cog": over_ground,
                "heading": np.round(over_ground + 2 * east / 8, 0) % 360.0,
                "ship_type": self.types.take(pa.array(vessel)),
            }
        )

    def truth(self, start: int, end: int) -> list[Happening]:
        """Port calls, and who pursues whom; smugglers' passages through the closed area are halts of no length in it."""
        names = self.names.to_pylist()
        calls = [
            Happening("passage" if stop.place == "Closed area" else "call", (names[who],), stop.place, stop.arrive, stop.leave)
            for who, stop in self.journeys.stops(start, end)
        ]
        return [*calls, Happening("pursuit", (names[-1], names[-2]), None, start, end)]

    def places(self) -> list[Place]:
        ports = [Place(name, _polygon(_around(_metres(at), 1_300, 12)), ("port",)) for name, at in PORTS.items()]
        protected = [Place(name, _polygon([_metres(p) for p in ring]), ("protected",)) for name, ring in PROTECTED.items()]
        return [*ports, *protected, Place("Closed area", _polygon([_metres(p) for p in CLOSED]), ("closed",))]


PURSUIT_LAG_MS = 25_000


def _fleet(chance: np.random.Generator) -> Iterator[Vessel]:
    """All vessels; the last two are the one that flees and the one that pursues it."""
    numbers = iter(range(232_000_001, 232_000_001 + VESSELS))
    for _ in range(CARGO):
        yield Vessel(str(next(numbers)), "tanker" if chance.random() < 0.3 else "cargo", _through_traffic(chance))
    for number in range(FERRIES):
        yield Vessel(str(next(numbers)), "passenger", _ferry(chance, *FERRY_LINES[number % len(FERRY_LINES)]))
    for _ in range(FISHING):
        yield Vessel(str(next(numbers)), "fishing", _fishing(chance))
    for _ in range(PLEASURE):
        yield Vessel(str(next(numbers)), "pleasure", _pleasure(chance))
    for _ in range(VESSELS - CARGO - FERRIES - FISHING - PLEASURE - 2):
        yield Vessel(str(next(numbers)), "other", _smuggler(chance))
    # Both follow one round of a generator of their own, so that it is the same round.
    seed = int(chance.integers(1 << 32))
    for ship_type in ("other", "law enforcement"):
        yield Vessel(str(next(numbers)), ship_type, _flight(np.random.default_rng(seed)))


def _metres(degrees: tuple[float, float]) -> Point:
    return PLANE.to_metres(*degrees)


def _polygon(points: list[Point]) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": [PLANE.ring(points)]}


def _around(centre: Point, radius_m: float, corners: int) -> list[Point]:
    turns = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return [(centre[0] + radius_m * float(np.cos(a)), centre[1] + radius_m * float(np.sin(a))) for a in turns]


def _shifted(lane: LanePoints, aside_m: float) -> list[Point]:
    """The lane's points moved to its right by `aside_m`, so that vessels do not follow one line."""
    points = np.array([_metres(p) for p in lane])
    ahead = np.gradient(points, axis=0)
    right = np.stack([ahead[:, 1], -ahead[:, 0]], axis=1) / np.hypot(*ahead.T)[:, None]
    return [(float(x), float(y)) for x, y in points + aside_m * right]


def _through_traffic(chance: np.random.Generator) -> Journey:
    """Down the one lane and back up the other, turning beyond the edge of the map; one in seven calls at a port on its way."""
    aside = chance.uniform(-1_600, 1_600)
    speed = KNOT * chance.uniform(9, 19)
    down, up = _shifted(SOUTHWEST, aside), _shifted(NORTHEAST, aside)
    journey = Journey(down[0])
    journey.follow(down[1:], speed)
    journey.follow(up[:4], speed)
    if chance.random() < 1 / 7:
        _call(journey, "Port of Calance" if chance.random() < 0.5 else "Port of Dunmark", chance, (1_800_000, 7_200_000), speed)
    journey.follow(up[4:], speed)
    journey.close(speed)
    return journey


def _call(journey: Journey, port: str, chance: np.random.Generator, halt_ms: tuple[int, int], speed: float) -> None:
    x, y = _metres(PORTS[port])
    journey.go((x + chance.uniform(-400, 400), y + chance.uniform(-400, 400)), speed)
    journey.wait(int(chance.integers(*halt_ms)), port)


def _ferry(chance: np.random.Generator, a: str, b: str) -> Journey:
    """To and fro, with a quarter of an hour in each port."""
    speed = KNOT * chance.uniform(18, 24)
    x, y = _metres(PORTS[a])
    journey = Journey((x + chance.uniform(-400, 400), y + chance.uniform(-400, 400)))
    _call(journey, b, chance, (600_000, 1_200_000), speed)
    journey.close(speed)
    journey.wait(int(chance.integers(600_000, 1_200_000)), a)
    return journey


def _fishing(chance: np.random.Generator) -> Journey:
    """Out of a port, trawling to and fro over a ground, and home; some grounds lie too close to a protected area."""
    grounds = [ring[0] for ring in PROTECTED.values()] + [(1.1, 50.8), (2.3, 51.3), (1.62, 51.30), (2.25, 51.15)]
    ground_x, ground_y = _metres(grounds[int(chance.integers(len(grounds)))])
    home = min((_metres(at) for at in PORTS.values()), key=lambda p: float(np.hypot(p[0] - ground_x, p[1] - ground_y)))
    journey = Journey((home[0] + chance.uniform(-300, 300), home[1] + chance.uniform(-300, 300)))
    for _ in range(int(chance.integers(8, 16))):
        journey.go((ground_x + chance.normal(0, 3_500), ground_y + chance.normal(0, 3_500)), KNOT * chance.uniform(3, 8))
    journey.close(KNOT * 9)
    journey.wait(int(chance.integers(1_200_000, 3_600_000)))
    return journey


def _pleasure(chance: np.random.Generator) -> Journey:
    """Sailing near a port."""
    port = list(PORTS)[int(chance.integers(len(PORTS)))]
    (x, y), (east, north) = _metres(PORTS[port]), SEAWARD[port]
    journey = Journey((x, y))
    for _ in range(int(chance.integers(4, 9))):
        out, along = abs(chance.normal(3_000, 1_800)), chance.normal(0, 2_500)
        journey.go((x + out * east - along * north, y + out * north + along * east), KNOT * chance.uniform(4, 9))
    journey.close(KNOT * 6)
    journey.wait(int(chance.integers(600_000, 1_800_000)))
    return journey


def _smuggler(chance: np.random.Generator) -> Journey:
    """From one coast to the other straight across the lanes and through the closed area, and back after an hour."""
    middle = np.mean([_metres(p) for p in CLOSED], axis=0)
    across = (float(middle[0] + chance.uniform(-800, 800)), float(middle[1] + chance.uniform(-800, 800)))
    start, far = _metres((1.62 + chance.uniform(-0.02, 0.02), 50.90)), _metres((1.42 + chance.uniform(-0.02, 0.02), 51.16))
    speed = KNOT * chance.uniform(20, 28)
    journey = Journey(start)
    for target, first in ((far, True), (start, False)):
        journey.go(across, speed)
        journey.wait(1_000, "Closed area")
        journey.go(target, speed)
        journey.wait(int(chance.integers(600_000, 1_800_000 if first else 3_600_000)))
    return journey


def _flight(chance: np.random.Generator) -> Journey:
    """Doublings at high speed off the western coast."""
    x, y = _metres((1.62, 51.17))
    journey = Journey((x, y))
    for _ in range(14):
        journey.go((x + chance.normal(0, 4_000), y + chance.normal(0, 4_000)), KNOT * 32)
    journey.close(KNOT * 32)
    return journey
