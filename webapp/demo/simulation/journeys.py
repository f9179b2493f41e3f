"""Things on fixed round trips: the position of each at any time, without history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Point = tuple[float, float]

METRES_PER_DEGREE = 111_195.0
"""Of latitude, on the sphere: precise enough to draw a world, which is then measured on the
ellipsoid like any other."""


@dataclass(frozen=True)
class Plane:
    """A flat metric frame around a place: metres east and north of (`lon`, `lat`)."""

    lon: float
    lat: float

    @property
    def _per_degree_east(self) -> float:
        return METRES_PER_DEGREE * float(np.cos(np.radians(self.lat)))

    def to_degrees(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Longitude and latitude, rounded to a ten-millionth of a degree (a centimetre)."""
        return np.round(self.lon + x / self._per_degree_east, 7), np.round(self.lat + y / METRES_PER_DEGREE, 7)

    def to_metres(self, lon: float, lat: float) -> Point:
        return (lon - self.lon) * self._per_degree_east, (lat - self.lat) * METRES_PER_DEGREE

    def ring(self, points: Sequence[Point]) -> list[list[float]]:
        """A closed GeoJSON ring of points in metres."""
        corners = [[float(part) for part in self.to_degrees(x, y)] for x, y in points]
        return [*corners, corners[0]]


@dataclass(frozen=True)
class Stop:
    """A halt that is part of the ground truth: from `arrive` to `leave`, milliseconds from the
    start of the round."""

    place: str
    arrive: int
    leave: int


class Journey:
    """One thing's round, drawn leg by leg: knots of (milliseconds from the start,
    x, y), linear between them."""

    def __init__(self, start: Point) -> None:
        self.knots: list[tuple[int, float, float]] = [(0, *start)]
        self.stops: list[Stop] = []

    @property
    def now(self) -> int:
        return self.knots[-1][0]

    def go(self, point: Point, metres_per_second: float) -> None:
        """Straight to `point`; no leg when already there."""
        _, x, y = self.knots[-1]
        distance = float(np.hypot(point[0] - x, point[1] - y))
        if distance > 0:
            self.knots.append((self.now + max(1, round(1000 * distance / metres_per_second)), *point))

    def follow(self, points: Sequence[Point], metres_per_second: float) -> None:
        for point in points:
            self.go(point, metres_per_second)

    def wait(self, milliseconds: int, place: str | None = None) -> None:
        """Stands still; a halt at a named `place` is kept as truth."""
        t, x, y = self.knots[-1]
        self.knots.append((t + milliseconds, x, y))
        if place is not None:
            self.stops.append(Stop(place, t, t + milliseconds))

    def close(self, metres_per_second: float) -> None:
        """Back to where the round began."""
        self.go(self.knots[0][1:], metres_per_second)
        if self.now == 0:
            self.wait(60_000)


class Journeys:
    """Many rounds, repeated forever: thing i is at time t where its round is at (t
    - phase[i]) mod period[i]."""

    def __init__(self, journeys: Sequence[Journey], phase: Ints) -> None:
        self.journeys = journeys
        self.phase = phase
        self.period: Ints = np.array([journey.now for journey in journeys], np.int64)
        self._span = int(self.period.max()) + 1
        knots = np.array([knot for journey in journeys for knot in journey.knots], np.float64)
        thing = np.repeat(np.arange(len(journeys), dtype=np.int64), [len(journey.knots) for journey in journeys])
        self._t: Ints = knots[:, 0].astype(np.int64) + thing * self._span
        self._x: Floats = knots[:, 1]
        self._y: Floats = knots[:, 2]

    def at(self, thing: Ints, t: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """x, y in metres and the velocity's parts in metres a second of each `thing`
        at its `t` (milliseconds)."""
        round_t = (t - self.phase[thing]) % self.period[thing] + thing * self._span
        after = np.searchsorted(self._t, round_t, side="right")
        before = after - 1
        seconds = (self._t[after] - self._t[before]) / 1000.0
        part = (round_t - self._t[before]) / 1000.0 / seconds
        dx, dy = self._x[after] - self._x[before], self._y[after] - self._y[before]
        return self._x[before] + part * dx, self._y[before] + part * dy, dx / seconds, dy / seconds

    def stops(self, start: int, end: int) -> list[tuple[int, Stop]]:
        """(thing, halt in absolute times) of all named halts that overlap
        `[start, end)`, sorted by arrival."""
        stops = []
        for thing, journey in enumerate(self.journeys):
            phase, period = int(self.phase[thing]), int(self.period[thing])
            for stop in journey.stops:
                first = (start - phase - stop.leave) // period + 1
                for k in range(first, (end - 1 - phase - stop.arrive) // period + 1):
                    shift = phase + k * period
                    stops.append((thing, Stop(stop.place, stop.arrive + shift, stop.leave + shift)))
        return sorted(stops, key=lambda item: (item[1].arrive, item[0]))


@dataclass(frozen=True)
class Schedule:
    """When things report: thing i at offset[i] + k * interval[i] for every
    whole k, in milliseconds."""

    interval: Ints
    offset: Ints

    def reports(self, start: int, end: int) -> tuple[Ints, Ints]:
        """(thing, t) of all reports with start <= t < end, sorted by (t, thing)."""
        first = -((self.offset - start) // self.interval)
        first = np.where(self.offset + first * self.interval < start, first + 1, first)
        count = np.maximum(0, -((self.offset + first * self.interval - end) // self.interval))
        thing = np.repeat(np.arange(len(self.interval), dtype=np.int64), count)
        nth = np.arange(len(thing)) - np.repeat(np.cumsum(count) - count, count)
        t = self.offset[thing] + (first[thing] + nth) * self.interval[thing]
        order = np.lexsort((thing, t))
        return thing[order], t[order]


def course(vx: Floats, vy: Floats) -> Floats:
    """Degrees clockwise from north in [0, 360), one decimal."""
    return np.round(np.degrees(np.arctan2(vx, vy)) % 360.0, 1) % 360.0


class Wobble:
    """A receiver's slowly wandering error: smooth in time, at most
    `amplitude[i]` metres on each axis."""

    def __init__(self, chance: np.random.Generator, amplitude: Floats) -> None:
        n = len(amplitude)
        self.amplitude = amplitude
        self._period = chance.uniform((25_000.0, 7_000.0), (60_000.0, 15_000.0), (2, n, 2))
        self._phase = chance.uniform(0, 2 * np.pi, (2, n, 2))

    def at(self, thing: Ints, t: Ints) -> tuple[Floats, Floats]:
        """Error east and north in metres."""
        # Times since 1970 have more digits than a sine keeps: turns are reduced
        # before they become radians.
        turns = (t[:, None] % self._period[:, thing]) / self._period[:, thing]
        waves = np.sin(2 * np.pi * turns + self._phase[:, thing])
        error = (0.6 * waves[..., 0] + 0.4 * waves[..., 1]) * self.amplitude[thing]
        return error[0], error[1]
