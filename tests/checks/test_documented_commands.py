"""Commands in the documents exist, with the options that are written behind them; so do the
files that documents name."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from engine.backtest.command import parser as backtest_parser
from webapp.platform.folders import ROOT

DOCUMENTS = [
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "client").glob("*.md"), *(ROOT / "fixtures").rglob("*.md"))
    if path.name != "CHANGELOG.md" and "decisions" not in path.parts
]
CODE = re.compile(r"```.*?\n(.*?)```|`([^`]+)`", re.S)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OURS = ("bench", "tests", "webapp", "engine", "fixtures")
FILE = re.compile(rf"(?<![\w/.])(?:{'|'.join((*OURS, 'docs', 'frontend', 'client', 'docker'))})/[\w./-]+\.(?:py|ts|json|md|po|yaml|css|env)\b")
GENERATED = {"docker/.env", "docker/settings.env", "docs/openapi.yaml", "frontend/openapi.json"}


def commands(path: Path) -> Iterator[str]:
    """The lines of code of a document, each continued line with the next."""
    for block, inline in CODE.findall(path.read_text()):
        yield from re.sub(r"\\\n\s*", " ", block or re.sub(r"\s+", " ", inline)).splitlines()


def following(name: str, line: str) -> Iterator[tuple[str, set[str]]]:
    """What follows `name` in a line, and the options up to the end of the command."""
    for found in re.finditer(rf"(?<!\S)(?:\S*/)?{name} ([A-Za-z_][\w.]*)([^|;&#)]*)", line):
        yield found[1], set(OPTION.findall(found[2]))


@cache
def options_of(command: str) -> set[str]:
    """The options of a command of manage.py. Raises KeyError."""
    parser = backtest_parser() if command == "backtest" else load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    return {option for action in parser._actions for option in action.option_strings}


@cache
def source_of(module: str) -> str:
    """The text of a module, or of a package's parts, in which its options are declared."""
    found = importlib.util.find_spec(module)
    assert found is not None and found.origin is not None, module
    path = Path(found.origin)
    return "".join(part.read_text() for part in (path.parent.glob("*.py") if path.name == "__init__.py" else [path]))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_their_options_exist(path: Path) -> None:
    wrong = []
    for line in commands(path):
        is_wrapper = path.name == "operations.md" and line.startswith("vedette ")
        for command, options in [*following(r"manage\.py", line), *(following("vedette", line) if is_wrapper else ())]:
            if not (command == "backtest" or command in get_commands()) or not options <= options_of(command):
                wrong.append(line)
        for module, options in following("-m", line):
            if not importlib.util.find_spec(module) or (module.split(".")[0] in OURS and not all(f'"{one}"' in source_of(module) for one in options)):
                wrong.append(line)
        for script, options in re.findall(r"python ((?:bench|tests)/\w+\.py)([^|;&#)]*)", line):
            if not all(f'"{one}"' in (ROOT / script).read_text() for one in OPTION.findall(options)):
                wrong.append(line)
    assert wrong == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_targets_of_make_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M))
    named = {found for line in commands(path) for found in re.findall(r"(?:^|&& |\S=\S+ )make ([a-z-]+)", line)}
    assert named <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_name_the_python_that_set_up_makes(path: Path) -> None:
    """A system's `python`, if there is one, has none of the packages."""
    blocks = "".join(block for block, _ in CODE.findall(path.read_text()))
    assert re.findall(r"(?<![\w/.'\"])python (?:manage\.py|-m) .*", blocks) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(path: Path) -> None:
    named = {found for line in commands(path) for found in FILE.findall(line)}
    assert {found for found in named if not (ROOT / found).exists()} - GENERATED == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_and_documents_that_are_shown_can_be_read(path: Path) -> None:
    """`...` and `{...}` in JSON are placeholders for the reader's values."""
    text = path.read_text()
    for program in re.findall(r"```python\n(.*?)```", text, re.S):
        ast.parse(program)
    for document in re.findall(r"```json\n(.*?)```", text, re.S):
        json.loads(document.replace("{...}", "{}").replace(", ...]", "]"))


def test_there_are_many_commands() -> None:
    lines = [line for path in DOCUMENTS for line in commands(path)]
    assert sum(1 for line in lines for _ in following(r"manage\.py", line)) > 20 and sum(1 for line in lines for _ in following("-m", line)) > 30
