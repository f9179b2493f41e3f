"""Every operator is checked."""

from __future__ import annotations

from engine.families import FAMILIES
from tests.checks.families import TEST_FAMILIES, WORLDS


def test_every_operator_has_worlds() -> None:
    families = {**FAMILIES, **TEST_FAMILIES}
    covered = {name for world in WORLDS for name in families[world].operator().families}
    assert covered >= set(families)
