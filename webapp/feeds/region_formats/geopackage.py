"""GeoPackages: SQLite databases of features, read in memory with a bound on the steps."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import shapely

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.feeds.region_formats.shapes import Shapes, geometry_or_fault
from webapp.feeds.region_formats.systems import Conversion, from_epsg, from_wkt, unchanged

LAYERS = SYSTEMS = 100
DATABASE_STEPS = 20_000_000
"""Instructions of SQLite's machine that reading a GeoPackage may take."""
_ENVELOPES = (0, 32, 48, 48, 64)


def shapes_of(data: bytes, *, geographic: bool) -> Shapes:
    """Rows of plain tables: views, triggers and virtual tables of the file are never executed. Of a
    `geographic` feed, in longitude and latitude."""
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(data)
            _guard(database)
            plain = {
                name: sql
                for name, kind, sql in database.execute("SELECT name, type, sql FROM sqlite_master")
                if kind == "table" and not str(sql).lower().startswith("create virtual")
            }
            if not {"gpkg_contents", "gpkg_geometry_columns"} <= set(plain):
                raise refuse("/file", Message("This database is not a GeoPackage: it needs gpkg_contents and gpkg_geometry_columns, as tables."))
            layers = database.execute(
                "SELECT c.table_name, g.column_name FROM gpkg_contents AS c, gpkg_geometry_columns AS g "
                "WHERE c.data_type = 'features' AND g.table_name = c.table_name"
            ).fetchmany(LAYERS)
            if not layers:
                raise refuse("/file", Message("There are no features in the GeoPackage."))
            systems = _systems(database) if geographic and "gpkg_spatial_ref_sys" in plain else {}
            for table, column in layers:
                if table not in plain:
                    raise refuse("/file", Message("A layer of the GeoPackage is not a plain table: views are not read."))
                yield from _rows(database, table, column, systems)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise refuse("/file", Message("The GeoPackage cannot be read: {error}", error=error)) from error


def _guard(database: sqlite3.Connection) -> None:
    """Only reading of tables from here on, for a bounded number of steps."""
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    database.text_factory = lambda text: text.decode(errors="replace")
    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
    steps = 0

    def authorize(action: int, first: str | None, *_: str | None) -> int:
        is_reading = action in allowed or (action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo")
        return sqlite3.SQLITE_OK if is_reading else sqlite3.SQLITE_DENY

    def count() -> int:
        nonlocal steps
        steps += 1_000
        return int(steps > DATABASE_STEPS)

    database.set_authorizer(authorize)
    database.set_progress_handler(count, 1_000)


def _systems(database: sqlite3.Connection) -> Mapping[int, Conversion]:
    """By the number that geometries name. The numbers -1 and 0 mean unknown systems."""
    rows = database.execute("SELECT srs_id, organization, organization_coordsys_id, definition FROM gpkg_spatial_ref_sys").fetchmany(SYSTEMS)
    systems = {}
    for number, organization, code, definition in rows:
        is_epsg = str(organization).upper() == "EPSG" and isinstance(code, int)
        convert = from_epsg(code) if is_epsg else from_wkt(str(definition))
        if convert is not None and number not in (-1, 0):
            systems[number] = convert
    return systems


def _rows(database: sqlite3.Connection, table: str, column: str, systems: Mapping[int, Conversion]) -> Shapes:
    def geometry_of(blob: Any) -> Any:
        return None if blob is None else systems.get(_system_number(blob), unchanged)(_of_blob(blob))

    # Columns that are hidden or computed are left out: their values come
    # from expressions of the file.
    names = [row[1] for row in database.execute(f"PRAGMA table_xinfo({_quoted(table)})") if row[6] == 0]
    if column not in names:
        raise refuse("/file", Message("A layer of the GeoPackage has no column of geometries."))
    for values in database.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}"):  # noqa: S608  Names of the file, quoted.
        properties = dict(zip(names, values, strict=True))
        yield properties, geometry_or_fault(geometry_of, properties.pop(column))


def _quoted(name: str) -> str:
    return '"' + str(name).replace('"', '""') + '"'


def _of_blob(blob: Any) -> Any:
    """A geometry in GeoPackage's binary form: a header with an envelope, then well-known binary."""
    _check_header(blob)
    envelope = blob[3] >> 1 & 7
    if envelope >= len(_ENVELOPES):
        raise ValueError(Message("not a geometry of a GeoPackage"))
    return shapely.from_wkb(blob[8 + _ENVELOPES[envelope] :])


def _system_number(blob: Any) -> int:
    """The number of the geometry's reference system, from its header."""
    _check_header(blob)
    return int(struct.unpack("<i" if blob[3] & 1 else ">i", blob[4:8])[0])


def _check_header(blob: Any) -> None:
    if not isinstance(blob, bytes) or not blob.startswith(b"GP") or len(blob) < 8:
        raise ValueError(Message("not a geometry of a GeoPackage"))
