"""Constraint query answers, straight from specification 5.4: all tuples of
different events, by plain loops.

Rows are dictionaries in arrival order (`seq` is the position); specifications are the written JSON.
An answer is (query, entities, start, end, seqs), the last in the order of the variables. Distances
are measured from the variable that the document names first among `variables`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

from pyproj import Geod
from shapely import Point
from shapely.geometry import shape

from tests.oracles.conditions import compared, hold

Row = Mapping[str, Any]
Tuple = tuple[Row, ...]
Answer = tuple[int, tuple[str, ...], int, int, tuple[int, ...]]

GEOD = Geod(ellps="WGS84")


def answers(rows: Sequence[Row], documents: Sequence[Mapping[str, Any]], *, geographic: bool = False) -> Counter[Answer]:
    """All answers on accepted rows."""
    found: Counter[Answer] = Counter()
    for number, document in enumerate(documents):
        solutions = list(all_solutions(rows, document, geographic))
        for solution in one_each(solutions) if document.get("report") == "first" else solutions:
            times = [row["t"] for row in solution]
            found[number, tuple(row["entity"] for row in solution), min(times), max(times), tuple(row["seq"] for row in solution)] += 1
    return found


def moment(row: Row) -> tuple[int, int]:
    return row["t"], row["seq"]


def all_solutions(rows: Sequence[Row], document: Mapping[str, Any], geographic: bool) -> Iterator[Tuple]:
    """Of the solutions that differ only in the order of symmetric variables' events, the one that
    comes first, variable by variable."""
    names = list(document["variables"])
    for events in permutations(rows, len(names)):
        if satisfies(dict(zip(names, events, strict=True)), document, geographic):
            others = [other for other in rearranged(events, names, document) if satisfies(dict(zip(names, other, strict=True)), document, geographic)]
            if all([moment(row) for row in events] <= [moment(row) for row in other] for other in others):
                yield events


def rearranged(events: Tuple, names: Sequence[str], document: Mapping[str, Any]) -> Iterator[Tuple]:
    groups = [[names.index(name) for name in group] for group in document.get("symmetric", [])]
    for orders in product(*(permutations(group) for group in groups)):
        other = list(events)
        for group, order in zip(groups, orders, strict=True):
            for place, source in zip(group, order, strict=True):
                other[place] = events[source]
        yield tuple(other)


def one_each(solutions: Sequence[Tuple]) -> Iterator[Tuple]:
    """For each completing event the solution in which it is the first possible variable, then that
    with the latest events in order of variables."""
    best: dict[int, tuple[Any, Tuple]] = {}
    for solution in solutions:
        last = max(solution, key=moment)
        rank = (-solution.index(last), [moment(row) for row in solution])
        if last["seq"] not in best or rank > best[last["seq"]][0]:
            best[last["seq"]] = (rank, solution)
    return iter([solution for _, solution in best.values()])


def satisfies(chosen: Mapping[str, Row], document: Mapping[str, Any], geographic: bool) -> bool:
    for name, variable in document["variables"].items():
        where = [*document.get("where", []), *variable.get("where", [])]
        if not hold(chosen[name], where):
            return False
    order = list(document["variables"])
    return all(constraint_holds(chosen, constraint, order, geographic) for constraint in document.get("constraints", []))


def constraint_holds(chosen: Mapping[str, Row], constraint: Mapping[str, Any], order: Sequence[str], geographic: bool) -> bool:
    between = constraint["between"]
    for i, one in enumerate(between):
        for other in between[i + 1 :]:
            low, high = constraint.get("dt", (None, None))
            apart = chosen[other]["t"] - chosen[one]["t"]
            if (low is not None and apart < low) or (high is not None and apart > high):
                return False
            first, second = sorted((one, other), key=order.index)
            if "distance" in constraint and not close(chosen[first], chosen[second], constraint["distance"], geographic):
                return False
    if "inside" in constraint and not all(inside(chosen[name], constraint["inside"], geographic) for name in between):
        return False
    return all(compared(value(chosen, left), op, value(chosen, right)) for left, op, right in constraint.get("compare", []))


def summed(chosen: Mapping[str, Row], text: str) -> float | None:
    """specification 5.4: products first, from left to right, all in
    doubles; null with a null column."""
    words = text.split()
    first = True
    total, product, sign = 0.0, 0.0, "+"
    for i in range(0, len(words), 2):
        name, dot, column = words[i].partition(".")
        number = chosen[name].get(column) if dot and name in chosen else float(words[i])
        if number is None:
            return None
        if i and words[i - 1] == "*":
            product = product * float(number)
            continue
        if i:
            total = product if first else (total + product if sign == "+" else total - product)
            first, sign = False, words[i - 1]
        product = float(number)
    return product if first else (total + product if sign == "+" else total - product)


def close(one: Row, other: Row, limits: Mapping[str, Any], geographic: bool) -> bool:
    if None in (one["x"], other["x"]):
        return False
    apart = distance(one["x"], one["y"], other["x"], other["y"], geographic)
    low, high = limits.get("min"), limits.get("max")
    if limits.get("open"):
        return (low is None or apart > low) and (high is None or apart < high)
    return (low is None or apart >= low) and (high is None or apart <= high)


def distance(x0: float, y0: float, x1: float, y1: float, geographic: bool) -> float:
    return float(GEOD.inv(x0, y0, x1, y1)[2]) if geographic else math.hypot(x1 - x0, y1 - y0)


def inside(row: Row, region: Mapping[str, Any], geographic: bool) -> bool:
    if row["x"] is None:
        return False
    if "center" in region:
        return distance(*region["center"], row["x"], row["y"], geographic) <= region["radius"]
    return bool(shape(region).intersects(Point(row["x"], row["y"])))


def value(chosen: Mapping[str, Row], operand: Any) -> Any:
    if isinstance(operand, str) and " " in operand:
        return summed(chosen, operand)
    name, dot, column = operand.partition(".") if isinstance(operand, str) else ("", "", "")
    return chosen[name].get(column) if dot and name in chosen else operand
