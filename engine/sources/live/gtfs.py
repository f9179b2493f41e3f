"""GTFS-realtime: a row for each vehicle whose position is known (the message
FeedMessage of gtfs-realtime.proto)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError
from google.transit import gtfs_realtime_pb2

from engine.model.messages import Message
from engine.sources.formats import InvalidLine
from engine.sources.live import Record
from engine.sources.live.payloads import now_ms

COLUMNS = ("label", "trip", "line", "direction", "stop", "status", "bearing", "speed", "odometer", "occupancy", "congestion")
MOST_VEHICLES = 50_000
ENTITY_BYTES = 100_000
"""No vehicle needs more, and empty messages within it take forty times their bytes."""
HEADER, ENTITY = 1, 2
VARINT, LENGTH_PREFIXED, FIXED_BYTES = 0, 2, {1: 8, 5: 4}
"""How fields are written (protobuf.dev, Encoding); those of fixed length with their bytes."""


def vehicles(answer: bytes) -> Iterator[Record | InvalidLine]:
    """The vehicles of an answer, each at the time of its position, else at that of the
    answer. Raises ValueError.

    Parsed an entity at a time: as one message 20 MB of empty entities took 950 MB.
    """
    try:
        header, entities = _parts(answer)
        written = 1000 * gtfs_realtime_pb2.FeedHeader.FromString(header).timestamp or now_ms()
        for part in entities:
            if len(part) > ENTITY_BYTES:
                yield InvalidLine(0, Message("an entity has at most {most:,} bytes; this one has {count:,}", most=ENTITY_BYTES, count=len(part)), "")
                continue
            entity = gtfs_realtime_pb2.FeedEntity.FromString(part)
            if entity.HasField("vehicle") and entity.vehicle.HasField("position"):
                yield _row(entity.id, entity.vehicle, written)
    except (DecodeError, IndexError) as error:
        raise ValueError(Message("it is not a FeedMessage of GTFS-realtime: {error}", error=error)) from error


def _parts(answer: bytes) -> tuple[bytes, list[memoryview]]:
    """The header's bytes and those of each entity, not parsed. Raises ValueError for too
    many, DecodeError, IndexError."""
    header, entities, at, fields = list[memoryview](), list[memoryview](), 0, 0
    whole = memoryview(answer)
    while at < len(answer):
        key, at = _varint(answer, at)
        if key & 7 == LENGTH_PREFIXED:
            size, begin = _varint(answer, at)
            at = begin + size
            if key >> 3 == HEADER:
                header.append(whole[begin:at])
            elif key >> 3 == ENTITY:
                entities.append(whole[begin:at])
        elif key & 7 in FIXED_BYTES:
            at += FIXED_BYTES[key & 7]
        elif key & 7 == VARINT:
            at = _varint(answer, at)[1]
        else:
            raise DecodeError(Message("a field has an unknown type"))
        fields += 1
        if len(entities) > MOST_VEHICLES or fields > 2 * MOST_VEHICLES:
            raise ValueError(Message("it has more than {most:,} entities", most=MOST_VEHICLES))
    if sum(map(len, header)) > ENTITY_BYTES:
        raise ValueError(Message("its header has more than {most:,} bytes", most=ENTITY_BYTES))
    if at > len(answer):
        raise DecodeError(Message("it ends within a field"))
    # A repeated message is merged into the previous one.
    return b"".join(header), entities


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(number, where it ends). Raises IndexError, DecodeError."""
    number = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise DecodeError(Message("a number has more than ten bytes"))


def _row(name: str, vehicle: Any, written: int) -> Record | InvalidLine:
    position, trip = vehicle.position, vehicle.trip
    entity = vehicle.vehicle.id or name
    if not entity:
        return InvalidLine(0, Message("a vehicle has no id, and neither has its entity"), str(vehicle)[:200])
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
    """The word of a value of an enumeration; null where the vehicle does not report it."""
    if not vehicle.HasField(field):
        return None
    return str(vehicle.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[getattr(vehicle, field)].name)
