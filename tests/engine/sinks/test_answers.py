"""Answer files: summed, sorted, in three formats."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.changes import ANSWERS
from engine.sinks import answers
from engine.sinks.answers import AnswerFile, UnbalancedRetraction

COLUMNS = ["query", "kind", "entities", "value", "start", "end", "evidence", "weight", "detected_at"]


def fact(weight: int = 1, **values: Any) -> dict[str, Any]:
    return {"query": "q", "version": 1, "kind": "in", "entities": ["a"], "start": 1, "end": 2, "weight": weight, **values}


def event(seq: int, t: int = 1) -> dict[str, Any]:
    return {"entity": "a", "t": t, "x": 1.5, "seq": seq}


def written(path: Path, *batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    with AnswerFile(path) as file:
        for number, batch in enumerate(batches):
            file.add(pa.Table.from_pylist(batch, schema=ANSWERS), 1000 + number)
        file.close()
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return list(csv.DictReader(path.open(newline="")))


def test_retracted_facts_are_left_out_and_equal_facts_are_counted(tmp_path: Path) -> None:
    rows = written(
        tmp_path / "a.parquet", [fact(), fact(), fact(start=5)], [fact(-1, start=5), fact(-1)], [fact(start=5, end=None), fact(start=9, end=9)]
    )
    assert [(row["start"], row["end"], row["weight"], row["detected_at"]) for row in rows] == [(1, 2, 1, 1000), (5, None, 1, 1002), (9, 9, 1, 1002)]
    assert list(rows[0]) == COLUMNS


def test_retractions_are_balanced_in_any_order(tmp_path: Path) -> None:
    with pytest.raises(UnbalancedRetraction):
        written(tmp_path / "a.parquet", [fact()], [fact(-1, start=3)])
    assert not list(tmp_path.iterdir())


def test_facts_with_different_evidence_are_different_facts(tmp_path: Path) -> None:
    one, other = fact(evidence=[event(1)]), fact(evidence=[event(2)])
    rows = written(tmp_path / "a.parquet", [one, other, fact(evidence=[])], [fact(-1, evidence=[event(1)])])
    assert [row["evidence"] for row in rows] == [[], [{"variable": None, "entity": "a", "t": 1, "x": 1.5, "y": None}]]


def test_rows_are_sorted_by_query_start_end_entities_kind_with_open_ends_last(tmp_path: Path) -> None:
    rows = [
        fact(query="b", start=0), fact(end=None),
        fact(end=3, entities=["a", "b"]), fact(end=3, entities=["a!"]), fact(end=3, entities=["a"], kind="out"),
        fact(end=3, entities=["a"], kind="in"), fact(end=3, entities=[]), fact(start=0, end=9),
    ]  # fmt: skip
    found = [(row["query"], row["start"], row["end"], row["entities"], row["kind"]) for row in written(tmp_path / "a.parquet", rows)]
    key = [(q, start, 99 if end is None else end, entities, kind) for q, start, end, entities, kind in found]
    assert key == sorted(key)


def test_values_are_numbers_if_all_are_scores_else_text(tmp_path: Path) -> None:
    assert [row["value"] for row in written(tmp_path / "a.parquet", [fact(score=1.5), fact(start=2)])] == [1.5, None]
    assert [row["value"] for row in written(tmp_path / "b.parquet", [fact(score=1.5), fact(start=2, value="true")])] == ["1.5", "true"]
    assert written(tmp_path / "c.jsonl", [fact(score=1.5)])[0]["value"] == 1.5
    assert pq.read_schema(tmp_path / "b.parquet").field("value").type == pa.string()


def test_csv_has_lists_as_json(tmp_path: Path) -> None:
    (row,) = written(tmp_path / "a.csv", [fact(entities=['say "a"', "b,c"], end=None, evidence=[event(4)])])
    assert (row["end"], json.loads(row["entities"])) == ("", ['say "a"', "b,c"])
    assert json.loads(row["evidence"]) == [{"variable": None, "entity": "a", "t": 1, "x": 1.5, "y": None}]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_without_answers_the_file_has_no_rows(tmp_path: Path, suffix: str) -> None:
    assert written(tmp_path / f"a{suffix}") == []
    assert [path.name for path in tmp_path.iterdir()] == [f"a{suffix}"]


def test_an_unknown_file_type_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must end in one of"):
        AnswerFile(tmp_path / "a.xlsx")


# So few that most are retracted, and that the changes of one are in several pieces.
FACTS = st.tuples(st.just(0), st.sampled_from([0, None]), st.sampled_from(["in", "out"]), st.integers(0, 1))


@given(st.lists(st.tuples(FACTS, st.booleans()), max_size=60), st.integers(1, 9))
def test_the_file_is_the_sum_of_changes_however_many_spill_to_disk(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, bool]], size: int
) -> None:
    total: Counter[Any] = Counter()
    rows = []
    for (start, end, kind, seq), asserted in steps:
        if not asserted and not total[start, end, kind, seq]:
            continue
        total[start, end, kind, seq] += 1 if asserted else -1
        rows.append(fact(1 if asserted else -1, start=start, end=end, kind=kind, evidence=[event(seq, seq)]))
    batches = [rows[i : i + size] for i in range(0, len(rows), size)]
    with pytest.MonkeyPatch.context() as patch:
        sort = answers.ExternalSort
        patch.setattr(answers, "ExternalSort", lambda keys: sort(keys, run_bytes=500, piece_rows=4))
        found = written(tmp_path_factory.mktemp("answers") / "a.parquet", *batches)
    assert Counter((row["start"], row["end"], row["kind"], row["evidence"][0]["t"]) for row in found) == +total
