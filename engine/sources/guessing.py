"""What an unknown file probably is: how it is written, which columns say who, when and where, and what that says about the feed.

Everything here is a proposal: a person sees it beside a sample of the rows, and changes what is wrong.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.events import plain_row
from engine.model.faults import Refused
from engine.model.feed import CORE_TYPES, ColumnType
from engine.model.messages import Message
from engine.sources.files import Unreadable
from engine.sources.formats import Broken, Chunk, Kind, Layout, head_of, kind_of, open_bytes, read_chunks
from engine.sources.formats.delimited_text import guess_layout, lines_not_utf8
from engine.sources.places import IN_ONE, LAT_LON, LON_LAT, NUMBERS, SCALED, form_of, is_angular, is_bytes, places_in, srid_of
from engine.sources.reading import DATED, ISO, PLANE, UTM, WGS84, Attribute, Reading, joined_times, numbers_of, read_rows, reading_of, times_of

SAMPLE_ROWS = 5_000
LOOKED_THROUGH_BYTES = 64_000_000
"""So much of a text is looked through for signs of another encoding: a third of a second."""
TRIED_ROWS = 500
"""Formats of times are tried on so many values."""
SHOWN_ROWS, SHOWN_FAULTS, SHOWN_PLACES = 20, 50, 1_500
EPOCH_BOUNDS = (("epoch_s", 1e8, 1e10), ("epoch_ms", 1e11, 1e13), ("epoch_us", 1e14, 1e16), ("epoch_ns", 1e17, 1e19))
"""Numbers that lie between 1973 and 2286 in each unit."""
_YEAR = r"(\p{Nd}\P{Nd}*){4}"
"""No text with fewer than four digits is a time: each format has a whole year. Twenty formats need not be tried on names."""
TICKS_OF_TIME = (86_400_000, 3_600_000, 60_000, 1_000, 100, 10, 1)
INTERVALS_S = (0.1, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400)
"""Bounds of the histogram of intervals between an entity's rows."""
WEB_MERCATOR, BRITISH_GRID = "EPSG:3857", "EPSG:27700"

_WHO = (
    "entity", "mmsi", "icao24", "icao", "vessel_id", "vehicle_id", "device_id", "deviceid", "object_id", "track_id", "trip_id", "tag_id", "epc",
    "imo", "callsign", "registration", "plate", "uid", "uuid", "id", "vessel", "vehicle", "device", "object", "ship", "person", "user", "tag",
    "taxi", "bus", "unit", "name", "schiff", "feature", "track",
)  # fmt: skip
_WHEN = (
    "t", "time", "timestamp", "datetime", "date_time", "basedatetime", "ts", "when", "epoch", "utc", "time_utc", "recorded_at", "created_at",
    "received_at", "fixtime", "position_time", "date", "frame", "tick",
)  # fmt: skip
_X = (
    "x", "lon", "lng", "long", "longitude", "lon_deg", "easting", "east", "eastings", "location_long", "position_lon", "coord_x", "utm_x", "xcoord",
    "laenge", "lange", "l_nge", "ostwert", "rechtswert", "longitud",
    "longitudee7", "lone7", "lnge7", "lon_e7", "longitude_e7", "longitudee6", "lone6",
)  # fmt: skip
_Y = (
    "y", "lat", "latitude", "lat_deg", "northing", "north", "northings", "location_lat", "position_lat", "coord_y", "utm_y", "ycoord",
    "breite", "nordwert", "hochwert", "latitud",
    "latitudee7", "late7", "lat_e7", "latitude_e7", "latitudee6", "late6",
)  # fmt: skip
_PLACE = (
    "position", "location", "coordinates", "coordinate", "coords", "latlng", "latlon", "lat_lon", "lat_lng", "lonlat", "lon_lat", "geometry", "geom",
    "the_geom", "wkt", "wkb", "wkb_geometry", "point", "place", "gps", "geo", "pos", "where", "standort", "ort",
)  # fmt: skip
_LONGITUDE_FIRST = ("coordinates", "lonlat", "lon_lat")
_ZONE = ("zone", "utm_zone", "zone_utm", "utmzone", "utm_zone_number", "utm")
_EVENT = ("event", "event_type")


def inspect(path: Path, name: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What the file holds, read as `chosen` says and, where it says nothing, as is likely. Raises Unreadable, Refused."""
    reading_of(chosen)
    layout = _layout(path, name, chosen)
    raw, lines, broken = _sample(read_chunks(path, layout))
    broken = [*broken, *_further_on(path, layout, {one.line for one in broken})]
    reading = guess(raw, layout, name, {**_of_metadata(path, layout, chosen), **chosen})
    return {"reading": reading.to_json(), "sheets": _sheets(path, layout), **described(raw, lines, broken, reading)}


def _layout(path: Path, name: str, chosen: Mapping[str, Any]) -> Layout:
    head = head_of(path)
    kind = Kind(chosen["kind"]) if chosen.get("kind") in list(Kind) else kind_of(head, name)
    layout = guess_layout(head) if kind is Kind.CSV else Layout(kind)
    given = {key: chosen[key] for key in ("encoding", "delimiter", "header", "sheet") if key in chosen}
    if kind is Kind.EXCEL and not given.get("sheet"):
        from engine.sources.formats.typed import filled_sheet

        given["sheet"] = filled_sheet(path)
    return replace(layout, **given)


def _sheets(path: Path, layout: Layout) -> list[str]:
    if layout.kind is not Kind.EXCEL:
        return []
    from engine.sources.formats.typed import sheets_of

    return sheets_of(path)


def _further_on(path: Path, layout: Layout, known: set[int]) -> list[Broken]:
    """Lines after the sample whose encoding is another: who learns of them only when the file is loaded has chosen without knowing."""
    if layout.kind is not Kind.CSV or layout.encoding.lower() not in ("utf-8", "utf-8-sig"):
        return []
    try:
        with open_bytes(path) as stream:
            return list(islice((one for one in lines_not_utf8(stream, LOOKED_THROUGH_BYTES) if one.line not in known), SHOWN_FAULTS))
    except (OSError, EOFError, zlib.error):
        # Reading it says why.
        return []


def _of_metadata(path: Path, layout: Layout, chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a file with types says itself of its places, unless others were chosen."""
    if layout.kind not in (Kind.PARQUET, Kind.ARROW) or not {"x", "y", "place_format"}.isdisjoint(chosen):
        return {}
    from engine.sources.formats.typed import geometry_of

    return geometry_of(path, layout.kind)


def _sample(chunks: Iterable[Chunk]) -> tuple[pa.Table, npt.NDArray[np.int64], Sequence[Broken]]:
    """The first rows of a file: as many as its first piece, at most SAMPLE_ROWS."""
    first = next(iter(chunks), None)
    if first is None or not (first.table.num_rows or first.broken):
        raise Unreadable(Message("There are no rows in the file."))
    if first.table.num_rows and not first.table.num_columns:
        raise Unreadable(Message("The rows of the file hold no single values, and lists are not read: write a column for each value."))
    # Without columns Arrow does not count the rows of a slice.
    return first.table.slice(0, min(SAMPLE_ROWS, first.table.num_rows)), first.lines[:SAMPLE_ROWS], list(islice(first.broken, SAMPLE_ROWS))


# -- columns ----------------------------------------------------------------------------------------------------------------------


def guess(raw: pa.Table, layout: Layout, name: str, chosen: Mapping[str, Any]) -> Reading:
    """How the rows of a file are likely to be meant, where `chosen` does not say it. Raises Refused."""
    columns = {column: raw.column(column).combine_chunks() for column in raw.column_names}
    decimal = "," if _decimal_commas(columns.values()) else "."
    x, y = _named(columns, _X), _named(columns, _Y)
    x, y = (x, y) if x and y else (_in_one(columns), "")
    reading = Reading(layout, x=x, y=y, decimal=decimal, event=_named(columns, _EVENT), thing=Path(name).name.split(".")[0][:60] or "thing")
    reading = _but(reading, chosen, "x", "y", "decimal", "event", "thing", "zone", "encoding", "delimiter", "header", "sheet", "kind")
    reading = _but(replace(reading, place_format=_place_format(columns, reading)), chosen, "place_format")
    reading = _but(_with_time(columns, _but(reading, chosen, "time"), fixed="time" in chosen), chosen, "time", "time_format")
    x, y = reading.x, reading.y
    entity = _entity([one for one in columns if one not in (*reading.time, x, y, reading.event)], columns)
    reading = replace(reading, entity=(entity,) if entity else (), crs=_crs(columns, reading))
    reading = _but(reading, chosen, "entity", "crs")
    return _but(replace(reading, attributes=_guess_attributes(columns, reading)), chosen, *chosen)


def _but(reading: Reading, chosen: Mapping[str, Any], *keys: str) -> Reading:
    """The reading with what was chosen for some of its keys. Raises Refused."""
    return reading_of({**reading.to_json(), **{key: chosen[key] for key in keys if key in chosen}})


def _plain(name: str) -> str:
    """A column's name as it is compared: `Longitude [deg]` is `longitude`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"[\[(].*$", "", name).strip().lower().rpartition(".")[2]).strip("_")


def _named(columns: Iterable[str], names: Sequence[str]) -> str:
    """The column with the likeliest of the names; "" where none has one."""
    plain = {_plain(column): column for column in reversed(list(columns))}
    return next((plain[name] for name in names if name in plain), "")


def _entity(columns: Sequence[str], values: Mapping[str, pa.Array]) -> str:
    usable = [column for column in columns if _is_name(values[column])]
    # Where some rows have another column for who they are, the one that most rows have tells.
    usable = [column for column in usable if 2 * values[column].null_count <= len(values[column])] or usable
    named = _named(usable, _WHO)
    if named:
        return named
    ending = [column for column in usable if re.search(r"(^|_)(id|no|nr|number|code|key)$", _plain(column))]
    return ending[0] if ending else ""


def _is_name(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_integer(column.type) or _is_whole(column))


def _is_whole(column: pa.Array) -> bool:
    if not pa.types.is_floating(column.type):
        return False
    values = column.drop_null().to_numpy(zero_copy_only=False)
    return bool(len(values) and np.all(values == np.floor(values)))


def _decimal_commas(columns: Iterable[pa.Array]) -> bool:
    """Whether texts such as 12,5 are the usual numbers."""
    commas = points = 0
    for column in columns:
        if pa.types.is_string(column.type):
            head = column.slice(0, TRIED_ROWS)
            commas += pc.sum(pc.match_substring_regex(head, r"^\s*-?\d+,\d+\s*$")).as_py() or 0
            points += pc.sum(pc.match_substring_regex(head, r"^\s*-?\d+\.\d+\s*$")).as_py() or 0
    return commas > points


# -- times ------------------------------------------------------------------------------------------------------------------------


def _with_time(columns: Mapping[str, pa.Array], reading: Reading, *, fixed: bool) -> Reading:
    """The column, or the two, with the time (unless these are `fixed`), and how it is written."""
    if fixed:
        given = [columns[name] for name in reading.time if name in columns]
        if not given:
            return reading
        column = given[0] if len(given) == 1 else joined_times(given)
        return replace(reading, time_format=_format(column, reading)[0])
    day, clock = _named(columns, ("date", "day")), _named(columns, ("time", "hour", "clock", "time_of_day"))
    if (
        day
        and clock
        and day != clock
        and (_is_text(columns[clock]) or pa.types.is_time(columns[clock].type))
        and pc.any(pc.match_substring_regex(_texts(columns[clock]), r"^\s*\d{1,2}:\d\d")).as_py()
    ):
        both = replace(reading, time=(day, clock))
        joined = joined_times((columns[day].slice(0, TRIED_ROWS), columns[clock].slice(0, TRIED_ROWS)))
        form, share = _format(joined, both)
        if share > 0.5:
            return replace(both, time_format=form)
    named = [
        column
        for column in columns
        if column not in (reading.x, reading.y) and (_plain(column) in _WHEN or "time" in _plain(column) or "date" in _plain(column))
    ]
    named.sort(key=lambda column: _WHEN.index(_plain(column)) if _plain(column) in _WHEN else len(_WHEN))
    # A number of a vessel looks like seconds since 1970.
    others = [column for column in columns if column not in (*named, reading.x, reading.y) and _plain(column) not in _WHO]
    tried = [*named, *(column for column in others if _is_text(columns[column]))]
    best: tuple[float, str, str] = (0.0, "", ISO)
    for column in tried[:20]:
        form, share = _format(columns[column], reading)
        if share > best[0] + 0.2:
            best = (share, column, form)
    # What is called a time and is written in no known way has its faults shown.
    column = best[1] or next(iter(named), "")
    return replace(reading, time=(column,) if column else (), time_format=best[2])


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _texts(column: pa.Array) -> pa.Array:
    return column.slice(0, TRIED_ROWS).cast(pa.string())


def _format(column: pa.Array, reading: Reading) -> tuple[str, float]:
    """The format of times that fits most of the values, and the share that it fits."""
    head = column.slice(0, TRIED_ROWS).drop_null()
    if len(head) == 0 or pa.types.is_boolean(head.type):
        return ISO, 0.0
    if pa.types.is_timestamp(head.type) or pa.types.is_date(head.type):
        return ISO, 1.0
    values, wrong = numbers_of(head, reading.decimal)
    if np.mean(~wrong & np.isfinite(values)) > 0.5:
        return _of_numbers(values[np.isfinite(values)], head, reading)
    if _is_text(head) and not pc.any(pc.match_substring_regex(head, _YEAR)).as_py():
        return ISO, 0.0
    shares: list[tuple[float, str]] = []
    for form in (ISO, *DATED):
        times, wrong = times_of(head, replace(reading, time_format=form))
        # Of two that fit, the one under which time goes on in smaller steps: 3/4 and 4/4 are a day apart or a month.
        right = times[~wrong]
        steps = float(np.abs(np.diff(right)).mean()) if len(right) > 1 else 0.0
        shares.append((round(float(np.mean(~wrong)), 2), form))
        if shares[-1][0] == 1.0 and form == ISO:
            return ISO, 1.0
        shares[-1] = (shares[-1][0] - min(steps, 1e14) / 1e18, form)
    share, form = max(shares, key=lambda one: one[0])
    return form, share


def _of_numbers(values: npt.NDArray[np.float64], head: pa.Array, reading: Reading) -> tuple[str, float]:
    middle = float(np.median(np.abs(values)))
    digits = len(str(int(middle))) if middle < 1e15 else 0
    if digits in (8, 12, 14) and _looks_like_a_day(middle, digits):
        form = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}[digits]
        _, wrong = times_of(
            pc.cast(pc.cast(head, pa.int64(), safe=False), pa.string()) if not _is_text(head) else head, replace(reading, time_format=form)
        )
        if not wrong.any() and _is_text(head):
            return form, 1.0
    for form, low, high in EPOCH_BOUNDS:
        if low <= middle < high:
            return form, 1.0
    return "ticks", 0.6 if np.all(values == np.floor(values)) else 0.0


def _looks_like_a_day(number: float, digits: int) -> bool:
    return 1900 <= int(number / 10 ** (digits - 4)) <= 2100


# -- places -----------------------------------------------------------------------------------------------------------------------


def _in_one(columns: Mapping[str, pa.Array]) -> str:
    """The column that holds both coordinates; "" where none does. Names decide between several."""
    heads = {name: column.slice(0, TRIED_ROWS).drop_null() for name, column in columns.items()}
    fitting = [name for name, head in heads.items() if form_of(head)[1] > 0.5]
    angular = [name for name, head in heads.items() if is_angular(head)]
    return _named(fitting, _PLACE) or next(iter(fitting), "") or _named(angular, _PLACE)


def _place_format(columns: Mapping[str, pa.Array], reading: Reading) -> str:
    """How the columns x and y, or x alone, hold places."""
    if not reading.x or reading.x not in columns:
        return NUMBERS
    if not reading.y:
        form, share = form_of(columns[reading.x].slice(0, TRIED_ROWS).drop_null())
        if form == LAT_LON and _plain(reading.x) in _LONGITUDE_FIRST and _may_be_longitude_first(columns[reading.x], reading):
            return LON_LAT
        # Degrees and minutes cannot be read: their faults are shown. A column of numbers waits for the other one.
        return form if share else LAT_LON if is_angular(columns[reading.x]) else NUMBERS
    ending = re.search(r"e[67]$", _plain(reading.x))
    if ending is not None:
        return ending[0]
    if _plain(reading.x).startswith("lon") or _plain(reading.y).startswith("lat"):
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


def _crs(columns: Mapping[str, pa.Array], reading: Reading) -> str:
    """The coordinate reference system of x and y, from their names and sizes; a plane where nothing says so."""
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
    given = np.isfinite(x) & np.isfinite(y)
    x, y = x[given], y[given]
    if not len(x):
        return WGS84
    named = _plain(reading.x).startswith(("lon", "lng", "location_long", "position_lon")) and reading.place_format == NUMBERS
    degrees = float(np.mean((np.abs(x) <= 180) & (np.abs(y) <= 90)))
    if named or (degrees > 0.99 and _plain(reading.x) != "x"):
        return WGS84
    if degrees > 0.99:
        # Metres of a small place look like degrees: those have more decimals.
        return WGS84 if np.mean(x * 1e4 != np.round(x * 1e4)) > 0.3 and float(np.ptp(x) + np.ptp(y)) > 0 else PLANE
    zone = _zone_of_utm(columns)
    if zone:
        return zone
    if (
        _plain(reading.x).startswith("east")
        and float(x.min()) >= 0
        and float(x.max()) <= 700_000
        and float(y.min()) >= 0
        and float(y.max()) <= 1_300_000
    ):
        return BRITISH_GRID
    if float(np.abs(x).max()) <= 20_037_509 and float(np.median(np.abs(x)) + np.median(np.abs(y))) > 1_500_000:
        return WEB_MERCATOR if float(np.median(np.abs(x))) > 834_000 or float(y.min()) < 0 else UTM
    return UTM if "utm" in _plain(reading.x) else PLANE


def _zone_of_utm(columns: Mapping[str, pa.Array]) -> str:
    """The system of the zone that a column names in all rows alike; UTM where its hemisphere stays open; "" where there is no such column."""
    name = _named(columns, _ZONE)
    values = set(pc.unique(columns[name].slice(0, TRIED_ROWS)).drop_null().cast(pa.string()).to_pylist()) if name else set()
    found = re.fullmatch(r"\s*([1-9]|[1-5][0-9]|60|0[1-9])\s*([A-Za-z]?)\s*", values.pop()) if len(values) == 1 else None
    if found is None:
        return ""
    band = found[2].upper()
    # S is the south, or the band of 32 to 40 degrees north.
    if band in ("", "S", "A", "B", "Y", "Z", "I", "O"):
        return UTM
    return f"EPSG:32{6 if band >= 'N' else 7}{int(found[1]):02}"


# -- attributes -------------------------------------------------------------------------------------------------------------------


def _guess_attributes(columns: Mapping[str, pa.Array], reading: Reading) -> tuple[Attribute, ...]:
    used = {*reading.time, reading.x, reading.y, reading.event, *reading.entity}
    found: list[Attribute] = []
    taken = {*CORE_TYPES, "seq", "clock", "route"}
    for source, column in columns.items():
        if source in used or len(found) == 60 or is_bytes(column.type):
            continue
        name = re.sub(r"[^A-Za-z0-9_]+", "_", source).strip("_").lower()[:60] or f"column_{len(found) + 1}"
        name = f"_{name}" if name[0].isdigit() else name
        free, more = name, 2
        while free in taken:
            free, more = f"{name}_{more}", more + 1
        taken.add(free)
        found.append(Attribute(source, free, _type_of(column, reading.decimal)))
    return tuple(found)


def _type_of(column: pa.Array, decimal: str) -> ColumnType:
    if pa.types.is_boolean(column.type):
        return ColumnType.BOOL
    if pa.types.is_null(column.type):
        return ColumnType.STRING
    if _is_text(column):
        texts = pd.Series(column.to_pandas()).dropna().str.strip()
        if len(texts) and texts.str.fullmatch(r"0\d+").any():
            return ColumnType.STRING
        if len(texts) and set(texts.str.lower()) <= {"true", "false"}:
            return ColumnType.BOOL
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)):
        return ColumnType.STRING
    values, wrong = numbers_of(column, decimal)
    given = values[np.isfinite(values)]
    if wrong.any() or not len(given):
        return ColumnType.STRING
    # Later rows may have decimals where the first have none: only what was written as a whole number is one.
    return (
        ColumnType.INT if not pa.types.is_floating(column.type) and np.all(given == np.floor(given)) and _without_point(column) else ColumnType.FLOAT
    )


def _without_point(column: pa.Array) -> bool:
    return not _is_text(column) or not pc.any(pc.match_substring_regex(column, r"[.,eE]")).as_py()


# -- what the sample says -----------------------------------------------------------------------------------------------------------


def described(raw: pa.Table, lines: npt.NDArray[np.int64], broken: Sequence[Broken], reading: Reading) -> dict[str, Any]:
    """The sample as a page shows it: its columns and rows, its faults by row, and what it says about the feed."""
    feed = reading.feed("sample")
    read = read_rows(raw, reading, feed)
    good = read.checked.good()
    letters = read.checked.dead()
    faults = [{"line": one.line, "problem": one.problem, "row": one.text} for one in broken[:SHOWN_FAULTS]]
    faults += [{"line": int(lines[one.position or 0]), "problem": one.detail, "row": one.row} for one in letters[: SHOWN_FAULTS - len(faults)]]
    return {
        "columns": [_column(name, raw.column(name)) for name in raw.column_names],
        "rows": [{name: _shown(value) for name, value in plain_row(row).items()} for row in raw.slice(0, SHOWN_ROWS).to_pylist()],
        "lines": lines[:SHOWN_ROWS].tolist(),
        "read": [plain_row(row) for row in good.slice(0, SHOWN_ROWS).to_pylist()],
        "count": raw.num_rows + len(broken),
        "good": good.num_rows,
        "faults": sorted(faults, key=lambda one: one["line"]),
        "fault_count": len(broken) + len(letters),
        **_about(good, reading),
    }


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _shown(value: Any) -> Any:
    return value[:100] if isinstance(value, str) else value


def _column(name: str, column: pa.ChunkedArray) -> dict[str, Any]:
    examples = [_text(value.as_py())[:60] for value in column.slice(0, 200).unique() if value.is_valid][:3]
    return {"name": name, "examples": examples, "empty": column.null_count}


def _about(good: pa.Table, reading: Reading) -> dict[str, Any]:
    """What the good rows of the sample say: places, span, intervals, lateness, tick."""
    t = good.column("t").to_numpy()
    if not len(t):
        return {"places": [], "entities": 0, "from": None, "to": None, "intervals": [], "lateness": 0, "tick": 1, "ordered": True, "bounds": None}
    entities = good.column("entity").combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    x, y = (good.column(name).to_numpy() for name in ("x", "y"))
    placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    chosen = placed[np.linspace(0, len(placed) - 1, min(len(placed), SHOWN_PLACES)).astype(int)] if len(placed) else placed
    lag = int(np.max(np.maximum.accumulate(t) - t))
    span = int(t.max() - t.min())
    # Files that list one thing after the other begin again with each: that is no lateness.
    grouped = lag > max(span // 4, 1)
    return {
        "places": np.column_stack([x[chosen], y[chosen]]).round(6).tolist(),
        "bounds": [float(x[placed].min()), float(y[placed].min()), float(x[placed].max()), float(y[placed].max())] if len(placed) else None,
        "entities": len(np.unique(entities)),
        "from": int(t.min()),
        "to": int(t.max()),
        "intervals": _intervals(t, entities, 1000.0 if reading.time_format != "ticks" else 1.0),
        "lateness": 0 if grouped else _rounded(lag, reading.time_format != "ticks"),
        "tick": _tick(t, reading),
        "ordered": lag == 0,
    }


def _intervals(t: npt.NDArray[np.int64], entities: npt.NDArray[Any], unit: float) -> list[dict[str, Any]]:
    """How many intervals between neighbouring rows of an entity lie up to each bound; the last has none."""
    order = np.lexsort((t, entities))
    same = entities[order][1:] == entities[order][:-1]
    spans = np.diff(t[order])[same] / unit
    counts = np.histogram(spans, [-1.0, *(bound + 1e-9 for bound in INTERVALS_S), np.inf])[0].tolist()
    return [{"up_to": bound, "count": count} for bound, count in zip([*INTERVALS_S, None], counts, strict=True)]


def _rounded(lag: int, is_time: bool) -> int:
    """A lateness with which nothing of the sample would be late, in round numbers."""
    if lag == 0 or not is_time:
        return lag
    return next(
        (bound for bound in (1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000) if bound >= 2 * lag), 2 * lag
    )


def _tick(t: npt.NDArray[np.int64], reading: Reading) -> int:
    if reading.time_format == "ticks":
        return 1
    return next(tick for tick in TICKS_OF_TIME if not np.any(t % tick))
