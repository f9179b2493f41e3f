"""The examples of docs/specification.md, section 8, are complete: each is run unchanged, and its
answers are those of the page.

An example is a heading `### 8.n`, and below it blocks named `feed.json`, `NAME.json` (queries),
`events.csv` and `answers.csv`.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from engine.backtest.command import main
from webapp.platform.folders import ROOT

PAGE = (ROOT / "docs" / "specification.md").read_text()
EXAMPLES = {part.splitlines()[0]: part for part in re.split(r"^### (?=8\.\d+ )", PAGE.split("\n## 8. ")[1], flags=re.M)[1:]}
BLOCK = re.compile(r"`([\w.-]+)`:\n```\w*\n(.*?)```", re.S)
SHOWN = ("query", "kind", "entities", "value", "start", "end")
FAMILIES = ("border", "transition", "motion", "constraint", "composite", "calculus", "occupancy", "encounter", "arrival")


def test_every_family_has_an_example() -> None:
    assert all(any(f'"family": "{family}"' in text for text in EXAMPLES.values()) for family in FAMILIES)


@pytest.mark.parametrize("heading", EXAMPLES)
def test_an_example_gives_the_answers_that_the_page_shows(heading: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = dict(BLOCK.findall(EXAMPLES[heading]))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    queries = [str(tmp_path / name) for name in files if name.endswith(".json") and name != "feed.json"]
    paths = {name: str(tmp_path / file) for name, file in {"feed": "feed.json", "events": "events.csv", "out": "out.csv"}.items()}
    assert main(["--query", *queries, "--feed", paths["feed"], "--events", paths["events"], "--out", paths["out"]]) == 0
    assert "warning" not in capsys.readouterr().err
    found = [[row[name] for name in SHOWN] for row in csv.DictReader((tmp_path / "out.csv").open())]
    shown = list(csv.reader(io.StringIO(files["answers.csv"])))
    assert [shown[0], *shown[1:]] == [list(SHOWN), *found]
