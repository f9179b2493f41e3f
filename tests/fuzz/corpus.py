"""The seeds of mutation: a few good files of each format that the product reads, and good
specifications of every family."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import shapefile
import shapely

from webapp.platform.folders import ROOT

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}
NDJSON, CSV, ARROW = "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"


KML = (
    b'<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><name>pier</name><ExtendedData><Data name="code"><value>P7</value></Data>'
    b'<SchemaData><SimpleData name="zone">north</SimpleData></SchemaData></ExtendedData><Polygon><outerBoundaryIs><LinearRing>'
    b"<coordinates>0,0,5 10,0,5 10,10,5 0,10,5 0,0,5</coordinates></LinearRing></outerBoundaryIs><innerBoundaryIs><LinearRing>"
    b"<coordinates>2,2 4,2 4,4 2,2</coordinates></LinearRing></innerBoundaryIs></Polygon></Placemark></Document></kml>"
)


def zipped(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return written.getvalue()


HOLED = [[(0, 0), (0, 10), (10, 10), (10, 0), (0, 0)], [(2, 2), (4, 2), (4, 4), (2, 2)]]


def a_shapefile(*rings: Sequence[tuple[float, float]]) -> dict[str, bytes]:
    """Without rings, a square with a hole."""
    parts = {name: io.BytesIO() for name in ("shp", "shx", "dbf")}
    with shapefile.Writer(**parts) as writer:
        writer.field("NAME", "C")
        writer.poly(rings or HOLED)
        writer.record("pier")
    return {f"areas/piers.{name}": part.getvalue() for name, part in parts.items()}


def a_geopackage(folder: Path, *statements: str) -> bytes:
    """A GeoPackage with one square, as other tools write them: a spatial index is a
    virtual table with triggers."""
    blob = b"GP\x00\x01" + struct.pack("<i", 4326) + shapely.to_wkb(shapely.box(0, 0, 10, 10))
    path = folder / "made.gpkg"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE gpkg_contents (table_name TEXT, data_type TEXT);"
            "CREATE TABLE gpkg_geometry_columns (table_name TEXT, column_name TEXT);"
            "CREATE TABLE piers (fid INTEGER PRIMARY KEY, geom BLOB, name TEXT);"
            "CREATE VIRTUAL TABLE rtree_piers_geom USING rtree(id, minx, maxx, miny, maxy);"
            "CREATE TRIGGER rtree_piers_geom_insert AFTER INSERT ON piers BEGIN DELETE FROM rtree_piers_geom WHERE id = new.fid; END;"
            "INSERT INTO gpkg_contents VALUES ('piers', 'features'); INSERT INTO gpkg_geometry_columns VALUES ('piers', 'geom');"
        )
        database.execute("INSERT INTO piers VALUES (1, ?, 'pier')", [blob])
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path.read_bytes()


@cache
def region_files() -> dict[str, list[bytes]]:
    """Files of regions by format."""
    boxes = [shapely.box(n, n, n + 5, n + 5) for n in range(3)]
    features = [{"type": "Feature", "properties": {"name": f"r{n}"}, "geometry": json.loads(shapely.to_geojson(box))} for n, box in enumerate(boxes)]
    points = "".join(f'<trkpt lat="{y}" lon="{x}"><ele>3</ele></trkpt>' for x, y in boxes[0].exterior.coords)
    gpx = f'<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><name>loop</name><trkseg>{points}</trkseg></trk></gpx>'
    with tempfile.TemporaryDirectory() as folder:
        geopackage = a_geopackage(Path(folder))
    return {
        "geojson": [json.dumps({"type": "FeatureCollection", "features": features}).encode(), json.dumps(SQUARE).encode()],
        "kml": [KML, KML.replace(b"Polygon>", b"MultiGeometry>")],
        "kmz": [zipped({"doc.kml": KML})],
        "gpx": [gpx.encode(), gpx.replace("trk", "rte").encode()],
        "shapefile": [zipped(a_shapefile())],
        "gpkg": [geopackage],
        "csv of regions": ["\n".join(["name,wkt", *(f'r{n},"{box.wkt}"' for n, box in enumerate(boxes))]).encode()],
    }


def bodies() -> dict[str, tuple[str, str, list[bytes]]]:
    """Bodies of rows by format: content type, content encoding, bodies."""
    rows = [{"entity": f"e{n % 3}", "t": 1_000 * n, "x": n / 2, "y": 5.0, "speed": None if n % 4 else 2.5, "kind": "tug"} for n in range(20)]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    table = pa.Table.from_pylist(rows)
    coded = table.set_column(0, "entity", table.column("entity").dictionary_encode())
    text = ",".join(rows[0]) + "\n" + "".join(",".join("" if value is None else str(value) for value in row.values()) + "\n" for row in rows)
    return {
        "ndjson": (NDJSON, "", [lines]),
        "ndjson with gzip": (NDJSON, "gzip", [gzip.compress(lines)]),
        "csv": (CSV, "", [text.encode()]),
        "arrow": (ARROW, "", [_stream(table), _stream(coded)]),
        "arrow with zstd": (ARROW, "", [_stream(table, "zstd"), _stream(coded, "lz4")]),
    }


def recordings() -> dict[str, tuple[str, list[bytes]]]:
    """Files that become feeds, by format: a name, and files."""
    times = [f"2026-01-02T10:00:{n:02}Z" for n in range(20)]
    places = [[13.4 + n / 100, 52.5 + n / 100] for n in range(20)]
    rows = [{"name": f"e{n % 3}", "time": times[n], "lon": x, "lat": y, "speed": n / 2, "kind": "tug"} for n, (x, y) in enumerate(places)]
    table = pa.Table.from_pylist(rows)
    typed = table.set_column(1, "time", pa.array([1_767_348_000_000_000 + n for n in range(20)], pa.timestamp("us", "UTC")))
    german = "Schiff;Länge;Breite;Datum;Uhrzeit\n" + "".join(f"Möwe {n % 2};{10 + n / 9:.3f};54,5;02.01.2026;11:{n:02}:00\n" for n in range(20))
    track = {"type": "Feature", "properties": {"name": "Ada", "times": times}, "geometry": {"type": "LineString", "coordinates": places}}
    points = [
        {"type": "Feature", "properties": row, "geometry": {"type": "Point", "coordinates": place}} for row, place in zip(rows, places, strict=True)
    ]
    gpx = "".join(f'<trkpt lat="{y}" lon="{x}"><ele>3</ele><time>{time}</time></trkpt>' for time, (x, y) in zip(times, places, strict=True))
    whens = "".join(f"<when>{time}</when>" for time in times) + "".join(f"<gx:coord>{x} {y} 0</gx:coord>" for x, y in places)
    return {
        "upload of csv": ("walk.csv", [_csv(rows), _csv(rows).replace(b",", b"\t"), german.encode("windows-1252"), gzip.compress(_csv(rows))]),
        "upload of json lines": ("walk.jsonl", [b"".join(json.dumps(row).encode() + b"\n" for row in rows), json.dumps({"points": rows}).encode()]),
        "upload of geojson": ("walk.geojson", [json.dumps({"type": "FeatureCollection", "features": some}).encode() for some in ([track], points)]),
        "upload of gpx": ("walk.gpx", [f'<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>{gpx}</trkseg></trk></gpx>'.encode()]),
        "upload of kml": ("walk.kml", [f'<kml xmlns:gx="x"><Placemark><name>Ada</name><gx:Track>{whens}</gx:Track></Placemark></kml>'.encode()]),
        "upload of parquet": ("walk.parquet", [_parquet(table), _parquet(typed, compression="zstd")]),
        "upload of arrow": ("walk.arrow", [_stream(typed), _feather(table), _feather(typed, "zstd")]),
        "upload of excel": ("walk.xlsx", [_excel(rows)]),
        "upload of nmea": ("log.nmea", [NMEA, NMEA.replace(b"\\c:1565218798*53\\", b"1565218798 ")]),
    }


NMEA = (
    b"\\c:1565218798*53\\!BSVDM,1,1,,A,13mb9U0P00PRk8fT5nw>4?wj2006,0*5D\n1565218799 !AIVDM,1,1,,B,402=481uaUcf;OQ55JS9ITi025Jp,0*2B\n"
    b"!AIVDM,2,1,1,A,55?MbV02;H;s<HtKR20EHE:0@T4@Dn2222222216L961O5Gf0NSQEp6ClRp8,0*1C\n!AIVDM,2,2,1,A,88888888880,2*25\n"
    b"$PGHP,1,2008,5,9,0,0,0,10,338,2,,1,09*17\n!AIVDM,1,1,,A,15MgK45P3@G?fl0E`JbR0OwT0@MS,0*4E\n"
) * 4
"""Lines as receivers write them, with the time in tag blocks, before the sentence, and in a
sentence before; and a message in two parts."""


def _csv(rows: list[dict[str, Any]]) -> bytes:
    return "".join(",".join(map(str, line)) + "\n" for line in ([*rows[0]], *(row.values() for row in rows))).encode()


def _parquet(table: pa.Table, **options: Any) -> bytes:
    written = io.BytesIO()
    pq.write_table(table, written, row_group_size=7, **options)
    return written.getvalue()


def _feather(table: pa.Table, compression: str | None = None) -> bytes:
    written = io.BytesIO()
    with pa.ipc.new_file(written, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return written.getvalue()


def _excel(rows: list[dict[str, Any]]) -> bytes:
    book, written = openpyxl.Workbook(), io.BytesIO()
    sheet = book.active
    assert sheet is not None
    for line in ([*rows[0]], *([*row.values()] for row in rows)):
        sheet.append(line)
    book.save(written)
    return written.getvalue()


def _stream(table: pa.Table, compression: str | None = None) -> bytes:
    written = io.BytesIO()
    with pa.ipc.new_stream(written, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return written.getvalue()


def specifications() -> list[Any]:
    """Those of the demo and of the gallery's templates, and at least one of each family."""
    from webapp.demo.simulation.scenarios import read_scenario
    from webapp.demo.simulation.worlds import WORLDS

    names = [world if isinstance(world, str) else world.name for world in WORLDS]
    own: list[Any] = [
        {"family": "border", "version": 1, "region": SQUARE},
        {"family": "border", "version": 1, "ranges": {"speed": [0, 10], "x": [None, 5]}},
        {"family": "transition", "version": 1, "region": {"center": [5, 5], "radius": 3}, "within": "PT3M", "types": ["passed", "stayed_in"]},
    ]
    return own + [query["specification"] for name in names for query in read_scenario(name).queries]


def programs() -> list[str]:
    """Texts of rules that come with the project."""
    return [path.read_text(encoding="utf-8") for path in sorted((ROOT / "fixtures" / "programs").rglob("*.p*l*"))]
