"""A plugin of pytest that lists the tests that take the most processor time, theirs and that of the
processes that they started and awaited. Beside other parts, the time that passes says little."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

LISTED = 30
SHORTEST_S = 3.0
_SPENT: dict[str, float] = {}


def spent_s() -> float:
    """Processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    before = spent_s()
    try:
        return (yield)
    finally:
        _SPENT[item.nodeid] = spent_s() - before


def pytest_terminal_summary(terminalreporter: Any) -> None:
    longest = sorted(_SPENT.items(), key=lambda one: -one[1])[:LISTED]
    terminalreporter.section("most processor time")
    for name, seconds in longest:
        if seconds >= SHORTEST_S:
            terminalreporter.write_line(f"{seconds:.1f} s {name}")
    terminalreporter.write_line(f"{spent_s():.0f} s in all")
