"""Files as real tools write them, with unusual features: guessed correctly, or the fault shown by
row with its remedy; no row is lost."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from engine.sources.formats import read_chunks
from engine.sources.guessing.files import inspect
from engine.sources.numbers import numbers_of
from engine.sources.reading import read_rows, reading_of

NOON = datetime(2025, 12, 31, 12, tzinfo=UTC)
T0 = int(NOON.timestamp() * 1000)
AIS = "!AIVDM,1,1,,B,15M67FC000G?ufbE`FepT@3n00Sa,0*5C"


def looked(path: Path, data: str | bytes | None = None) -> tuple[dict[str, Any], list[dict[str, Any]], list[tuple[int, str]]]:
    """The guess, all valid rows, and all others with their lines."""
    if data is not None:
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    found = inspect(path, path.name, {})
    reading = reading_of(found["reading"])
    rows: list[dict[str, Any]] = []
    faults: list[tuple[int, str]] = []
    for chunk in read_chunks(path, reading.layout):
        checked = read_rows(chunk.table, reading, reading.feed("x")).checked
        rows += checked.good().to_pylist()
        faults += [(one.line, one.detail) for one in checked.dead(chunk.lines)] + [(one.line, one.problem) for one in chunk.broken]
    assert found["count"] <= len(rows) + len(faults)
    return found, rows, faults


def table(cells: str, count: int = 20, head: str = "id,time,lon,lat,note") -> str:
    return head + "\n" + "".join(cells.format(n=n, t=f"2025-12-31 12:00:{n:02}") + "\n" for n in range(count))


def test_an_unclosed_quote_loses_one_line(tmp_path: Path) -> None:
    _, rows, faults = looked(tmp_path / "a.csv", table("a,{t},13,52,x").replace("12:00:05,13,52,x", '12:00:05,13,52,"x'))
    assert len(rows) == 19 and faults == [(7, "a quote is opened and not closed: correct it, or choose another delimiter")]


def test_cells_and_headers_may_span_lines(tmp_path: Path) -> None:
    found, rows, faults = looked(tmp_path / "a.csv", table('a,{t},13,52,"one\n""two"", {n}"', head='id,time,lon,lat,"note\n(long)"'))
    assert found["reading"]["delimiter"] == "," and len(rows) == 20 and not faults and rows[0]["note_long"] == 'one\n"two", 0'


def test_long_ids_keep_all_their_digits(tmp_path: Path) -> None:
    """A double has only 53 bits."""
    cells = "a,{t},13,52,9007199254740993,+90071992547409{n:02},-9007199254740995,123456789012345678901\n"
    found, rows, faults = looked(tmp_path / "a.csv", table(cells.strip(), head="id,time,lon,lat,serial,signed,negative,long"))
    assert not faults and {one["name"]: one["type"] for one in found["reading"]["attributes"]}["long"] == "string"
    assert {(row["serial"], row["negative"], row["long"]) for row in rows} == {(9007199254740993, -9007199254740995, "123456789012345678901")}
    assert [row["signed"] for row in rows] == [9007199254740900 + n for n in range(20)]


def test_lines_that_hold_lists_of_objects_are_read_and_the_lists_become_json(tmp_path: Path) -> None:
    """As in our own files of answers."""
    records = [
        {"id": "a", "time": f"2025-12-31 12:00:{n:02}", "others": ["a", "it's"], "evidence": [{"x": None, "name": "Größe"}], "mixed": bool(n) or "x"}
        for n in range(20)
    ]
    _, rows, faults = looked(tmp_path / "a.jsonl", "\n\n".join(map(json.dumps, records)))
    assert not faults and len(rows) == 20
    assert rows[0]["others"] == '["a", "it\'s"]' and rows[0]["evidence"] == '[{"x": null, "name": "Größe"}]'
    assert [row["mixed"] for row in rows[:2]] == ["x", "true"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_lists_and_maps_of_columns_with_types_become_json(suffix: str, tmp_path: Path) -> None:
    columns = {
        "id": ["a", "b"],
        "time": [NOON, NOON],
        "lon": [13.5, 13.6],
        "lat": [52.5, 52.6],
        "tags": [["it's", "Größe"], None],
        "short": [[1, 2], []],
        "long": [[1, 2, 3, 4, 5], [1]],
        "crew": pa.array([[("captain", 1)], []], pa.map_(pa.string(), pa.int32())),
        "keyed": pa.array([[(1, None), (1, True)], None], pa.map_(pa.int32(), pa.bool_())),
        "calls": [[{"port": "Kiel", "raw": b"\x01"}], []],
        "moments": pa.array([[2**50], [0]], pa.list_(pa.timestamp("s"))),
    }
    path, data = tmp_path / f"a.{suffix}", pa.table(columns)
    if suffix == "parquet":
        pq.write_table(data, path)
    else:
        with pa.ipc.new_file(path, data.schema) as file:
            file.write_table(data)
    read = pa.concat_tables([chunk.table for chunk in read_chunks(path, reading_of(inspect(path, path.name, {})["reading"]).layout)])
    assert read.select(list(columns)[4:]).to_pydict() == {
        "tags": ['["it\'s", "Größe"]', None],
        "short": ["[1, 2]", "[]"],
        "long": ["[1, 2, 3, 4, 5]", "[1]"],
        "crew": ['{"captain": 1}', "{}"],
        "keyed": ["[[1, null], [1, true]]", None],
        "calls": ['[{"port": "Kiel", "raw": "01"}]', "[]"],
        "moments": [None, '["1970-01-01 00:00:00"]'],
    }
    _, rows, faults = looked(path)
    assert not faults and rows[0]["tags"] == '["it\'s", "Größe"]' and rows[0]["crew"] == '{"captain": 1}'


def test_a_document_on_one_line_gives_the_records_of_its_list(tmp_path: Path) -> None:
    records = [{"id": "a", "time": f"2025-12-31 12:00:{n:02}", "lat": 52, "lon": 13} for n in range(20)]
    for end in ("", "\n", "\n\n"):
        _, rows, faults = looked(tmp_path / "a.json", json.dumps({"count": 20, "data": records}) + end)
        assert not faults and len(rows) == 20


def test_the_sep_line_of_excel_sets_the_delimiter(tmp_path: Path) -> None:
    _, rows, faults = looked(tmp_path / "a.csv", "sep=;\r\n" + table("a;{t};13,5;52,5", head="id;time;lon;lat") + "b;never;1;2\n")
    assert len(rows) == 20 and rows[0]["x"] == 13.5 and faults[0][0] == 23


def test_a_point_is_not_a_thousands_separator_beside_decimal_commas() -> None:
    values, wrong = numbers_of(pa.array(["52.5", "1.234,5", "1.234.567", "0,5", "1.2.3"]), ",")
    assert values[:4].tolist() == [52.5, 1234.5, 1234567.0, 0.5] and wrong.tolist() == [False] * 4 + [True]


@pytest.mark.parametrize(
    "form", ["%m/%d/%y %I:%M %p", "%m/%d/%Y %I:%M %p", "%d.%m.%y %H:%M", "%d/%m/%y %H:%M:%S", "%m/%d/%y %H:%M", "%Y%m%d%H%M", "%d %b %Y %H:%M:%S",
             "%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%d %H:%M:%S,000", "%d/%m/%Y %H:%M:%S.000", "%d/%m/%Y, %H:%M:%S"]
)  # fmt: skip
def test_american_and_other_date_orders_are_guessed(tmp_path: Path, form: str) -> None:
    lines = "".join(f"a;{(NOON + timedelta(hours=n)).strftime(form)};13;52\n" for n in range(30))
    _, rows, faults = looked(tmp_path / "a.csv", "id;time;lon;lat\n" + lines)
    assert [row["t"] for row in rows] == [T0 + n * 3_600_000 for n in range(30)] and not faults


def test_coordinates_out_of_range_name_the_remedy(tmp_path: Path) -> None:
    _, rows, faults = looked(tmp_path / "a.csv", table("a,{t},13,52,x") + "a,2025-12-31 12:00:00,193,52,x\n")
    assert len(rows) == 20 and faults[0][0] == 22
    assert "'lon' must lie in [-180, 180]" in faults[0][1] and "choose another coordinate reference system" in faults[0][1]


def test_vessel_numbers_are_not_guessed_as_times(tmp_path: Path) -> None:
    found, rows, faults = looked(tmp_path / "a.nmea", f"{AIS}\r\n" * 3)
    assert found["reading"]["time"] == ["time"] and found["reading"]["entity"] == ["mmsi"] and not rows and len(faults) == 3


def test_a_time_before_an_nmea_sentence_keeps_its_offset(tmp_path: Path) -> None:
    _, rows, _ = looked(tmp_path / "a.nmea", f"2025-12-31T14:00:00+02:00 {AIS}\n2025-12-31T12:00:01Z {AIS}\n")
    assert [row["t"] for row in rows] == [T0, T0 + 1_000]


def _workbook(path: Path, *sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number}", number)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_workbooks_may_have_a_title_and_a_sheet_before_the_data(tmp_path: Path) -> None:
    data: list[list[Any]] = [["id", "Date", "Time", "lon", "lat"], *(["a", date(2025, 12, 31), time(12, 0, n), 13.4, 52.5] for n in range(3))]
    path = _workbook(tmp_path / "a.xlsx", [["How to read this"]], [["Report"], [], *data])
    found, rows, faults = looked(path)
    assert found["reading"]["sheet"] == "sheet 1" and found["sheets"] == ["sheet 0", "sheet 1", "Sheet"]
    assert [row["t"] for row in rows] == [T0, T0 + 1_000, T0 + 2_000] and rows[0]["x"] == 13.4 and not faults


def test_unusual_columns_of_texts_and_times_are_read(tmp_path: Path) -> None:
    places = {"lon": [13.4, 13.5], "lat": [52.5, 52.5]}
    days = {"date": pa.array([date(2025, 12, 31)] * 2), "time": pa.array([time(12), time(12, 0, 1)], pa.time32("s"))}
    pq.write_table(pa.table({"id": pa.array(["a", "b"]).dictionary_encode(), **days, **places}), tmp_path / "a.parquet")
    _, rows, _ = looked(tmp_path / "a.parquet")
    assert [(row["entity"], row["t"]) for row in rows] == [("a", T0), ("b", T0 + 1_000)]
    views = pa.table({"id": pa.array(["a", "b"], pa.string_view()), "time": pa.array([T0, 10**15], pa.timestamp("ms")), **places})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), views.schema) as writer:
        writer.write_table(views)
    _, rows, faults = looked(tmp_path / "a.arrow")
    assert [(row["entity"], row["t"]) for row in rows] == [("a", T0)] and faults == [(2, "the row has no time in column 'time'")]


def test_gpx_waypoints_and_extensions_are_read(tmp_path: Path) -> None:
    more = "<extensions><x><time>7</time><lat>0</lat></x></extensions>"
    points = "".join(f'<trkpt lat="52" lon="13.{n}"><time>2025-12-31T12:00:0{n}Z</time>{more}</trkpt>' for n in range(3))
    home = '<wpt lat="52" lon="13"><time>2025-12-31T12:00:00Z</time><name>Home</name></wpt>'
    _, rows, faults = looked(tmp_path / "a.gpx", f"<gpx>{home}<trk><name>Run</name><trkseg>{points}</trkseg></trk></gpx>")
    assert [(row["entity"], row["t"], row["y"]) for row in rows] == [
        ("Home", T0, 52),
        *(("Run", T0 + 1_000 * n, 52) for n in range(3)),
    ] and not faults


def test_a_feature_without_a_geometry_is_read(tmp_path: Path) -> None:
    times = [f"2025-12-31T12:00:0{n}Z" for n in range(3)]
    places = [None, *({"type": "Point", "coordinates": [13, 52]} for _ in range(2))]
    features = [{"type": "Feature", "geometry": place, "properties": {"vessel": "a", "time": t}} for place, t in zip(places, times, strict=True)]
    _, rows, faults = looked(tmp_path / "a.geojson", json.dumps({"type": "FeatureCollection", "features": features}))
    assert [(row["entity"], row["x"]) for row in rows] == [("a", None), ("a", 13.0), ("a", 13.0)] and not faults


KML = '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document>{}</Document></kml>'


def test_every_point_of_a_placemark_is_read_and_lines_are_named(tmp_path: Path) -> None:
    points = "".join(f"<Point><coordinates>13.{n},52</coordinates></Point>" for n in range(2))
    line = "<LineString><coordinates>13,52 14,52</coordinates></LineString>"
    stamp = "<TimeStamp><when>2025-12-31T12:00:00Z</when></TimeStamp>"
    own = '<ExtendedData><Data name="time"><value>7</value></Data><Data name="crew"><value>3</value></Data></ExtendedData>'
    mark = f"<Placemark><name>a</name>{stamp}{own}<MultiGeometry>{points}{line}</MultiGeometry></Placemark>"
    _, rows, faults = looked(tmp_path / "a.kml", KML.format(mark))
    assert [(row["t"], row["x"], row["crew"]) for row in rows] == [(T0, 13.0, 3), (T0, 13.1, 3)]
    assert faults == [(1, "the placemark 'a' has a LineString beside its points, which has no times: points and tracks are read")]


def test_track_values_are_read_for_each_moment(tmp_path: Path) -> None:
    moments = "".join(f"<when>2025-12-31T12:00:0{n}Z</when>" for n in range(3)) + "".join(f"<gx:coord>13.{n} 52 0</gx:coord>" for n in range(3))
    moments += "".join(f"<gx:angles>{10 * n} 0 0</gx:angles>" for n in range(3))

    def values(name: str, count: int) -> str:
        return f'<gx:SimpleArrayData name="{name}">' + "".join(f"<gx:value>{90 + n}</gx:value>" for n in range(count)) + "</gx:SimpleArrayData>"

    schema = f'<ExtendedData><SchemaData schemaUrl="#s">{values("pulse", 3)}{values("cadence", 2)}</SchemaData></ExtendedData>'
    own = '<ExtendedData><Data name="crew"><value>3</value></Data></ExtendedData>'
    _, rows, faults = looked(tmp_path / "a.kml", KML.format(f"<Placemark><name>a</name>{own}<gx:Track>{moments}{schema}</gx:Track></Placemark>"))
    assert [(row["t"], row["pulse"], row["heading"], row["crew"]) for row in rows] == [(T0 + 1_000 * n, 90 + n, 10 * n, 3) for n in range(3)]
    assert faults == [(1, "the track 'a' has not as many values of 'cadence' (2) as times (3): these values are left out")]


def test_bytes_that_are_not_utf8_are_faults_of_their_lines(tmp_path: Path) -> None:
    lines = table("a,{t},13,52,x", 20).replace("12:00:05,13,52,x", "12:00:05,13,52,Zürich").encode()
    data = lines + "a,2025-12-31 12:00:20,13,52,Genève\n".encode("latin-1") + b"a,2025-12-31 12:00:21,13,52,x\n"
    _, rows, faults = looked(tmp_path / "a.csv", data)
    assert len(rows) == 21 and rows[5]["note"] == "Zürich"
    assert faults == [(22, "the line is not UTF-8 like those before it: choose another encoding, or correct the line")]


def _long(odd: bytes, at: int = 60_000, count: int = 80_000) -> bytes:
    rows = [f"a,{T0 + n},13.5,52.5,Zürich".encode() for n in range(count)]
    rows[at] = odd
    return b"id,time,lon,lat,note\n" + b"\n".join(rows) + b"\n"


def test_an_encoding_that_changes_later_in_the_file_is_found_by_inspection(tmp_path: Path) -> None:
    odd = f"a,{T0},13.5,52.5,Genève".encode("latin-1")
    found, rows, faults = looked(tmp_path / "a.csv", _long(odd))
    problem = "the line is not UTF-8 like those before it: choose another encoding, or correct the line"
    assert len(rows) == 79_999 and faults == [(60_002, problem)] and found["reading"]["encoding"] == "utf-8"
    assert [(one["line"], one["problem"]) for one in found["faults"]] == [(60_002, problem)] and found["good"] == 5_000


def test_an_unclosed_quote_far_into_the_file_names_its_line(tmp_path: Path) -> None:
    _, rows, faults = looked(tmp_path / "a.csv", _long(f'a,{T0},13.5,52.5,"x'.encode()))
    assert len(rows) == 79_999 and faults == [(60_002, "a quote is opened and not closed: correct it, or choose another delimiter")]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", table("a,{t},13,52,x")),
        ("a.jsonl", "".join(f'{{"id": "a", "time": "2025-12-31T12:00:{n:02}Z", "lon": 13, "lat": 52}}\n' for n in range(20))),
        ("a.nmea", f"\\c:1767182400*5F\\{AIS}\n" * 3),
        ("a.gpx", '<gpx><trk><name>a</name><trkseg><trkpt lat="52" lon="13"><time>2025-12-31T12:00:00Z</time></trkpt></trkseg></trk></gpx>'),
    ],
)
def test_compressed_texts_of_each_format_are_read(tmp_path: Path, name: str, text: str, pack: Any) -> None:
    _, plain, _ = looked(tmp_path / name, text)
    _, rows, _ = looked(tmp_path / f"{name}.packed", pack(text.encode()))
    assert rows == plain and rows
