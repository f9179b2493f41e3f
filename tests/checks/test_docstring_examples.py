"""The examples in docstrings are right."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [path for package in ("engine", "webapp") for path in sorted((ROOT / package).rglob("*.py")) if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_module_give_what_they_say(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    results = doctest.testmod(module)
    assert results.attempted, "an example that nothing runs: it is not in a docstring"
    assert not results.failed
