"""A fictional city's streets: a grid bent towards rings, with arterial
streets and two ring roads."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from webapp.demo.simulation.journeys import Floats, Point

LINES = 31
CENTRE = LINES // 2
HALF_SIZE_M = 7_500.0
ARTERIAL_EVERY = 5
RINGS = (5, 10)
"""Distance of the ring roads from the centre, in lines."""

Node = tuple[int, int]


@dataclass(frozen=True)
class Roads:
    """Crossings (i, j) of LINES by LINES streets and where they lie, in metres from the centre."""

    x: Floats
    y: Floats

    @classmethod
    def build(cls, chance: np.random.Generator) -> Roads:
        u, v = np.meshgrid(np.linspace(-1, 1, LINES), np.linspace(-1, 1, LINES), indexing="ij")
        # Half way between a square and a disc: streets near the centre are straight,
        # outer ones bend into rings.
        x = 0.45 * u + 0.55 * u * np.sqrt(1 - v * v / 2)
        y = 0.45 * v + 0.55 * v * np.sqrt(1 - u * u / 2)
        a, b, c, d = chance.uniform(0, 2 * np.pi, 4)
        bent_x = x * HALF_SIZE_M + 130 * np.sin(3 * v + a) + 60 * np.sin(7 * u + 4 * v + b)
        bent_y = y * HALF_SIZE_M + 130 * np.sin(3 * u + c) + 60 * np.sin(6 * v - 5 * u + d)
        return cls(bent_x, bent_y)

    def point(self, node: Node) -> Point:
        return float(self.x[node]), float(self.y[node])

    def speed(self, a: Node, b: Node) -> float:
        """The usual speed on the street between two neighbouring crossings, in metres a second."""
        line = a[0] if a[0] == b[0] else a[1]
        reach = max(abs(a[0] - CENTRE), abs(a[1] - CENTRE))
        if abs(line - CENTRE) in RINGS and reach == abs(line - CENTRE):
            return 18.0
        return 14.0 if line % ARTERIAL_EVERY == 0 else 9.5

    def route(self, a: Node, b: Node, chance: np.random.Generator) -> list[Node]:
        """Crossings from `a` (left out) to `b`: along a side street to an arterial one, along that,
        and along another side street."""
        low, high = sorted((a[0], b[0]))
        crossing = int(chance.integers(max(0, low - 2), min(LINES - 1, high + 2) + 1))
        nearest = round(crossing / ARTERIAL_EVERY) * ARTERIAL_EVERY
        via = nearest if chance.random() < 0.8 else crossing
        corners = [a, (via, a[1]), (via, b[1]), b]
        return [node for start, end in itertools.pairwise(corners) for node in straight(start, end)]


def straight(a: Node, b: Node) -> list[Node]:
    """Crossings on one line from `a` (left out) to `b`."""
    if a == b:
        return []
    if a[0] == b[0]:
        step = 1 if b[1] > a[1] else -1
        return [(a[0], j) for j in range(a[1] + step, b[1] + step, step)]
    step = 1 if b[0] > a[0] else -1
    return [(i, a[1]) for i in range(a[0] + step, b[0] + step, step)]
