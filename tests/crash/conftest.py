"""The world of a crash test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.crash.world import World


@pytest.fixture
def world(transactional_db: None, tmp_path: Path, settings: Any) -> Iterator[World]:
    """A feed, two queries, no process yet; whatever was started is ended afterwards."""
    from tests.crash.world import World

    before = os.environ["VEDETTE_VAR"]
    for name in ("VAR", "EVENT_LOG_ROOT", "CHECKPOINT_ROOT"):
        setattr(settings, name, getattr(settings, name))
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.close()
        os.environ["VEDETTE_VAR"] = before
