"""Motion pattern answers, straight from specification 5.3: at every evaluation time all windows of
all full trajectories, by plain loops.

Rows are dictionaries in arrival order (`seq` is the position); specifications are the written
JSON. An answer is (query, entity, start, end or None, score or None, seqs of the witnesses in
order of the predicates).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from pyproj import Geod
from shapely import Point
from shapely.geometry import shape

from tests.oracles.conditions import COMPARE, hold

Row = Mapping[str, Any]
Answer = tuple[int, str, int, int | None, float | None, tuple[int, ...]]

GEOD = Geod(ellps="WGS84")


def answers(rows: Sequence[Row], documents: Sequence[Mapping[str, Any]], *, geographic: bool = False, until: int | None = None) -> Counter[Answer]:
    """All answers on accepted rows at the evaluation times up to `until`
    (default: the last row's t)."""
    found: Counter[Answer] = Counter()
    for number, document in enumerate(documents):
        found.update((number, *answer) for answer in matches(rows, document, geographic, until))
    return found


def matches(rows: Sequence[Row], document: Mapping[str, Any], geographic: bool, until: int | None) -> Iterator[Any]:
    """Maximal intervals of one query."""
    if not rows:
        return
    every = document["every"]
    first = min(row["t"] for row in rows)
    last = max(row["t"] for row in rows) if until is None else until
    trajectories: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["t"], row["seq"])):
        if is_sample(row, document):
            trajectories.setdefault(row["entity"], []).append(row)
    begun: dict[str, tuple[int, float | None, tuple[int, ...]]] = {}
    for now in range(-(-first // every) * every, last + 1, every):
        there = satisfying(trajectories, document, now, geographic)
        for entity in [entity for entity in begun if entity not in there]:
            start, score, witnesses = begun.pop(entity)
            yield entity, start, now, score, witnesses
        for entity, (score, witnesses) in there.items():
            begun.setdefault(entity, (now, score, witnesses))
    for entity, (start, score, witnesses) in begun.items():
        yield entity, start, None, score, witnesses


def is_sample(row: Row, document: Mapping[str, Any]) -> bool:
    if row.get("x") is None or row.get("y") is None:
        return False
    return hold(row, document.get("where", []))


def satisfying(trajectories: Mapping[str, list[Row]], document: Mapping[str, Any], now: int, geographic: bool) -> dict[str, Any]:
    """Entity -> (score, witnesses) of those that satisfy the query at `now`."""
    qualified: dict[str, Any] = {}
    for entity, samples in trajectories.items():
        past = [row for row in samples if row["t"] <= now]
        witnesses = witnesses_of(past, document, now, geographic)
        if witnesses is not None and all(total_holds(past, p, now, geographic) for p in document["predicates"] if is_total(p)):
            numerical = [(w, p) for w, p in zip(witnesses, document["predicates"], strict=True) if "distance" in p]
            score = None
            for witness, predicate in numerical:
                score = (score or 0.0) + distance(witness, predicate["distance"], geographic)
            qualified[entity] = (score, tuple(witness["seq"] for witness in witnesses if witness))
    theta = document.get("theta")
    if theta is None:
        return qualified
    op = theta["op"]
    if op in COMPARE:
        return {entity: one for entity, one in qualified.items() if COMPARE[op](one[0], theta["value"])}
    if op in ("min", "max"):
        best = (min if op == "min" else max)((score for score, _ in qualified.values()), default=None)
        return {entity: one for entity, one in qualified.items() if one[0] == best}
    sign = 1 if theta["order"] == "min" else -1
    ranked = sorted(qualified, key=lambda entity: (sign * qualified[entity][0], entity))
    return {entity: qualified[entity] for entity in ranked[: theta["k"]]}


def witnesses_of(past: list[Row], document: Mapping[str, Any], now: int, geographic: bool) -> list[Row] | None:
    """One sample for each predicate that together satisfy all, or None.

    Of several the one shown: for a predicate that is in no order the latest sample that
    satisfies (a distance: the latest with the extremum), for those in order the latest ones,
    the last predicate's first.
    """
    predicates = document["predicates"]
    options = options_of(past, document, now, geographic)
    if not all(options):
        return None
    if any(map(is_total, predicates)):
        rest = [p for p in predicates if not is_total(p)]
        found = witnesses_of(past, {**document, "predicates": rest}, now, geographic) if rest else []
        if found is None:
            return None
        ordered_rest = iter(found)
        return [choices[-1] if is_total(p) else next(ordered_rest) for p, choices in zip(predicates, options, strict=True)]
    orders = orders_of(predicates)
    ordered = sorted({i for pair in orders for i in pair if not is_forall(predicates[i])} | {i for i, p in enumerate(predicates) if is_free(p)})
    chosen = [choices[-1] for choices in options]
    spans = {i: window_of(predicate, document, now) for i, predicate in enumerate(predicates)}
    # All assignments, the latest last predicate first, then the latest one before it, ...
    for assignment in product(*(reversed(options[i]) for i in reversed(ordered))):
        times = dict(zip(reversed(ordered), assignment, strict=True))
        if all(precedes(a, b, times, predicates, spans) for a, b in orders):
            return [times.get(i, chosen[i]) for i in range(len(predicates))]
    return None


def options_of(past: list[Row], document: Mapping[str, Any], now: int, geographic: bool) -> list[list[Row]]:
    """For each predicate the samples that could be its witness, independent of the other
    predicates."""
    options: list[list[Row]] = []
    for predicate in document["predicates"]:
        span = window_of(predicate, document, now)
        inside = [row for row in past if span[0] < row["t"] <= span[1]]
        if "distance" in predicate:
            values = [distance(row, predicate["distance"], geographic) for row in inside]
            wanted = (max if is_forall(predicate) else min)(values, default=None)
            options.append([row for row, value in zip(inside, values, strict=True) if value == wanted][-1:])
        elif is_total(predicate):
            counting = inside if "at_most" in predicate else [row for row in inside if satisfies(row, predicate, geographic)]
            options.append([{}, *counting] if "at_least" in predicate else counting)
        elif is_forall(predicate):
            options.append(inside[-1:] if all(satisfies(row, predicate, geographic) for row in inside) else [])
        else:
            options.append([row for row in inside if satisfies(row, predicate, geographic)])
    return options


def is_total(predicate: Mapping[str, Any]) -> bool:
    return predicate.get("quantifier") == "total"


def total_holds(past: list[Row], predicate: Mapping[str, Any], now: int, geographic: bool) -> bool:
    """Specification 5.3: for each unit of time (t, t + 1] in the window, whether the position
    held during it is inside."""
    start, end = predicate["window"]
    total = 0
    for t in range(now - start, now - end):
        held = [row for row in past if row["t"] <= t]
        if held and (predicate.get("gap") is None or t < held[-1]["t"] + predicate["gap"]):
            total += satisfies(held[-1], predicate, geographic)
    if "at_least" in predicate:
        return total >= predicate["at_least"]
    return total <= predicate["at_most"] and any(now - start < row["t"] <= now - end for row in past)


def steps_done(past: list[Row], document: Mapping[str, Any], now: int, geographic: bool) -> list[bool]:
    """For each predicate whether it holds together with all that must lie before it, in the
    windows of the whole pattern."""
    predicates = document["predicates"]
    options = options_of(past, document, now, geographic)
    orders = orders_of(predicates)
    spans = {i: window_of(predicate, document, now) for i, predicate in enumerate(predicates)}
    done = []
    for i, predicate in enumerate(predicates):
        needed = set() if is_forall(predicate) else {i}
        for _ in predicates:
            needed |= {a for a, b in orders if b in needed and not is_forall(predicates[a])}
        asked = [(a, b) for a, b in orders if {a, b} & needed and all(j in needed or is_forall(predicates[j]) for j in (a, b))]
        assignments = (dict(zip(sorted(needed), rows, strict=True)) for rows in product(*(options[j] for j in sorted(needed))))
        together = any(all(precedes(a, b, times, predicates, spans) for a, b in asked) for times in assignments)
        done.append(bool(options[i]) and together)
    return done


def is_free(predicate: Mapping[str, Any]) -> bool:
    return predicate.get("window") is None


def is_forall(predicate: Mapping[str, Any]) -> bool:
    return predicate.get("quantifier") == "forall"


def orders_of(predicates: Sequence[Mapping[str, Any]]) -> set[tuple[int, int]]:
    """Pairs (a, b) of predicates: the witness of a must be before that of b."""
    binary = [i for i, predicate in enumerate(predicates) if "distance" not in predicate]
    free = [i for i in binary if is_free(predicates[i])]
    neighbours = {(a, b) for a, b in pairwise(binary) if is_free(predicates[a]) or is_free(predicates[b])}
    return neighbours | {(a, b) for n, a in enumerate(free) for b in free[n + 1 :]}


def precedes(a: int, b: int, times: Mapping[int, Row], predicates: Sequence[Mapping[str, Any]], spans: Mapping[int, tuple[int, int]]) -> bool:
    """Whether the witness of a lies before that of b; that of a forall is its
    whole window (start, end]."""
    if is_forall(predicates[a]):
        return spans[a][1] < times[b]["t"]
    if is_forall(predicates[b]):
        return times[a]["t"] <= spans[b][0]
    return bool(times[a]["t"] < times[b]["t"])


def window_of(predicate: Mapping[str, Any], document: Mapping[str, Any], now: int) -> tuple[int, int]:
    """(a, b) with samples at a < t <= b."""
    if predicate.get("window") is None:
        return now - document["horizon"], now
    start, end = predicate["window"]
    return now - start, now - end


def satisfies(row: Row, predicate: Mapping[str, Any], geographic: bool) -> bool:
    if "inside" in predicate:
        return inside(row, predicate["inside"], geographic)
    return not inside(row, predicate["outside"], geographic)


def inside(row: Row, region: Mapping[str, Any], geographic: bool) -> bool:
    if "center" in region:
        return between(row, region["center"], geographic) <= region["radius"]
    return bool(shape(region).intersects(Point(row["x"], row["y"])))


def between(row: Row, place: Sequence[float], geographic: bool) -> float:
    if geographic:
        return float(GEOD.inv(place[0], place[1], row["x"], row["y"])[2])
    return float(np.hypot(row["x"] - place[0], row["y"] - place[1]))


def distance(row: Row, target: Any, geographic: bool) -> float:
    if isinstance(target, list | tuple):
        return between(row, target, geographic)
    if target.get("type") == "Point":
        return between(row, target["coordinates"], geographic)
    if "center" in target:
        return max(between(row, target["center"], geographic) - target["radius"], 0.0)
    assert not geographic, "the distance to a polygon on the globe is compared by sampling, see the test"
    return float(shape(target).distance(Point(row["x"], row["y"])))
