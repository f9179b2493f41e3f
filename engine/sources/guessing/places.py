"""Which columns have coordinates, in which form, and in which coordinate reference system."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.faults import Refused
from engine.sources.guessing.names import LONGITUDE_FIRST, PLACE, ZONE, named_column, plain
from engine.sources.guessing.values import TRIED_ROWS
from engine.sources.numbers import numbers_of
from engine.sources.places import IN_ONE, LAT_LON, LON_LAT, NUMBERS, SCALED, form_of, is_angular, places_in, srid_of
from engine.sources.reading import PLANE, UTM, WGS84, Reading, reading_of

WEB_MERCATOR, BRITISH_GRID = "EPSG:3857", "EPSG:27700"


def column_of_both(columns: Mapping[str, pa.Array]) -> str:
    """The column that holds both coordinates; "" where none does. Names decide between several."""
    heads = {name: column.slice(0, TRIED_ROWS).drop_null() for name, column in columns.items()}
    fitting = [name for name, head in heads.items() if form_of(head)[1] > 0.5]
    angular = [name for name, head in heads.items() if is_angular(head)]
    return named_column(fitting, PLACE) or next(iter(fitting), "") or named_column(angular, PLACE)


def place_format(columns: Mapping[str, pa.Array], reading: Reading) -> str:
    """How the columns x and y, or x alone, hold places."""
    if not reading.x or reading.x not in columns:
        return NUMBERS
    if not reading.y:
        form, share = form_of(columns[reading.x].slice(0, TRIED_ROWS).drop_null())
        if form == LAT_LON and plain(reading.x) in LONGITUDE_FIRST and _may_be_longitude_first(columns[reading.x], reading):
            return LON_LAT
        # Degrees and minutes cannot be read: their faults are shown. A column of
        # numbers waits for the other one.
        return form if share else LAT_LON if is_angular(columns[reading.x]) else NUMBERS
    ending = re.search(r"e[67]$", plain(reading.x))
    if ending is not None:
        return ending[0]
    if plain(reading.x).startswith("lon") or plain(reading.y).startswith("lat"):
        x, y = (numbers_of(columns[name].slice(0, TRIED_ROWS), reading.decimal)[0] for name in (reading.x, reading.y) if name in columns)
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        # No coordinate of a map in metres is as large, and no millionths of a degree are.
        if len(x) and len(y) and max(np.abs(x).max() / 180, np.abs(y).max() / 90) > 1e6 and np.all(x == np.floor(x)):
            return "e7"
    return NUMBERS


def _may_be_longitude_first(column: pa.Array, reading: Reading) -> bool:
    _, y, _ = places_in(column.slice(0, TRIED_ROWS), LON_LAT, reading.decimal)
    y = y[np.isfinite(y)]
    return bool(len(y)) and float(np.abs(y).max()) <= 90


def crs_of(columns: Mapping[str, pa.Array], reading: Reading) -> str:
    """The coordinate reference system of x and y, from their names and sizes; a plane where they
    show none."""
    if not reading.x or reading.x not in columns:
        return WGS84
    if reading.place_format in IN_ONE:
        head = columns[reading.x].slice(0, TRIED_ROWS)
        named = f"EPSG:{srid_of(head, reading.place_format)}"
        return named if _is_known(named) else _by_size(columns, reading, *places_in(columns[reading.x], reading.place_format, reading.decimal)[:2])
    if not reading.y or reading.y not in columns or reading.place_format in SCALED:
        return WGS84
    return _by_size(columns, reading, *(numbers_of(columns[name], reading.decimal)[0] for name in (reading.x, reading.y)))


def _is_known(crs: str) -> bool:
    try:
        return reading_of({"crs": crs}).crs == crs
    except Refused:
        return False


def _by_size(columns: Mapping[str, pa.Array], reading: Reading, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> str:
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    if not len(x):
        return WGS84
    named = plain(reading.x).startswith(("lon", "lng", "location_long", "position_lon")) and reading.place_format == NUMBERS
    degrees = float(np.mean((np.abs(x) <= 180) & (np.abs(y) <= 90)))
    if named or (degrees > 0.99 and plain(reading.x) != "x"):
        return WGS84
    if degrees > 0.99:
        # Metres of a small place look like degrees: those have more decimals.
        return WGS84 if np.mean(x * 1e4 != np.round(x * 1e4)) > 0.3 and float(np.ptp(x) + np.ptp(y)) > 0 else PLANE
    zone = _zone_of_utm(columns)
    if zone:
        return zone
    if (
        plain(reading.x).startswith("east")
        and float(x.min()) >= 0
        and float(x.max()) <= 700_000
        and float(y.min()) >= 0
        and float(y.max()) <= 1_300_000
    ):
        return BRITISH_GRID
    if float(np.abs(x).max()) <= 20_037_509 and float(np.median(np.abs(x)) + np.median(np.abs(y))) > 1_500_000:
        return WEB_MERCATOR if float(np.median(np.abs(x))) > 834_000 or float(y.min()) < 0 else UTM
    return UTM if "utm" in plain(reading.x) else PLANE


def _zone_of_utm(columns: Mapping[str, pa.Array]) -> str:
    """The system of the zone that a column names in all rows alike; UTM where its hemisphere stays
    open; "" where there is no such column."""
    name = named_column(columns, ZONE)
    values = set(pc.unique(columns[name].slice(0, TRIED_ROWS)).drop_null().cast(pa.string()).to_pylist()) if name else set()
    zone = re.fullmatch(r"\s*([1-9]|[1-5][0-9]|60|0[1-9])\s*([A-Za-z]?)\s*", values.pop()) if len(values) == 1 else None
    if zone is None:
        return ""
    band = zone[2].upper()
    # S is the south, or the band of 32 to 40 degrees north.
    if band in ("", "S", "A", "B", "Y", "Z", "I", "O"):
        return UTM
    return f"EPSG:32{6 if band >= 'N' else 7}{int(zone[1]):02}"
