"""`python -m bench --quick`: every module runs, its methods agree, and its output can be parsed."""

from __future__ import annotations

import json

import pytest

from bench import MODULES, Layer, Row, Size, compared
from bench.__main__ import line, main


@pytest.mark.nightly
@pytest.mark.parametrize("family", MODULES)
def test_a_smoke_run_of_each_family_writes_its_rows(family, tmp_path, capsys):
    assert main(["--quick", "--only", family, "--out", str(tmp_path)]) == 0
    document = json.loads((tmp_path / f"{family}.json").read_text())
    assert document["size"] == Size.QUICK.value
    assert document["rows"]
    printed = capsys.readouterr().out
    for row in document["rows"]:
        assert row["ours"] >= 0
        assert set(row["ratios"]) == set(row["baselines"])
        assert row["layer"] in {layer.value for layer in Layer}
        assert row["workload"] in printed


def test_methods_that_disagree_are_never_timed():
    with pytest.raises(AssertionError, match="other gives 2 answers that differ from 3"):
        compared({"ours": lambda: [1, 2, 3], "other": lambda: [1, 2]}, list)


def test_a_row_names_the_target_that_it_misses():
    row = Row("w", Layer.KERNEL, 10.0, "ns", {"heap": 50.0}, {"heap": 6.0}, limit=9.0)
    assert row.missed == ["5x of 6x heap", "10 of 9 ns"]
    assert "MISSED 5x of 6x heap" in line(row)
    assert Row("w", Layer.SPARK, 10.0, "rows/s", {"nothing": 12.5}, {"nothing": 0.75}, limit=5.0, less_is_better=False).missed == []


def test_an_unknown_family_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "borders"])
    assert "known: " in capsys.readouterr().err
