"""Every family of the engine has its part in each table that names families."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.families import FAMILIES
from webapp.queries.sentences import SENTENCES
from webapp.queries.sentences.kinds import KINDS

PAGES = Path(__file__).resolve().parents[2] / "frontend/src/lib/families"


def test_every_family_has_a_sentence() -> None:
    assert SENTENCES.keys() == FAMILIES.keys()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_kind_of_answer_has_a_title(name: str) -> None:
    assert set(FAMILIES[name].kinds) <= KINDS.keys()


def test_no_title_is_of_a_kind_that_no_family_gives() -> None:
    assert KINDS.keys() == {kind for family in FAMILIES.values() for kind in family.kinds}


def test_the_pages_know_every_family() -> None:
    listed = re.search(r"FAMILIES = \{(.*?)\}", (PAGES / "index.ts").read_text(), re.DOTALL)
    assert listed is not None and set(re.findall(r"\w+", listed[1])) == FAMILIES.keys()


@pytest.mark.parametrize("name", FAMILIES)
def test_the_pages_have_words_for_each_kind_of_answer(name: str) -> None:
    written = (PAGES / f"{name}.ts").read_text()
    assert set(re.findall(r"(\w+): \{ name: t\(", written)) == set(FAMILIES[name].kinds)


SOURCE = PAGES.parents[1]
CROSSING = ("crossing_editor.ts", "query_form_data.ts")
"""The editor and the documents of both families of crossings."""
NAMED = {
    "the family": re.compile(rf'"({"|".join(FAMILIES)})"'),
    "the kind": re.compile(rf'\bkind [!=]== "({"|".join(sorted({kind for family in FAMILIES.values() for kind in family.kinds}))})"'),
}


def own_file(path: Path, family: str) -> bool:
    """The files of a family's editor and documents are named after it."""
    return path.name.startswith(f"{family}_") or (path.name in CROSSING and family in {"border", "transition"})


def test_the_pages_name_a_family_in_its_own_files_only() -> None:
    """All others get its properties from `lib/families`."""
    files = [path for path in sorted(SOURCE.rglob("*.ts")) if PAGES not in path.parents]
    assert len(files) > 100
    found = {
        f"{path.relative_to(SOURCE)}: {what} {name}"
        for path in files
        for what, pattern in NAMED.items()
        for name in pattern.findall(path.read_text())
        if what == "the kind" or not own_file(path, name)
    }
    assert found == set()


def test_the_pages_know_which_answers_end_others_and_who_watches_one_region() -> None:
    written = {name: (PAGES / f"{name}.ts").read_text() for name in FAMILIES}
    ends = {name: dict(re.findall(r'(\w+): \{[^{}]*endedBy: "(\w+)"', text)) for name, text in written.items()}
    for name, family in FAMILIES.items():
        assert ends[name].items() <= family.ends.items() and bool(ends[name]) == bool(family.ends)
        assert ("...CROSSING" in written[name] or "hasRegion: true" in written[name]) == family.has_region
