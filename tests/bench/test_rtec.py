"""The comparison with RTEC: its output is parsed window by window, different answers are refused,
and failures are reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import rtec

PRINTED = """Current Window : (0, 100]
Recognition Time (ms)\t\t\t: 7
Current Window : (100, 200]
Recognition Time (ms)\t\t\t: 9
Recognition Time average (ms)\t\t\t: 8
"""
INTERVALS = """recognitions(predictions,person,[[id0],true],[(40,60),(80,101)]).
recognitions(predictions,close_34,[[id0,id1],false],[(0,101)]).

recognitions(predictions,person,[[id0],true],[(101,120)]).

"""
FACTS = {
    (100, "person", ("id0",), "true", 40, 60),
    (100, "person", ("id0",), "true", 80, 101),
    (100, "close_34", ("id0", "id1"), "false", 0, 101),
    (200, "person", ("id0",), "true", 101, 120),
}


@pytest.fixture
def rtec_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with RTEC's layout whose script prints what the tests put into the files `printed`
    and `intervals`."""
    scripts = tmp_path / "execution scripts"
    data = tmp_path / "examples" / "caviar" / "dataset" / "csv"
    data.mkdir(parents=True)
    scripts.mkdir()
    (data / "appearance.csv").write_text("orientation|40|40|0|id0\nappear|40|40|id0\nappearance|80|80|visible|id0\ndisappear|120|120|id0\n")
    (scripts / "printed").write_text(PRINTED)
    (scripts / "intervals").write_text(INTERVALS)
    script = """for argument in "$@"; do case "$argument" in
--results-directory=*) results="${argument#*=}";;
--input=*events.csv) cp "${argument#*=}" given;;
esac; done
cat printed; cp intervals "$results/log-swi-recognised-intervals.txt"; false
"""
    (scripts / "run_rtec.sh").write_text(script)
    (scripts / "swipl").write_text("#!/bin/sh\n")
    (scripts / "swipl").chmod(0o755)
    monkeypatch.setenv("RTEC_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    return scripts


def test_the_output_of_rtec_is_parsed_window_by_window(rtec_home: Path) -> None:
    found = rtec.caviar(100, 100)
    assert found is not None
    assert found.times == [7.0, 9.0]
    assert found.facts == FACTS
    assert not (rtec_home / "given").exists()


def test_rtec_can_be_given_only_the_rows_that_its_rules_read(rtec_home: Path) -> None:
    assert rtec.caviar(100, 100, read_only=True) is not None
    assert (rtec_home / "given").read_text() == "appear|40|40|id0\ndisappear|120|120|id0\n"


def test_different_answers_are_reported_by_fluent() -> None:
    rtec.check_equal(FACTS, FACTS)
    later = {*FACTS, (200, "person", ("id0",), "true", 141, 160)}
    with pytest.raises(AssertionError, match="person=true ours 3 RTEC 4"):
        rtec.check_equal(FACTS, later)
    moved = FACTS - {(200, "person", ("id0",), "true", 101, 120)} | {(100, "person", ("id0",), "true", 101, 120)}
    with pytest.raises(AssertionError, match="person=true ours 3 RTEC 3"):
        rtec.check_equal(moved, FACTS)


def test_only_intervals_from_before_time_0_may_begin_at_another_time() -> None:
    before = FACTS - {(100, "close_34", ("id0", "id1"), "false", 0, 101)} | {(100, "close_34", ("id0", "id1"), "false", -60, 101)}
    rtec.check_equal(before, FACTS)
    with pytest.raises(AssertionError, match="close_34=false ours 1 RTEC 1"):
        rtec.check_equal(FACTS, before)


def test_without_rtec_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RTEC_HOME", raising=False)
    assert rtec.caviar(100, 100) is None


def test_a_wrong_rtec_folder_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RTEC_HOME", str(tmp_path / "nothing"))
    with pytest.raises(rtec.NotRun, match=r"nothing has no 'execution scripts/run_rtec.sh'"):
        rtec.caviar(100, 100)


def test_missing_prolog_is_reported(rtec_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(rtec.NotRun, match="swipl is not on the path"):
        rtec.caviar(100, 100)


def test_an_error_of_rtec_is_reported(rtec_home: Path) -> None:
    (rtec_home / "run_rtec.sh").write_text("echo Compiling; echo 'compile.sh: line 61: dot: command not found' >&2; exit 1\n")
    with pytest.raises(rtec.NotRun, match="dot: command not found"):
        rtec.caviar(100, 100)


def test_output_that_cannot_be_parsed_is_reported(rtec_home: Path) -> None:
    (rtec_home / "intervals").write_text("recognitions(predictions,person,id0,true,40,60).\n\n")
    with pytest.raises(rtec.NotRun, match="not understood"):
        rtec.caviar(100, 100)
