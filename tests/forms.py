"""One query of each form of specification 5, and queries that derive from them, on a plane of ten
by ten: for tests of code that runs queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MIDDLE = {"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}
CORNER = {"center": [3, 3], "radius": 2}


def _named(event: str) -> dict[str, Any]:
    return {"where": [["event", "=", event]]}


FORMS: Mapping[str, Mapping[str, Any]] = {
    "crowd": {"family": "occupancy", "region": MIDDLE, "count": [">=", 14], "stale": 2500, "lasting": 100},
    "empty": {"family": "occupancy", "region": CORNER, "count": ["<=", 2], "stale": 900},
    "pair": {"family": "encounter", "distance": 0.7, "every": 500, "gap": 1500},
    "close by": {"family": "encounter", "distance": 0.5, "every": 400, "gap": 1200, "position": "interpolated", "inside": MIDDLE, "lasting": 400},
    "long inside": {
        "family": "motion",
        "predicates": [{"inside": CORNER, "window": [4000, 0], "quantifier": "total", "at_least": 1500, "gap": 1000}],
        "every": 500,
    },
    "rising": {
        "family": "constraint",
        "variables": {"V1": {}, "V2": {}},
        "constraints": [
            {"between": ["V1", "V2"], "dt": [1, 150], "distance": {"max": 0.4}, "compare": [["V2.x - V1.x", ">", "0.1 + 2 * V1.y - V1.y - V1.y"]]}
        ],
        "report": "first",
    },
    "crossing": {"family": "border", "region": MIDDLE},
    "back alone": {
        "family": "composite",
        "pattern": "!LEFT[1500] : CAME AND !LEFT[800]",
        "primitives": {"CAME": _named("came"), "LEFT": _named("left")},
        "per": "entity",
        "within": 5000,
        "derive": {"came": {"query": "crossing", "kind": "in", "at": "start"}, "left": {"query": "crossing", "kind": "out", "at": "end"}},
    },
    "met in a crowd": {
        "family": "constraint",
        "variables": {"M": _named("met"), "C": _named("crowd")},
        "constraints": [{"between": ["C", "M"], "dt": [0, 600]}],
        "derive": {"met": {"query": "pair", "kind": "met", "at": "end"}, "crowd": {"query": "crowd", "kind": "occupied", "at": "end"}},
    },
    "side by side": {
        "family": "calculus",
        "program": "initiatedAt(with(X, Y)=true, T) :- happensAt(near(X, Y), T).\nterminatedAt(with(X, Y)=true, T) :- happensAt(alone(X), T).",
        "outputs": ["with"],
        "inputs": {"near": {"args": ["entity", "entity2"]}, "alone": {"args": ["entity"]}},
        "window": 20_000,
        "step": 1_000,
        "derive": {
            "near": {"query": "close by", "kind": "met", "at": "start"},
            "alone": {"query": "back alone", "kind": "detection", "at": "end"},
        },
    },
    "heading in": {"family": "arrival", "region": MIDDLE, "within": 2000, "over": 1500, "gap": 1000},
}
"""By name; each after those it derives from."""
