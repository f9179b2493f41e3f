"""What is mutated: a few good files of each format that the product reads, and good specifications of every family."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import struct
import tempfile
import zipfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
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


def a_shapefile() -> dict[str, bytes]:
    parts = {name: io.BytesIO() for name in ("shp", "shx", "dbf")}
    with shapefile.Writer(**parts) as writer:
        writer.field("NAME", "C")
        writer.poly([[(0, 0), (0, 10), (10, 10), (10, 0), (0, 0)], [(2, 2), (4, 2), (4, 4), (2, 2)]])
        writer.record("pier")
    return {f"areas/piers.{name}": part.getvalue() for name, part in parts.items()}


def a_geopackage(folder: Path, *statements: str) -> bytes:
    """A GeoPackage with one square, as others write them: a spatial index is a virtual table with triggers."""
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


def _stream(table: pa.Table, compression: str | None = None) -> bytes:
    written = io.BytesIO()
    with pa.ipc.new_stream(written, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return written.getvalue()


def specifications() -> list[Any]:
    """Those of the demo and of the gallery's templates, and one of each family at least."""
    from webapp.feeds.simulation.scenarios import read_scenario
    from webapp.feeds.simulation.worlds import WORLDS

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
