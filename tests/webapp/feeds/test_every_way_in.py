"""A text gives the same rows and the same dead letters by every way in, and however
it is divided into blocks.

The slow path, without Arrow, defines the expected result: one record after the other, by Python's
readers.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.model.events import DeadLetter
from engine.model.feed import Feed
from engine.sources import csv_records, delimited, jsonlines, lines
from engine.sources.file_rows import read_files
from engine.sources.files import CheckedChunk, Columns, UnreadableFile
from engine.sources.live import RECEIVED
from engine.sources.live.payloads import records_in
from webapp.connectors.rows import rows_of
from webapp.feeds.bodies import CSV, NDJSON, TEXTS, read_body
from webapp.feeds.folders import read_file

FEED = Feed.from_json({"name": "yard", "crs": "planar", "columns": {"speed": "float", "count": "int", "kind": "string", "open": "bool"}})
HEADER = b"entity,t,x,open,kind,other,count\n"
SUFFIXES = {NDJSON: "jsonl", CSV: "csv"}

NUMBERS = [
    "1", "-1", "0", "-0", "-0.0", "007", "+5", "1.0", "1.5", ".5", "5.", "1e3", "1E-3", "1e999", "-1e-400", "9223372036854775807",
    "9223372036854775808", "123456789012345678901234567890", "0x1f", "1_0", "1d5", "NaN", "nan", "-nan", "nan(1)", "Infinity", "-inf", "INF",
    "9" * 400, "9" * 5000, "-", "--", " 1", "1 ", "\t1", "\ufeff1", "1\r",
]  # fmt: skip
OTHERS = [
    "", " ", "true", " true", "false", "True", "TRUE", "null", "nul", '"a"', '""', '"1"', '"true"', "a", "b", "true\\", '"', "'a'", "{}", '{"b":1}',
    "[]", "[1]", '"{"', '"["', '"}"', '"\\u0041"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"', '"\\u0000"', '"é"', '"a,b"', "2020-01-01", '"-0"',
    "\x00", "a\x0bb", "a\x85b", "\u2028", '"a\nb"', '"a\r\nb"', '"\n\n"', '"a""b"', '"a"b', 'a"b', '"a\nb', 'b\n"', '"a,\nb"', ' "a"', '"a" ', "a(b",
]  # fmt: skip
VALUES = st.sampled_from(NUMBERS + OTHERS)
KEYS = st.sampled_from([*FEED.types, "entity", "t", "other", "x", "\\u0074"])
ENDS = st.sampled_from(["\n"] * 12 + ["\r\n", "\n\n", "\r", "\r\r\n", " \n", "", "\n \n", ",\n", "}\n", "\x85"])


@st.composite
def json_blocks(draw: Any) -> bytes:
    """Mostly valid lines, with values, keys and line ends of all kinds."""
    plain = st.fixed_dictionaries({"entity": st.sampled_from(['"a"', '"b"', "7", "8"]), "t": st.sampled_from(["1", "2"])})
    found = []
    for _ in range(draw(st.integers(1, 5))):
        row = list(draw(plain).items()) + draw(st.lists(st.tuples(KEYS, VALUES), max_size=2))
        text = "{" + draw(st.sampled_from([",", ", ", ",\n"])).join(f'"{key}":{value}' for key, value in row) + "}"
        found.append(text + draw(ENDS))
    return _with_bytes(draw, "".join(found))


@st.composite
def csv_blocks(draw: Any) -> bytes:
    """Rows of HEADER's columns, most with the right number of cells."""
    good = [draw(st.sampled_from(["{}", '"{}"'])).format(cell) for cell in ("a", "1", "1.5", "true", "k", "o", "3")]
    found = []
    for _ in range(draw(st.integers(1, 5))):
        row = list(good)
        for _ in range(draw(st.integers(0, 2))):
            row[draw(st.integers(0, 6))] = draw(VALUES)
        found.append(",".join(row[: draw(st.sampled_from([7] * 9 + [6, 1, 0]))]) + draw(ENDS))
    return _with_bytes(draw, "".join(found))


def _with_bytes(draw: Any, text: str) -> bytes:
    block = text.encode("utf-8", "surrogatepass")
    return block + draw(st.sampled_from([b""] * 9 + [b"\xff", b"\x00", b"{", b"}", b"/**/"]))


Found = tuple[list[str], list[tuple[str, str, str, int | None]]]
"""Rows and dead letters as text that distinguishes types of values, signs of zeros, and NaN."""


def found(rows: Iterable[pa.Table], dead: Iterable[DeadLetter]) -> Found:
    return (
        [repr(row) for table in rows for row in table.to_pylist()],
        [(str(letter.reason), letter.detail, repr(_shown(letter)), letter.line) for letter in dead],
    )


def _shown(letter: DeadLetter) -> dict[str, Any]:
    """Without the arrival time of a message."""
    return {name: value for name, value in (letter.row or {}).items() if name != RECEIVED}


def of_pieces(pieces: Iterator[CheckedChunk]) -> Found:
    each = list(pieces)
    assert all(len(piece.dead()) == piece.dead_count for piece in each)
    return found((piece.rows for piece in each), (letter for piece in each for letter in piece.dead()))


def of_body(text: bytes, kind: str) -> Found:
    return of_pieces(iter([read_body(text, kind, FEED)]))


def by_every_way(text: bytes, kind: str, folder: Path, sizes: Sequence[int] = (5, 64), chunks: Sequence[int] = (1, 3)) -> dict[str, Found]:
    path = folder / f"a.{SUFFIXES[kind]}"
    path.write_bytes(text)
    ways = {"http": of_body(text, kind), "backtest": of_pieces(read_files([path], Columns(FEED)))}
    for rows in chunks:
        ways[f"folder, {rows} lines a chunk"] = of_pieces(read_file(path, FEED, rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", max(16, len(text) // 20))
        ways["folder, long lines"] = of_pieces(read_file(path, FEED, len(text)))
    for size in sizes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines.blocks, "__defaults__", (size,))
            ways[f"backtest, blocks of {size} bytes"] = of_pieces(read_files([path], Columns(FEED)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "PART_BYTES", max(16, len(text) // 20))
        ways["backtest, in small parts"] = of_pieces(read_files([path], Columns(FEED)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonlines, "_is_plain", lambda block: False)
        patch.setattr(delimited._Reader, "_typed", lambda reader, data: None)
        patch.setattr(csv_records, "_plain_end", lambda *_: None)
        ways["one by one"] = of_pieces(read_files([path], Columns(FEED)))
    return ways


def by_connector(text: bytes, kind: str) -> tuple[list[str], list[tuple[str, ...]]] | None:
    """Rows and dead letters of a connector to which each line of JSON came as a separate message,
    or all of the CSV in one.

    A message may hold more than a line of a file: a list of objects, or an object with
    one in it. Null for those.
    """
    payloads = [line for line in text.removeprefix(lines.UTF8_MARK).split(b"\n") if line.strip()] if kind == NDJSON else [text]
    records = [list(records_in(payload, {}, form="json" if kind == NDJSON else "csv")) for payload in payloads]
    if kind == NDJSON and any(len(of_one) != 1 or b"[{" in payload for of_one, payload in zip(records, payloads, strict=True)):
        return None
    rows, dead = of_pieces(iter([rows_of([one for of_one in records for one in of_one], None, FEED)]))
    return rows, sorted((reason, "", "") if reason == "malformed" else (reason, detail, row) for reason, detail, row, _ in dead)


def assert_same(text: bytes, kind: str, folder: Path) -> None:
    ways = by_every_way(text, kind, folder)
    if here := by_connector(text, kind):
        rows, dead = ways["one by one"]
        assert here == (rows, sorted((reason, "", "") if reason == "malformed" else (reason, detail, row) for reason, detail, row, _ in dead)), text
    for way, here in ways.items():
        assert here == ways["one by one"], (way, text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@given(text=json_blocks())
@example(text=b'{"entity":"a","t":1,"x":-0,"y":1}\n')
@example(text=b'{"entity":"a","t":1,"speed":' + b"9" * 400 + b"}\n")
@example(text=b'{"entity":"a","t":1,"other":' + b"9" * 5000 + b"}\n")
@example(text=b'{"entity":"a",\n"t":1}{"entity":"a","t":1}\n')
@example(text=b'{"entity":7,"t":1}\n{"entity":8,"t":2}\n')
@example(text=b'{"entity":7,"t":1}\n{"entity":"8","t":2}\n')
@example(text=b'{"entity":"a","t":1,"speed":NaN}\n{"entity":"a","t":1,"x":Infinity,"y":-Infinity}\n')
@example(text=b'{"entity":"a","t":1,"speed":Inf}\n')
@example(text=b'{"entity":"a","t":1,"speed":-NaN}\n')
@example(text=b'{"entity":"a","t":1,"other":' + b"[" * 1900 + b"]" * 1900 + b"}\n")
@example(text=b'{"entity":"a","t":1,"other":[{"b":1},[2]]}\n{"t":1,"other":[-0]}\n')
@example(text=b'{"entity":"a","t":1,"other":"\xff"}\n')
@example(text=b'\xef\xbb\xbf{"entity":"a","t":1}\n')
def test_json_lines_give_the_same_rows_by_every_way_in(text: bytes, folder: Path) -> None:
    assert_same(text, NDJSON, folder)


@pytest.mark.parametrize(
    "text",
    [
        b'[{"entity":"a","t":1},{"entity":"a","t":2}]',
        b'[\n{"entity":"a","t":1},\n{"entity":"a","t":2}\n]\n',
        b'\xef\xbb\xbf [ {"entity":"a","t":1} ]\r\n',
        b'[\r\n  {\r\n    "entity": "a"',
    ],
)
def test_a_list_of_objects_is_refused_as_a_whole_by_every_way_in(text: bytes, folder: Path) -> None:
    """As lines, all of it would be dead letters, and the sender of a post would see only that it
    was accepted."""
    path = folder / "list.jsonl"
    path.write_bytes(text)
    for read in (
        lambda: of_body(text, NDJSON),
        lambda: of_pieces(read_files([path], Columns(FEED))),
        lambda: of_pieces(read_file(path, FEED, 1)),
        lambda: of_pieces(read_file(path, FEED, 9)),
    ):
        with pytest.raises(UnreadableFile, match=r"jq -c '.\[\]'"):
            read()


@pytest.mark.parametrize("first", [b"[1]", b"[", b'[{"entity":"a","t":0}]'])
def test_other_lines_with_brackets_are_dead_letters(first: bytes, folder: Path) -> None:
    text = first + b'\n{"entity":"a","t":1}\n[{"entity":"a","t":2}]\n[]\n'
    rows, dead = of_body(text, NDJSON)
    assert len(rows) == 1 and [line for *_, line in dead] == [1, 3, 4]
    assert_same(text, NDJSON, folder)


@given(text=csv_blocks())
@example(text=b"a,1,1.5,true,k,o,0x1f\n")
@example(text=b"a,1,nan(5),true,k,o,1\n")
@example(text=b"a,1,1.5,true,k,o,1\rb,1,1.5,true,k,o,1\r\n")
@example(text=b'a,1,1.5,true,"k",o,1\n')
@example(text=b'a,1,,true,"k\nk",o,1\nb,1,1.5,true,"k""\r\n\r\nk",o,1\n')
@example(text=b'a,1,,true,"k",o,1\n\n\r\nb,1,1.5,true,"k",o,1\n')
@example(text=b'a,1,,true,k"k,o,1\nb,1,,true,"k\nk",o,1\n')
@example(text=b'a,1,,true,"k,o,1\nb,1,,true,k,o,1\n')
@example(text=b"a,1,1.5,true,k,o,1\n\nb,1,1.5,true,k,o,1\n")
@example(text=b"a,1,1.5,true,k,o,1\rb,1,1.5,true,k,o,1\n\n")
@example(text=b"a,1,1.5,true,k,\xff,1\n")
def test_csv_gives_the_same_rows_by_every_way_in(text: bytes, folder: Path) -> None:
    assert_same(HEADER + text, CSV, folder)


@pytest.mark.parametrize("kind", [NDJSON, CSV])
def test_lines_up_to_a_megabyte_are_read(kind: str, folder: Path) -> None:
    def line(size: int) -> bytes:
        begin, end = (b'{"entity":"', b'","t":1}') if kind == NDJSON else (b"", b",1,,,,,")
        return begin + b"a" * (size - len(begin) - len(end)) + end + b"\n"

    text = (HEADER if kind == CSV else b"") + line(1_000_000) + line(1_000_001) + line(20) + line(2_000_000)
    ways = by_every_way(text, kind, folder, [300_000])
    numbers = [1 + (kind == CSV), 2 + (kind == CSV), 4 + (kind == CSV)]
    for way, (rows, dead) in ways.items():
        assert (len(rows), [(letter[0], letter[3]) for letter in dead]) == (2, [("malformed", number) for number in numbers[1:]]), way


@pytest.mark.parametrize("strays", [3, 150])
def test_unclosed_quotes_lose_only_their_lines(strays: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of them; after too many, cells of several lines are no longer looked for."""
    monkeypatch.setattr(csv_records, "MAX_LINES", 50)
    text = HEADER + (b'a,1,,,"k,,\n' + b"a,1,,,k,,\n" * 60) * strays + b'a,1,,,"k\nk",,\n'
    ways = by_every_way(text, CSV, folder, [3_000], [500])
    rows, dead = ways["one by one"]
    assert len(rows) == 60 * strays + (strays < csv_records.MAX_UNCLOSED_QUOTES)
    assert [letter[3] for letter in dead][:2] == [2, 63]
    assert {way for way, here in ways.items() if here != ways["one by one"]} == set()


def test_tables_of_arrow_and_files_of_parquet_give_the_same(folder: Path) -> None:
    table = pa.table(
        {
            "entity": pa.array(["a", None, "", "b", "c"]).dictionary_encode(),
            "t": pa.array([1, 2, 3, None, 5], pa.int32()),
            "x": [0.5, float("nan"), 1, 2, 3],
            "y": [0.5, 1, 2, None, None],
        }
    )
    written = io.BytesIO()
    with pa.ipc.new_stream(written, table.schema) as writer:
        writer.write_table(table)
    path = folder / "a.parquet"
    pq.write_table(table, path)
    body = of_body(written.getvalue(), "application/vnd.apache.arrow.stream")
    assert len(body[0]) == 1 and len(body[1]) == 4
    assert of_pieces(read_files([path], Columns(FEED))) == of_pieces(read_file(path, FEED, 2)) == body


def test_empty_input_gives_no_rows(folder: Path) -> None:
    for kind in TEXTS:
        assert of_body(b"entity,t" if kind == CSV else b"", kind) == ([], [])
    for way in by_every_way(HEADER, CSV, folder).values():
        assert way == ([], [])


@pytest.mark.parametrize("text", [b"id,t\n1,2\n", b"entity,t,t\n1,2,3\n", b"\xff,t\n"])
def test_unusable_text_is_refused_by_every_way_in(text: bytes, folder: Path) -> None:
    path = folder / "b.csv"
    path.write_bytes(text)
    for way in (lambda: of_body(text, CSV), lambda: of_pieces(read_files([path], Columns(FEED))), lambda: of_pieces(read_file(path, FEED, 3))):
        with pytest.raises(UnreadableFile):
            way()


# -- how fast --------------------------------------------------------------------------------------

GOOD_JSON = b'{"entity":"a","t":1,"x":1.5,"y":2,"open":true,"other":"z"}\n'


def is_read_by_arrow(text: bytes, kind: str) -> bool:
    """Whether no line of the text is read separately."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonlines._Reader, "_by_line", None)
        patch.setattr(delimited._Reader, "_by_record", None)
        try:
            read_body(text, kind, FEED)
        except TypeError:
            return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        GOOD_JSON * 3,
        b'{"entity": 211000, "t": 1}\r\n' * 2,
        b'{"entity":"\xc3\xa9","t":1}',
        b'{"entity":"a","t":1,"speed":NaN,"kind":"Information"}\n',
        b'{"entity":"a","t":1,"other":{"b":[1,{"c":2}]}}\n' * 2,
        GOOD_JSON + b'{"entity":"a","t":1,"x":1.5}\n',
    ],
)
def test_plain_lines_of_json_are_read_as_a_whole(text: bytes) -> None:
    assert is_read_by_arrow(text, NDJSON)


@pytest.mark.parametrize(
    "text",
    [
        b"a,1,1.5,true,k,o,3\r\nb,2,,,,,\r\n",
        b'"a","1",1.5,true,"","o",3\r\n"b",2,,,"k k",,\n"c",2,,,,,"7"',
        b'a,1,,true,"k,k",o,3\na,1,,true,"k""k",o,3\na,1,,true,"k\r\nk",o,3\n\n',
        b"a,1,,true,Bremen (Port),o,3\n",
        b"a,1,1.5,true,k,o,3\n",
    ],
)
def test_plain_lines_of_csv_are_read_as_a_whole(text: bytes) -> None:
    assert is_read_by_arrow(HEADER + text, CSV)


@pytest.mark.parametrize("cell", [b'k"k"', b'"k"k', b' "k"', b'"k" ', b'"', b'"""'])
def test_quotes_at_unusual_places_use_the_slow_path(cell: bytes) -> None:
    assert not is_read_by_arrow(HEADER + b"a,1,1.5,true," + cell + b",o,3\n", CSV)


@pytest.mark.parametrize("kind", [NDJSON, CSV])
def test_an_odd_line_among_thousands_is_a_dead_letter_with_its_number(kind: str, folder: Path) -> None:
    """In another block than the first, so that the blocks before and after it are read as a
    whole."""
    texts = [f'{{"entity":"e{n}","t":{n},"x":1,"y":1}}' if kind == NDJSON else f"e{n},{n},1,1" for n in range(80_000)]
    texts[60_000] = "odd"
    number = 60_001 + (kind == CSV)
    rows, dead = of_body((("" if kind == NDJSON else "entity,t,x,y\n") + "\n".join(texts)).encode(), kind)
    assert (len(rows), [letter[3] for letter in dead]) == (79_999, [number])
