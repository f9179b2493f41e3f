"""Blocks of text read by Arrow as a whole give exactly what reading them line by line gives, or are left to that."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.model.feed import Feed
from webapp.feeds.bodies import CSV, NDJSON, TEXTS, _Csv, _Json, read_body, read_text
from webapp.feeds.columnar import csv_rows, json_rows

FEED = Feed.from_json({"name": "yard", "crs": "planar", "columns": {"speed": "float", "count": "int", "kind": "string", "open": "bool"}})
HEADER = ["entity", "t", "x", "open", "kind", "other", "count"]

NUMBERS = [
    "1", "-1", "0", "-0", "-0.0", "007", "+5", "1.0", "1.5", ".5", "5.", "1e3", "1E-3", "1e999", "-1e-400", "9223372036854775807",
    "9223372036854775808", "123456789012345678901234567890", "0x1f", "1_0", "1d5", "NaN", "nan", "-nan", "nan(1)", "Infinity", "-inf", "INF",
    "9" * 400, "9" * 5000, "-", "--", " 1", "1 ", "\t1", "\ufeff1", "1\r",
]  # fmt: skip
OTHERS = [
    "", " ", "true", " true", "false", "True", "TRUE", "null", "nul", '"a"', '""', '"1"', '"true"', "a", "b", "true\\", '"', "'a'", "{}", '{"b":1}',
    "[]", "[1]", '"{"', '"["', '"}"', '"\\u0041"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"', '"\\u0000"', '"é"', '"a,b"', "2020-01-01", '"-0"',
    "\x00", "a\x0bb", "a\x85b", "\u2028",
]  # fmt: skip
VALUES = st.sampled_from(NUMBERS + OTHERS)
KEYS = st.sampled_from([*FEED.types, "entity", "t", "other", "x", "\\u0074"])
ENDS = st.sampled_from(["\n"] * 12 + ["\r\n", "\n\n", "\r", "\r\r\n", " \n", "", "\n \n", ",\n", "}\n", "\x85"])


@st.composite
def json_blocks(draw: Any) -> bytes:
    """Lines that are mostly right, with values, keys and line ends of all kinds among them."""
    plain = st.fixed_dictionaries({"entity": st.sampled_from(['"a"', '"b"', "7", "8"]), "t": st.sampled_from(["1", "2"])})
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        row = list(draw(plain).items()) + draw(st.lists(st.tuples(KEYS, VALUES), max_size=2))
        text = "{" + draw(st.sampled_from([",", ", ", ",\n"])).join(f'"{key}":{value}' for key, value in row) + "}"
        lines.append(text + draw(ENDS))
    return _with_bytes(draw, "".join(lines))


@st.composite
def csv_blocks(draw: Any) -> bytes:
    """Rows under HEADER, most of them with as many cells."""
    good = [draw(st.sampled_from(["{}", '"{}"'])).format(cell) for cell in ("a", "1", "1.5", "true", "k", "o", "3")]
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        row = list(good)
        for _ in range(draw(st.integers(0, 2))):
            row[draw(st.integers(0, 6))] = draw(VALUES)
        lines.append(",".join(row[: draw(st.sampled_from([7] * 9 + [6, 1, 0]))]) + draw(ENDS))
    return _with_bytes(draw, "".join(lines))


def _with_bytes(draw: Any, text: str) -> bytes:
    block = text.encode("utf-8", "surrogatepass")
    return block + draw(st.sampled_from([b""] * 9 + [b"\xff", b"\x00", b"{", b"}", b"/**/"]))


def same(found: Any, wanted: Any) -> bool:
    """Whether two columns of values are the same, signs of zeros and NaN included."""
    return all(
        type(a) is type(b) and (a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))) and str(a) == str(b)
        for a, b in zip(found, wanted, strict=True)
    )


def assert_same(rows: Any, by_line: Any, block: bytes) -> None:
    if rows is None:
        return
    assert by_line.dead == [], block
    assert list(by_line.numbers) == list(range(1, rows.num_rows + 1)), block
    for name in FEED.types:
        if name in rows.column_names:
            assert same(rows.column(name).to_pylist(), by_line.rows.column(name).to_pylist()), (name, block)


@given(json_blocks())
@example(b'{"entity":"a","t":1,"x":-0,"y":1}\n')
@example(b'{"entity":"a","t":1,"speed":' + b"9" * 400 + b"}\n")
@example(b'{"entity":"a","t":1,"other":' + b"9" * 5000 + b"}\n")
@example(b'{"entity":"a",\n"t":1}{"entity":"a","t":1}\n')
@example(b'{"entity":7,"t":1}\n{"entity":8,"t":2}\n')
@example(b'{"entity":"a","t":1,"other":NaN}\n')
@example(b'{"entity":"a","t":1,"other":' + b"[" * 1900 + b"]" * 1900 + b"}\n")
@example(b'{"entity":"a","t":1,"other":"\xff"}\n')
def test_lines_of_json(block: bytes) -> None:
    assert_same(json_rows(block, FEED), _Json(FEED, io.BytesIO())._one_by_one(1, block), block)


@given(csv_blocks())
@example(b"a,1,1.5,true,k,o,0x1f\n")
@example(b"a,1,nan(5),true,k,o,1\n")
@example(b"a,1,1.5,true,k,o,1\rb,1,1.5,true,k,o,1\r\n")
@example(b'a,1,1.5,true,"k",o,1\n')
@example(b"a,1,1.5,true,k,o,1\n\nb,1,1.5,true,k,o,1\n")
@example(b"a,1,1.5,true,k,o,1\rb,1,1.5,true,k,o,1\n\n")
@example(b"a,1,1.5,true,k,\xff,1\n")
@example(b"a,1,1.5,true,k," + b"o" * 1_000_000 + b",1\n")
def test_lines_of_csv(block: bytes) -> None:
    reader = _Csv(FEED, io.BytesIO(",".join(HEADER).encode() + b"\n"))
    assert_same(csv_rows(block, HEADER, FEED), reader._one_by_one(1, block), block)


@pytest.mark.parametrize(
    "block",
    [b'{"entity":"a","t":1,"x":1.5,"y":2,"open":true,"other":"z"}\n' * 3, b'{"entity": 211000, "t": 1}\r\n' * 2, b'{"entity":"\xc3\xa9","t":1}'],
)
def test_plain_lines_of_json_are_read_as_a_whole(block: bytes) -> None:
    rows = json_rows(block, FEED)
    assert rows is not None and rows.num_rows == max(1, block.count(b"\n"))


@pytest.mark.parametrize("value", [b"{}", b"[]"])
def test_values_inside_values_are_left_to_the_patient_way(value: bytes) -> None:
    """How deep they may be nested depends on the reader."""
    assert json_rows(b'{"entity":"a","t":1,"other":' + value + b"}", FEED) is None


def test_texts_in_quotes_are_read_as_a_whole_too() -> None:
    rows = csv_rows(b'"a","1",1.5,true,"","o",3\r\n"b",2,,,"k k",,\n"c",2,,,,,"7"', HEADER, FEED)
    assert rows is not None and rows.select(["entity", "t", "kind", "count"]).to_pylist() == [
        {"entity": "a", "t": 1, "kind": None, "count": 3},
        {"entity": "b", "t": 2, "kind": "k k", "count": None},
        {"entity": "c", "t": 2, "kind": None, "count": 7},
    ]


@pytest.mark.parametrize("cell", [b'"k,k"', b'"k""k"', b'k"k"', b'"k"k', b'"k\nk"', b' "k"', b'"k" ', b'"', b'"""'])
def test_quotes_that_mean_something_are_left_to_the_patient_way(cell: bytes) -> None:
    assert csv_rows(b"a,1,1.5,true," + cell + b",o,3\n", HEADER, FEED) is None


def test_plain_lines_of_csv_are_read_as_a_whole() -> None:
    rows = csv_rows(b"a,1,1.5,true,k,o,3\r\nb,2,,,,,\r\n", HEADER, FEED)
    assert rows is not None and rows.column("x").to_pylist() == [1.5, None]


@pytest.mark.parametrize("kind", [NDJSON, CSV])
def test_an_odd_line_among_thousands_is_a_dead_letter_with_its_number(kind: str) -> None:
    """In another block than the first, so that the blocks before and after it are read as a whole."""
    lines = [f'{{"entity":"e{n}","t":{n},"x":1,"y":1}}' if kind == NDJSON else f"e{n},{n},1,1" for n in range(40_000)]
    lines[30_000] = "odd"
    header = "" if kind == NDJSON else "entity,t,x,y\n"
    body = (header + "\n".join(lines)).encode()
    number = 30_001 + (kind == CSV)
    read = [read_body(body, kind, FEED), *read_text(io.BytesIO(body), kind, FEED, 50_000)]
    assert [(one.good.num_rows, [dead.line for dead in one.dead]) for one in read] == [(39_999, [number])] * 2
    pieces = list(read_text(io.BytesIO(body), kind, FEED, 25_000))
    assert [one.good.num_rows for one in pieces] == [25_000, 14_999]
    assert [dead.line for one in pieces for dead in one.dead] == [number]


def test_a_line_as_long_as_is_allowed_takes_no_other_with_it() -> None:
    """Its end stands just where reading stops."""
    line = b'{"entity":"' + b"a" * 999_980 + b'","t":1}'
    body = line + b" " * (1_000_000 - len(line)) + b"\n" + b'{"entity":"b","t":2}\n'
    (read,) = read_text(io.BytesIO(body), NDJSON, FEED, 10)
    assert (read.good.column("entity").to_pylist(), [dead.line for dead in read.dead]) == (["b"], [1])


def test_every_text_has_at_least_one_chunk() -> None:
    for kind in TEXTS:
        (read,) = read_text(io.BytesIO(b"entity,t\n" if kind == CSV else b""), kind, FEED, 10)
        assert (read.good.num_rows, read.dead) == (0, [])
