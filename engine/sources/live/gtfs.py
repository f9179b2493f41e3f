"""GTFS-realtime: a row for each vehicle whose position is known (the message FeedMessage of gtfs-realtime.proto)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError
from google.transit import gtfs_realtime_pb2

from engine.sources.formats import Broken
from engine.sources.live import Record
from engine.sources.live.payloads import now_ms

COLUMNS = ("label", "trip", "line", "direction", "stop", "status", "bearing", "speed", "odometer", "occupancy", "congestion")
MOST_VEHICLES = 50_000


def vehicles(answer: bytes) -> Iterator[Record | Broken]:
    """The vehicles of an answer, each at the time of its position, else at that of the answer. Raises ValueError."""
    message = gtfs_realtime_pb2.FeedMessage()
    try:
        message.ParseFromString(answer)
    except DecodeError as error:
        raise ValueError(f"it is no FeedMessage of GTFS-realtime: {error}") from error
    written = 1000 * message.header.timestamp or now_ms()
    if len(message.entity) > MOST_VEHICLES:
        raise ValueError(f"it has more than {MOST_VEHICLES:,} entities")
    for entity in message.entity:
        if entity.HasField("vehicle") and entity.vehicle.HasField("position"):
            yield _row(entity.id, entity.vehicle, written)


def _row(name: str, vehicle: Any, written: int) -> Record | Broken:
    position, trip = vehicle.position, vehicle.trip
    entity = vehicle.vehicle.id or name
    if not entity:
        return Broken(0, "a vehicle has neither an id nor an entity's", str(vehicle)[:200])
    return {
        "vehicle": entity,
        "time": 1000 * vehicle.timestamp or written,
        "lon": position.longitude,
        "lat": position.latitude,
        "label": vehicle.vehicle.label or None,
        "trip": trip.trip_id or None,
        "line": trip.route_id or None,
        "direction": trip.direction_id if trip.HasField("direction_id") else None,
        "stop": vehicle.stop_id or None,
        "status": _name(vehicle, "current_status"),
        "occupancy": _name(vehicle, "occupancy_status"),
        "congestion": _name(vehicle, "congestion_level"),
        **{one: getattr(position, one) if position.HasField(one) else None for one in ("bearing", "speed", "odometer")},
    }


def _name(vehicle: Any, field: str) -> str | None:
    """The word of a value of an enumeration; null where the vehicle does not say it."""
    if not vehicle.HasField(field):
        return None
    return str(vehicle.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[getattr(vehicle, field)].name)
