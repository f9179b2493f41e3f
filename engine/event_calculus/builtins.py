"""The built-ins of the language: operators, functions, Allen's relations. Other built-ins of
Prolog are not supported."""

from __future__ import annotations

NUMERIC_COMPARISONS = frozenset(["<", ">", "=<", ">=", "=:=", "=\\="])
TERM_COMPARISONS = frozenset(["=", "\\=", "==", "\\==", "@<", "@>", "@=<", "@>="])
FUNCTIONS: dict[str, tuple[int, ...]] = {
    "+": (1, 2), "-": (1, 2), "*": (2,), "/": (2,), "//": (2,), "mod": (2,), "rem": (2,), "abs": (1,), "min": (2,), "max": (2,),
    "sqrt": (1,), "angle_difference": (2,), "bearing": (4,), "distance": (4,),
}  # fmt: skip
"""Arithmetic. angle_difference(a, b): |((a - b + 180) mod 360) - 180| in degrees; bearing and
distance (knots' nautical geometry is left to the caller: metres, on the sphere of radius
6,371,008.8 m) take lon1, lat1, lon2, lat2."""
CONSTANTS = {"inf": float("inf"), "pi": 3.141592653589793}
ALLEN = ("before", "meets", "starts", "finishes", "during", "overlaps", "equal")
ALLEN_MODES = {
    "source": "source", "lhs": "source", "target": "target", "rhs": "target", "union": "union", "intersection": "intersection",
    "relative_complement": "relative_complement", "relative_complement_inverse": "relative_complement_inverse",
}  # fmt: skip
OPERATORS = NUMERIC_COMPARISONS | TERM_COMPARISONS | {"is", ",", ";", "\\+", "+", "-", "*", "/", "//"}
_ARITIES = {
    "start": (1,), "end": (1,), "holdsAt": (2,), "holdsFor": (2, 3), "happensAt": (2,), "union_all": (2,), "intersect_all": (2,),
    "relative_complement_all": (3,), "complement_all": (2,), "intDurGreater": (3,), "inRange": (3,), "absoluteAngleDiff": (3,),
    "impliedSpeedBelow": (4,), "allen": (5, 6), "findall": (3,), "length": (2,), **dict.fromkeys(ALLEN, (4, 5)),
}  # fmt: skip
RESERVED = frozenset((name, arity) for name, arities in _ARITIES.items() for arity in arities)
"""The built-in predicates with their arities: a fact with another arity may have the same name."""
CONDITIONS = frozenset(_ARITIES) - {"start", "end"}
"""The predicates of a body other than facts, comparisons and arithmetic."""
