"""The pictures of docs/guide come from `tests.browser.pictures`, whose selectors and
labels are those of the pages."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from tests.browser import pictures
from tests.checks.test_guide import demo_queries, labels, plain
from webapp.platform.folders import ROOT

SCRIPTS = (ROOT / "tests/browser/pictures.py", ROOT / "bench/first_steps.py")
TAKEN = {*pictures.FORMS, *pictures.OTHERS, *pictures.FIRST.values()}
OF_LIBRARIES = {"leaflet-container"}
"""Classes that are not ours."""
OF_TEMPLATES = {"username", "password"}
"""The log-in is a page of the server."""


def shown() -> set[Path]:
    """The pictures that the guide shows."""
    pages = sorted((ROOT / "docs" / "guide").glob("*.md"))
    return {page.parent / name for page in pages for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())}


def calls(path: Path) -> list[ast.Call]:
    """The calls of methods in a script."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]


def first_text(call: ast.Call) -> list[str]:
    return [one.value for one in call.args[:1] if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def labels_in(call: ast.Call) -> list[str]:
    """The labels by which a call finds an element."""
    named = [one.value.value for one in call.keywords if one.arg in {"name", "has_text"} and isinstance(one.value, ast.Constant)]
    return [*map(str, named), *(first_text(call) if name_of(call) in {"get_by_text", "get_by_label"} else [])]


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def test_every_picture_of_the_guide_is_there_and_the_script_takes_it() -> None:
    assert len(shown()) > 10
    assert {str(path.relative_to(ROOT)) for path in shown() if not path.is_file()} == set()
    assert {path.stem for path in shown()} - TAKEN == set()


def test_no_picture_is_left_over() -> None:
    assert set(pictures.IMAGES.iterdir()) - shown() == set()


def test_the_queries_of_the_forms_are_those_of_the_demo() -> None:
    names = [query["name"] for path in (ROOT / "fixtures/scenarios").glob("*.json") for query in json.loads(path.read_text())["queries"]]
    unknown = {part for _, part in pictures.FORMS.values() if not any(part in name for name in names) and not demo_queries().fullmatch(part)}
    assert unknown == set()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_selectors_are_classes_and_ids_of_the_pages(path: Path) -> None:
    selectors = [text for call in calls(path) if name_of(call) in {"locator", "click", "fill"} for text in first_text(call)]
    names = {name for selector in selectors for name in re.findall(r"[.#]([a-z][\w-]*)", selector)} - OF_LIBRARIES - OF_TEMPLATES
    assert len(names) > 3
    source = "\n".join(file.read_text() for file in (ROOT / "frontend/src").rglob("*.ts"))
    assert {name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", source)} == set()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_labels_are_those_of_the_pages(path: Path) -> None:
    texts = {text for call in calls(path) for text in labels_in(call)}
    assert texts
    # A part of a label finds it, too; labels have a place for a number.
    written = {text: plain(re.sub(r"\d+", "{count}", text)) for text in texts}
    assert {text for text, wanted in written.items() if not any(wanted in label for label in labels())} == set()
