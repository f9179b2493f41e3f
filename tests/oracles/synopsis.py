"""Critical points of one entity's track, report by report, directly by the definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Critical = tuple[str, str, int, str]
"""Event, entity, time, area (or "")."""


class Report(NamedTuple):
    entity: str
    t: int
    x: float
    y: float
    speed: float | None
    course: float | None


@dataclass(frozen=True)
class Thresholds:
    gap: int = 1800
    stop: float = 0.5
    slow: float = 5.0
    change: float = 0.25
    turn: float = 15.0
    keep: int = 6


def critical_points(
    reports: Sequence[Report], areas: Callable[[float, float], set[str]], until: int, thresholds: Thresholds = Thresholds()
) -> list[Critical]:
    """All critical points of all entities; the time has come to `until`. Reports of one entity
    are taken in order of time."""
    found: list[Critical] = []
    for entity in sorted({report.entity for report in reports}):
        track = sorted((report for report in reports if report.entity == entity), key=lambda report: report.t)
        found += _of_one(entity, track, areas, until, thresholds)
    return found


def _of_one(entity: str, track: list[Report], areas: Callable[[float, float], set[str]], until: int, h: Thresholds) -> list[Critical]:
    found: list[Critical] = []
    for leg in _legs(track, h.gap):
        points = _of_leg(entity, leg, areas, h)
        last = leg[-1]
        if last.t + h.gap < until:
            points.append(("gap_start", entity, last.t, ""))
            if ("coord", entity, last.t, "") not in points:
                points += [("coord", entity, last.t, "")] + ([("velocity", entity, last.t, "")] if last.speed is not None else [])
        found += points
    return found


def _legs(track: list[Report], gap: int) -> list[list[Report]]:
    """The track cut where two reports are more than `gap` apart."""
    legs: list[list[Report]] = []
    for report in track:
        if legs and report.t - legs[-1][-1].t <= gap:
            legs[-1].append(report)
        else:
            legs.append([report])
    return legs


def _of_leg(entity: str, leg: list[Report], areas: Callable[[float, float], set[str]], h: Thresholds) -> list[Critical]:
    found: list[Critical] = []
    state = {"stop": False, "slow_motion": False, "change_in_speed": False}
    inside: set[str] = set()
    speeds: list[float] = []
    moving: Report | None = None
    unkept = 0
    for place, report in enumerate(leg):
        now: list[tuple[str, str]] = [("gap_end", "")] if place == 0 else []
        speed = report.speed
        if speed is not None:
            mean = sum(speeds[-5:]) / len(speeds[-5:]) if speeds else None
            changing = mean is not None and abs(speed - mean) / max(mean, 0.1) > h.change and max(speed, mean) > h.stop
            for name, holds in (("stop", speed <= h.stop), ("slow_motion", h.stop < speed <= h.slow), ("change_in_speed", changing)):
                if holds != state[name]:
                    now.append((f"{name}_{'start' if holds else 'end'}", ""))
                state[name] = holds
            speeds.append(speed)
            if report.course is not None:
                if moving is not None and min(speed, moving.speed or 0.0) > h.stop and _turn(moving, report) > h.turn:
                    now.append(("change_in_heading", ""))
                moving = report
        here = areas(report.x, report.y)
        now += [("entersArea", area) for area in sorted(here - inside)] + [("leavesArea", area) for area in sorted(inside - here)]
        inside = here
        unkept += 1
        if now or unkept == h.keep:
            now += [("velocity", "")] if speed is not None else []
            now += [("coord", "")]
            unkept = 0
        found += [(name, entity, report.t, area) for name, area in now]
    return found


def _turn(before: Report, after: Report) -> float:
    """The smaller angle between two courses, degrees."""
    assert before.course is not None and after.course is not None
    return abs((after.course - before.course + 180) % 360 - 180)
