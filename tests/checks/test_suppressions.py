"""Every rule that is switched off for a line has its reason behind it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHOUT_REASON = re.compile(r"# noqa(: [A-Z0-9, ]+)?$")


@pytest.mark.parametrize("folder", ["engine", "webapp", "client", "bench", "tests"])
def test_suppressed_rules_have_reasons(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    lines = [(file, number, line) for file in files for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)]
    bare = [f"{file.relative_to(ROOT)}:{number}" for file, number, line in lines if WITHOUT_REASON.search(line)]
    assert not bare, f"# noqa: RULE  the reason: {bare}"
