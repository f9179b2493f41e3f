"""The worlds in which every family's operator is checked: one line per family.

A line names a strategy of `tests.strategies.World`; its documents should hold several queries, so
that some can come and go.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from engine.families import Family
from tests.strategies import World

TEST_FAMILIES: Mapping[str, Family] = {"echo": Family("tests.families.echo", "EchoOperator")}
"""Families that exist for tests only."""


def echo() -> st.SearchStrategy[World]:
    from tests.families.echo.worlds import worlds

    return worlds()


def border() -> st.SearchStrategy[World]:
    from tests.checks.border import worlds

    return worlds()


def motion() -> st.SearchStrategy[World]:
    from tests.checks.motion import worlds

    return worlds()


def calculus() -> st.SearchStrategy[World]:
    from tests.checks.calculus import worlds

    return worlds()


def constraint() -> st.SearchStrategy[World]:
    from tests.checks.constraint import worlds

    return worlds()


def composite() -> st.SearchStrategy[World]:
    from tests.checks.composite import worlds

    return worlds()


def occupancy() -> st.SearchStrategy[World]:
    from tests.checks.occupancy import worlds

    return worlds()


def encounter() -> st.SearchStrategy[World]:
    from tests.checks.encounter import worlds

    return worlds()


def arrival() -> st.SearchStrategy[World]:
    from tests.checks.arrival import worlds

    return worlds()


WORLDS = {
    "echo": echo,
    "border": border,
    "constraint": constraint,
    "composite": composite,
    "motion": motion,
    "occupancy": occupancy,
    "encounter": encounter,
    "arrival": arrival,
    "calculus": calculus,
}
"""By the first family of the operator."""
