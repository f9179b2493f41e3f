"""How the runner of all parts handles failing tests: once under load, always, or too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import side_by_side

ALWAYS = "def test_always():\n    assert 'this is why' == ''\n"
ONCE = """
from pathlib import Path


def test_once():
    ran = Path(__file__).with_suffix(".ran")
    before = ran.exists()
    ran.touch()
    assert before
"""
PASSES = "def test_passes():\n    pass\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose part `small` is all of its tests."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.setitem(side_by_side.PARTS, "small", (str(tmp_path),))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path


def outcomes(project: Path) -> tuple[side_by_side.Outcome, side_by_side.Outcome]:
    first = side_by_side.run("small", folder=project)
    return first, side_by_side.repeated("small", first, folder=project)


def test_what_fails_once_is_repeated_alone_and_still_reported(project: Path) -> None:
    (project / "test_small.py").write_text(ONCE + PASSES)
    first, last = outcomes(project)
    assert (first.status, first.failures, last.status) == (1, 1, 0)
    assert "assert before" in first.report
    assert "FAILED test_small.py::test_once" in first.report


def test_errors_in_the_log_of_a_test_are_no_failures(project: Path) -> None:
    (project / "test_small.py").write_text("import logging\n" + ONCE.replace("    assert", "    [logging.error('no') for _ in range(9)]\n    assert"))
    first, last = outcomes(project)
    assert "ERROR    root" in first.report
    assert (first.failures, last.status) == (1, 0)


def test_what_fails_again_fails_the_run(project: Path) -> None:
    (project / "test_small.py").write_text(ONCE + ALWAYS)
    first, last = outcomes(project)
    assert (first.failures, last.status, last.failures) == (2, 1, 1)
    assert "this is why" in last.report


def test_many_failures_are_not_put_down_to_the_load(project: Path) -> None:
    (project / "test_small.py").write_text(
        "".join(ONCE.replace("once", f"once_{n}").replace(".ran", f".{n}") for n in range(side_by_side.REPEATED + 1))
    )
    first, last = outcomes(project)
    assert last is first
    assert first.status == 1


def test_a_file_that_cannot_be_read_fails_the_run(project: Path) -> None:
    (project / "test_small.py").write_text("def test_x(:\n")
    first, last = outcomes(project)
    assert last is first
    assert first.status == 2
