"""Feed `strait`: vessels between two coasts: through traffic in its lanes, ferries, fishing boats,
and some that break rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from webapp.demo.simulation.journeys import Floats, Ints, Journey, Journeys, Plane, Point, Schedule, Wobble, course
from webapp.demo.simulation.world import Place, TruthEvent, again

PLANE = Plane(1.6, 51.0)
KNOT = 1852 / 3600
VESSELS = 400
CARGO, FERRIES, FISHING, PLEASURE, SMUGGLERS = 246, 36, 62, 44, 6
"""Through traffic, ferries, fishing boats, pleasure craft, smugglers; the other six fall silent,
meet at sea, flee and pursue."""

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
CLOSED: LanePoints = ((1.4445, 50.9955), (1.4748, 50.9764), (1.5355, 51.0145), (1.5052, 51.0336))
"""A closed area between the lanes: through traffic never enters, smugglers cross it."""
ROADS: LanePoints = ((2.12, 51.085), (2.18, 51.085), (2.18, 51.115), (2.12, 51.115))
"""Open water before a port, where only the two that meet are at rest."""


@dataclass(frozen=True)
class Vessel:
    """One vessel: who it is, its round, what happens on it, and when it sends nothing (from, to);
    milliseconds from the beginning of the round."""

    name: str
    ship_type: str
    journey: Journey
    truth_events: tuple[TruthEvent, ...] = ()
    silences: tuple[tuple[int, int], ...] = ()


class Strait:
    """The world of one seed (see World)."""

    feed = "strait"

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        chance = np.random.default_rng([seed, 2])
        self.vessels = list(_fleet(chance))
        phase = chance.integers(0, 86_400_000, VESSELS)
        # The vessels that meet at sea have one timetable, and the pursuer keeps its distance
        # because it follows the same course a little later.
        phase[-3], phase[-1] = phase[-4], phase[-2] + PURSUIT_LAG_MS
        self.journeys = Journeys([vessel.journey for vessel in self.vessels], phase)
        self.schedule = Schedule(chance.integers(3_000, 9_000, VESSELS), chance.integers(0, 9_000, VESSELS))
        self.wobble = Wobble(chance, chance.uniform(2, 8, VESSELS))
        self.names = pa.array([vessel.name for vessel in self.vessels])
        self.types = pa.array([vessel.ship_type for vessel in self.vessels])

    def rows(self, start: int, end: int, *, rate: float = 1.0) -> pa.Table:
        return self._reports(*self.schedule.reports(start, end), rate)

    def snapshot(self, t: int, *, rate: float = 1.0) -> pa.Table:
        return self._reports(np.arange(VESSELS, dtype=np.int64), np.full(VESSELS, t, np.int64), rate)

    def _reports(self, vessel: Ints, t: Ints, rate: float) -> pa.Table:
        inner = t if rate == 1.0 else (t * rate).astype(np.int64)
        heard = ~self._silent(vessel, inner)
        vessel, t, inner = vessel[heard], t[heard], inner[heard]
        x, y, vx, vy = self.journeys.at(vessel, inner)
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

    def _silent(self, vessel: Ints, t: Ints) -> npt.NDArray[np.bool_]:
        """Whether each `vessel` sends nothing at its `t`."""
        since = (t - self.journeys.phase[vessel]) % self.journeys.period[vessel]
        silent = np.zeros(len(t), np.bool_)
        for who, one in enumerate(self.vessels):
            for first, last in one.silences:
                silent |= (vessel == who) & (since >= first) & (since < last)
        return silent

    def truth(self, start: int, end: int) -> list[TruthEvent]:
        """Port calls; passages through the closed area, fishing in reserves, silences, delays,
        meetings at sea, pursuits."""
        names = self.names.to_pylist()
        truth_events = [TruthEvent("call", (names[who],), stop.place, stop.arrive, stop.leave) for who, stop in self.journeys.stops(start, end)]
        for vessel, phase, period in zip(self.vessels, self.journeys.phase.tolist(), self.journeys.period.tolist(), strict=True):
            for one in vessel.truth_events:
                truth_events += again(replace(one, start=phase + one.start, end=phase + one.end), period, start, end)
        return sorted(truth_events, key=lambda one: (one.start, one.kind, one.entities))

    def places(self) -> list[Place]:
        ports = [Place(name, _polygon(_around(_metres(at), 1_300, 12)), ("port",)) for name, at in PORTS.items()]
        protected = [Place(name, _polygon([_metres(p) for p in ring]), ("protected",)) for name, ring in PROTECTED.items()]
        roads = Place("Dunmark roads", _polygon([_metres(p) for p in ROADS]), ("roads",))
        return [*ports, *protected, Place("Closed area", _polygon([_metres(p) for p in CLOSED]), ("closed",)), roads]


PURSUIT_LAG_MS = 25_000


def _fleet(chance: np.random.Generator) -> Iterator[Vessel]:
    """All vessels; the last six are the two that fall silent, the two that meet, the one that flees
    and the one that pursues it."""
    numbers = iter(range(232_000_001, 232_000_001 + VESSELS))
    for _ in range(CARGO):
        yield Vessel(str(next(numbers)), "tanker" if chance.random() < 0.3 else "cargo", _through_traffic(chance))
    for number in range(FERRIES):
        yield Vessel(str(next(numbers)), "passenger", _ferry(chance, *FERRY_LINES[number % len(FERRY_LINES)]))
    for _ in range(FISHING):
        yield _fishing(chance, str(next(numbers)))
    for _ in range(PLEASURE):
        yield Vessel(str(next(numbers)), "pleasure", _pleasure(chance))
    for number in range(SMUGGLERS):
        yield _smuggler(chance, str(next(numbers)), number)
    for at, drifts in (((1.05, 50.74), True), ((2.30, 51.38), False)):
        yield _silent(str(next(numbers)), _metres(at), drifts)
    yield from _meeting(str(next(numbers)), str(next(numbers)))
    yield from _pursuit(chance, str(next(numbers)), str(next(numbers)))


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
    """Down the one lane and back up the other, turning beyond the edge of the map; one in seven
    calls at a port on its way."""
    aside = chance.uniform(-1_600, 1_600)
    speed = KNOT * chance.uniform(9, 19)
    down, up = _shifted(SOUTHWEST, aside), _shifted(NORTHEAST, aside)
    journey = Journey(down[0])
    journey.follow(down[1:], speed)
    journey.follow(up[:5], speed)
    if chance.random() < 1 / 7:
        _call(journey, "Port of Calance" if chance.random() < 0.5 else "Port of Dunmark", chance, (1_800_000, 7_200_000), speed)
    journey.follow(up[5:], speed)
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


def _fishing(chance: np.random.Generator, name: str) -> Vessel:
    """Out of a port, trawling to and fro over a ground, and home; some grounds lie in a reserve."""
    grounds = [ring[0] for ring in PROTECTED.values()] + [(1.1, 50.8), (2.3, 51.3), (1.62, 51.30), (2.25, 51.15)]
    ground_x, ground_y = _metres(grounds[int(chance.integers(len(grounds)))])
    home = min((_metres(at) for at in PORTS.values()), key=lambda p: float(np.hypot(p[0] - ground_x, p[1] - ground_y)))
    while True:
        journey = Journey((home[0] + chance.uniform(-300, 300), home[1] + chance.uniform(-300, 300)))
        for _ in range(int(chance.integers(8, 16))):
            journey.go((ground_x + chance.normal(0, 3_500), ground_y + chance.normal(0, 3_500)), KNOT * chance.uniform(5.5, 8))
        journey.close(KNOT * 8.5)
        journey.wait(int(chance.integers(1_200_000, 3_600_000)))
        inside = {reserve: _stays(journey, ring) for reserve, ring in PROTECTED.items()}
        if all(map(_is_clear, inside.values())):
            break
    fished = [(reserve, first, last) for reserve, stays in inside.items() for first, last in stays if last - first > FISHED_MS]
    return Vessel(name, "fishing", journey, tuple(TruthEvent("illegal-fishing", (name,), *one) for one in fished))


FISHED_MS = 300_000
"""A vessel inside a reserve for longer fishes there; others pass."""


def _is_clear(stays: list[tuple[int, int]]) -> bool:
    """Whether reports show the stays reliably: none is almost as long as fishing takes, and neither
    they nor the times between them are very short."""
    spans = [last - first for first, last in stays]
    pauses = [later[0] - earlier[1] for earlier, later in pairwise(stays)]
    return all(abs(span - FISHED_MS) > 40_000 for span in spans) and all(span > 60_000 for span in [*spans, *pauses])


def _stays(journey: Journey, ring: LanePoints) -> list[tuple[int, int]]:
    """From when to when someone on the journey is inside an area, in order."""
    area = shapely.Polygon([_metres(p) for p in ring])
    found: list[tuple[int, int]] = []
    for (t0, x0, y0), (t1, x1, y1) in pairwise(journey.knots):
        leg = shapely.LineString([(x0, y0), (x1, y1)])
        inner = shapely.get_parts(leg.intersection(area))
        for part in inner[shapely.length(inner) > 0]:
            share = sorted(leg.project(shapely.Point(end), normalized=True) for end in part.coords)
            first, last = (t0 + round((t1 - t0) * float(one)) for one in (share[0], share[-1]))
            if found and first <= found[-1][1] + 1:
                first = found.pop()[0]
            found.append((first, last))
    return found


def _pleasure(chance: np.random.Generator) -> Journey:
    """Sailing near a port."""
    port = list(PORTS)[int(chance.integers(len(PORTS)))]
    (x, y), (east, north) = _metres(PORTS[port]), SEAWARD[port]
    journey = Journey((x, y))
    for _ in range(int(chance.integers(4, 9))):
        out, along = abs(chance.normal(3_000, 1_800)), chance.normal(0, 2_500)
        journey.go((x + out * east - along * north, y + out * north + along * east), KNOT * chance.uniform(5.5, 9))
    journey.close(KNOT * 6)
    journey.wait(int(chance.integers(600_000, 1_800_000)))
    return journey


def _smuggler(chance: np.random.Generator, name: str, number: int) -> Vessel:
    """From one coast to the other straight across the lanes and through the closed area, and back
    after a while; each has its own landings."""
    middle = np.mean([_metres(p) for p in CLOSED], axis=0)
    across = (float(middle[0] + chance.uniform(-800, 800)), float(middle[1] + chance.uniform(-800, 800)))
    start, far = _metres((1.46 + 0.022 * number, 50.90)), _metres((1.42 + 0.03 * number, 51.16))
    speed = KNOT * chance.uniform(20, 24)
    journey = Journey(start)
    for target in (far, start):
        journey.follow([across, target], speed)
        journey.wait(int(chance.integers(180_000, 480_000)))
    passages = (TruthEvent("passage", (name,), "Closed area", *stay) for stay in _stays(journey, CLOSED))
    return Vessel(name, "other", journey, tuple(passages))


SILENT_MS = 240_000


def _silent(name: str, start: Point, drifts: bool) -> Vessel:
    """To and fro; on the way out it sends nothing for a while, in which it continues on its way, or
    `drifts` and gets nowhere."""
    journey, ahead = Journey(start), 12 * KNOT
    journey.go((start[0] + 1_000, start[1] + 500), ahead)
    first, knots = journey.now, 3 if drifts else 12
    journey.go((start[0] + 1_000 + knots * KNOT * SILENT_MS / 1000, start[1] + 500), knots * KNOT)
    last = journey.now
    journey.go((start[0] + 2_700, start[1] + 1_000), ahead)
    journey.close(ahead)
    kinds = ("gap", "suspicious-delay") if drifts else ("gap",)
    return Vessel(name, "other", journey, tuple(TruthEvent(kind, (name,), None, first, last) for kind in kinds), ((first, last),))


MEETING_EVERY_MS = 1_500_000


def _meeting(one: str, other: str) -> Iterator[Vessel]:
    """Two that leave a port, stay side by side at sea for some minutes, and go home."""
    port, meeting, speed = _metres(PORTS["Port of Dunmark"]), _metres((2.15, 51.098)), 20 * KNOT
    journeys, meetings = [], []
    for aside, out, back in ((0, 60_000, 1_020_000), (150, 120_000, 1_080_000)):
        journey = Journey((port[0] + aside, port[1]))
        journey.wait(out)
        journey.go((meeting[0] + aside, meeting[1]), speed)
        meetings.append((journey.now, back))
        journey.wait(back - journey.now)
        journey.close(speed)
        journey.wait(MEETING_EVERY_MS - journey.now)
        journeys.append(journey)
    met = TruthEvent("rendezvous", (one, other), None, max(first for first, _ in meetings), min(last for _, last in meetings))
    yield Vessel(one, "other", journeys[0], (met,))
    yield Vessel(other, "other", journeys[1])


def _pursuit(chance: np.random.Generator, fled: str, pursuer: str) -> Iterator[Vessel]:
    """Doublings at high speed off the western coast, with some minutes of rest for
    both after every few of them."""
    x, y = _metres((1.62, 51.17))
    journey = Journey((x, y))
    chases = []
    for left in (3, 2, 1, 0):
        began = journey.now
        while journey.now < began + 400_000:
            journey.go((x + chance.normal(0, 2_500), y + chance.normal(0, 2_500)), KNOT * 32)
        if not left:
            journey.close(KNOT * 32)
        chases.append((began + PURSUIT_LAG_MS, journey.now))
        _, here_x, here_y = journey.knots[-1]
        journey.follow([(here_x, here_y + 500), (here_x, here_y)], KNOT * 10)
    yield Vessel(fled, "other", journey, tuple(TruthEvent("pursuit", (pursuer, fled), None, *chase) for chase in chases))
    yield Vessel(pursuer, "law enforcement", journey)
