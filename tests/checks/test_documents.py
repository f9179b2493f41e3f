"""The documents' links have targets, their prose is wrapped, and the changelog has the required
form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md"), *ROOT.glob("client/*.md")]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_lead_to_files(path: Path) -> None:
    missing = [target for target in LINK.findall(path.read_text()) if not (path.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if ROOT / "docs" in path.parents], ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_of_the_site_link_only_to_pages_of_the_site(path: Path) -> None:
    targets = [(path.parent / target).resolve() for target in LINK.findall(path.read_text())]
    assert [target for target in targets if not target.is_relative_to(ROOT / "docs")] == []


WIDTH = 100
WHOLE = re.compile(r"\s*(\||#|!\[|<(?!!--)|\[[^\]]+\]:)")
"""How lines begin that Markdown does not let break: rows of tables, headings,
pictures, HTML, targets of links."""


def _width(line: str) -> int:
    """Without a last word that is longer than prose has them: an address, a link or an example."""
    *words, last = line.split() or [""]
    return len(line) if len(last) <= 30 else len(" ".join(words))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_is_wrapped(path: Path) -> None:
    """Outside code."""
    is_code, long = False, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not WHOLE.match(line) and _width(line) > WIDTH:
            long.append(number)
    assert long == []


CHANGE = re.compile(r"- \S.*|## (Unreleased|\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d)|### (Added|Changed|Deprecated|Removed|Fixed|Security)|\[[^\]]+\]: \S+|")
"""The lines of a changelog in the form of Keep a Changelog, below its introduction."""


def test_changes_are_single_lines_of_the_form_of_keep_a_changelog() -> None:
    _, first, releases = (ROOT / "CHANGELOG.md").read_text().partition("## ")
    wrong = [line for line in (first + releases).splitlines() if len(line) > WIDTH or not CHANGE.fullmatch(line)]
    assert wrong == []
