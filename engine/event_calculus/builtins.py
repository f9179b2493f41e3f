"""What the language computes itself: operators, functions, Allen's relations. Nothing else of Prolog runs."""

from __future__ import annotations

NUMERIC_COMPARISONS = frozenset(["<", ">", "=<", ">=", "=:=", "=\\="])
TERM_COMPARISONS = frozenset(["=", "\\=", "==", "\\==", "@<", "@>", "@=<", "@>="])
FUNCTIONS: dict[str, tuple[int, ...]] = {
    "+": (1, 2), "-": (1, 2), "*": (2,), "/": (2,), "//": (2,), "mod": (2,), "rem": (2,), "abs": (1,), "min": (2,), "max": (2,),
    "sqrt": (1,), "angle_difference": (2,), "bearing": (4,), "distance": (4,),
}  # fmt: skip
"""Arithmetic. angle_difference(a, b): |((a - b + 180) mod 360) - 180| in degrees; bearing and distance (knots' nautical
geometry is left to the caller: metres, on the sphere of radius 6,371,008.8 m) take lon1, lat1, lon2, lat2."""
CONSTANTS = {"inf": float("inf"), "pi": 3.141592653589793}
ALLEN = ("before", "meets", "starts", "finishes", "during", "overlaps", "equal")
ALLEN_MODES = {
    "source": "source", "lhs": "source", "target": "target", "rhs": "target", "union": "union", "intersection": "intersection",
    "relative_complement": "relative_complement", "relative_complement_inverse": "relative_complement_inverse",
}  # fmt: skip
OPERATORS = NUMERIC_COMPARISONS | TERM_COMPARISONS | {"is", ",", ";", "\\+", "+", "-", "*", "/", "//"}
RESERVED = frozenset(
    ["start", "end", "holdsAt", "union_all", "intersect_all", "relative_complement_all", "complement_all", "intDurGreater", "inRange",
     "absoluteAngleDiff", "impliedSpeedBelow", "allen", *ALLEN]
)  # fmt: skip
CONDITIONS = frozenset(["happensAt", "holdsFor", *RESERVED - {"start", "end"}])
"""What a body may hold besides facts, comparisons and arithmetic."""
