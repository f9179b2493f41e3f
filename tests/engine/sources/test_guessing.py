"""The guessed meaning of files of every format, and the rows read from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from engine.model.faults import Refused
from engine.sources.files import UnreadableFile
from engine.sources.formats import FileFormat, Layout, read_chunks
from engine.sources.guessing.files import inspect
from engine.sources.numbers import numbers_of
from engine.sources.reading import DATED, ISO, Reading, read_rows, reading_of, times_of

T0 = 1_767_348_000_000
"""2026-01-02T10:00:00Z"""
Rows = list[dict[str, Any]]


def looked(path: Path, **chosen: Any) -> tuple[dict[str, Any], Rows]:
    """The guess, and all rows of the file as a feed gets them."""
    found = inspect(path, path.name, chosen)
    reading = reading_of(found["reading"])
    rows: Rows = []
    for chunk in read_chunks(path, reading.layout):
        rows += read_rows(chunk.table, reading, reading.feed("x")).checked.good().to_pylist()
    return found, rows


def first(rows: Rows, *names: str) -> list[Any]:
    return [rows[0][name] for name in names]


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_a_table_with_german_conventions_is_guessed(tmp_path: Path) -> None:
    text = "Schiff;Länge;Breite;Datum;Uhrzeit;Geschw. (kn)\n" + "".join(
        f"Möwe {n % 2};10,{n:02};54,5;02.01.2026;11:{n:02}:00;12,5\n" for n in range(30)
    )
    path = written(tmp_path / "Schiffe.csv", text, "windows-1252")
    found, rows = looked(
        path, x="Länge", y="Breite", entity=["Schiff"], time=["Datum", "Uhrzeit"], time_format="%d.%m.%Y %H:%M:%S", zone="Europe/Berlin"
    )
    reading = found["reading"]
    assert (reading["delimiter"], reading["decimal"]) == (";", ",")
    assert found["fault_count"] == 0 and len(rows) == 30
    assert first(rows, "entity", "t", "x", "y") == ["Möwe 0", T0, 10.0, 54.5]
    assert {one["name"]: one["type"] for one in found["reading"]["attributes"]}["geschw_kn"] == "float"


def test_of_encodings_that_read_the_same_text_the_usual_one_is_guessed(tmp_path: Path) -> None:
    """Such a file was Eastern European, by a name that the page's list does not have."""
    text = "Kennung;Zeit;Breite;Länge\n" + "".join(f"LKW;15.11.2026 10:{n:02}:00;52,5;13,4\n" for n in range(30))
    found, _ = looked(written(tmp_path / "LKW.csv", text, "windows-1252"))
    assert found["reading"]["encoding"] == "windows-1252"


@pytest.mark.parametrize("clock", ["Uhrzeit", "Zeit"])
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_german_day_and_time_of_day_in_two_columns_are_one_time(tmp_path: Path, kind: str, clock: str) -> None:
    """Every row had the midnight of its day."""
    heads, minutes = ["Stapler", "Datum", clock, "Länge", "Breite"], range(20)
    path = tmp_path / f"moves.{kind}"
    if kind == "csv":
        written(path, ";".join(heads) + "\n" + "".join(f"S1;02.01.2026;10:{n:02};13,4;52,5\n" for n in minutes))
    else:
        book = Workbook()
        assert book.active is not None
        book.active.append(heads)
        for n in minutes:
            book.active.append(["S1", date(2026, 1, 2), time(10, n), 13.4, 52.5])
        book.save(path)
    found, rows = looked(path)
    assert found["reading"]["time"] == ["Datum", clock]
    assert [row["t"] for row in rows] == [T0 + 60_000 * n for n in minutes]


def test_a_short_german_table_whose_things_are_in_a_column_kennung(tmp_path: Path) -> None:
    text = "Kennung;Zeit;Länge;Breite\nFähre;28.11.2026 14:00;10,9;54,1\nFähre;28.11.2026 14:01;11,1;54,1\nSchlepper;28.11.2026 14:02;10,9;54,1\n"
    found, rows = looked(written(tmp_path / "data.csv", text))
    assert found["reading"]["entity"] == ["Kennung"] and [row["entity"] for row in rows] == ["Fähre", "Fähre", "Schlepper"]


NAMES = ["Nord", "Süd", "Mitte"]


def rounds(column: str) -> str:
    """A table of three things that report at the same times; its first column does not distinguish
    them."""
    lines = (f"{('frei', 'besetzt')[n % 2]},{NAMES[n % 3]},{10 + n / 100},54.5,2026-01-02T10:{n // 3:02}:00Z\n" for n in range(30))
    return f"Zustand,{column},lon,lat,time\n" + "".join(lines)


@pytest.mark.parametrize("column", ["Kennzeichen", "Wagen", "Kennung", "Objekt"])
def test_the_column_of_the_thing_is_guessed_by_its_name_or_by_its_values(tmp_path: Path, column: str) -> None:
    _, rows = looked(written(tmp_path / "fahrten.csv", rounds(column)))
    assert [row["entity"] for row in rows[:4]] == ["Nord", "Süd", "Mitte", "Nord"]


def test_names_with_umlauts_and_accents_are_spelled_in_ascii(tmp_path: Path) -> None:
    path = written(tmp_path / "tor.csv", "Lesegerät;Etikett;Zeitpunkt;Qualité\nTor;E200;30.11.2026 06:07:47;gut\nTor;E201;30.11.2026 06:08:47;gut\n")
    found, _ = looked(path)
    assert [one["name"] for one in found["reading"]["attributes"]] == ["lesegeraet", "qualite"]
    assert found["reading"]["entity"] == ["Etikett"]


@pytest.mark.parametrize(
    ("value", "odd", "kind"),
    [("schwach", "schwach", "string"), ("n/a", "", "float"), ("", "", "float"), ("007", "", "string")],
)
def test_the_one_value_that_makes_a_column_of_numbers_a_column_of_texts_is_named(tmp_path: Path, value: str, odd: str, kind: str) -> None:
    levels = [f"{n}.5" for n in range(29)]
    rows = "".join(f"a,2026-01-02T10:{n:02}:00Z,{level}\n" for n, level in enumerate([*levels[:7], value, *levels[7:]]))
    found, _ = looked(written(tmp_path / "reads.csv", "tag,time,level\n" + rows))
    assert [(one["name"], one["type"]) for one in found["reading"]["attributes"]] == [("level", kind)]
    assert {one["name"]: one["odd"] for one in found["columns"]} == {"tag": "", "time": "", "level": odd}


def test_a_file_of_one_thing_stays_one_thing(tmp_path: Path) -> None:
    text = "Ort,lon,lat,time\n" + "".join(f"{NAMES[n // 10]},{10 + n / 100},54.5,2026-01-02T10:{n:02}:00Z\n" for n in range(30))
    _, rows = looked(written(tmp_path / "fahrt.csv", text))
    assert {row["entity"] for row in rows} == {"fahrt"}


def test_a_time_that_cannot_be_read_is_shown_beside_an_example_of_its_format(tmp_path: Path) -> None:
    text = "id,lon,lat,time\n" + "".join(f"a,10,54.5,{n:02}.02.2026 08:00:00\n" for n in range(20, 32))
    found, _ = looked(written(tmp_path / "x.csv", text))
    assert found["fault_count"] == 3 and "31.01.2026 14:05:00" in str(found["faults"][0])


@pytest.mark.parametrize(
    ("times", "form"),
    [
        (["1767348000", "1767348060"], "epoch_s"),
        (["1767348000000", "1767348060000"], "epoch_ms"),
        (["2026-01-02T10:00:00Z", "2026-01-02T10:01:00Z"], "iso"),
        (["2026-01-02T12:00:00+02:00", "2026-01-02T12:01:00+02:00"], "iso"),
        (["2026-01-02 10:00:00", "2026-01-02 10:01:00"], "iso"),
        (["01/02/2026 10:00:00", "01/02/2026 10:01:00", "01/13/2026 10:00:00"], "%m/%d/%Y %H:%M:%S"),
        (["02/01/2026 10:00", "02/01/2026 10:01", "13/01/2026 10:00"], "%d/%m/%Y %H:%M"),
        (["20260102100000", "20260102100100"], "%Y%m%d%H%M%S"),
    ],
)
def test_common_formats_of_times_are_guessed(tmp_path: Path, times: list[str], form: str) -> None:
    path = written(tmp_path / "a.csv", "id,time,lon,lat\n" + "".join(f"a,{time},1.5,2.5\n" for time in times))
    found, rows = looked(path)
    assert (found["reading"]["time"], found["reading"]["time_format"], found["reading"]["entity"]) == (["time"], form, ["id"])
    assert [row["t"] for row in rows][:2] == [T0, T0 + 60_000]


def test_a_time_zone_applies_only_to_times_without_an_offset(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,time,lon,lat\na,2026-07-02 12:00:00,1,2\n")
    _, rows = looked(path, zone="Europe/Berlin")
    assert rows[0]["t"] == 1_782_986_400_000, "10:00 in UTC"
    path = written(tmp_path / "b.csv", "id,time,lon,lat\na,2026-07-02 12:00:00Z,1,2\n")
    assert looked(path, zone="Europe/Berlin")[1][0]["t"] == 1_782_993_600_000


@pytest.mark.parametrize(
    ("crs", "x", "y"),
    [("EPSG:3857", 1113194.9079327357, 6800125.454397307), ("EPSG:32632", 564803.61, 5761510.43), ("EPSG:27700", 530034.0, 180381.0)],
)
def test_projected_coordinates_become_longitude_and_latitude(tmp_path: Path, crs: str, x: float, y: float) -> None:
    path = written(tmp_path / "a.csv", f"id,time,easting,northing\na,1767348000,{x},{y}\nb,1767348001,{x + 1},{y}\n")
    _, rows = looked(path, crs=crs)
    lon, lat = first(rows, "x", "y")
    expected = {"EPSG:3857": (10.0, 52.0), "EPSG:32632": (9.944, 52.0), "EPSG:27700": (-0.12768, 51.50736)}[crs]
    assert (lon, lat) == pytest.approx(expected, abs=1e-3)
    if crs == "EPSG:27700":
        assert inspect(path, "a.csv", {})["reading"]["crs"] == crs


def test_planar_coordinates_stay_unchanged(tmp_path: Path) -> None:
    path = written(tmp_path / "hall.csv", "frame,person,x,y\n" + "".join(f"{n},p{n % 3},{n * 50},{n * 3}\n" for n in range(40)))
    found, rows = looked(path)
    assert (found["reading"]["crs"], found["reading"]["time_format"], found["reading"]["time"]) == ("plane", "ticks", ["frame"])
    assert first(rows[1:], "t", "x", "y", "entity") == [1, 50.0, 3.0, "p1"]


def test_faults_name_the_line_and_the_remedy(tmp_path: Path) -> None:
    day = "2026-01-02T10:00:00Z"
    lines = [f"a,{day},1,2,3", "b,yesterday,1,2,3", f"c,{day},181,2,3", f"d,{day},east,2,3", "e,1", "f,,1,2,3", f",{day},1,2,3", f"h,{day},1,,3", ""]
    path = written(tmp_path / "a.csv", "id,time,lon,lat,speed\n" + "\n".join(lines))
    found, rows = looked(path)
    problems = {fault["line"]: fault["problem"] for fault in found["faults"]}
    assert [row["entity"] for row in rows] == ["a"] and found["good"] == 1 and found["fault_count"] == 7
    assert (
        "ISO 8601: choose another format" in problems[3]
        and "longitude" in problems[4]
        and "'lon' holds no number: correct" in problems[5]
        and "delimiter" in problems[6]
        and problems[7] == "the row has no time in column 'time'"
        and problems[8] == "the row has no entity in column 'id'"
        and problems[9] == "only one of the columns 'lon', 'lat' has a value"
    )


def test_chosen_settings_are_checked_with_pointers(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,time,lon,lat\na,1767348000,1,2\n")
    for key, value in (
        ("crs", "EPSG:99999"),
        ("zone", "Mars/Base"),
        ("time_format", "soon"),
        ("delimiter", ""),
        ("encoding", "klingon"),
        ("speed", 1),
    ):
        with pytest.raises(Refused) as refused:
            inspect(path, "a.csv", {"kind": "csv", key: value} if key != "encoding" else {key: value})
        assert refused.value.faults[0].pointer == f"/{key}"


GPX = """<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><name>Ada</name><trkseg>
<trkpt lat="52.5" lon="13.4"><ele>34</ele><time>2026-01-02T10:00:00Z</time><extensions><speed>1.5</speed></extensions></trkpt>
<trkpt lat="52.6" lon="13.5"><time>2026-01-02T10:00:10Z</time></trkpt></trkseg></trk>
<trk><trkseg><trkpt lat="52.5" lon="13.4"><time>2026-01-02T10:00:05Z</time></trkpt></trkseg></trk></gpx>"""
KML = """<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document><Placemark><name>Ada</name>
<gx:Track><when>2026-01-02T10:00:00Z</when><when>2026-01-02T10:00:10Z</when>
<gx:coord>13.4 52.5 0</gx:coord><gx:coord>13.5 52.6 0</gx:coord></gx:Track></Placemark>
<Placemark><name>Bob</name><TimeStamp><when>2026-01-02T10:00:05Z</when></TimeStamp><Point><coordinates>13.4,52.5</coordinates></Point></Placemark>
<Placemark><name>A house</name><Point><coordinates>1,2</coordinates></Point></Placemark></Document></kml>"""
LINE = {"type": "LineString", "coordinates": [[13.4, 52.5], [13.5, 52.6]]}
TIMES = ["2026-01-02T10:00:00Z", "2026-01-02T10:00:10Z"]
GEOJSON: dict[str, Any] = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {"name": "Ada", "times": TIMES}, "geometry": LINE},
        {
            "type": "Feature",
            "properties": {"name": "Bob", "time": "2026-01-02T10:00:05Z"},
            "geometry": {"type": "Point", "coordinates": [13.4, 52.5]},
        },
    ],
}
RECORDS = [{"device": {"id": "Ada"}, "time": T0 + n * 10_000, "lon": 13.4 + n / 10, "lat": 52.5 + n / 10} for n in range(2)]


def _excel(path: Path) -> None:

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["name", "time", "lon", "lat"])
    for n in range(2):
        sheet.append(["Ada", f"2026-01-02T10:00:{n}0Z", 13.4 + n / 10, 52.5 + n / 10])
    book.save(path)


def _arrow(path: Path) -> None:
    table = pa.Table.from_pylist(RECORDS)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "write", "count"),
    [
        ("walk.gpx", lambda path: path.write_text(GPX), 3),
        ("walk.kml", lambda path: path.write_text(KML), 3),
        ("walk.geojson", lambda path: path.write_text(json.dumps(GEOJSON, indent=1)), 3),
        ("walk.jsonl", lambda path: path.write_text("\n".join(map(json.dumps, RECORDS)) + "\n"), 2),
        ("walk.json", lambda path: path.write_text(json.dumps({"points": RECORDS})), 2),
        ("walk.parquet", lambda path: pq.write_table(pa.Table.from_pylist(RECORDS), path), 2),
        ("walk.arrow", _arrow, 2),
        ("walk.xlsx", _excel, 2),
    ],
)
def test_every_file_format_gives_the_same_track(tmp_path: Path, name: str, write: Callable[[Path], Any], count: int) -> None:
    write(tmp_path / name)
    # Uploaded files have the same name, whatever their format.
    path = (tmp_path / name).rename(tmp_path / "file")
    found, rows = looked(path)
    ada = [row for row in rows if row["entity"] == "Ada"]
    assert [(row["t"], row["x"], row["y"]) for row in ada] == [(T0, 13.4, 52.5), (T0 + 10_000, 13.5, pytest.approx(52.6))]
    assert len(rows) == count and found["reading"]["crs"] == "EPSG:4326"
    assert found["from"] == T0 and sum(one["count"] for one in found["intervals"]) == 1


@pytest.mark.parametrize("read", [pa.ipc.new_stream, pa.ipc.new_file])
def test_arrow_files_with_text_offsets_out_of_bounds_are_refused(tmp_path: Path, read: Callable[..., Any]) -> None:
    written = pa.BufferOutputStream()
    table = pa.Table.from_pylist(RECORDS)
    with read(written, table.schema) as writer:
        writer.write_table(table)
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 3, 6))
    data = written.getvalue().to_pybytes()
    assert offsets in data
    (tmp_path / "file").write_bytes(data.replace(offsets, offsets[:4] + b"\xff\xff\xff\x7f" + offsets[8:]))
    with pytest.raises(UnreadableFile, match="Arrow file cannot be read"):
        inspect(tmp_path / "file", "walk.arrow", {})


def test_a_file_of_rows_without_values_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="hold no values"):
        inspect(written(tmp_path / "file", "{}\n{}\n"), "walk.jsonl", {})


def test_a_file_of_lists_only_shows_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"places": [["a", "b"], ["c"]]}), tmp_path / "file")
    found = inspect(tmp_path / "file", "walk.parquet", {})
    assert [one["name"] for one in found["columns"]] == ["places"] and not found["good"]


def test_a_file_without_valid_rows_shows_its_faults(tmp_path: Path) -> None:
    path = written(tmp_path / "file", "<kml><Placemark><name>Ada</name></Placemark></kml>")
    found = inspect(path, "walk.kml", {})
    assert (found["good"], found["fault_count"], len(found["faults"])) == (0, 1, 1)


def test_rows_without_the_columns_that_are_read_are_faults(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", '{"when": "2026-01-02T10:00:00Z", "lon": 1, "lat": 2}\n')
    reading = reading_of(inspect(path, "a.jsonl", {})["reading"])
    (chunk,) = read_chunks(written(path, '{"other": 1}\n{"other": 2}\n'), reading.layout)
    assert [letter.row for letter in read_rows(chunk.table, reading, reading.feed("x")).checked.dead()] == [{}, {}]


def test_radio_logs_give_the_same_track(tmp_path: Path) -> None:
    path = tmp_path / "log.nmea"
    path.write_text(
        "\\c:1565218798*53\\!BSVDM,1,1,,A,13mb9U0P00PRk8fT5nw>4?wj2006,0*5D\n"
        "!BSVDM,1,1,,A,13mb9U0P00PRk8fT5nw>4?wj2006,0*00\n$GPGGA,1,2\n1565218799 !AIVDM,1,1,,B,402=481uaUcf;OQ55JS9ITi025Jp,0*2B\n"
    )
    found, rows = looked(path)
    assert first(rows, "entity", "t", "x", "y") == ["257591700", 1_565_218_798_000, 7.601958, 63.074553]
    assert rows[1]["t"] == 1_565_218_799_000
    assert [fault["line"] for fault in found["faults"]] == [2] and "checksum" in found["faults"][0]["problem"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.gpx", b'<!DOCTYPE gpx [<!ENTITY a "aaaa">]><gpx><trk/></gpx>'),
        ("a.gpx", b"<gpx>" + b"<a>" * 1_000),
        ("a.parquet", b"PAR1 and nothing more"),
        ("a.arrow", b"ARROW1 and nothing more"),
        ("a.xlsx", b"PK\x03\x04 and nothing more"),
        ("a.json", b'{"features": [1, 2'),
        ("a.csv", b""),
        ("a.csv", b"only,a,header\n"),
        ("a.csv.gz", b"\x1f\x8b\x08 and nothing more"),
    ],
)
def test_a_file_of_another_format_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UnreadableFile):
        inspect(path, name, {})


def test_rows_out_of_order_suggest_a_lateness(tmp_path: Path) -> None:
    order = [0, 3, 1, 2, 5, 4, *range(6, 60)]
    path = written(tmp_path / "a.csv", "id,time,lon,lat\n" + "".join(f"a,{1767348000 + n},1,{n / 100}\n" for n in order))
    found, _ = looked(path)
    assert (found["ordered"], found["lateness"], found["tick"]) == (False, 5_000, 1_000)
    grouped = written(tmp_path / "b.csv", "id,time,lon,lat\n" + "".join(f"{e},{1767348000 + n},1,2\n" for e in "ab" for n in range(30)))
    assert looked(grouped)[0]["lateness"] == 0, "one thing after the other is no lateness"


def test_a_text_without_four_digits_is_not_guessed_as_a_time() -> None:
    for form in DATED:
        assert sum(sign.isdigit() for sign in datetime(1, 1, 1).strftime(form.replace("%Y", "0001"))) >= 4, form
    texts = pa.array(["1.1.1", "12:30", "Jan 1", "T1Z", "1-1-1", "1/1/1 PM"])
    for form in (ISO, *DATED):
        assert times_of(texts, Reading(Layout(FileFormat.CSV), time_format=form))[1].all(), form


@pytest.mark.parametrize(("when", "form", "faults"), [("16/11/2026 07:01:{:02} PM", "%d/%m/%Y %I:%M:%S %p", 0), ("day 3, {:02} past", ISO, 30)])
def test_a_speed_is_not_taken_for_the_time_beside_a_column_named_when(tmp_path: Path, when: str, form: str, faults: int) -> None:
    text = "plate,when,lat,lon,speed\n" + "".join(f"M-{n % 3},{when.format(n)},48.1,11.6,{40 * (n % 2)}\n" for n in range(30))
    found = inspect(written(tmp_path / "gps.csv", text), "gps.csv", {})
    assert (found["reading"]["time"], found["reading"]["time_format"], found["fault_count"]) == (["when"], form, faults)


def test_coordinates_are_not_guessed_as_times(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,time,lon,lat\n" + "a,never,1,2\n" * 5)
    found, rows = looked(path)
    assert found["reading"]["time"] == ["time"] and rows == []
    assert "column 'time' holds no time" in found["faults"][0]["problem"]
    found, _ = looked(written(tmp_path / "b.csv", "id,seen,lon,lat\n" + "a,never,1,2\n" * 5))
    assert found["reading"]["time"] == [] and "no column has the time: choose one" in found["faults"][0]["problem"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12.0), (" -3.5 ", -3.5), ("+.5", 0.5), ("1e3", 1000.0), ("5.", 5.0), ("0.1", 0.1), ("", None), ("n/a", None), ("1e-999", 0.0)],
)
def test_numeric_texts_are_recognised(text: str, value: float | None) -> None:
    values, wrong = numbers_of(pa.array([text]))
    assert (None if np.isnan(values[0]) else values[0]) == value and not wrong[0]


@pytest.mark.parametrize("text", ["11e999700000000000", "1e999", "inf", "1_000", "1 2", "--1", "0x10", "٣", "1e", ".", "1" * 400, "1\x002"])
def test_non_numeric_texts_are_recognised(text: str) -> None:
    """The first of them crashes the process inside pandas."""
    values, wrong = numbers_of(pa.array([text]))
    assert np.isnan(values[0]) and wrong[0]
