"""Common names of columns, the likeliest first."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

WHO = (
    "entity", "mmsi", "icao24", "icao", "vessel_id", "vehicle_id", "device_id", "deviceid", "object_id", "track_id", "trip_id", "tag_id", "epc",
    "imo", "callsign", "registration", "plate", "license_plate", "licence_plate",
    "number_plate", "kennzeichen", "kfz_kennzeichen", "kennung", "uid", "uuid", "id", "vessel", "vehicle", "device", "object", "ship", "person",
    "user", "tag", "rfid", "transponder", "etikett", "taxi", "bus", "unit", "name", "schiff", "fahrzeug", "objekt", "pallet", "palette", "parcel",
    "paket", "behaelter", "sendung", "feature", "track",
)  # fmt: skip
WHEN = (
    "t", "time", "timestamp", "datetime", "date_time", "basedatetime", "ts", "when", "epoch", "utc", "time_utc", "recorded_at", "created_at",
    "received_at", "fixtime", "position_time", "zeitstempel", "zeitpunkt", "zeit", "date", "datum", "frame", "tick",
)  # fmt: skip
DAY, CLOCK = ("date", "day", "datum"), ("time", "hour", "clock", "time_of_day", "uhrzeit", "zeit")
"""A day and a time of day in columns of their own."""
EASTWARD = (
    "x", "lon", "lng", "long", "longitude", "lon_deg", "easting", "east", "eastings", "location_long", "position_lon", "coord_x", "utm_x", "xcoord",
    "laenge", "lange", "ostwert", "rechtswert", "longitud",
    "longitudee7", "lone7", "lnge7", "lon_e7", "longitude_e7", "longitudee6", "lone6",
)  # fmt: skip
NORTHWARD = (
    "y", "lat", "latitude", "lat_deg", "northing", "north", "northings", "location_lat", "position_lat", "coord_y", "utm_y", "ycoord",
    "breite", "nordwert", "hochwert", "latitud",
    "latitudee7", "late7", "lat_e7", "latitude_e7", "latitudee6", "late6",
)  # fmt: skip
PLACE = (
    "position", "location", "coordinates", "coordinate", "coords", "latlng", "latlon", "lat_lon", "lat_lng", "lonlat", "lon_lat", "geometry", "geom",
    "the_geom", "wkt", "wkb", "wkb_geometry", "point", "place", "gps", "geo", "pos", "where", "standort", "ort",
)  # fmt: skip
LONGITUDE_FIRST = ("coordinates", "lonlat", "lon_lat")
ZONE = ("zone", "utm_zone", "zone_utm", "utmzone", "utm_zone_number", "utm")
EVENT = ("event", "event_type")


LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "å": "aa", "ł": "l"})


def without_accents(name: str) -> str:
    """A name in lower case and in letters of ASCII, where it has such letters.

    >>> without_accents("Lesegerät"), without_accents("Référence")
    ('lesegeraet', 'reference')
    """
    composed = unicodedata.normalize("NFC", name).lower().translate(LETTERS)
    return "".join(letter for letter in unicodedata.normalize("NFKD", composed) if not unicodedata.combining(letter))


def plain(name: str) -> str:
    """A column's name as it is compared: `Longitude [deg]` is `longitude`."""
    return re.sub(r"[^a-z0-9]+", "_", without_accents(re.sub(r"[\[(].*$", "", name)).strip().rpartition(".")[2]).strip("_")


def named_column(columns: Iterable[str], names: Sequence[str]) -> str:
    """The column with the likeliest of the names; "" where none has one."""
    by_plain_name = {plain(column): column for column in reversed(list(columns))}
    return next((by_plain_name[name] for name in names if name in by_plain_name), "")
