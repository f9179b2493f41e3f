"""Files of every format give the same rows; unreadable rows are reported with their
line, the others are read."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.events import row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.sources import csv_records
from engine.sources.file_rows import read_files
from engine.sources.files import Columns, UnreadableFile, find_files
from engine.sources.lines import blocks
from tests.examples import examples
from tests.strategies import COLUMNS, arrivals

FEED = Feed("f", Crs.PLANAR, TimeUnit.MS, lateness=2, columns=COLUMNS)
HEADER = "entity,t,x,y,v,n,s,b\n"


def read(path: Path, **options: Any) -> tuple[list[dict[str, Any]], list[tuple[int | None, str]], int]:
    """(good rows, (line, reason) of the refused ones, rows read)."""
    columns = Columns(FEED, **options)
    rows, dead, count = [], [], 0
    for piece in read_files(find_files(path), columns):
        rows += piece.rows.to_pylist()
        letters = piece.dead()
        dead += [(letter.line, str(letter.reason)) for letter in letters]
        count += piece.read
        assert len(letters) == piece.dead_count
    return rows, dead, count


def write(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = zstandard.compress(data)
    path.write_bytes(data)
    return path


@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from([64, 1 << 20]))
def test_all_kinds_of_files_give_the_same_rows(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, size: int) -> None:
    folder = tmp_path_factory.mktemp("files")
    rows = data.draw(arrivals(FEED, most=12))
    rows = [row | {"s": row["s"] and data.draw(st.sampled_from(["p", 'a "b"', "c,d", "e\nf", "1", "\u00e9"]))} for row in rows]
    rows = [row | {"s": row["s"] or None} for row in rows]
    table = pa.Table.from_pylist([{"event": "position", **row} for row in rows], schema=row_schema(FEED))
    expected = table.to_pylist()
    pq.write_table(table, folder / "a.parquet")
    with (folder / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["entity", "t", "x", "y", "v", "n", "s", "b"], lineterminator=data.draw(st.sampled_from(["\n", "\r\n"])))
        writer.writeheader()
        writer.writerows(rows)
    write(folder / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows) or "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "__defaults__", (size,))
        for kind in ("parquet", "csv", "jsonl"):
            assert read(folder / f"a.{kind}")[:2] == (expected, []), kind


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    rows, dead, count = read(write(tmp_path / f"e.csv{suffix}", HEADER + "a,1,,,,,,\n" * 3))
    assert (len(rows), dead, count) == (3, [], 3)
    assert len(read(write(tmp_path / f"e.jsonl{suffix}", '{"entity":"a","t":1}\n' * 3))[0]) == 3


@pytest.mark.parametrize("quoted", [False, True])
def test_dead_letters_of_csv_have_line_numbers(tmp_path: Path, quoted: bool) -> None:
    lines = ["a,1,,,,,,", "a,2,,,x,,,", "a,3", "a,4,,,,,,", "a,five,,,,,,", ",6,,,,,,", "a,7,1,,,,,", "a,8.0,nan,1,,,,", "a,9.0,,,,2.0,,TRUE"]
    extra = ['a,10,,,,,"x\ny",', "", "a,11,,,,,,maybe", 'a,12,,,,,"open,', "a,13,,,,,,"] if quoted else []
    rows, dead, count = read(write(tmp_path / "e.csv", HEADER + "\n".join([*lines, *extra]) + "\n"))
    assert [row["t"] for row in rows] == [1, 4, 9] + ([10, 13] if quoted else [])
    assert (rows[2]["n"], rows[2]["b"]) == (2, True)
    more = [(14, "wrong_type"), (15, "malformed")] if quoted else []
    wanted = [(3, "wrong_type"), (4, "malformed"), (6, "wrong_type"), (7, "missing_entity"), (8, "half_position"), (9, "not_finite")]
    assert dead == wanted + more
    assert count == len(rows) + len(dead)


def test_dead_letters_of_json_lines_have_line_numbers(tmp_path: Path) -> None:
    lines = [
        '{"entity":"a","t":1}', "{", "", "[1]", '{"entity":"a","t":"5"}', '{"entity":7,"t":6,"x":1,"y":1}',
        '{"entity":"a","t":7} {"entity":"a","t":7}',
        '{"entity":"a","t":8,"v":NaN,"b":true,"n":1.0}', '{"entity":"a","t":9,"x":NaN,"y":1}',
        "no JSON at all",
        '{"entity":"a","t":11,"s":"\\ud800"}', '{"entity":"a","t":1e3,"n":99999999999999999999}',
        '{"t":13}', '{"entity":"a","t":14,"other":{"deep":[1]}}',
    ]  # fmt: skip
    rows, dead, count = read(write(tmp_path / "e.jsonl", "\n".join(lines)))
    assert [row["t"] for row in rows] == [1, 6, 8, 14]
    assert (rows[1]["entity"], rows[2]["v"], rows[2]["b"], rows[2]["n"]) == ("7", None, True, 1)
    reasons = ["malformed", "malformed", "wrong_type", "malformed", "not_finite", "malformed", "wrong_type", "wrong_type", "missing_entity"]
    assert dead == list(zip([2, 4, 5, 7, 9, 10, 11, 12, 13], reasons, strict=True))
    assert count == 13


@pytest.mark.parametrize("values", [["0.5", "true"], ["true", "0.5"], ["0.5", "null", "false", "2"]])
def test_a_truth_value_is_no_number_whatever_stands_beside_it(tmp_path: Path, values: list[str]) -> None:
    lines = [f'{{"entity":"a","t":{t},"v":{value}}}' for t, value in enumerate(values)]
    rows, dead, _ = read(write(tmp_path / "e.jsonl", "\n".join(lines)))
    bools = [line for line, value in enumerate(values, 1) if value in {"true", "false"}]
    assert dead == [(line, "wrong_type") for line in bools]
    assert len(rows) == len(values) - len(bools)


def test_only_lines_that_are_not_utf8_are_malformed(tmp_path: Path) -> None:
    for name, lines in {
        "e.csv": [HEADER.strip().encode(), b"\xff,1,,,,,,", b"a,2,,,,,,"],
        "e.jsonl": [b'{"entity":"\xff","t":1}', b'{"entity":"a","t":2}'],
    }.items():
        rows, dead, _ = read(write(tmp_path / name, b"\n".join(lines)))
        assert ([row["t"] for row in rows], [reason for _, reason in dead]) == ([2], ["malformed"])


def test_numeric_ids_become_text_in_every_format(tmp_path: Path) -> None:
    pq.write_table(pa.table({"entity": [7], "t": [1]}), tmp_path / "e.parquet")
    write(tmp_path / "e.csv", "entity,t\n7,1\n")
    write(tmp_path / "e.jsonl", '{"entity":7,"t":1}\n')
    rows, dead, _ = read(tmp_path)
    assert ([row["entity"] for row in rows], dead) == (["7", "7", "7"], [])


def test_columns_are_renamed_and_others_ignored(tmp_path: Path) -> None:
    path = write(tmp_path / "e.csv", "mmsi,entity,ts,when,junk\n7,wrong,1,2020,[\n")
    rows, _, _ = read(path, renamed={"entity": "mmsi", "t": "ts", "s": "when"})
    assert [(row["entity"], row["t"], row["s"]) for row in rows] == [("7", 1, "2020")]


def test_a_folder_is_read_in_name_order_without_hidden_and_foreign_files(tmp_path: Path) -> None:
    for name, t in {"b.csv": 2, "a.jsonl.gz": 1, "c/a.csv": 3}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, f"entity,t\na,{t}\n" if "csv" in name else f'{{"entity":"a","t":{t}}}\n')
    for name in (".hidden.csv", "_temporary.csv", "README.md", "feed.json"):
        write(tmp_path / name, "nothing")
    assert [row["t"] for row in read(tmp_path)[0]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("e.csv", "", "zero bytes"),
        ("e.jsonl", "", "zero bytes"),
        ("e.csv.gz", "", "column names"),
        ("e.parquet", "", "zero bytes"),
        ("e.parquet", "PAR1 but no more", "e.parquet"),
        ("e.txt", "a", "unknown kind of file"),
        ("e.csv", "id,t\n1,2\n", "--map entity="),
        ("e.csv", "entity,time\n1,2\n", "--map t="),
        ("e.csv", "entity,t,t\n1,2,3\n", "same name: 't'"),
        ("e.csv", "\n\n", "column names"),
        ("none.csv", None, "no such file"),
    ],
)
def test_an_unreadable_file_is_refused_with_the_reason(tmp_path: Path, name: str, content: str | None, words: str) -> None:
    if content is not None:
        write(tmp_path / name, content)
    with pytest.raises(UnreadableFile, match=words):
        read(tmp_path / name)


def test_a_file_cut_off_in_its_compression_is_unreadable(tmp_path: Path) -> None:
    for suffix, pack in {"gz": gzip.compress, "zst": zstandard.compress}.items():
        path = tmp_path / f"e.jsonl.{suffix}"
        text = "".join(f'{{"entity":"a","t":{t * t * 7919 % 100003}}}\n' for t in range(20_000)).encode()
        path.write_bytes(pack(text)[:-400])
        with pytest.raises(UnreadableFile, match=path.name):
            read(path)


@pytest.mark.parametrize("content", [HEADER, HEADER.strip(), "\ufeff" + HEADER, HEADER + "\n\n"])
def test_a_file_with_only_a_header_has_no_rows(tmp_path: Path, content: str) -> None:
    assert read(write(tmp_path / "e.csv", content)) == ([], [], 0)


def test_unknown_names_in_map_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnreadableFile, match="did you mean 'entity'"):
        Columns(FEED, {"entty": "a"})


def test_a_stray_quote_does_not_lose_the_rest_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "MAX_LINES", 20)
    monkeypatch.setattr(blocks, "__defaults__", (256,))
    lines = [f"a,{t},,,,,," for t in range(500)]
    lines[100] = 'a,100,,,,,"stray,'
    rows, dead, count = read(write(tmp_path / "e.csv", HEADER + "\n".join(lines) + "\n"))
    assert [row["t"] for row in rows] == [t for t in range(500) if t != 100]
    assert (dead, count) == ([(102, "malformed")], 500)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_columns_can_be_joined(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"people{suffix}"
    rows = [{"scene": "s1", "id": 7, "t": 1}, {"scene": "s2", "id": 7, "t": 2}, {"scene": None, "id": 7, "t": 3}]
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("scene,id,t\n" + "".join(f"{row['scene'] or ''},{row['id']},{row['t']}\n" for row in rows))
    found, dead, _ = read(path, renamed={"entity": "scene+id"})
    assert [row["entity"] for row in found] == ["s1/7", "s2/7"]
    assert [reason for _, reason in dead] == ["missing_entity"]


def test_columns_that_cannot_be_joined_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", HEADER + "a,1,1,1,,,,\n")
    with pytest.raises(UnreadableFile, match="unknown column 'sceen'"):
        read(path, renamed={"entity": "sceen+s"})
    with pytest.raises(UnreadableFile, match="'t' is of type int"):
        read(path, renamed={"t": "t+n"})
