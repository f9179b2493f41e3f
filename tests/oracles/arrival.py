"""Arrival answers, straight from decision 27: every entity is asked at every integer instant; lines
and regions meet in rational numbers.

Rows are dictionaries in arrival order (`seq` is the position); specifications are the written JSON.
An answer is (query, entity, start, end, value, evidence as (variable, t, seq)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

from tests.oracles.border_monitoring import edge_contacts, edges_of, inside, is_tuple

Row = Mapping[str, Any]
Item = tuple[str, int, int]
Answer = tuple[int, str, int, int | None, int, tuple[Item, ...]]


class Prediction(NamedTuple):
    """Made at the sample `at` from the course since `base`."""

    base: Row
    at: Row
    time: int


def answers(rows: Sequence[Row], documents: Sequence[Mapping[str, Any]], *, geographic: bool = False) -> Counter[Answer]:
    """All answers on accepted rows."""
    found: Counter[Answer] = Counter()
    for number, document in enumerate(documents):
        for entity in {row["entity"] for row in rows}:
            own = samples(entity, rows, document)
            found.update((number, entity, *answer) for answer in intervals(own, rows, document, geographic))
    return found


def record(rows: Sequence[Row], document: Mapping[str, Any], *, geographic: bool = False) -> dict[str, int]:
    """Hits, false alarms, misses and the sum of the hits' leads."""
    counts = {"hits": 0, "false_alarms": 0, "misses": 0, "lead_of_hits": 0}
    for entity in {row["entity"] for row in rows}:
        own = samples(entity, rows, document)
        ended = [(start, end) for start, end, _, _ in intervals(own, rows, document, geographic) if end is not None]
        within = {row["t"] for row in own if inside(row, document, geographic)}
        hits = [(start, end) for start, end in ended if end in within]
        entries = {after["t"] for before, after in pairwise(own) if after["t"] in within and before["t"] not in within}
        counts["hits"] += len(hits)
        counts["false_alarms"] += len(ended) - len(hits)
        counts["misses"] += len(entries - {end for _, end in hits})
        counts["lead_of_hits"] += sum(end - start for start, end in hits)
    return counts


def samples(entity: str, rows: Sequence[Row], document: Mapping[str, Any]) -> list[Row]:
    """The entity's tuples in order of time, of equal times the last in arrival."""
    tuples = sorted((row for row in rows if row["entity"] == entity and is_tuple(row, document)), key=lambda row: (row["t"], row["seq"]))
    return list({row["t"]: row for row in tuples}.values())


def intervals(
    own: Sequence[Row], rows: Sequence[Row], document: Mapping[str, Any], geographic: bool
) -> Iterable[tuple[int, int | None, int, tuple[Item, ...]]]:
    """(start, end, value, evidence) of the maximal intervals of instants at
    which the entity is arriving."""
    if not own:
        return
    predictions = {row["t"]: prediction(row, own, document, geographic) for row in own}
    instants = range(own[0]["t"], max(row["t"] for row in rows) + 1)
    holds = [current(t, own, predictions, document) for t in instants]
    start = None
    for t, before, now in zip([*instants, None], [None, *holds], [*holds, None], strict=True):
        if t is not None and now is not None and before is None:
            start = t
        if before is not None and (t is None or now is None):
            assert start is not None
            entered = [("entered", row["t"], row["seq"]) for row in own if row["t"] == t and inside(row, document, geographic)]
            yield start, t, before.time, (*evidence(before), *entered)


def current(t: int, own: Sequence[Row], predictions: Mapping[int, Prediction | None], document: Mapping[str, Any]) -> Prediction | None:
    """The prediction by which the entity is arriving at t."""
    last = max(row["t"] for row in own if row["t"] <= t)
    return predictions[last] if t < last + document["gap"] else None


def evidence(made: Prediction) -> tuple[Item, ...]:
    base, at = made.base, made.at
    return ("from", base["t"], base["seq"]), ("at", at["t"], at["seq"]), ("expected", made.time, at["seq"])


def prediction(row: Row, own: Sequence[Row], document: Mapping[str, Any], geographic: bool) -> Prediction | None:
    """The prediction of the sample."""
    before = [one for one in own if row["t"] - document["over"] <= one["t"] < row["t"]]
    if not before or inside(row, document, geographic):
        return None
    base, within = before[0], document["within"]
    dx, dy = row["x"] - base["x"], row["y"] - base["y"]
    if geographic and abs(dx) > 180:
        dx -= 360 if dx > 0 else -360
    times = within / (row["t"] - base["t"])
    p, q = (row["x"], row["y"]), (row["x"] + dx * times, row["y"] + dy * times)
    if geographic and (abs(q[0] - p[0]) > 180 or abs(q[1]) > 90):
        return None
    fraction = first_contact(tuple(map(Fraction, p)), tuple(map(Fraction, q)), document["region"], geographic, within)
    return None if fraction is None else Prediction(base, row, round(row["t"] + fraction * within))


def first_contact(p: Any, q: Any, region: Mapping[str, Any], geographic: bool, within: int) -> Fraction | None:
    """Least s in [0, 1] at which p + s (q - p) is in the region."""
    if "center" in region:
        assert not geographic, "geodesic circles are compared by sampling, see the test"
        return circle_contact(p, q, region, within)
    turns = (-360, 0, 360) if geographic else (0,)
    contacts = (
        [s for turn in turns for a, b in edges_of(region) for s in edge_contacts((p[0] + turn, p[1]), (q[0] + turn, q[1]), a, b)] if p != q else []
    )
    return min(contacts, default=None)


def circle_contact(p: Any, q: Any, circle: Mapping[str, Any], within: int) -> Fraction | None:
    """The first root of |p + s (q - p) - c| = r, with far more digits than times are
    rounded to; 0 if p is inside."""
    c, r = [Fraction(v) for v in circle["center"]], Fraction(circle["radius"])
    d, u = (q[0] - p[0], q[1] - p[1]), (c[0] - p[0], c[1] - p[1])
    if u[0] ** 2 + u[1] ** 2 <= r * r:
        return Fraction(0)
    square, along = d[0] ** 2 + d[1] ** 2, d[0] * u[0] + d[1] * u[1]
    discriminant = along * along - square * (u[0] ** 2 + u[1] ** 2 - r * r)
    if discriminant < 0 or along <= 0:
        return None
    root = Fraction(isqrt(discriminant.numerator), isqrt(discriminant.denominator))
    if root * root != discriminant:
        scale = 10**80
        root = Fraction(isqrt(discriminant.numerator * scale * scale // discriminant.denominator), scale)
    first = (along - root) / square
    return first if first <= 1 else None
