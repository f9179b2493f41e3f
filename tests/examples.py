"""How many examples a property test takes: a part of them in `make test`, all at night, many times
as many in a search for new ones."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")
SHARES = {"fast": 0.3, "full": 1.0, "thorough": 50.0}
LEAST = 5


def examples(count: int) -> int:
    """Of a test that takes `count` at night."""
    return max(min(count, LEAST), round(count * SHARES[PROFILE]))
