"""Every family of the engine has its part in each table that names families."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.families import FAMILIES
from webapp.queries.sentences import SENTENCES

PAGES = Path(__file__).resolve().parents[2] / "frontend/src/lib/families"


def test_every_family_has_a_sentence() -> None:
    assert SENTENCES.keys() == FAMILIES.keys()


def test_the_pages_know_every_family() -> None:
    listed = re.search(r"FAMILIES = \{(.*?)\}", (PAGES / "index.ts").read_text(), re.DOTALL)
    assert listed is not None and set(re.findall(r"\w+", listed[1])) == FAMILIES.keys()


@pytest.mark.parametrize("name", FAMILIES)
def test_the_pages_have_words_for_each_kind_of_answer(name: str) -> None:
    written = (PAGES / f"{name}.ts").read_text()
    assert set(re.findall(r"(\w+): \{ name: t\(", written)) == set(FAMILIES[name].kinds)
