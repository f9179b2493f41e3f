"""Coordinates as real tools write them: in one column, as integers, as WKB, in an unknown zone;
they are read, or the fault names a remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely

from engine.model.faults import Refused
from engine.sources.guessing.files import inspect
from engine.sources.reading import UTM, reading_of
from tests.engine.sources.test_odd_files import looked, table

T = "2025-12-31T12:00:0{}Z"


def placed(rows: list[dict[str, Any]]) -> list[tuple[float, float]]:
    return [(row["x"], row["y"]) for row in rows]


def _geoparquet(path: Path, shapes: list[Any], crs: Any = "none", column: str = "where") -> Path:
    meta: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"]}
    if crs != "none":
        meta["crs"] = None if crs is None else json.loads(pyproj.CRS(crs).to_json())
    geo = {"version": "1.1.0", "primary_column": column, "columns": {column: meta}}
    times = [T.format(n) for n in range(len(shapes))]
    data = pa.table({"id": ["a"] * len(shapes), "time": times, column: pa.array(shapely.to_wkb(np.array(shapes, object)), pa.binary())})
    pq.write_table(data.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


def test_geoparquet_with_wkb_points_is_read(tmp_path: Path) -> None:
    path = _geoparquet(tmp_path / "a.parquet", [shapely.Point(13.4, 52.5), shapely.Point(13.5, 52.5, 30), None, shapely.Point()])
    found, rows, faults = looked(path)
    assert found["reading"]["x"] == "where" and found["reading"]["place_format"] == "wkb" and found["reading"]["crs"] == "EPSG:4326"
    assert placed(rows) == [(13.4, 52.5), (13.5, 52.5), (None, None), (None, None)] and not faults
    assert found["rows"][0]["where"].startswith("0101")


def test_geoparquet_in_another_crs_and_with_other_geometries_is_read(tmp_path: Path) -> None:
    line = shapely.LineString([(0, 0), (1, 1)])
    found, rows, faults = looked(_geoparquet(tmp_path / "a.parquet", [shapely.Point(391_000, 5_820_000), line], "EPSG:25833"))
    assert found["reading"]["crs"] == "EPSG:25833" and rows[0]["x"] == pytest.approx(13.39, abs=0.01)
    assert len(faults) == 1 and faults[0][0] == 2 and "'where' holds no point" in faults[0][1]


def test_geoparquet_without_an_epsg_code_is_guessed_like_other_files(tmp_path: Path) -> None:
    found, _, faults = looked(_geoparquet(tmp_path / "a.parquet", [shapely.Point(391_000, 5_820_000)] * 3, None))
    assert found["reading"]["crs"] == UTM and found["good"] == 0 and len(faults) == 3


def test_wkb_is_recognised_without_metadata_and_as_hexadecimal_text(tmp_path: Path) -> None:
    points = shapely.set_srid(shapely.points([[13.4, 52.5], [13.5, 52.5]]), 4326)
    pq.write_table(pa.table({"id": ["a", "a"], "time": [T.format(0), T.format(1)], "geom": pa.array(shapely.to_wkb(points))}), tmp_path / "a.parquet")
    found, rows, _ = looked(tmp_path / "a.parquet")
    assert placed(rows) == [(13.4, 52.5), (13.5, 52.5)]
    texts = shapely.to_wkb(points, hex=True, include_srid=True)
    found, rows, faults = looked(tmp_path / "a.csv", "id,time,geom\n" + "".join(f"a,{T.format(n)},{text}\n" for n, text in enumerate(texts)))
    assert placed(rows) == [(13.4, 52.5), (13.5, 52.5)] and not faults and found["reading"]["crs"] == "EPSG:4326"
    assert [one["name"] for one in found["reading"]["attributes"]] == []


@pytest.mark.parametrize(
    ("cell", "form"),
    [('"52.5,13.4"', "lat_lon"), ('"(52.5, 13.4)"', "lat_lon"), ('"52.5°, 13.4°"', "lat_lon"), ('"geo:52.5,13.4"', "lat_lon"),
     ("52.5 13.4", "lat_lon"),     ("52.5;13.4", "lat_lon"), ('"[13.4, 52.5]"', "lon_lat"), ("POINT (13.4 52.5)", "wkt"),
     ("POINT Z (13.4 52.5 30)", "wkt"),
     ("SRID=4326;POINT(13.4 52.5)", "wkt")],
)  # fmt: skip
def test_coordinates_in_one_column_are_read(tmp_path: Path, cell: str, form: str) -> None:
    name = "coordinates" if form == "lon_lat" else "position"
    lines = f"id,time,{name}\n" + "".join(f"a,2025-12-31 12:00:{n:02},{cell}\n" for n in range(20)) + "a,2025-12-31 12:01:00,somewhere\n"
    found, rows, faults = looked(tmp_path / "a.csv", lines)
    assert found["reading"]["x"] == name and found["reading"]["y"] == "" and found["reading"]["place_format"] == form
    assert placed(rows) == [(13.4, 52.5)] * 20
    assert len(faults) == 1 and faults[0][0] == 22 and f"column {name!r} holds no" in faults[0][1]


def test_the_order_of_a_coordinate_pair_is_inferred_if_unambiguous(tmp_path: Path) -> None:
    _, rows, _ = looked(tmp_path / "a.csv", "id,time,latlng\n" + "".join(f'a,2025-12-31 12:00:{n:02},"-122.4, 37.7"\n' for n in range(9)))
    assert placed(rows)[0] == (-122.4, 37.7)


def test_a_coordinate_pair_with_decimal_commas_is_read(tmp_path: Path) -> None:
    _, rows, _ = looked(tmp_path / "a.csv", "id;time;ort;v\n" + "".join(f'a;2025-12-31 12:00:{n:02};"52,5; 13,4";1,5\n' for n in range(9)))
    assert placed(rows)[0] == (13.4, 52.5)


def test_coordinate_lists_in_json_and_parquet_are_read(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"id": "a", "time": T.format(n), "geometry": {"type": "Point", "coordinates": [13.4, 52.5]}}) + "\n" for n in range(9))
    _, rows, _ = looked(tmp_path / "a.jsonl", lines)
    assert placed(rows) == [(13.4, 52.5)] * 9
    pairs = pa.array([[13.4, 52.5], [13.5, 52.5]], pa.list_(pa.float64()))
    pq.write_table(pa.table({"id": ["a", "a"], "time": [T.format(0), T.format(1)], "coordinates": pairs}), tmp_path / "a.parquet")
    _, rows, _ = looked(tmp_path / "a.parquet")
    assert placed(rows) == [(13.4, 52.5), (13.5, 52.5)]


def test_degrees_and_minutes_are_refused_with_a_remedy(tmp_path: Path) -> None:
    found, _, faults = looked(tmp_path / "a.csv", "id,time,position\n" + "".join(f"a,2025-12-31 12:00:{n:02},52°30'N 13°24'E\n" for n in range(9)))
    assert found["good"] == 0 and "'position' holds no" in faults[0][1] and "decimal degrees" in faults[0][1]


def test_a_column_of_room_names_is_not_guessed_as_coordinates(tmp_path: Path) -> None:
    found, rows, faults = looked(
        tmp_path / "a.csv", "id,time,location,size\n" + "".join(f'a,2025-12-31 12:00:{n:02},Hall 3,"4, 5"\n' for n in range(9))
    )
    assert found["reading"]["x"] == "" and len(rows) == 9 and not faults and rows[0]["location"] == "Hall 3"


def test_integers_in_ten_millionths_of_a_degree_are_recognised(tmp_path: Path) -> None:
    entries = [{"latitudeE7": 525_000_000, "longitudeE7": 134_000_000, "timestamp": T.format(n)} for n in range(5)]
    found, rows, faults = looked(tmp_path / "Records.json", json.dumps({"locations": entries}))
    assert found["reading"]["place_format"] == "e7" and placed(rows) == [(13.4, 52.5)] * 5 and not faults
    _, rows, _ = looked(tmp_path / "a.csv", table("a,{t},-1224000000,377000000,x"))
    assert placed(rows) == [(-122.4, 37.7)] * 20


def _utm(more: str = "", head: str = "") -> str:
    return table("a,{t},391{n:03}.5,5820000.5" + more, head=f"id,time,easting,northing{head}")


def test_the_utm_zone_is_asked_for_not_guessed(tmp_path: Path) -> None:
    found, rows, faults = looked(tmp_path / "a.csv", _utm())
    assert found["reading"]["crs"] == UTM and not rows and len(faults) == 20
    assert "look like UTM" in faults[0][1] and "choose the zone" in faults[0][1]
    found = inspect(tmp_path / "a.csv", "a.csv", {"crs": "EPSG:32733"})
    assert found["good"] == 20


@pytest.mark.parametrize(
    ("zone", "crs"), [("33N", "EPSG:32633"), ("33U", "EPSG:32633"), ("33H", "EPSG:32733"), ("33S", UTM), ("33", UTM), ("oak", UTM)]
)
def test_a_utm_zone_is_read_from_a_column_name(tmp_path: Path, zone: str, crs: str) -> None:
    assert looked(tmp_path / "a.csv", _utm(f",{zone}", ",UTM zone"))[0]["reading"]["crs"] == crs


def test_unknown_coordinate_forms_are_refused() -> None:
    with pytest.raises(Refused) as refused:
        reading_of({"place_format": "dms"})
    assert refused.value.faults[0].pointer == "/place_format"
    assert reading_of({}).place_format == "numbers"
