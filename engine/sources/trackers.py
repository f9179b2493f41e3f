"""Reports of trackers: OsmAnd's protocol (in an address or a form), the JSON of Traccar Client, and
the JSON that a Traccar server forwards.

All become records with the same columns: `id`, `time` in ms, `lon`, `lat`, `speed`
in knots, `course` in degrees, `altitude` and `accuracy` in metres, `battery` in
percent; missing values are null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from engine.model.messages import Message
from engine.sources.formats import SHOWN, InvalidLine, excerpt
from engine.sources.live import RECEIVED, Record

READING = {"entity": ["id"], "time": ["time"], "time_format": "epoch_ms", "x": "lon", "y": "lat"}
COLUMNS = ("speed", "course", "altitude", "accuracy", "battery", "name", "alarm", "motion")
KNOTS = 3600 / 1852
"""Knots in one metre a second."""
MILLISECONDS_FROM = 10**11
"""Seconds since 1970 reach this number in the year 5138."""
MOST_REPORTS = 1_000
"""The most reports in one request: a phone that was offline for long sends in parts."""


def reports_of(query: Mapping[str, str], body: bytes, now: int) -> Iterator[Record | InvalidLine]:
    """The reports of a request. `now`: when it came, in ms, for those
    without a time. Never raises."""
    if "lat" in query or "lon" in query or "location" in query:
        yield _osmand(query, now)
        return
    try:
        document = json.loads(body)
        listed = document if isinstance(document, list) else [document]
        for count, one in enumerate(listed):
            if count == MOST_REPORTS:
                yield InvalidLine(0, Message("a request has at most {most:,} reports; the others are left out", most=MOST_REPORTS), "")
                return
            yield _json(one, now)
    except (ValueError, RecursionError) as error:
        yield InvalidLine(0, Message("there is neither lat and lon nor JSON in it: {error}", error=error), body[:SHOWN].decode("utf-8", "replace"))


def _osmand(query: Mapping[str, str], now: int) -> Record | InvalidLine:
    """OsmAnd: `id` (or `deviceid`), `lat`, `lon` (or `location=lat,lon`), `timestamp`, `speed` in
    knots, `bearing` or `heading`, `altitude`, ..."""
    lat, _, lon = query.get("location", "").partition(",")
    return _record(
        {
            "id": query.get("id") or query.get("deviceid") or query.get("device_id"),
            "time": query.get("timestamp"),
            "lat": query.get("lat") or lat or None,
            "lon": query.get("lon") or lon or None,
            "speed": query.get("speed"),
            "course": query.get("bearing") or query.get("heading"),
            "altitude": query.get("altitude"),
            "accuracy": query.get("accuracy") or query.get("hdop"),
            "battery": query.get("batt"),
            "alarm": query.get("alarm"),
        },
        now,
    )


def _json(document: Any, now: int) -> Record | InvalidLine:
    if not isinstance(document, Mapping):
        return InvalidLine(0, Message("a report is a JSON object"), excerpt(document))
    if isinstance(document.get("position"), Mapping):
        return _forwarded(document["position"], document.get("device"), now)
    if isinstance(document.get("location"), Mapping):
        return _client(document, document["location"], now)
    return InvalidLine(0, Message("a report has a position (Traccar's forwarding) or a location (Traccar Client)"), excerpt(document))


def _forwarded(position: Mapping[str, Any], device: Any, now: int) -> Record | InvalidLine:
    """A report forwarded by a Traccar server (`forward.type` json): speeds in knots, the
    device by its own identifier."""
    device = device if isinstance(device, Mapping) else {}
    attributes = position["attributes"] if isinstance(position.get("attributes"), Mapping) else {}
    if position.get("valid") is False:
        return InvalidLine(0, Message("the tracker had no fix: the position is not valid"), excerpt(position))
    return _record(
        {
            "id": device.get("uniqueId") or position.get("deviceId"),
            "name": device.get("name"),
            "time": position.get("fixTime") or position.get("deviceTime"),
            "lat": position.get("latitude"),
            "lon": position.get("longitude"),
            "battery": attributes.get("batteryLevel"),
            "alarm": attributes.get("alarm"),
            "motion": attributes.get("motion"),
            **{name: position.get(name) for name in ("speed", "course", "altitude", "accuracy")},
        },
        now,
    )


def _client(document: Mapping[str, Any], location: Mapping[str, Any], now: int) -> Record | InvalidLine:
    """Traccar Client of 2025 and later: metres a second, the battery from 0 to 1;
    unknown values are negative."""
    coords = location.get("coords")
    coords = coords if isinstance(coords, Mapping) else {}
    battery = location["battery"] if isinstance(location.get("battery"), Mapping) else {}
    speed, level = _known(coords.get("speed")), _known(battery.get("level"))
    return _record(
        {
            "id": document.get("device_id"),
            "time": location.get("timestamp"),
            "lat": coords.get("latitude"),
            "lon": coords.get("longitude"),
            "speed": None if speed is None else speed * KNOTS,
            "course": _known(coords.get("heading")),
            "altitude": coords.get("altitude"),
            "accuracy": _known(coords.get("accuracy")),
            "battery": None if level is None else level * 100,
            "motion": location.get("is_moving"),
        },
        now,
    )


def _record(location: Mapping[str, Any], now: int) -> Record | InvalidLine:
    if location["id"] in (None, ""):
        return InvalidLine(0, Message("the report does not say whose it is: its id is missing"), excerpt(location))
    time = now if location["time"] in (None, "") else _milliseconds(location["time"])
    if time is None:
        return InvalidLine(0, Message("its time is neither seconds, nor milliseconds, nor as in 2026-01-02T03:04:05Z"), excerpt(location))
    return {**dict.fromkeys(COLUMNS), **location, "time": time, RECEIVED: now}


def _milliseconds(value: Any) -> int | None:
    """A time as trackers write it, in ms since 1970; null if invalid."""
    try:
        number = float(value)
        return round(number if abs(number) >= MILLISECONDS_FROM else number * 1000)
    except (ValueError, TypeError, OverflowError):
        pass
    try:
        moment = datetime.fromisoformat(value)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def _known(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return float(value) if is_number and value >= 0 else None
    except OverflowError:
        return None
