"""docs/guide names labels as the pages show them, and queries that the demo has: emphasised
words are one or the other."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from webapp.platform.folders import ROOT

PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
CATALOGUES = (ROOT / "frontend/locale/de.po", ROOT / "webapp/locale/de/LC_MESSAGES/django.po")
EMPHASISED = re.compile(r"(?<![\w*])\*{1,2}([^*]+?)\*{1,2}(?![\w*])")
IN_CODE = re.compile(r"```.*?```|`[^`]*`", re.S)
OTHERS = {
    "digests", "Escalation", "Quiet hours", "port: arrivals", "Say where", "Say which events count", "Say whom it alerts", "For this long", "Page",
    "Shift", "not", "Bank 1", "Camera areas",
}  # fmt: skip
"""Emphasised for another reason, regions of the demo, or only the beginning of a label."""


@cache
def labels() -> frozenset[str]:
    """The texts of all pages, as they are written in the code."""
    found = set()
    for path in CATALOGUES:
        for text in re.findall(r'^msgid(?:_plural)? ((?:"(?:[^"\\]|\\.)*"\n?)+)', path.read_text(), re.M):
            found.add("".join(json.loads(part) for part in re.findall(r'"(?:[^"\\]|\\.)*"', text)))
    return frozenset(plain(text) for text in found)


@cache
def demo_queries() -> re.Pattern[str]:
    documents = [json.loads(path.read_text()) for path in (ROOT / "fixtures/scenarios").glob("*.json")]
    names = [re.escape(query["name"]).replace(r"\{place\}", ".+") for document in documents for query in document["queries"]]
    feeds = [re.escape(document["feed"][key]) for document in documents for key in ("name", "title")]
    return re.compile("|".join([*names, *feeds]), re.I)


def plain(text: str) -> str:
    return text.strip(" .:…").casefold()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.name))
def test_emphasised_words_are_labels_of_pages_or_queries_of_the_demo(path: Path) -> None:
    text = re.sub(r"\s+", " ", IN_CODE.sub("", path.read_text()))
    named = {name.strip() for name in EMPHASISED.findall(text)}
    named -= {name for name in named if len(name) == 1 or name.strip(" .") in OTHERS}
    unknown = {name for name in named if plain(name) not in labels() and not demo_queries().fullmatch(name)}
    assert unknown == set()


def test_the_guide_names_many_labels() -> None:
    assert sum(len(EMPHASISED.findall(IN_CODE.sub("", path.read_text()))) for path in PAGES) > 100
