"""Hostile region files: other files that they name are never read, and their size is bounded."""

from __future__ import annotations

import io
import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyproj
import pytest
import shapefile
import shapely
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from tests.fuzz.corpus import KML, a_geopackage, a_shapefile, zipped
from tests.webapp.conftest import SQUARE
from webapp.config.tables import FORMULA, harmless
from webapp.feeds.models import Region
from webapp.feeds.region_files import features_of

pytestmark = [pytest.mark.services, pytest.mark.django_db]

TEMPLATE = json.dumps({"family": "border", "version": 1, "region": {"region": "$feature"}})


@pytest.fixture
def sent(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> Callable[..., Any]:
    """Sends a file to both endpoints, which must agree on whether it is accepted.
    Returns the import's response."""
    client = client_of(people.owner)

    def send(data: bytes, **fields: Any) -> Any:
        form = {"feed": "yard", "dry_run": "true", **fields}
        bulk = client.post("/api/v1/queries/bulk", {**form, "file": SimpleUploadedFile("x", data), "template": TEMPLATE}, format="multipart")
        answer = client.post("/api/v1/regions/import", {**form, "file": SimpleUploadedFile("x", data)}, format="multipart")
        assert (bulk.status_code == 200) == (answer.status_code == 200)
        for one in (bulk, answer):
            text = one.content.decode()
            assert "root:" not in text and "/tmp/" not in text and "/vsi" not in text, "neither other files nor the server's own paths are shown"
        return answer

    return send


def message(answer: Any) -> str:
    assert answer.status_code == 400, answer.content
    return str(answer.json()["faults"][0]["message"])


# -- accepted files
# ----------------------------------------------------------------------------------


def test_every_documented_format_gives_the_same_region(sent: Callable[..., Any], tmp_path: Path) -> None:
    whole = shapely.Polygon([(0, 0), (10, 0), (10, 10), (0, 10)])
    holed = whole - shapely.Polygon([(2, 2), (4, 2), (4, 4)])
    geojson = {"type": "Feature", "properties": {"name": "pier"}, "geometry": SQUARE}
    ring = "".join(f'<trkpt lon="{x}" lat="{y}"/>' for x, y in SQUARE["coordinates"][0])
    gpx = f'<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><name>pier</name><trkseg>{ring}</trkseg></trk></gpx>'
    files = {
        "geojson": (json.dumps(geojson).encode(), whole),
        "kml": (KML, holed),
        "kmz": (zipped({"doc.kml": KML, "files/icon.png": b"no picture"}), holed),
        "gpx": (gpx.encode(), whole),
        "shapefile": (zipped(a_shapefile()), holed),
        "gpkg": (a_geopackage(tmp_path), whole),
        "csv": (f'name,wkt\npier,"{whole.wkt}"\n'.encode(), whole),
    }
    for kind, (data, shape) in files.items():
        answer = sent(data)
        assert answer.status_code == 200, (kind, answer.content)
        (made,) = answer.json()["created"]
        assert made["name"] == "pier" and shapely.geometry.shape(made["geometry"]).equals(shape), kind


@pytest.mark.parametrize(("field", "name"), [("code", "P7"), ("zone", "north"), ("", "pier")])
def test_a_placemark_can_be_named_by_its_data(field: str, name: str, sent: Callable[..., Any]) -> None:
    assert sent(KML, name_field=field).json()["created"][0]["name"] == name


@pytest.mark.parametrize("data", [KML, b'name,code,wkt\npier,7,"POLYGON((0 0,1 0,1 1,0 0))"\n'])
def test_an_unknown_property_for_names_is_refused(data: bytes, sent: Callable[..., Any]) -> None:
    """Regions would be named by their numbers."""
    answer = sent(data, name_field="codes")
    (fault,) = answer.json()["faults"]
    assert (answer.status_code, fault["pointer"]) == (400, "/name_field")
    assert "unknown property 'codes'; did you mean 'code'?" in fault["message"] and "name" in fault["message"]


@pytest.mark.parametrize("column", ["NAME_LANG", "Hafenname", "Bezeichnung"])
def test_a_column_whose_title_speaks_of_a_name_names_the_region(column: str, sent: Callable[..., Any]) -> None:
    quoted = f'code,{column},wkt\n7,pier,"POLYGON((0 0,1 0,1 1,0 0))"\n'
    assert sent(quoted.encode()).json()["created"][0]["name"] == "pier"


def test_a_cell_that_is_no_well_known_text_is_the_fault_of_its_row(sent: Callable[..., Any]) -> None:
    table = b'name,wkt\nbroken,POLYGON((\npier,"POLYGON((0 0,1 0,1 1,0 0))"\n'
    faults = sent(table).json()["faults"]
    assert len(faults) == 1 and faults[0]["message"].startswith("Row 1: Not well-known text")


def test_a_region_with_many_vertices_survives_a_table(sent: Callable[..., Any]) -> None:
    circle = shapely.Point(0, 0).buffer(10, quad_segs=2_000)
    assert len(circle.wkt) > 200_000
    assert sent(f'name,wkt\ncircle,"{circle.wkt}"\n'.encode()).status_code == 200


def a_named_shapefile(encoding: str, stated: bytes | None, driver: int = 0) -> bytes:
    parts = {name: io.BytesIO() for name in ("shp", "shx", "dbf")}
    with shapefile.Writer(encoding=encoding, **parts) as writer:
        writer.field("NAME", "C", 9 if encoding == "utf-8" else 50)
        for name in ("Größe", "Bücherei", "Bücherhaus ü"):
            writer.poly([SQUARE["coordinates"][0]])
            writer.record(name)
    files = {f"x.{kind}": part.getvalue() for kind, part in parts.items()}
    files["x.dbf"] = files["x.dbf"][:29] + bytes([driver]) + files["x.dbf"][30:]
    return zipped(files if stated is None else {**files, "x.cpg": stated})


@pytest.mark.parametrize(
    ("encoding", "stated", "driver"),
    [
        ("utf-8", None, 0),
        ("utf-8", b"UTF-8\r\n", 0),
        ("cp1252", None, 0x57),
        ("cp1252", None, 0),
        ("cp850", None, 2),
        ("cp1252", b"ANSI 1252", 0),
        ("cp1252", b"ISO 88591", 0),
        ("cp1252", b"88591", 0),
        ("cp850", b"OEM 850", 0),
        ("cp1252", b"somehow", 0x57),
    ],
)
def test_umlauts_of_a_shapefile_survive_without_or_with_an_odd_statement_of_its_encoding(
    encoding: str, stated: bytes | None, driver: int, sent: Callable[..., Any]
) -> None:
    names = [made["name"] for made in sent(a_named_shapefile(encoding, stated, driver)).json()["created"]]
    assert names[:2] == ["Größe", "Bücherei"], names


def test_surfaces_in_space_are_the_fault_of_their_row(sent: Callable[..., Any]) -> None:
    parts = {name: io.BytesIO() for name in ("shp", "shx", "dbf")}
    with shapefile.Writer(**parts) as writer:
        writer.field("NAME", "C")
        writer.multipatch([[[0, 0, 0], [0, 1, 0], [1, 1, 3], [0, 0, 0]]], partTypes=[2])
        writer.record("roof")
    (refused,) = sent(zipped({f"x.{kind}": part.getvalue() for kind, part in parts.items()})).json()["refused"]
    assert "MULTIPATCH is not a region" in str(refused["faults"])


def test_all_kml_documents_of_an_archive_are_read(sent: Callable[..., Any]) -> None:
    archive = zipped({"__MACOSX/._a.kml": b"Mac", "a.kml": KML, "b.kml": KML.replace(b">pier<", b">quay<")})
    assert [made["name"] for made in sent(archive).json()["created"]] == ["pier", "quay"]


def test_an_archive_of_a_shapefile_and_a_kml_document_is_refused(sent: Callable[..., Any]) -> None:
    assert "several formats (.kml, .shp): send a file for each" in message(sent(zipped({**a_shapefile(), "a.kml": KML})))


@pytest.mark.parametrize("letters", [100, 101])
def test_a_name_that_is_too_long_is_the_fault_of_its_row(letters: int, sent: Callable[..., Any]) -> None:
    answer = sent(KML.replace(b">pier<", b">" + b"p" * letters + b"<")).json()
    assert [made["name"] for made in answer["created"]] == (["p" * 100] if letters == 100 else [])
    assert ("more than 100 characters" in str(answer["refused"])) == (letters == 101)


# -- coordinates ---------------------------------------------------------------------------------


CORNERS = ((500_000, 5_700_000), (501_000, 5_700_000), (501_000, 5_701_000), (500_000, 5_701_000), (500_000, 5_700_000))
"""Metres in UTM zone 32 (ETRS89); the first is on the meridian of 9 degrees."""
NORTH = 51.4511813
SYSTEM = pyproj.CRS.from_epsg(25832)


def in_metres(kind: str, folder: Path) -> bytes:
    if kind == "geojson":
        crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}
        geometry = {"type": "Polygon", "coordinates": [CORNERS]}
        return json.dumps({"type": "FeatureCollection", "crs": crs, "features": [{"type": "Feature", "geometry": geometry}]}).encode()
    if kind == "shapefile":
        return zipped({**a_shapefile(CORNERS), "areas/piers.prj": SYSTEM.to_wkt("WKT1_ESRI").encode()})
    blob = b"GP\x00\x01" + struct.pack("<i", 7) + shapely.to_wkb(shapely.Polygon(CORNERS))
    organization = ("EPSG", 25832, "undefined") if kind == "gpkg" else ("somebody", 1, SYSTEM.to_wkt())
    return a_geopackage(
        folder,
        "CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT, srs_id INTEGER, organization TEXT, organization_coordsys_id INTEGER, definition TEXT)",
        "INSERT INTO gpkg_spatial_ref_sys VALUES ('s', 7, '{}', {}, '{}')".format(*(str(one).replace("'", "''") for one in organization)),
        f"UPDATE piers SET geom = x'{blob.hex()}'",
    )


@pytest.fixture
def sent_to_sea(people: SimpleNamespace, client_of: Callable[..., APIClient], sent: Callable[..., Any]) -> Callable[[bytes], Any]:
    client_of(people.owner).post("/api/v1/feeds/", {"name": "sea", "title": "Sea", "crs": "geographic"})
    return lambda data: sent(data, feed="sea")


@pytest.mark.parametrize("kind", ["shapefile", "gpkg", "gpkg with a definition", "geojson"])
def test_corners_in_the_system_that_a_file_states_become_degrees(kind: str, sent_to_sea: Callable[[bytes], Any], tmp_path: Path) -> None:
    answer = sent_to_sea(in_metres(kind, tmp_path))
    assert answer.status_code == 200, answer.content
    west, south, east, north = answer.json()["created"][0]["bbox"]
    assert west == pytest.approx(9, abs=1e-7) and south == pytest.approx(NORTH, abs=1e-6)
    assert east - west == pytest.approx(0.0144, abs=1e-4) and north - south == pytest.approx(0.009, abs=1e-4)


def test_corners_on_a_plane_stay_as_they_are(sent: Callable[..., Any], tmp_path: Path) -> None:
    assert sent(in_metres("shapefile", tmp_path)).json()["created"][0]["bbox"] == [500_000, 5_700_000, 501_000, 5_701_000]


@pytest.mark.parametrize("definition", [None, b"", b"PROJCS[", b"".join(b"%d," % n for n in range(6_000))], ids=["none", "empty", "cut", "long"])
def test_metres_of_an_unknown_system_are_refused_with_the_remedy(definition: bytes | None, sent_to_sea: Callable[[bytes], Any]) -> None:
    parts = a_shapefile(CORNERS) if definition is None else {**a_shapefile(CORNERS), "areas/piers.prj": definition}
    answer = sent_to_sea(zipped(parts))
    assert "EPSG:4326" in str(answer.json()["refused"][0]["faults"]), answer.content


def a_box_of(crs: Any, size: int = 80) -> bytes:
    ring = [[0, 0], [size, 0], [size, size], [0, size], [0, 0]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return json.dumps({"type": "FeatureCollection", "crs": crs, "features": [{"type": "Feature", "geometry": geometry}]}).encode()


@pytest.mark.parametrize("name", ["epsg:3857", "http://www.opengis.net/def/crs/EPSG/0/3857", "urn:x-ogc:def:crs:EPSG:9.8:3857"])
def test_metres_that_look_like_degrees_become_degrees_however_their_system_is_written(name: str, sent_to_sea: Callable[[bytes], Any]) -> None:
    answer = sent_to_sea(a_box_of({"type": "name", "properties": {"name": name}}))
    assert answer.json()["created"][0]["bbox"][2] < 0.001, answer.content


def test_a_system_that_is_not_known_is_refused_and_degrees_are_not(sent_to_sea: Callable[[bytes], Any]) -> None:
    assert "ESRI:102100" in message(sent_to_sea(a_box_of({"type": "name", "properties": {"name": "ESRI:102100"}})))
    names = [{"type": "name", "properties": {"name": name}} for name in ("urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326")]
    for crs in (None, *names):
        assert sent_to_sea(a_box_of(crs)).json()["created"][0]["bbox"][2] == 80


# -- refused files ------------------------------------------------------------------------------


VRT = "<OGRVRTLayer name='x'><SrcDataSource>CSV:/etc/passwd</SrcDataSource></OGRVRTLayer>"
DISGUISES = {
    "two roots": f"<!-- <OGRVRTDataSource --><kml></kml><OGRVRTDataSource>{VRT}</OGRVRTDataSource>",
    "in a comment": f"<kml><!-- <OGRVRTDataSource>{VRT}</OGRVRTDataSource> --></kml>",
    "within": f"<kml><OGRVRTDataSource>{VRT}</OGRVRTDataSource></kml>",
    "alone": f"<OGRVRTDataSource>{VRT}</OGRVRTDataSource>",
    "over the network": f"<kml>{VRT.replace('/etc/passwd', '/vsicurl/http://127.0.0.1:1/')}</kml>",
    "a link": "<kml><NetworkLink><Link><href>file:///etc/passwd</href></Link></NetworkLink></kml>",
    "an entity": '<!DOCTYPE kml [<!ENTITY x SYSTEM "file:///etc/passwd">]><kml><Placemark><name>&x;</name></Placemark></kml>',
    "laughs": '<!DOCTYPE kml [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><kml>&b;</kml>',
    "a service": '{"type": "GeocodeService", "url": "http://127.0.0.1:1/"}',
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_file_cannot_include_other_files(disguise: str, sent: Callable[..., Any]) -> None:
    answer = sent(DISGUISES[disguise].encode())
    assert answer.status_code == 400 or not answer.json()["created"]
    assert not Region.objects.exists()


RECURSIVE = (
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1e12) SELECT 'piers' AS table_name, 'features' AS data_type FROM c"
)


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE gpkg_contents", f"CREATE VIEW gpkg_contents AS {RECURSIVE}"),
        ("DROP TABLE piers", f"CREATE VIEW piers AS SELECT 1 AS fid, NULL AS geom, table_name AS name FROM ({RECURSIVE})"),
        ("DROP TABLE gpkg_geometry_columns", f"CREATE VIEW gpkg_geometry_columns AS {RECURSIVE.replace('data_type', 'column_name')}"),
    ],
    ids=["contents", "layer", "columns"],
)
def test_sql_in_a_geopackage_is_not_executed(statements: tuple[str, ...], sent: Callable[..., Any], tmp_path: Path) -> None:
    data = a_geopackage(tmp_path, *statements)
    started = time.monotonic()
    assert "table" in message(sent(data))
    assert time.monotonic() - started < 4


def test_expressions_of_computed_columns_are_not_evaluated(sent: Callable[..., Any], tmp_path: Path) -> None:
    bomb = "ALTER TABLE piers ADD COLUMN title TEXT GENERATED ALWAYS AS (hex(zeroblob(900000000)))"
    assert sent(a_geopackage(tmp_path, bomb)).json()["created"][0]["name"] == "pier"


def many(count: int) -> dict[str, bytes]:
    return {f"{n}.kml": KML for n in range(count)}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (zipped({"doc.kml": b" " * 50_000_000}), "200 times"),
        (zipped(many(101)), "100 files"),
        (zipped({"../doc.kml": KML}), "leads out"),
        (zipped({"doc.txt": KML}), "neither a KML"),
        (zipped(many(1))[:-40], "cannot be read"),
        (zipped({"a.shp": b"no shapes", "a.dbf": b"no table"}), "Shapefile cannot be read"),
        (b"<kml>" * 300_000, "not XML"),
        (b'{"type":"Polygon","coordinates":[' + b",".join([b"[0,1]"] * 400_000) + b"]}", "300,000 corners"),
        (b'{"type":"Polygon","coordinates":[' + b",".join([b'""'] * 2_000_000) + b"]}", "1,500,000 values"),
        (b"name,wkt\n" + b'a,"POLYGON((0 0,1 0,1 1,0 0))"\n' * 5_001, "5,000 regions"),
        (b'a,wkt\nb,"' + b"GEOMETRYCOLLECTION(" * 1_000_000 + b'"\n', ""),
        (b"SQLite format 3\x00" + bytes(range(256)) * 100, "GeoPackage"),
    ],
    ids=["spaces", "many files", "name", "other", "cut", "shapefile", "depth", "corners", "values", "features", "nested text", "database"],
)
def test_a_file_that_decompresses_to_too_much_is_refused_with_the_limit(data: bytes, expected: str, sent: Callable[..., Any]) -> None:
    started = time.monotonic()
    assert expected in message(sent(data))
    assert time.monotonic() - started < 8, "for both doors"


def test_a_file_of_the_greatest_size_is_read_in_time(sent: Callable[..., Any]) -> None:
    """The maximum number of vertices, in 20 MB of KML."""
    ring = " ".join(f"{x / 10},{y / 10},{'0' * 40}" for x in range(19) for y in [*range(10), *range(9, -1, -1)])
    mark = "<Placemark><Polygon><outerBoundaryIs><LinearRing><coordinates>%s</coordinates></LinearRing></outerBoundaryIs></Polygon></Placemark>"
    data = ("<kml>" + (mark % ring) * (19_500_000 // len(mark % ring)) + "</kml>").encode()
    started = time.monotonic()
    answer = sent(data)
    assert answer.status_code in (200, 400) and "seconds" not in answer.content.decode(), "crossing rings are refused one by one, not the file"
    print(f"{len(data):,} bytes took {(time.monotonic() - started) / 2:.1f} s")


@pytest.mark.parametrize("sign", FORMULA)
def test_names_in_our_own_tables_are_read_as_they_were(sign: str) -> None:
    table = f'name,wkt\n"{harmless(sign + "1")}","POLYGON((0 0,0 1,1 1,0 0))"\n'.encode()
    assert [one.name for one in features_of(table, None, geographic=False)] == [f"{sign}1".strip()]
