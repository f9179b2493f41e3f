"""Feed `plaza`: people and what they leave behind on a plaza with stands, seen by a camera five
times a second; pixels of its plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from webapp.demo.simulation.journeys import Floats, Ints, Journey, Journeys, Point, Wobble
from webapp.demo.simulation.plans import PIXELS_PER_M, Colour, Drawing
from webapp.demo.simulation.world import Place, TruthEvent, again

WIDTH, HEIGHT = 960.0, 576.0
"""Pixels; PIXELS_PER_M of them are a metre."""
FRAME_MS = 200
CYCLE_MS = 300_000
"""The period after which everything on the plaza repeats."""
VISITS, MEETINGS, COMPANIES, PARCELS, FIGHTS, SHOWS = 24, 4, 2, 3, 1, 1
"""Scenes in a cycle, of visits as many as there is room for; every other meeting
ends with a walk together."""
CROWD, CROWD_MS = 5, 15_000
"""This many people at one stand at the same time, for this long or longer, are a crowd."""
STAY_MS, ROUND_MS = 20_000, 240_000
"""A person at a stand for longer than this stays there; one who stays at a stand and, within this
time, at another makes a round."""
APART = 40.0
"""People in no common scene keep further apart: more than any distance in the rules about
people."""
BESIDE = 18.0
ERROR = 1.2
"""Of the camera, on each axis."""
DRAWS = 400
"""How often a scene is drawn again when someone would come too close to those of the scenes
before it; then it is left out."""

STANDS: dict[str, tuple[float, float, float, float]] = {
    "Stand A": (144, 372, 264, 492),
    "Stand B": (360, 372, 480, 492),
    "Stand C": (576, 372, 696, 492),
    "Stand D": (192, 84, 336, 192),
    "Cafe": (528, 72, 792, 204),
}
BENCHES: dict[str, tuple[float, float, float, float]] = {"West bench": (24, 120, 96, 216), "East bench": (852, 360, 924, 456)}
"""x0, y0, x1, y1."""
GATES: tuple[Point, ...] = ((30, 288), (930, 288), (72, 546), (840, 546), (432, 30))
AISLE = (222.0, 354.0)
"""The range of y in which everybody walks: between the stands; from each gate it is reached
straight up or down."""
ACTIVITIES = ("walking", "running", "active", "inactive", "abrupt")

Box = tuple[float, float, float, float]


class Role:
    """One entity's part in a scene: its path, and its visible activities; milliseconds from the
    scene's beginning."""

    def __init__(self, name: str, at: Point, start: int = 0) -> None:
        self.name = name
        self.journey = Journey(at)
        if start:
            self.journey.wait(start)
        self.activities: list[tuple[int, int, str]] = []
        """From, to, activity: one after the other, without a break."""

    @property
    def now(self) -> int:
        return self.journey.now

    @property
    def at(self) -> Point:
        return self.journey.knots[-1][1:]

    def go(self, points: Sequence[Point], pace: float, activity: str = "walking") -> None:
        """Straight from point to point at `pace` pixels a second."""
        start = self.now
        self.journey.follow(points, pace)
        self.activities.append((start, self.now, activity))

    def stay(self, milliseconds: int, activity: str = "active") -> None:
        self.activities.append((self.now, self.now + milliseconds, activity))
        self.journey.wait(milliseconds)

    def leave(self, gate: Point, pace: float, activity: str = "walking") -> None:
        """Along the aisle and out."""
        self.go([(gate[0], self.at[1]), gate], pace, activity)


@dataclass(frozen=True)
class Scene:
    """Roles that belong together, and what happens among them; `phase` is when the
    scene begins in each cycle."""

    roles: tuple[Role, ...]
    truth_events: tuple[TruthEvent, ...]
    apart: tuple[tuple[int, int], ...] = ()
    """Places in `roles` of those who keep apart though they are in one scene."""
    phase: int = 0


class Plaza:
    """The world of one seed (see World)."""

    feed = "plaza"

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        chance = np.random.default_rng([seed, 3])
        self.scenes = _scenes(chance)
        roles = [role for scene in self.scenes for role in scene.roles]
        phase = np.array([scene.phase for scene in self.scenes for _ in scene.roles], np.int64)
        self.names = pa.array([role.name for role in roles])
        self.journeys = Journeys([_whole(role.journey) for role in roles], phase)
        self.wobble = Wobble(chance, np.full(len(roles), ERROR))
        activities = [(n * CYCLE_MS + a, n * CYCLE_MS + b, ACTIVITIES.index(what)) for n, role in enumerate(roles) for a, b, what in role.activities]
        tracks: Floats = np.stack([_track(role, scene.phase) for scene in self.scenes for role in scene.roles])
        called = self.names.to_pylist()
        self.gatherings = [*_crowds(called, tracks), *_rounds(called, tracks)]
        self._from, self._to, self._what = np.array(activities, np.int64).T

    def rows(self, start: int, end: int, *, rate: float = 1.0) -> pa.Table:
        t = np.arange(-(-start // FRAME_MS) * FRAME_MS, end, FRAME_MS, dtype=np.int64)
        role = np.tile(np.arange(len(self.names), dtype=np.int64), len(t))
        t = np.repeat(t, len(self.names))
        activity = self._activity(role, _inner(t, rate))
        seen = activity >= 0
        first = seen & (self._activity(role, _inner(t - FRAME_MS, rate)) < 0)
        last = seen & (self._activity(role, _inner(t + FRAME_MS, rate)) < 0)
        x, y, speed = self._places(role[seen], t[seen], rate)
        nothing = np.full(int(seen.sum()), np.nan)
        parts = [
            self._table("coord", role[seen], t[seen], x, y, speed),
            self._table(pa.array(ACTIVITIES).take(pa.array(self._what[activity[seen]])), role[seen], t[seen], nothing, nothing, nothing),
            *(self._table(event, role[some], t[some], *[nothing[: int(some.sum())]] * 3) for event, some in (("appear", first), ("disappear", last))),
        ]
        rows = pa.concat_tables(parts)
        return rows.take(pa.array(np.argsort(rows["t"].to_numpy(), kind="stable")))

    def snapshot(self, t: int, *, rate: float = 1.0) -> pa.Table:
        """Empty: the next frame shows everybody, and rows between two frames
        would belong to no scene."""
        return self.rows(t, t, rate=rate)

    def _activity(self, role: Ints, t: Ints) -> Ints:
        """Place in the list of all activities of what each role does at its
        `t`; -1 while it is not seen."""
        since = (t - self.journeys.phase[role]) % CYCLE_MS + role * CYCLE_MS
        position = np.searchsorted(self._from, since, side="right") - 1
        return np.where((position >= 0) & (since < self._to[position]), position, -1)

    def _places(self, role: Ints, t: Ints, rate: float) -> tuple[Floats, Floats, Floats]:
        """Position in pixels and speed in metres a second."""
        x, y, vx, vy = self.journeys.at(role, _inner(t, rate))
        east, north = self.wobble.at(role, t)
        return np.round(x + east, 1), np.round(y + north, 1), np.round(rate * np.hypot(vx, vy) / PIXELS_PER_M, 2)

    def _table(self, event: str | pa.Array, role: Ints, t: Ints, x: Floats, y: Floats, speed: Floats) -> pa.Table:
        numbers = {name: pa.array(values, pa.float64(), from_pandas=True) for name, values in (("x", x), ("y", y), ("speed", speed))}
        events = pa.array([event] * len(t), pa.string()) if isinstance(event, str) else event
        return pa.table({"event": events, "entity": self.names.take(pa.array(role)), "t": t, **numbers})

    def truth(self, start: int, end: int) -> list[TruthEvent]:
        """Visits, crowds at stands and rounds over them; greetings, meetings, walks together,
        fights; things left behind, until they are taken."""
        truth_events: list[TruthEvent] = [one for first in self.gatherings for one in again(first, CYCLE_MS, start, end)]
        for scene in self.scenes:
            for one in scene.truth_events:
                first = replace(one, start=scene.phase + one.start, end=scene.phase + one.end)
                truth_events += again(first, CYCLE_MS, start, end)
        return sorted(truth_events, key=lambda one: (one.start, one.kind, one.entities))

    def places(self) -> list[Place]:
        stands = [Place(name, _rectangle(*box), ("stand",)) for name, box in STANDS.items()]
        return [*stands, *(Place(name, _rectangle(*box), ("bench",)) for name, box in BENCHES.items())]


def _inner(t: Ints, rate: float) -> Ints:
    """The time in the world at time `t`."""
    return t if rate == 1.0 else (t * rate).astype(np.int64)


def _whole(journey: Journey) -> Journey:
    """The journey and then nothing to the end of the cycle."""
    journey.wait(CYCLE_MS - journey.now)
    return journey


def _rectangle(x0: float, y0: float, x1: float, y1: float) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]]}


# -- scenes ----------------------------------------------------------------------------------------


def _scenes(chance: np.random.Generator) -> list[Scene]:
    """All scenes of a cycle: those that there must be first, then visits until the plaza is
    full."""
    people = VISITS + 2 * (MEETINGS + COMPANIES + PARCELS + FIGHTS) + CROWD * SHOWS
    name = (f"person-{n + 1:02d}" for n in chance.permutation(people))
    draws: list[Callable[[], Scene]] = [
        *(partial(_show, chance, [next(name) for _ in range(CROWD)]) for _ in range(SHOWS)),
        *(partial(_fight, chance, next(name), next(name)) for _ in range(FIGHTS)),
        *(partial(_parcel, chance, next(name), next(name), f"bag-{n + 1}") for n in range(PARCELS)),
        *(partial(_meeting, chance, next(name), next(name), n % 2 == 1) for n in range(MEETINGS)),
        *(partial(_company, chance, next(name), next(name)) for _ in range(COMPANIES)),
        *(partial(_visit, chance, next(name)) for _ in range(VISITS)),
    ]
    tracks: list[Floats] = []
    return [scene for draw in draws if (scene := _placed(draw, chance, tracks)) is not None]


def _placed(draw: Callable[[], Scene], chance: np.random.Generator, tracks: list[Floats]) -> Scene | None:
    """A scene, drawn again until nobody in it comes near anybody of `tracks`, to which its tracks
    are added; null if there is no room."""
    for _ in range(DRAWS):
        scene = replace(draw(), phase=FRAME_MS * int(chance.integers(CYCLE_MS // FRAME_MS)))
        own = [_track(role, scene.phase) for role in scene.roles]
        strange = [(one, other) for one in own for other in tracks] + [(own[i], own[j]) for i, j in scene.apart]
        if not any((np.hypot(*(one - other)) < APART).any() for one, other in strange):
            tracks += own
            return scene
    return None


def _track(role: Role, phase: int) -> Floats:
    """x and y at each frame of the cycle, of shape (2, frames); not a
    number while it is not seen."""
    since = (np.arange(0, CYCLE_MS, FRAME_MS) - phase) % CYCLE_MS
    t, x, y = np.array(role.journey.knots, np.float64).T
    seen = (since >= role.activities[0][0]) & (since < role.activities[-1][1])
    return np.where(seen, [np.interp(since, t, x), np.interp(since, t, y)], np.nan)


def _gate(chance: np.random.Generator) -> Point:
    return GATES[int(chance.integers(len(GATES)))]


def _pace(chance: np.random.Generator) -> float:
    """Of someone who walks; pixels a second."""
    return float(PIXELS_PER_M * chance.uniform(1.0, 1.5))


def _spot(chance: np.random.Generator) -> Point:
    return float(chance.uniform(130, 830)), float(chance.uniform(*AISLE))


def _seconds(chance: np.random.Generator, least: float, most: float) -> int:
    return int(1000 * chance.uniform(least, most))


def _visit(chance: np.random.Generator, name: str) -> Scene:
    """In by a gate, to some stands or a bench, out by a gate."""
    gate, pace = _gate(chance), _pace(chance)
    role = Role(name, gate)
    visits = []
    for place in chance.permutation([*STANDS, *BENCHES])[: int(chance.integers(2, 4))]:
        x0, y0, x1, y1 = {**STANDS, **BENCHES}[place]
        x, y, aisle = chance.uniform(x0 + 20, x1 - 20), chance.uniform(y0 + 20, y1 - 20), chance.uniform(*AISLE)
        role.go([(role.at[0], aisle), (x, aisle), (x, y)], pace)
        arrived = role.now
        if place in STANDS:
            role.stay(_seconds(chance, 8, 60))
            visits.append(TruthEvent("visit", (name,), str(place), arrived, role.now))
        else:
            role.stay(_seconds(chance, 20, 50), "inactive")
    role.go([(role.at[0], float(chance.uniform(*AISLE)))], pace)
    role.leave(_gate(chance), pace)
    return Scene((role,), tuple(visits))


def _show(chance: np.random.Generator, guests: Sequence[str]) -> Scene:
    """One after the other comes to the cafe, each to a separate table; they leave when it is over,
    in the order in which they came."""
    x0, y0, x1, y1 = STANDS["Cafe"]
    gate, pace = _gate(chance), _pace(chance)
    apart = int(1000 * 1.5 * APART / pace)
    tables = [(x0 + (x1 - x0) * (n + 0.5) / len(guests), float(chance.uniform(y0 + 30, y1 - 30))) for n in range(len(guests))]
    aisle, leaving, stay = AISLE[0] + 20, AISLE[0] + 70, _seconds(chance, 40, 50)
    roles = []
    # Those who come first sit farthest from the gate, so that nobody passes another's table.
    tables.sort(key=lambda table: -abs(table[0] - gate[0]))
    for n, (guest, (x, y)) in enumerate(zip(guests, tables, strict=True)):
        role = Role(guest, gate, start=n * apart)
        role.go([(gate[0], aisle), (x, aisle), (x, y)], pace)
        role.stay(stay)
        roles.append(role)
    for role in roles:
        role.go([(role.at[0], leaving)], pace)
        role.leave(gate, pace)
    pairs = tuple((n, m) for n in range(len(roles)) for m in range(n))
    return Scene(tuple(roles), (), apart=pairs)


def _at_stand(tracks: Floats, stand: str) -> npt.NDArray[np.bool_]:
    """Whether each person (row) is at the stand in each frame of the cycle (column)."""
    x0, y0, x1, y1 = STANDS[stand]
    inside: npt.NDArray[np.bool_] = (tracks[:, 0] >= x0) & (tracks[:, 0] <= x1) & (tracks[:, 1] >= y0) & (tracks[:, 1] <= y1)
    return inside


def _spans(holds: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(begin, length) in frames of the periods in which something holds; the cycle's end and
    beginning are one moment."""
    begins = np.flatnonzero(holds & ~np.roll(holds, 1)).tolist()
    ends = np.flatnonzero(~holds & np.roll(holds, 1)).tolist()
    return [(begin, min((end - begin) % holds.size for end in ends)) for begin in begins]


def _crowds(names: Sequence[str], tracks: Floats) -> list[TruthEvent]:
    """From when to when at least CROWD are at one stand, all of whom are named; of one cycle."""
    found = []
    for stand in STANDS:
        inside = _at_stand(tracks, stand)
        for begin, length in _spans(inside.sum(axis=0) >= CROWD):
            there = np.flatnonzero(inside[:, np.arange(begin, begin + length) % inside.shape[1]].any(axis=1))
            if length * FRAME_MS >= CROWD_MS:
                guests = tuple(names[one] for one in there.tolist())
                found.append(TruthEvent("crowd", guests, stand, begin * FRAME_MS, (begin + length) * FRAME_MS))
    return found


def _rounds(names: Sequence[str], tracks: Floats) -> list[TruthEvent]:
    """People who stay at a stand and then at another (or come back in the next cycle), from the
    beginning of the first stay until the second one counts as a stay."""
    found = []
    inside = [_at_stand(tracks, stand) for stand in STANDS]
    for who, name in enumerate(names):
        spans = sorted(span for there in inside for span in _spans(there[who]))
        stays = [begin * FRAME_MS for begin, length in spans if length * FRAME_MS > STAY_MS]
        for first, second in pairwise([*stays, *(stay + CYCLE_MS for stay in stays[:1])]):
            if second - first <= ROUND_MS:
                found.append(TruthEvent("round", (name,), None, first, second + STAY_MS))
    return found


def _meeting(chance: np.random.Generator, waiting: str, coming: str, together: bool) -> Scene:
    """One waits, the other comes; after a talk they leave one after the other, or `together`."""
    (x, y), gate, pace = _spot(chance), _gate(chance), _pace(chance)
    one = Role(waiting, gate)
    one.go([(gate[0], y), (x, y)], pace)
    gate = _gate(chance)
    other = Role(coming, gate, start=one.now)
    # Each stays on the side from which they came, so that paths do not cross.
    beside = BESIDE if gate[0] >= x else -BESIDE
    other.go([(gate[0], y), (x + beside, y)], pace)
    met = other.now
    other.stay(_seconds(chance, 12, 25))
    parted, gate = other.now, _gate(chance)
    one.stay(parted - one.now + (0 if together else _seconds(chance, 6, 10)))
    if together:
        other.go([(gate[0] + beside, y), (gate[0] + beside, gate[1])], pace)
    else:
        other.leave(gate, pace)
    one.leave(gate if together else _gate(chance), pace)
    pair = (waiting, coming)
    end = min(one.now, other.now) if together else parted
    walks = (TruthEvent("moving", pair, None, parted, end),) if together else ()
    return Scene((one, other), (TruthEvent("greeting", pair, None, met, parted), TruthEvent("meeting", pair, None, met, end), *walks))


def _company(chance: np.random.Generator, left: str, right: str) -> Scene:
    """Two who walk from one gate to another side by side."""
    (x, y), start, pace, end = _spot(chance), _gate(chance), _pace(chance), _gate(chance)
    roles = Role(left, start), Role(right, (start[0] + BESIDE, start[1]))
    for role, aside in zip(roles, (0.0, BESIDE), strict=True):
        role.go([(start[0] + aside, y), (x + aside, y), (end[0] + aside, y), (end[0] + aside, end[1])], pace)
    return Scene(roles, (TruthEvent("moving", (left, right), None, 0, roles[0].now),))


def _parcel(chance: np.random.Generator, owner: str, porter: str, bag: str) -> Scene:
    """Someone puts a bag down and goes; much later someone else takes it away."""
    (x, y), gate, pace = _spot(chance), _gate(chance), _pace(chance)
    one = Role(owner, gate)
    one.go([(gate[0], y), (x, y)], pace)
    one.stay(2_000)
    left = one.now
    one.stay(2_000)
    one.leave(_gate(chance), pace)
    gate = _gate(chance)
    other = Role(porter, gate, start=left + _seconds(chance, 40, 60))
    other.go([(gate[0], y), (x, y)], pace)
    other.stay(2_000)
    taken = other.now
    other.stay(1_000)
    other.leave(_gate(chance), pace)
    thing = Role(bag, (x, y + 12), start=left)
    thing.stay(taken - left, "inactive")
    return Scene((one, other, thing), (TruthEvent("left-object", (owner, bag), None, left, taken),), apart=((0, 1),))


def _fight(chance: np.random.Generator, victim: str, attacker: str) -> Scene:
    """One waits, another comes, runs the last metres, and after a struggle both run away."""
    (x, y), gate, pace = _spot(chance), _gate(chance), _pace(chance)
    one = Role(victim, gate)
    one.go([(gate[0], y), (x, y)], pace)
    gate = _gate(chance)
    other = Role(attacker, gate, start=one.now)
    beside, runs = (1.0 if gate[0] >= x else -1.0), 3 * PIXELS_PER_M
    other.go([(gate[0], y), (x + 110 * beside, y)], pace)
    other.go([(x + 14 * beside, y)], runs, "running")
    began = other.now
    one.stay(began - one.now)
    for role in (one, other):
        role.stay(7_000, "abrupt")
    ended = one.now
    one.leave(_gate(chance), runs, "running")
    other.leave(_gate(chance), runs, "running")
    return Scene((one, other), (TruthEvent("fight", (victim, attacker), None, began, ended),))


def plan() -> bytes:
    """The plaza's plan as a PNG: walls, gates, stands and benches."""
    drawing = Drawing(WIDTH / PIXELS_PER_M, HEIGHT / PIXELS_PER_M)
    drawing.grid()
    for box in (*STANDS.values(), *BENCHES.values()):
        drawing.block(*(edge / PIXELS_PER_M for edge in box))
    drawing.walls()
    for gate in GATES:
        x0, y0, x1, y1 = (edge / PIXELS_PER_M for edge in _opening(gate))
        drawing.fill(x0, y0, x1, y1, Colour.DOOR)
    return drawing.png()


def _opening(gate: Point, thick: float = 0.3 * PIXELS_PER_M, half: float = 1.5 * PIXELS_PER_M) -> Box:
    """The gap in the nearest wall."""
    x, y = gate
    if min(x, WIDTH - x) < min(y, HEIGHT - y):
        x0 = 0.0 if x < WIDTH / 2 else WIDTH - thick
        return x0, y - half, x0 + thick, y + half
    y0 = 0.0 if y < HEIGHT / 2 else HEIGHT - thick
    return x - half, y0, x + half, y0 + thick
