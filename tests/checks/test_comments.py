"""Comments are wrapped, and every rule that is switched off for a line has its reason behind it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100
TOOLS = re.compile(r"# (noqa|type: ignore|fmt: )")
"""Comments for tools are on the line that they are about, even if it is long."""
WITHOUT_REASON = re.compile(r"# noqa(: [A-Z0-9, ]+)?$")
SETTINGS = [
    ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "mkdocs.yml", ROOT / ".pre-commit-config.yaml", *(ROOT / ".github").rglob("*.yml"),
    *(path for path in (ROOT / "docker").iterdir() if path.is_file()),
]  # fmt: skip


def comments_of(path: Path) -> Iterator[tuple[int, str, str]]:
    """The number, the comment and the whole line of each comment of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, token.line.rstrip()


@pytest.mark.parametrize("folder", ["engine", "webapp", "client", "bench", "tests"])
def test_comments_are_wrapped_and_suppressed_rules_have_reasons(folder: str) -> None:
    found = [(path, *comment) for path in sorted((ROOT / folder).rglob("*.py")) for comment in comments_of(path)]
    assert found
    long = [f"{path.relative_to(ROOT)}:{number}" for path, number, text, line in found if len(line) > WIDTH and not TOOLS.match(text)]
    bare = [f"{path.relative_to(ROOT)}:{number}" for path, number, text, _ in found if WITHOUT_REASON.search(text)]
    assert (long, bare) == ([], []), "wrap the first; say why behind the others: # noqa: RULE  the reason"


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_comments_of_settings_are_wrapped(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if line.lstrip().startswith("# ") and len(line) > WIDTH] == []
