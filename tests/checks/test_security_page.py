"""docs/security.md: every test that it names exists, and every requirement
called fulfilled names one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
CHAPTERS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if re.match(r"\| V\d+ ", line)]


@cache
def names_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda one: Path(one).stem)
def test_every_test_that_the_page_names_exists(path: str, name: str) -> None:
    assert name in names_in(path)


def test_every_finding_of_the_review_has_a_test() -> None:
    rows = re.findall(r"^\| ([CHM]\d|Low) \|.*\|(.*)\|$", PAGE, re.MULTILINE)
    assert {finding for finding, _ in rows} == {"C1", "H1", "H2", "H3", *(f"M{n}" for n in range(1, 8)), "Low"}
    assert all("::test_" in tests for _, tests in rows)


def test_every_chapter_names_its_evidence_or_what_is_missing() -> None:
    assert [int(re.match(r"V(\d+) ", chapter[0])[1]) for chapter in CHAPTERS] == list(range(1, 18))  # type: ignore[index]
    for name, fulfilled, _, tests, *missing in CHAPTERS:
        assert fulfilled in ("yes", "partly", "does not apply"), name
        assert fulfilled == "does not apply" or "::test_" in tests, name
        assert fulfilled != "partly" or (missing and missing[0]), name


def test_every_variable_that_holds_a_secret_is_among_the_keys() -> None:
    variables = set(re.findall(r"`([A-Z_]{5,})`", (ROOT / "docs" / "settings.md").read_text()))
    keys = PAGE.split("## Keys")[1].split("## Data")[0]
    holds = re.compile(r"SECRET|PASSWORD$|TOKEN$|KEYS?$|_URL$|PROVIDERS|FALLBACKS")
    of_no_secret = {"VEDETTE_PUBLIC_URL", "VEDETTE_TILE_URL", "VEDETTE_VITE_URL", "VEDETTE_JOB_TOKEN"}
    assert {name for name in variables if holds.search(name)} - of_no_secret == set(re.findall(r"`([A-Z_]{5,})`", keys))


def test_the_page_names_many_tests() -> None:
    assert len(NAMED) > 40 and len(re.findall(r"::test_", PAGE)) == len(NAMED)
