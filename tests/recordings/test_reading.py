"""Real recordings read without any settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine.sources.formats import FileFormat, Layout, read_chunks
from engine.sources.guessing.files import inspect

pytestmark = pytest.mark.data
Row = tuple[int, str, int, float, float]


@pytest.mark.parametrize("name", ["dma_2010.nmea", "aisdb_2021.nm4", "kystverket_2019.nm4"])
def test_positions_of_receivers_logs_are_those_of_the_reference(data_folder: Path, name: str) -> None:
    found: set[Row] = set()
    for chunk in read_chunks(data_folder / "ais_raw_nmea" / f"{name}.gz", Layout(FileFormat.NMEA)):
        columns = [chunk.table.column(column).to_pylist() for column in ("mmsi", "time", "lon", "lat")]
        found |= set(zip(chunk.lines.tolist(), *columns, strict=True))
        assert not [one for one in chunk.broken if "decoded" in one.problem]
    reference = pq.read_table(data_folder / "ais_raw_nmea" / "decoded_reference.parquet", filters=[("file", "=", name)])
    known = pc.and_(pc.not_equal(reference["lon"], 181.0), pc.not_equal(reference["lat"], 91.0))
    placed = reference.filter(pc.and_(pc.is_valid(reference["lon"]), known))
    rows = zip(*(placed.column(column).to_pylist() for column in ("line", "mmsi", "ts", "lon", "lat")), strict=True)
    expected = {(line, str(mmsi), ts, lon, lat) for line, mmsi, ts, lon, lat in rows}
    assert len(expected) > 700 and found == expected


@pytest.mark.parametrize(
    ("file", "entity", "time_format", "crs"),
    [
        ("maritime/ais.csv.gz", "mmsi", "epoch_s", "EPSG:4326"),
        ("ais_raw_nmea/kystverket_2019.nm4.gz", "mmsi", "epoch_ms", "EPSG:4326"),
        ("vehicles_bus_liverpool/positions.parquet", "id", "epoch_ms", "EPSG:4326"),
        ("people_pedestrians/positions.parquet", "id", "epoch_ms", "plane"),
        ("aircraft_adsb/zurich_airport.parquet", "icao24", "epoch_ms", "EPSG:4326"),
        ("caviar/sde.csv.gz", "entity", "ticks", "plane"),
    ],
)
def test_columns_of_recordings_are_guessed_correctly(data_folder: Path, file: str, entity: str, time_format: str, crs: str) -> None:
    found = inspect(data_folder / file, Path(file).name, {})
    reading = found["reading"]
    assert (reading["entity"], reading["time_format"], reading["crs"]) == ([entity], time_format, crs)
    assert found["good"] == found["count"] > 500 and np.all(np.isfinite(found["places"]))
