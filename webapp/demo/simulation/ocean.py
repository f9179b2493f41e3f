"""Feed `ocean`: moored buoys of the tropical Pacific with readings of air, water and wind, as
the TAO array reports them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from webapp.demo.simulation.journeys import METRES_PER_DEGREE, Floats, Ints, Schedule, Wobble
from webapp.demo.simulation.world import Place, TruthEvent

LONGITUDES = (137.0, 147.0, 156.0, 165.0, 180.0, -170.0, -155.0, -140.0, -125.0, -110.0, -95.0)
LATITUDES = (8.0, 5.0, 2.0, 0.0, -2.0, -5.0, -8.0)
WITHOUT = {(137.0, 8.0), (137.0, -8.0), (180.0, -8.0), (-110.0, 8.0), (-110.0, -8.0), (-95.0, 8.0), (-95.0, -8.0)}
"""Places of the grid at which no buoy is moored: 70 are left."""
INTERVAL_MS = 120_000
DRIFT_M = 1_500.0
DAY_MS = 86_400_000

SPELL_EVERY_MS, SPELL_MS = 10_860_000, 360_000
"""A warm calm spell comes over the three buoys about the equator of each meridian about every
three hours, for six minutes."""
FRONT_EVERY_MS, FRONT_MS, FRONT_LAG_MS = 14_820_000, 300_000, 900_000
"""A front: the pressure falls at a buoy off the equator for five minutes; a quarter of an hour
later its neighbour's air is warm as long."""

UPWELLING_EVERY_MS, UPWELLING_MS, UPWELLING_DEGREES = 9_780_000, 420_000, 4.0
"""Cold water comes up at a buoy south of the equator for seven minutes."""


@dataclass(frozen=True)
class Episodes:
    """Something that happens every `every` ms for `last` ms at each of several places,
    each with its own `phase`."""

    every: int
    last: int
    phase: Ints

    def active(self, place: Ints, t: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether it is happening at `place` at `t`; false where the place is -1."""
        return (place >= 0) & ((t - self.phase[np.maximum(place, 0)]) % self.every < self.last)

    def between(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """(place, from, to) of all that overlap [start, end), sorted by time."""
        found = []
        for place, phase in enumerate(self.phase.tolist()):
            first = (start - phase - self.last) // self.every + 1
            begins = range(phase + first * self.every, end, self.every)
            found += [(place, at, at + self.last) for at in begins]
        return sorted(found, key=lambda one: (one[1], one[0]))


class Ocean:
    """The world of one seed (see World)."""

    feed = "ocean"
    history_ms, history_step_ms = 6 * DAY_MS, 600_000
    """How far back `history` reads, and how often each buoy has reported then."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        chance = np.random.default_rng([seed, 4])
        moored = [(lon, lat) for lon in LONGITUDES for lat in LATITUDES if (lon, lat) not in WITHOUT]
        self.lon, self.lat = (np.array(column) for column in zip(*moored, strict=True))
        count = len(moored)
        self.meridian = np.array([LONGITUDES.index(lon) for lon in self.lon.tolist()], np.int64)
        self.names = pa.array([f"buoy {_side(lat, 'N', 'S')} {_side(lon, 'E', 'W')}" for lon, lat in moored])
        self.schedule = Schedule(np.full(count, INTERVAL_MS, np.int64), chance.integers(0, INTERVAL_MS, count))
        self.wobble = Wobble(chance, np.full(count, DRIFT_M))
        self.spells = Episodes(SPELL_EVERY_MS, SPELL_MS, chance.integers(0, SPELL_EVERY_MS, len(LONGITUDES)))
        self.fronts = Episodes(FRONT_EVERY_MS, FRONT_MS, chance.integers(0, FRONT_EVERY_MS, len(LONGITUDES)))
        self._phase = chance.uniform(0, 2 * np.pi, (4, count))
        self.upwellings = Episodes(UPWELLING_EVERY_MS, UPWELLING_MS, chance.integers(0, UPWELLING_EVERY_MS, len(LONGITUDES)))

    def rows(self, start: int, end: int, *, rate: float = 1.0) -> pa.Table:
        """All readings with start <= t < end in order of time. `rate` has no effect on buoys."""
        return self._readings(*self.schedule.reports(start, end))

    def snapshot(self, t: int, *, rate: float = 1.0) -> pa.Table:
        return self._readings(np.arange(len(self.lon), dtype=np.int64), np.full(len(self.lon), t, np.int64))

    def history(self, end: int) -> pa.Table:
        """What the buoys have read in the days before `end`: queries that look back over days
        have something to look at."""
        sparse = Schedule(np.full(len(self.lon), self.history_step_ms, np.int64), self.schedule.offset)
        return self._readings(*sparse.reports(end - self.history_ms, end))

    def _readings(self, buoy: Ints, t: Ints) -> pa.Table:
        east, north = self.wobble.at(buoy, t)
        noise = self._noise(buoy, t)
        equatorial = np.abs(self.lat[buoy]) <= 2.0
        spell = equatorial & self.spells.active(self.meridian[buoy], t)
        falling = (self.lat[buoy] == 5.0) & self.fronts.active(self.meridian[buoy], t)
        rising = (self.lat[buoy] == 2.0) & self.fronts.active(self.meridian[buoy], t - FRONT_LAG_MS)
        cold = (self.lat[buoy] == -5.0) & self.upwellings.active(self.meridian[buoy], t)
        # The water is warmest in the west and along the equator.
        water = 26.6 + 1.4 * np.cos(np.radians(self.lon[buoy] - 155.0)) - 0.08 * np.abs(self.lat[buoy]) + 0.4 * noise[0] + np.where(spell, 2.6, 0.0)
        water -= np.where(cold, UPWELLING_DEGREES, 0.0)
        air = water - 0.8 + 0.5 * noise[1] + np.where(rising, 4.5, 0.0)
        wind = np.where(spell, 0.8 + 0.4 * noise[2], 6.5 + 2.0 * noise[2])
        pressure = 1010.5 + 1.2 * noise[3] - np.where(falling, 7.5, 0.0)
        return pa.table(
            {
                "entity": self.names.take(pa.array(buoy)),
                "t": t,
                "x": np.round(self.lon[buoy] + east / METRES_PER_DEGREE, 5).clip(-180.0, 180.0),
                "y": np.round(self.lat[buoy] + north / METRES_PER_DEGREE, 5),
                "sst": np.round(water, 2),
                "air": np.round(air, 2),
                "wind": np.round(wind, 1),
                "pressure": np.round(pressure, 1),
            }
        )

    def _noise(self, buoy: Ints, t: Ints) -> Floats:
        """Four slow waves in [-1, 1] for each row: the weather of a day and of some minutes."""
        day = 2 * np.pi * (t % DAY_MS) / DAY_MS
        short = 2 * np.pi * (t % 1_500_000) / 1_500_000
        waves: Floats = 0.7 * np.sin(day + self._phase[:, buoy]) + 0.3 * np.sin(short + 2.0 * self._phase[:, buoy])
        return waves

    def truth(self, start: int, end: int) -> list[TruthEvent]:
        """Spells, with the buoys in them; fronts, with the buoy at which each begins and the one
        that it reaches; and cold water."""
        spells = [TruthEvent("spell", self._at(place, -2.0, 2.0), None, a, b) for place, a, b in self.spells.between(start, end)]
        reached = [(place, a, b + FRONT_LAG_MS) for place, a, b in self.fronts.between(start - FRONT_LAG_MS, end)]
        fronts = [TruthEvent("front", self._at(place, 2.0, 5.0)[::-1], None, a, b) for place, a, b in reached if b > start]
        cold = [TruthEvent("upwelling", self._at(place, -5.0, -5.0), None, a, b) for place, a, b in self.upwellings.between(start, end)]
        return sorted([*spells, *fronts, *cold], key=lambda one: (one.start, one.kind, one.entities))

    def _at(self, meridian: int, south: float, north: float) -> tuple[str, ...]:
        """The buoys of a meridian between two latitudes, closed, from south to north."""
        chosen = np.nonzero((self.meridian == meridian) & (self.lat >= south) & (self.lat <= north))[0]
        names = self.names.take(pa.array(chosen[np.argsort(self.lat[chosen])])).to_pylist()
        return tuple(names)

    def places(self) -> list[Place]:
        boxes = {"Warm pool": (140.0, -6.0, 170.0, 6.0), "Cold tongue": (-130.0, -6.0, -92.0, 6.0)}
        return [Place(name, _rectangle(*box), ("basin",)) for name, box in boxes.items()]


def _side(degrees: float, positive: str, negative: str) -> str:
    return f"{abs(degrees):g}{'' if degrees == 0 else positive if degrees > 0 else negative}"


def _rectangle(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[[west, south], [east, south], [east, north], [west, north], [west, south]]]}
