"""Trajectory synopsis: critical points of each entity's track, derived from its position reports.

This is a separate stage before the windows, so that programs written for critical points run on a
feed of positions. It processes an entity's reports in order of (t, arrival), each when the
watermark has passed it, and emits at the report's t:

- `gap_end(V)`: first report, and each report more than `gap` after the one before; resets the state
  of speed, course and areas
- `gap_start(V)`: last report before a silence of more than `gap` (known only when `gap` has passed;
  its t is the report's)
- `stop_start/_end(V)`: speed <= `stop` begins or ends to hold
- `slow_motion_start/_end(V)`: `stop` < speed <= `slow` begins or ends to hold
- `change_in_speed_start/_end(V)`: abs(speed - m) / max(m, 0.1) > `change` and max(speed, m) >
  `stop`, m the mean of the (up to) 5 speeds before
- `change_in_heading(V)`: the course turned by more than `turn` degrees since the report before,
  both speeds > `stop`
- `entersArea/leavesArea(V, Area)`: a region holds the position (border included) and did not, or
  the other way round
- `velocity(V, Speed, Course, Heading)`, `coord(V, X, Y)`: with each report at which one of the
  above happens, else with every `keep`-th

A report without a speed does not change the state of speed and course, one without a course not
that of turns. A state that a gap resets has no end event.

References: the rules by which the SDEs of RTEC's maritime example are made; [dRTEC] 4.2.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.context import Context
from engine.event_calculus.compiled import jit
from engine.event_calculus.inputs import InputSpec
from engine.event_calculus.intervals import Bools, Ints
from engine.event_calculus.tables import Symbols
from engine.index.compiled import kernel
from engine.model.batch import EVENT, TIME, TIME_END, Batch, X, Y
from engine.model.feed import ColumnType
from engine.model.messages import Message
from engine.model.region import Region

Floats = npt.NDArray[np.float64]
SPEED, COURSE, HEADING, AREA = "#speed", "#course", "#heading", "#area"
"""Columns of the events below; `#` cannot be in the name of a feed's column."""
EVENTS = (
    "gap_start", "gap_end", "stop_start", "stop_end", "slow_motion_start", "slow_motion_end", "change_in_speed_start", "change_in_speed_end",
    "change_in_heading", "entersArea", "leavesArea", "velocity", "coord",
)  # fmt: skip
INPUTS: Mapping[str, InputSpec] = {
    **{name: InputSpec(name, ("entity",)) for name in EVENTS[:9]},
    **{name: InputSpec(name, ("entity", AREA)) for name in EVENTS[9:11]},
    "velocity": InputSpec("velocity", ("entity", SPEED, COURSE, HEADING)),
    "coord": InputSpec("coord", ("entity", X, Y)),
}
"""Events that programs may use without declaring them."""
FIRST_SEQ = 1 << 61
"""The least seq of made events: they come after all rows of the feed, in order of time."""
_NEVER = -(1 << 62)
_NUMERIC = (ColumnType.FLOAT, ColumnType.INT)


@dataclass(frozen=True)
class SynopsisSpec:
    """The columns of a report's values, and the thresholds: `gap` in the unit of t, speeds in the
    feed's unit, `turn` in degrees."""

    event: str
    speed: str
    course: str | None
    heading: str | None
    gap: int
    stop: float = 0.5
    slow: float = 5.0
    change: float = 0.25
    turn: float = 15.0
    keep: int = 6
    areas: Mapping[str, Region] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the feed that are read."""
        return tuple(name for name in (self.speed, self.course, self.heading) if name is not None)


def read_synopsis(value: Any, context: Context) -> SynopsisSpec | None:
    """The key `synopsis` of a specification, or null with its faults noted."""
    given = context.object(
        value, required=["speed", "gap"], optional=["event", "course", "heading", "stop", "slow", "change", "turn", "keep", "areas"]
    )
    columns = {name: context.at(name).column(given[name], kinds=_NUMERIC) for name in ("speed", "course", "heading") if name in given}
    event = context.at("event").string(given["event"]) if "event" in given else "position"
    gap = context.at("gap").duration(given["gap"], least=1) if "gap" in given else None
    limits = {name: context.at(name).number(given[name], least=0) for name in ("stop", "slow", "change", "turn") if name in given}
    keep = context.at("keep").integer(given["keep"], least=1, most=1_000_000) if "keep" in given else 6
    areas = _areas(given.get("areas", {}), context.at("areas"))
    speed = columns.get("speed")
    if event is None or gap is None or speed is None or keep is None or None in limits.values():
        return None
    found = {name: float(limit) for name, limit in limits.items() if limit is not None}
    return SynopsisSpec(event, speed, columns.get("course"), columns.get("heading"), gap, keep=keep, areas=areas, **found)


def _areas(value: Any, context: Context) -> dict[str, Region]:
    if not isinstance(value, Mapping) or len(value) > 10_000:
        context.fault(Message('must be an object such as {"harbour": {"region": "Port A"}} of at most 10,000 areas'))
        return {}
    return {str(name): region for name, document in value.items() if (region := context.at(name).region(document)) is not None}


@dataclass
class SynopsisState:
    """For each entity (by its index in `names`) the values that the next report is compared with,
    and the reports that still wait for the watermark.

    `ints`: t of the last report, how many speeds are kept, reports since one was kept, 1 if the
    last one was, flags (1 stopped, 2 slow, 4 changing, 8 silent). `floats`: x, y, speed, course and
    heading of the last report, speed and course of the last one with a course, five speeds.
    """

    names: Symbols = field(default_factory=Symbols)
    ints: Ints = field(default_factory=lambda: np.empty((0, 5), np.int64))
    floats: Floats = field(default_factory=lambda: np.empty((0, 12)))
    inside: Bools = field(default_factory=lambda: np.empty((0, 0), np.bool_))
    pending_ints: Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))
    pending_floats: Floats = field(default_factory=lambda: np.empty((0, 5)))

    def grow(self, areas: int) -> None:
        more = len(self.names) - len(self.ints)
        if more > 0:
            fresh = np.zeros((more, 5), np.int64)
            fresh[:, 0] = _NEVER
            self.floats = np.concatenate((self.floats, np.full((more, 12), np.nan)))
            self.inside = np.concatenate((self.inside.reshape(len(self.ints), areas), np.zeros((more, areas), np.bool_)))
            self.ints = np.concatenate((self.ints, fresh))

    def dump(self) -> bytes:
        with io.BytesIO() as file:
            names = np.array(self.names.names, np.str_)
            np.savez(file, allow_pickle=False, names=names, **{name: getattr(self, name) for name in _ARRAYS})
            return file.getvalue()

    @classmethod
    def load(cls, data: bytes) -> SynopsisState:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return cls(Symbols(arrays["names"].tolist()), **{name: arrays[name] for name in _ARRAYS})


_ARRAYS = ("ints", "floats", "inside", "pending_ints", "pending_floats")


def synopsis_step(spec: SynopsisSpec, state: SynopsisState, batch: Batch, mine: Bools, watermark: int, lateness: int) -> pa.RecordBatch | None:
    """Adds the reports marked in `mine` and returns the events that are certain: those of
    reports before `watermark`.

    An event's arrival is when the feed's clock has passed its t by more than the lateness (for a
    gap: and the gap), so it depends only on the rows.
    """
    _take(spec, state, batch, mine)
    order = np.lexsort((state.pending_ints[:, 2], state.pending_ints[:, 1]))
    due = state.pending_ints[order, 1] < watermark
    now = order[due]
    reports, values = state.pending_ints[now], state.pending_floats[now]
    state.pending_ints, state.pending_floats = state.pending_ints[order[~due]], state.pending_floats[order[~due]]
    inside = np.empty((len(now), len(spec.areas)), np.bool_)
    for place, region in enumerate(spec.areas.values()):
        inside[:, place] = region.contains(values[:, 0], values[:, 1])
    limits = np.array([spec.stop, spec.slow, spec.change, spec.turn])
    event_ints, event_floats = _points(reports, values, inside, state.ints, state.floats, state.inside, limits, spec.gap, spec.keep, watermark)
    return _events(spec, state, event_ints, event_floats, lateness) if len(event_ints) else None


def _take(spec: SynopsisSpec, state: SynopsisState, batch: Batch, mine: Bools) -> None:
    known = np.flatnonzero(mine & ~np.isnan(batch.x) & ~np.isnan(batch.y))
    if not len(known):
        return
    nothing = np.full(len(batch), np.nan)
    columns = [batch.x, batch.y, *(nothing if name is None else batch.numbers(name) for name in (spec.speed, spec.course, spec.heading))]
    entity = state.names.encode(batch.column("entity"))
    state.grow(len(spec.areas))
    state.pending_ints = np.concatenate((state.pending_ints, np.stack((entity, batch.t, batch.seq), axis=1)[known]))
    state.pending_floats = np.concatenate((state.pending_floats, np.stack(columns, axis=1)[known]))


def _events(spec: SynopsisSpec, state: SynopsisState, event_ints: Ints, event_floats: Floats, lateness: int) -> pa.RecordBatch:
    """The events as rows: `event_ints` has kind, entity, t, area (-1: none)
    and the time of certainty."""
    areas = pa.array([*spec.areas, None], pa.string())
    kinds, t = event_ints[:, 0], event_ints[:, 2]
    numbers = {name: pa.array(event_floats[:, place], pa.float64(), from_pandas=True) for place, name in enumerate((X, Y, SPEED, COURSE, HEADING))}
    return pa.RecordBatch.from_pydict(
        {
            EVENT: pa.array(EVENTS, pa.string()).take(pa.array(kinds)),
            "entity": pa.array(state.names.names, pa.string()).take(pa.array(event_ints[:, 1])),
            TIME: pa.array(t),
            TIME_END: pa.nulls(len(t), pa.int64()),
            "seq": pa.array(FIRST_SEQ + np.maximum(t, 0)),
            "arrived": pa.array(event_ints[:, 4] + lateness + 1),
            AREA: areas.take(pa.array(np.where(event_ints[:, 3] < 0, len(areas) - 1, event_ints[:, 3]))),
            **numbers,
        }
    )


@jit
def _points(
    reports: Ints, values: Floats, inside: Bools, ints: Ints, floats: Floats, held: Bools, limits: Floats, gap: int, keep: int, watermark: int
) -> tuple[Ints, Floats]:
    """Critical points of reports (entity, t, seq; sorted by t) with values (x, y, speed, course,
    heading). Updates the state."""
    event_ints, event_floats = np.empty((64, 5), np.int64), np.empty((64, 5))
    k = 0
    areas = inside.shape[1]
    for i in range(len(reports)):
        entity, t = reports[i, 0], reports[i, 1]
        while k + 2 * areas + 16 > len(event_ints):
            event_ints, event_floats = _grow(event_ints, event_floats)
        before = k
        if ints[entity, 0] == _NEVER or t - ints[entity, 0] > gap:
            k = _silence(event_ints, event_floats, k, entity, ints, floats, gap)
            k = _add(event_ints, event_floats, k, 1, entity, t, -1, t)
            ints[entity, 1:] = 0
            floats[entity, 5:] = np.nan
            held[entity, :] = False
        floats[entity, :5] = values[i]
        ints[entity, 0] = t
        if not np.isnan(values[i, 2]):
            k = _changes_of_motion(event_ints, event_floats, k, entity, ints, floats, limits)
        for area in range(areas):
            if inside[i, area] != held[entity, area]:
                k = _add(event_ints, event_floats, k, 9 if inside[i, area] else 10, entity, t, area, t)
                held[entity, area] = inside[i, area]
        ints[entity, 2] += 1
        ints[entity, 3] = 0
        if k > before or ints[entity, 2] >= keep:
            k = _keep(event_ints, event_floats, k, entity, ints, floats, t)
    for entity in range(len(ints)):
        if ints[entity, 0] != _NEVER and ints[entity, 0] + gap < watermark:
            while k + 16 > len(event_ints):
                event_ints, event_floats = _grow(event_ints, event_floats)
            k = _silence(event_ints, event_floats, k, entity, ints, floats, gap)
    return event_ints[:k], event_floats[:k]


@kernel(inline=True)
def _changes_of_motion(event_ints: Ints, event_floats: Floats, k: int, entity: int, ints: Ints, floats: Floats, limits: Floats) -> int:
    """Writes what the speed and the course of the entity's last report
    change, and remembers them."""
    t, speed, course = ints[entity, 0], floats[entity, 2], floats[entity, 3]
    stop, slow, change, turn = limits
    n = ints[entity, 1]
    mean = 0.0
    for j in range(n):
        mean += floats[entity, 7 + j]
    mean = mean / n if n else 0.0
    changing = n > 0 and abs(speed - mean) / max(mean, 0.1) > change and max(speed, mean) > stop
    for flag, holds in enumerate((speed <= stop, stop < speed and speed <= slow, changing)):
        if holds != (ints[entity, 4] & (1 << flag) > 0):
            ints[entity, 4] ^= 1 << flag
            k = _add(event_ints, event_floats, k, 2 + 2 * flag + (0 if holds else 1), entity, t, -1, t)
    if n == 5:
        for j in range(4):
            floats[entity, 7 + j] = floats[entity, 8 + j]
        n = 4
    floats[entity, 7 + n] = speed
    ints[entity, 1] = n + 1
    if not np.isnan(course):
        if floats[entity, 5] > stop and speed > stop and abs((course - floats[entity, 6] + 180.0) % 360.0 - 180.0) > turn:
            k = _add(event_ints, event_floats, k, 8, entity, t, -1, t)
        floats[entity, 5], floats[entity, 6] = speed, course
    return k


@kernel(inline=True)
def _add(event_ints: Ints, event_floats: Floats, k: int, kind: int, entity: int, t: int, area: int, certain: int) -> int:
    event_ints[k, 0], event_ints[k, 1], event_ints[k, 2], event_ints[k, 3], event_ints[k, 4] = kind, entity, t, area, certain
    event_floats[k, :] = np.nan
    return k + 1


@jit
def _keep(event_ints: Ints, event_floats: Floats, k: int, entity: int, ints: Ints, floats: Floats, certain: int) -> int:
    """Writes velocity and coord of the entity's last report."""
    t = ints[entity, 0]
    if not np.isnan(floats[entity, 2]):
        k = _add(event_ints, event_floats, k, 11, entity, t, -1, certain)
        event_floats[k - 1] = floats[entity, :5]
    k = _add(event_ints, event_floats, k, 12, entity, t, -1, certain)
    event_floats[k - 1] = floats[entity, :5]
    ints[entity, 2] = 0
    ints[entity, 3] = 1
    return k


@jit
def _silence(event_ints: Ints, event_floats: Floats, k: int, entity: int, ints: Ints, floats: Floats, gap: int) -> int:
    """Writes gap_start at the entity's last report, once, and keeps the
    report if it was not kept."""
    if ints[entity, 0] == _NEVER or ints[entity, 4] & 8:
        return k
    certain = ints[entity, 0] + gap
    k = _add(event_ints, event_floats, k, 0, entity, ints[entity, 0], -1, certain)
    if ints[entity, 3] == 0:
        k = _keep(event_ints, event_floats, k, entity, ints, floats, certain)
    ints[entity, 4] |= 8
    return k


@jit
def _grow(event_ints: Ints, event_floats: Floats) -> tuple[Ints, Floats]:
    more, values = np.empty((2 * len(event_ints), 5), np.int64), np.empty((2 * len(event_ints), 5))
    more[: len(event_ints)], values[: len(event_ints)] = event_ints, event_floats
    return more, values


def indicators(specs: Sequence[InputSpec]) -> frozenset[tuple[str, int]]:
    """Name and number of arguments of the inputs among `specs` that a synopsis derives."""
    return frozenset(spec.indicator for spec in specs if INPUTS.get(spec.name) == spec)
