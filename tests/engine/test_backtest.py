"""The command: options, refusals, statistics. Answers are those of the families' own tests."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.backtest import command
from engine.backtest.command import main
from engine.families import FAMILIES
from engine.model.feed import Feed
from tests.checks.families import TEST_FAMILIES

FEED = {"name": "f", "crs": "planar", "time": "ms", "lateness": 3, "columns": {"v": "float"}}
ROWS = "entity,t,x,y,v\na,1,1,1,1\nb,2,9,9,2\na,2,9,9,\na,2,9,9,\nc,oops,1,1,1\na,9,1,1,5\nb,4,1,1,1\nb,8,1,1,1\n"
BOX = {"type": "Polygon", "coordinates": [[[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]]]}
BORDER = {"family": "border", "version": 1, "name": "box", "region": BOX}


@pytest.fixture(autouse=True, scope="module")
def with_test_families() -> Iterator[None]:
    FAMILIES.update(TEST_FAMILIES)
    yield
    for name in TEST_FAMILIES:
        del FAMILIES[name]


class Folder:
    """A folder with a feed, events and queries, and the command run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("feed.json", FEED)
        self.write("events.csv", ROWS)
        self.write("box.json", BORDER)

    def write(self, name: str, content: Any) -> Path:
        path = self.path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def run(self, *extra: str, queries: tuple[str, ...] = ("box.json",), events: str = "events.csv", out: str = "out.jsonl") -> int:
        first, *others = (str(self.path / query) for query in queries)
        # The first separately and the others together: both ways to name several.
        command = ["--query", first, *(["--query", *others] if others else [])]
        command += ["--feed", str(self.path / "feed.json"), "--events", str(self.path / events), "--out", str(self.path / out)]
        return main([*command, "--stats", str(self.path / "stats.json"), *extra])

    def answers(self) -> list[tuple[Any, ...]]:
        rows = [json.loads(line) for line in (self.path / "out.jsonl").read_text().splitlines()]
        return [(row["query"], row["kind"], row["entities"], row["start"], row["end"]) for row in rows]

    def stats(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads((self.path / "stats.json").read_text())
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


EXPECTED = [("box", "out", ["a"], 2, 2), ("box", "in", ["b"], 8, 8), ("box", "in", ["a"], 9, 9)]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--batch-rows", "1"],
        ["--partitions", "3", "--batch-rows", "2"],
        ["--shuffle-within", "3", "--seed", "5"],
        ["--until", "99"],
        ["--map", "v=v"],
    ],
)
def test_answers_do_not_depend_on_batches_partitions_or_workers(folder: Folder, options: list[str]) -> None:
    assert folder.run(*options) == 0
    assert folder.answers() == EXPECTED
    stats = folder.stats()
    counts = {name: stats[f"rows_{name}"] for name in ("read", "accepted", "duplicate", "late", "dead")}
    assert counts == {"read": 8, "accepted": 5, "duplicate": 1, "late": 1, "dead": 1}
    assert stats["answers"] == stats["queries"]["box"]["answers"] == 3
    assert stats["queries"]["box"]["work"]["crossings"] == 3
    assert stats["peak_memory_bytes"] > 0
    assert stats["rows_per_second"] >= 0
    assert stats["events_kept"] == 2


def test_parquet_answers_have_the_columns_of_the_contract(folder: Folder) -> None:
    assert folder.run(out="out.parquet") == 0
    table = pq.read_table(folder.path / "out.parquet")
    assert table.column_names == ["query", "kind", "entities", "value", "start", "end", "evidence", "weight", "detected_at"]
    assert [item["t"] for item in table.column("evidence")[0].as_py()] == [1, 2]


def test_refused_and_late_rows_are_written_with_their_reasons(folder: Folder) -> None:
    assert folder.run("--dead-letters", str(folder.path / "dead.jsonl")) == 0
    letters = [json.loads(line) for line in (folder.path / "dead.jsonl").read_text().splitlines()]
    assert [(letter["reason"], letter["line"]) for letter in letters] == [("wrong_type", 6), ("late", None)]
    assert [json.loads(letter["row"])["t"] for letter in letters] == ["oops", 4]


def test_timers_fire_up_to_the_last_event_or_up_to_until(folder: Folder) -> None:
    folder.write("stay.json", {"family": "transition", "region": BOX, "within": 5, "types": ["stayed_in"]})
    assert folder.run(queries=("stay.json",)) == 0
    assert folder.answers() == []
    assert folder.run("--until", "13", queries=("stay.json",)) == 0
    assert folder.answers() == [("stay", "stayed_in", ["b"], 8, 13)]
    assert folder.run("--until", "14", queries=("stay.json",)) == 0
    assert folder.answers() == [("stay", "stayed_in", ["b"], 8, 13), ("stay", "stayed_in", ["a"], 9, 14)]


def test_stored_regions_can_be_named(folder: Folder) -> None:
    features = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"name": "yard"}, "geometry": BOX}]}
    regions = folder.write("regions.geojson", features)
    folder.write("box.json", {**BORDER, "region": {"region": "yard"}})
    assert folder.run("--regions", str(regions)) == 0
    assert folder.answers() == EXPECTED
    assert folder.run() == 2


def test_rows_can_be_delivered_in_the_order_of_a_column(folder: Folder) -> None:
    folder.write("events.csv", "entity,t,x,y,came\na,9,1,1,3\na,1,1,1,1\na,2,9,9,2\n")
    assert folder.run("--arrival", "came") == 0
    assert folder.answers() == [("box", "out", ["a"], 2, 2), ("box", "in", ["a"], 9, 9)]
    assert folder.run() == 0
    assert (folder.answers(), folder.stats()["rows_late"]) == ([], 2)


def test_a_file_with_only_a_header_gives_no_answers(folder: Folder) -> None:
    folder.write("events.csv", "entity,t,x,y\n")
    assert folder.run("--partitions", "2", "--until", "9") == 0
    assert folder.answers() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"box.json": {**BORDER, "reggion": 1}}, ["box.json", "/reggion", "did you mean 'region'"]),
        ({"box.json": {**BORDER, "family": "bordr"}}, ["/family", "did you mean 'border'"]),
        ({"box.json": {"region": BOX}}, ["'family' is missing"]),
        ({"box.json": {**BORDER, "version": 2}}, ["/version"]),
        ({"box.json": {**BORDER, "where": [["w", "=", 1]], "region": {"center": [0, 0], "radius": -1}}}, ["/where/0/0", "/region/radius"]),
        ({"box.json": "{"}, ["box.json", "line 1"]),
        ({"box.json": '{"family": "border", "family": "border"}'}, ["given twice"]),
        ({"box.json": "[" * 30_000 + "]" * 30_000}, ["box.json", "nested too deeply"]),
        ({"box.json": "[]"}, ["JSON object"]),
        ({"feed.json": {**FEED, "crs": "flat"}}, ["feed.json", "/crs"]),
        ({"events.csv": ""}, ["events.csv", "zero bytes"]),
        ({"events.csv": "id,t\n1,1\n"}, ["events.csv", "--map entity="]),
    ],
)
def test_a_refusal_ends_with_2_and_names_file_place_and_remedy(
    folder: Folder, capsys: pytest.CaptureFixture[str], change: dict[str, Any], words: list[str]
) -> None:
    for name, content in change.items():
        folder.write(name, content)
    assert folder.run() == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert not (folder.path / "out.jsonl").exists()


@pytest.mark.parametrize("extra", [["--map", "entity"], ["--map", "entty=a"], ["--map", "x=no"], ["--partitions", "0"], ["--arrival", "no"]])
def test_contradictory_options_are_refused(folder: Folder, extra: list[str]) -> None:
    assert folder.run(*extra) == 2


def test_output_paths_are_checked_before_the_evaluation(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.run(out="out.xlsx") == 2
    assert folder.run(out="none/out.csv") == 2
    assert folder.run(queries=("box.json", "box.json")) == 2
    assert "named 'box' too" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--out", "--dead-letters"])
@pytest.mark.parametrize("name", ["events.csv", "out.jsonl", "deep/../events.csv"])
def test_no_output_replaces_an_input_or_another_output(folder: Folder, capsys: pytest.CaptureFixture[str], option: str, name: str) -> None:
    (folder.path / "deep").mkdir()
    others = ["--dead-letters", str(folder.path / "out.jsonl")] if option == "--out" else []
    assert folder.run(*others, option, str(folder.path / name)) == 2
    said = capsys.readouterr().err
    assert name in said and "choose another name" in said
    assert (folder.path / "events.csv").read_text() == ROWS


def test_without_stored_regions_a_query_that_names_one_leads_to_the_option(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("box.json", BORDER | {"region": {"region": "harbour"}})
    assert folder.run() == 2
    assert "unknown region 'harbour'" in (said := capsys.readouterr().err) and "--regions" in said


def test_rows_that_do_not_count_are_reported(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.run() == 0
    said = capsys.readouterr().err
    assert "did not count: 1 refused, 1 late; --dead-letters FILE writes them" in said
    assert "the first refused row: events.csv, line 6: column 't' must be a whole number of milliseconds since 1970" in said
    assert folder.run("--dead-letters", str(folder.path / "dead.csv")) == 0
    assert f"{folder.path / 'dead.csv'} has them" in capsys.readouterr().err
    folder.write("events.csv", "entity,t,x,y\na,1,1,1\n")
    assert folder.run() == 0
    assert "did not count" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--until", "--shuffle-within", "--seed", "--partitions", "--batch-rows"])
def test_a_number_that_is_none_is_refused_in_plain_words(folder: Folder, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert folder.run(option, "PT5S") == 2
    assert f"{option}: 'PT5S' is not a whole number" in capsys.readouterr().err


def test_the_management_command_is_the_same_program(folder: Folder) -> None:
    import subprocess
    import sys

    root = Path(__file__).resolve().parents[2]
    command = ["--query", "box.json", "--feed", "feed.json", "--events", "events.csv", "--out", "out.jsonl"]
    done = subprocess.run([sys.executable, root / "manage.py", "backtest", *command], cwd=folder.path, capture_output=True, text=True, check=False)
    assert (done.returncode, folder.answers()) == (0, EXPECTED), done.stderr
    folder.write("box.json", "{}")
    refused = subprocess.run([sys.executable, root / "manage.py", "backtest", *command], cwd=folder.path, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "box.json" in refused.stderr


def test_a_limit_for_future_rows_holds_in_any_order_of_delivery(folder: Folder) -> None:
    folder.write("feed.json", {**FEED, "ahead": 100})
    folder.write("events.csv", ROWS.replace("b,2,9,9,2\n", "b,2,9,9,2\nb,999999,1,1,1\n"))
    for options in ([], ["--batch-rows", "1"], ["--shuffle-within", "3", "--seed", "5"]):
        assert folder.run(*options, "--dead-letters", str(folder.path / "dead.jsonl")) == 0
        assert folder.answers() == EXPECTED
        assert folder.stats()["rows_dead"] == 2
    letters = [json.loads(line) for line in (folder.path / "dead.jsonl").read_text().splitlines()]
    assert "future" in [letter["reason"] for letter in letters]


def test_likely_mistakes_in_the_input_are_reported(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("events.csv", "entity,t,event\na,1700000000,arrive\na,1700000060,leave\n")
    folder.write("gone.json", {**BORDER, "name": "gone", "where": [["event", "in", ["arive", "leave"]]]})
    assert folder.run(queries=("box.json", "gone.json")) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warned) == 3, warned
    assert "no row has a place" in warned[0] and "--map x=...,y=..." in warned[0]
    assert "look like seconds since 1970 (1700000000 to 1700000060)" in warned[1]
    assert "gone: no row is an event 'arive'" in warned[2] and "did you mean 'arrive'" in warned[2]


def test_plausible_rows_cause_no_warnings(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.run() == 0
    assert "warning" not in capsys.readouterr().err


def test_an_input_event_of_a_program_that_never_occurs_is_reported(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    program = "initiatedAt(inside(P)=true, T) :- happensAt(enter(P), T).\nterminatedAt(inside(P)=true, T) :- happensAt(exit(P), T).\n"
    inputs = {"enter": {"args": ["entity"]}, "exit": {"args": ["entity"]}}
    folder.write("rules.json", {"family": "calculus", "version": 1, "program": program, "window": 100, "step": 10, "inputs": inputs})
    folder.write("events.csv", "entity,t,event\na,1,enter\na,2,exxit\n")
    assert folder.run(queries=("rules.json",)) == 0
    (warned,) = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert "rules: no row is an event 'exit'" in warned and "did you mean 'exxit'" in warned


def test_a_move_from_the_meridian_180_to_its_other_name_is_no_crossing(folder: Folder) -> None:
    folder.write("feed.json", {"name": "g", "crs": "geographic", "time": "ticks"})
    region = {"type": "Polygon", "coordinates": [[[-1, 0], [1, 0], [1, 10], [-1, 10], [-1, 0]]]}
    folder.write("box.json", {"family": "border", "segments": True, "region": region})
    folder.write("circle.json", {"family": "border", "segments": True, "region": {"center": [0, 5], "radius": 1000}})
    folder.write("events.csv", "entity,t,x,y\na,1,-180,5\na,2,180,5\na,3,-180,5\na,4,0,5\n")
    assert folder.run(queries=("box.json", "circle.json")) == 0
    assert folder.answers() == [("box", "in", ["a"], 4, 4), ("circle", "in", ["a"], 4, 4)]


@pytest.mark.parametrize("kind", ["int", "float", "string"])
def test_a_fluents_row_without_a_value_is_true_whatever_the_columns_type(folder: Folder, kind: str) -> None:
    folder.write("feed.json", {"name": "f", "crs": "planar", "time": "ticks", "columns": {"value": kind}})
    program = "holdsFor(w(X)=true, I) :- holdsFor(walking(X)=true, I1), union_all([I1], I)."
    inputs = {"walking": {"args": ["entity"], "fluent": "points"}}
    folder.write("w.json", {"family": "calculus", "window": 40, "step": 10, "program": program, "inputs": inputs, "outputs": ["w"]})
    folder.write("events.csv", "event,entity,t,x,y,value\nwalking,p,13,0,0,\nwalking,p,14,0,0,\nwalking,p,15,0,0,7\n")
    assert folder.run("--until", "30", queries=("w.json",)) == 0
    assert folder.answers() == [("w", "w", ["p"], 13, 15)]


MARKS = {
    "family": "calculus", "window": 20, "step": 10, "program": "initiatedAt(busy(X)=true, T) :- happensAt(came(X), T).",
    "inputs": {"came": {"args": ["entity"]}},
}  # fmt: skip


def test_half_of_a_character_is_a_dead_letter(folder: Folder) -> None:
    lines = ['{"entity": "\\ud800", "t": 1}', '{"entity": "a", "t": 2, "x": 1, "y": 1}']
    folder.write("events.jsonl", "\n".join(lines) + "\n")
    letters = folder.path / "dead.jsonl"
    assert folder.run("--dead-letters", str(letters), events="events.jsonl") == 0
    [letter] = [json.loads(line) for line in letters.read_text().splitlines()]
    assert (letter["reason"], json.loads(letter["row"])) == ("wrong_type", {"entity": "\ud800", "t": 1})


@pytest.mark.parametrize("batch_rows", ["1", "100"])
def test_windows_in_which_nothing_changes_are_written_too(folder: Folder, batch_rows: str) -> None:
    program = "initiatedAt(busy(X)=true, T) :- happensAt(came(X), T)."
    folder.write("marks.json", {**MARKS, "window": 10, "program": program})
    folder.write("events.csv", "event,entity,t\ncame,a,5\nother,a,100\ncame,b,105\n")
    windows = folder.path / "windows.jsonl"
    assert folder.run("--windows", str(windows), "--batch-rows", batch_rows, queries=("marks.json",)) == 0
    rows = [json.loads(line) for line in windows.read_text().splitlines()]
    held = [(row["query_time"], row["start"], row["end"]) for row in rows if row["entities"] == ["a"]]
    assert held == [(10, 6, 11), *((q, q - 9, q + 1) for q in range(20, 111, 10))]


def test_a_time_far_ahead_does_not_make_windows_without_end(folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("engine.event_calculus.replay.MOST_SKIPPED", 2)
    folder.write("marks.json", {**MARKS, "window": 10, "program": "initiatedAt(busy(X)=true, T) :- happensAt(came(X), T)."})
    folder.write("events.csv", "event,entity,t\ncame,a,5\nother,a,100\n")
    assert folder.run("--windows", str(folder.path / "windows.jsonl"), queries=("marks.json",)) == 2
    assert "windows without a row follow one another; at most 2 can be written" in capsys.readouterr().err


def test_windows_of_programs_that_take_answers_are_refused(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("marks.json", {**MARKS, "derive": {"came": {"query": "box", "kind": "in", "at": "end"}}})
    assert folder.run("--windows", str(folder.path / "windows.jsonl"), queries=("box.json", "marks.json")) == 2
    assert "'marks'" in capsys.readouterr().err


def test_a_window_too_short_for_late_rows_is_reported(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("marks.json", {**MARKS, "window": 12})
    assert folder.run(queries=("marks.json",)) == 0
    assert "shorter than its step and the feed's lateness (3 ms)" in capsys.readouterr().err
    folder.write("marks.json", {**MARKS, "window": 13})
    assert folder.run(queries=("marks.json",)) == 0
    assert "shorter" not in capsys.readouterr().err


def test_impossible_numbers_and_files_are_refused_before_the_run(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("crowd.json", {"family": "occupancy", "region": BOX, "count": ["<=", 10**21]})
    assert folder.run(queries=("crowd.json",)) == 2
    assert "/count/1" in capsys.readouterr().err
    assert folder.run("--until", str(2**63 - 1)) == 2
    assert folder.run("--stats", str(folder.path)) == 2
    table = pa.table([["a"], [1], [1.0], [1.0], [2]], names=["entity", "t", "x", "y", "t"])
    pq.write_table(table, folder.path / "twice.parquet")
    assert folder.run(events="twice.parquet") == 2
    assert "Two columns have the same name: 't'" in capsys.readouterr().err


def test_a_trigger_may_begin_with_a_comment_and_any_spaces(folder: Folder) -> None:
    folder.write("pairs.sql", "-- near each other\n\n CREATE\n TRIGGER pairs FOR E AS A, E AS B WHEN B.t - A.t IN [1, 5] AND A.entity = B.entity")
    assert folder.run(queries=("pairs.sql",)) == 0


def test_a_text_that_names_a_variable_but_no_column_of_it_is_a_constant(folder: Folder) -> None:
    folder.write("feed.json", {**FEED, "columns": {"k": "string"}})
    folder.write("events.csv", "entity,t,x,y,k\na,1,1,1,V1.beta 2\na,2,9,9,other\n")
    constraints = [{"between": ["V1"], "compare": [["V1.k", "=", "V1.beta 2"]]}]
    folder.write("beta.json", {"family": "constraint", "variables": {"V1": {}}, "constraints": constraints})
    assert folder.run(queries=("beta.json",)) == 0
    assert folder.answers() == [("beta", "match", ["a"], 1, 1)]


def test_answers_about_events_without_entities_are_in_order(folder: Folder) -> None:
    folder.write("feed.json", {"name": "f", "crs": "planar", "time": "ticks"})
    folder.write("crowd.json", {"family": "occupancy", "region": BOX, "count": [">=", 1]})
    derive = {"crowd": {"query": "crowd", "kind": "occupied", "at": "start"}}
    constraints = [{"between": ["V1"], "compare": [["V1.event", "=", "crowd"]]}, {"between": ["V2"], "compare": [["V2.event", "=", "position"]]}]
    constraints.append({"between": ["V1", "V2"], "dt": [1, 9]})
    pairs = {"family": "constraint", "variables": {"V1": {}, "V2": {}}, "constraints": constraints, "derive": derive}
    folder.write("pairs.json", pairs)
    folder.write("events.csv", "entity,t,x,y\nc,1,1,1\nz,4,9,9\nb,4,9,9\ny,4,9,9\na,4,9,9\n")
    assert folder.run(queries=("crowd.json", "pairs.json")) == 0
    assert [row[2] for row in folder.answers() if row[0] == "pairs"] == [[None, "a"], [None, "b"], [None, "y"], [None, "z"]]


def test_a_command_that_is_ended_removes_its_temporary_files(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kill`, `timeout` and systemd end it by SIGTERM, which left copies of all rows in /tmp."""

    def working(options: Any) -> None:
        with tempfile.TemporaryDirectory(dir=folder.path, prefix="work-"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)

    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        monkeypatch.setattr(command, "backtest", working)
        with pytest.raises(SystemExit) as ended:
            folder.run()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (ended.value.code, list(folder.path.glob("work-*"))) == (143, [])


def test_a_start_that_is_ended_leaves_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.runtime import spark_backtest

    def ended(*_: Any, **__: Any) -> None:
        sys.exit(143)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spark_backtest, "session", ended)
    with pytest.raises(SystemExit):
        spark_backtest.SparkEvaluator.start(Feed.from_json(FEED), [])
    assert list(tmp_path.glob("vedette-backtest-*")) == []
