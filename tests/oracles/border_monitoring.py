"""Border and transition answers, straight from specification 5.1 and 5.2 and the options of
docs/specification.md: plain loops, shapely, fractions, pyproj.

Rows are dictionaries in arrival order (`seq` is the position); specifications are the written JSON.
An answer is (query, kind, entity, start, end, seqs of the evidence).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import isqrt, pi, sqrt
from typing import Any

import numpy as np
from pyproj import Geod
from shapely import Point, orient_polygons
from shapely.geometry import shape

from tests.oracles.conditions import hold

Row = Mapping[str, Any]
Answer = tuple[int, str, str, int, int, tuple[int, ...]]

GEOD = Geod(ellps="WGS84")


def answers(rows: Sequence[Row], documents: Sequence[Mapping[str, Any]], *, geographic: bool = False, until: int | None = None) -> Counter[Answer]:
    """All answers on accepted rows; timers up to `until` (default: the last row's t) have fired."""
    ordered = sorted(rows, key=lambda row: (row["t"], row["seq"]))
    now = until if until is not None else max((row["t"] for row in ordered), default=0)
    found: Counter[Answer] = Counter()
    for number, document in enumerate(documents):
        for entity in {row["entity"] for row in ordered}:
            tuples = [row for row in ordered if row["entity"] == entity and is_tuple(row, document)]
            sequence = dwelt(list(crossings(tuples, document, geographic)), document.get("dwell", 0), now)
            if document["family"] == "border":
                found.update((number, kind, entity, t, t, (b["seq"],) if a is None else (a["seq"], b["seq"])) for kind, t, a, b in sequence)
            else:
                found.update((number, *fact) for fact in transitions(entity, sequence, document, now))
    return found


def is_tuple(row: Row, document: Mapping[str, Any]) -> bool:
    """Whether the row counts for the query: its conditions hold and all needed values are there."""
    needed = document.get("ranges", ("x", "y"))
    return hold(row, document.get("where", [])) and all(row.get(column) is not None for column in needed)


def inside(row: Row, document: Mapping[str, Any], geographic: bool) -> bool:
    if "ranges" in document:
        return all((low is None or low <= row[column]) and (high is None or row[column] < high) for column, (low, high) in document["ranges"].items())
    region = document["region"]
    if "center" in region:
        return in_circle(row["x"], row["y"], region, geographic)
    return bool(shape(region).intersects(Point(row["x"], row["y"])))


def in_circle(x: float, y: float, circle: Mapping[str, Any], geographic: bool) -> bool:
    if geographic:
        return bool(GEOD.inv(*circle["center"], x, y)[2] <= circle["radius"])
    return bool(np.hypot(x - circle["center"][0], y - circle["center"][1]) <= circle["radius"])


def crossings(tuples: Sequence[Row], document: Mapping[str, Any], geographic: bool) -> Iterable[tuple[str, int, Row | None, Row]]:
    """(kind, t, d(k-1), d(k)) of the entity's in and out events in order, before any dwell; d(k-1)
    is null for an in at the first tuple."""
    was = False
    for before, after in pairwise([None, *tuples]):
        assert after is not None
        now = stays(after, document, geographic) if was else enters(after, document, geographic)
        if before is None:
            if now and document.get("first") == "enter":
                yield "in", after["t"], None, after
        elif was != now:
            yield ("in" if now else "out"), after["t"], before, after
        elif document.get("segments") and not was:
            span = contact_times(before, after, document["region"], geographic)
            if span is not None:
                yield "in", span[0], before, after
                yield "out", span[1], before, after
        was = now


def enters(row: Row, document: Mapping[str, Any], geographic: bool) -> bool:
    """Whether an entity outside enters with this tuple."""
    fits = not document.get("accuracy") or accuracy(row, document) <= size(document["region"], geographic)
    return inside(row, document, geographic) and fits and condition_holds(row, document)


def stays(row: Row, document: Mapping[str, Any], geographic: bool) -> bool:
    """Whether an entity inside stays with this tuple."""
    slack = max(document.get("hysteresis", 0), accuracy(row, document))
    near = inside(row, document, geographic) or (slack > 0 and within(row, document["region"], slack, geographic))
    return near and condition_holds(row, document)


def condition_holds(row: Row, document: Mapping[str, Any]) -> bool:
    return hold(row, document.get("while", []))


def accuracy(row: Row, document: Mapping[str, Any]) -> float:
    """The radius of the circle in which the fix lies; an unknown or negative one is 0."""
    return max(row.get(document["accuracy"]) or 0, 0) if document.get("accuracy") else 0


def size(region: Mapping[str, Any], geographic: bool) -> float:
    """The radius of a circle, else of the circle with the polygon's area."""
    if "center" in region:
        return float(region["radius"])
    area = abs(GEOD.geometry_area_perimeter(orient_polygons(shape(region)))[0]) if geographic else shape(region).area
    return sqrt(area / pi)


def within(row: Row, region: Mapping[str, Any], slack: float, geographic: bool) -> bool:
    """Whether the region is at most `slack` away from the tuple."""
    if "center" in region:
        return in_circle(row["x"], row["y"], {**region, "radius": region["radius"] + slack}, geographic)
    if geographic:
        return border_distance(row["x"], row["y"], region) <= slack
    x, y = Fraction(row["x"]), Fraction(row["y"])
    return min(square_distance(x, y, a, b) for a, b in edges_of(region)) <= Fraction(slack) ** 2


def square_distance(x: Fraction, y: Fraction, a: Any, b: Any) -> Fraction:
    """The distance from a point to a closed straight edge, in rational numbers."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = dx * dx + dy * dy
    s = min(max(((x - a[0]) * dx + (y - a[1]) * dy) / length, Fraction(0)), Fraction(1)) if length else Fraction(0)
    return (a[0] + s * dx - x) ** 2 + (a[1] + s * dy - y) ** 2


def border_distance(x: float, y: float, region: Mapping[str, Any]) -> float:
    """Least geodesic distance to 2,000 places on each edge."""
    s = np.linspace(0, 1, 2001)
    least = []
    for a, b in edges_of(region):
        places = [np.float64(a[i]) + s * np.float64(b[i] - a[i]) for i in (0, 1)]
        least.append(float(np.min(GEOD.inv(np.full(len(s), x), np.full(len(s), y), *places)[2])))
    return min(least)


def dwelt(sequence: list[tuple[str, int, Row | None, Row]], dwell: int, now: int) -> list[tuple[str, int, Row | None, Row]]:
    """The events that count: an in `dwell` later unless an out comes by then, and the outs that do
    not follow an in that did not count."""
    if not dwell:
        return sequence
    kept, counted = [], True
    for k, (kind, t, before, after) in enumerate(sequence):
        if kind == "in":
            following = sequence[k + 1][1] if k + 1 < len(sequence) else None
            counted = (following is None or following > t + dwell) and t + dwell <= now
            if counted:
                kept.append((kind, t + dwell, before, after))
        elif counted:
            kept.append((kind, t, before, after))
    return kept


def contact_times(before: Row, after: Row, region: Mapping[str, Any], geographic: bool) -> tuple[int, int] | None:
    """First and last time at which the straight move is in the region."""
    p = (Fraction(before["x"]), Fraction(before["y"]))
    q = (Fraction(after["x"]), Fraction(after["y"]))
    t0, length = before["t"], after["t"] - before["t"]
    if p == q:
        return None
    if "center" in region:
        assert not geographic, "geodesic circles are compared by sampling, see the test"
        return circle_times(p, q, region, t0, length)
    moves = [(p, q)]
    if geographic and abs(q[0] - p[0]) > 180:
        # The short way round: the same move on both sides of the antimeridian.
        turn = 360 if q[0] < p[0] else -360
        moves = [(p, (q[0] + turn, q[1])), ((p[0] - turn, p[1]), q)]
    fractions = [s for p, q in moves for a, b in edges_of(region) for s in edge_contacts(p, q, a, b)]
    return (round(t0 + min(fractions) * length), round(t0 + max(fractions) * length)) if fractions else None


def edges_of(region: Mapping[str, Any]) -> Iterable[tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]]:
    polygons = [region["coordinates"]] if region["type"] == "Polygon" else region["coordinates"]
    for rings in polygons:
        for ring in rings:
            points = [(Fraction(x), Fraction(y)) for x, y in ring]
            yield from pairwise(points)


def edge_contacts(p: Any, q: Any, a: Any, b: Any) -> list[Fraction]:
    """Solutions s in [0, 1] of p + s (q - p) on the closed edge a b; the two ends of a common
    segment."""
    dx, dy = q[0] - p[0], q[1] - p[1]
    ex, ey = b[0] - a[0], b[1] - a[1]
    ux, uy = a[0] - p[0], a[1] - p[1]
    across = dx * ey - dy * ex
    if across != 0:
        s, u = (ux * ey - uy * ex) / across, (ux * dy - uy * dx) / across
        return [s] if 0 <= s <= 1 and 0 <= u <= 1 else []
    if ux * dy != uy * dx:
        return []
    places = [((v[0] - p[0]) * dx + (v[1] - p[1]) * dy) / (dx * dx + dy * dy) for v in (a, b)]
    return [s for s in places if 0 <= s <= 1]


def circle_times(p: Any, q: Any, circle: Mapping[str, Any], t0: int, length: int) -> tuple[int, int] | None:
    """Roots of |p + s (q - p) - c| = r in [0, 1], to 1e-60, rounded half to
    even when they are rational."""
    c = [Fraction(v) for v in circle["center"]]
    d, u = (q[0] - p[0], q[1] - p[1]), (p[0] - c[0], p[1] - c[1])
    a, b = d[0] ** 2 + d[1] ** 2, d[0] * u[0] + d[1] * u[1]
    discriminant = b * b - a * (u[0] ** 2 + u[1] ** 2 - Fraction(circle["radius"]) ** 2)
    if discriminant < 0 or not 0 <= -b <= a:
        return None
    top, bottom = isqrt(discriminant.numerator), isqrt(discriminant.denominator)
    root = Fraction(top, bottom)
    if root * root != discriminant:
        scale = 10**80
        root = Fraction(isqrt(discriminant.numerator * scale * scale // discriminant.denominator), scale)
    return round(t0 + (-b - root) / a * length), round(t0 + (-b + root) / a * length)


def transitions(entity: str, sequence: Sequence[tuple[str, int, Row | None, Row]], document: Mapping[str, Any], now: int) -> Iterable[Any]:
    """(kind, entity, start, end, evidence): each event with the next one, or
    alone once its time is over."""
    within = document["within"]
    types = document.get("types", ["passed", "returned", "stayed_in", "stayed_out"])
    for k, (kind, t1, _, revealing) in enumerate(sequence):
        following = sequence[k + 1] if k + 1 < len(sequence) else None
        if following is not None and following[1] - t1 <= within:
            name, end, seqs = ("passed" if kind == "in" else "returned"), following[1], (revealing["seq"], following[3]["seq"])
        elif t1 + within <= now:
            name, end, seqs = ("stayed_in" if kind == "in" else "stayed_out"), t1 + within, (revealing["seq"],)
        else:
            continue
        if name in types:
            yield name, entity, t1, end, seqs
