"""Logs of AIS receivers: NMEA 0183 sentences of several parts, with the time of reception in tag
blocks, $PGHP sentences or on the same line.

`Messages` keeps the state between lines; files and sockets use it alike.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, BinaryIO

from pyais import decode
from pyais.exceptions import AISBaseException

from engine.model.messages import Message
from engine.sources.formats.ais_static import described
from engine.sources.formats.chunks import SHOWN, Chunk, InvalidLine, chunks_of

LINE_BYTES = 1_000
"""A sentence has 82 characters, and a tag block as many."""
PARTS_KEPT = 500
"""Messages with parts still missing."""
PART_BYTES = 200
"""The longest sentence that waits for others: one has 82 characters."""
VESSELS_KEPT = 200_000
"""Vessels whose name and type are remembered."""
MESSAGES_KEPT = 100_000
"""Messages that are known again when another receiver reports them."""
_SENTENCE = re.compile(rb"![A-Z-]{2}VD[MO],([1-9]),([1-9]),([0-9]?),([A-B0-9]?),([0-9A-Wa-w`:;<=>?@]*),([0-5])\*([0-9A-Fa-f]{2})")
_TAG_TIME = re.compile(rb"(?:^|[\\,])c:(\d{9,14})")
_TAG_GROUP = re.compile(rb"(?:^|[\\,])g:\d+-\d+-(\d+)")
_EPOCH = re.compile(rb"(?:^|[,;\s])(\d{10}(?:\.\d+)?|\d{13})(?:$|[,;\s])")
_ISO = re.compile(rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)")
_UNKNOWN = {"lon": 181.0, "lat": 91.0, "speed": 102.3, "course": 360.0, "heading": 511}
COLUMNS = ("mmsi", "time", "lon", "lat", "msg_type", "speed", "course", "heading", "status", "name", "ship_type", "callsign")


@dataclass
class MessageMerger:
    """The messages of all receivers of one stream. A message received again within `merge_ms` was
    heard by another receiver."""

    merge_ms: int = 0
    merged: int = 0
    _vessels: OrderedDict[int, dict[str, str]] = field(default_factory=OrderedDict)
    _changed: dict[int, dict[str, str]] = field(default_factory=dict)
    _heard: OrderedDict[bytes, int] = field(default_factory=OrderedDict)

    def vessel(self, mmsi: int) -> dict[str, str]:
        """The facts from a vessel's static messages."""
        known = self._vessels.setdefault(mmsi, {})
        self._vessels.move_to_end(mmsi)
        if len(self._vessels) > VESSELS_KEPT:
            self._vessels.popitem(last=False)
        return known

    def learn(self, mmsi: int, facts: Mapping[str, str]) -> None:
        """Adds the content of a static message. Vessels repeat it every few minutes: only
        differences count as a change."""
        known = self.vessel(mmsi)
        if not facts.items() <= known.items():
            known.update(facts)
            self._changed[mmsi] = known

    def changed(self) -> dict[int, dict[str, str]]:
        """All facts of the vessels of which something changed since the last call."""
        changed, self._changed = self._changed, {}
        return {mmsi: dict(facts) for mmsi, facts in changed.items()}

    def is_new(self, content: bytes, at: int) -> bool:
        """Whether the message was not received recently. A vessel repeats itself in time,
        so old ones do not count."""
        if not self.merge_ms:
            return True
        before = self._heard.get(content)
        if before is not None and abs(at - before) <= self.merge_ms:
            self.merged += 1
            return False
        self._heard[content] = at
        self._heard.move_to_end(content)
        if len(self._heard) > MESSAGES_KEPT:
            self._heard.popitem(last=False)
        return True


@dataclass
class Messages:
    """Lines of one receiver in, a row for each message with a position; names and types from static
    messages are on all later rows of a vessel."""

    known: MessageMerger = field(default_factory=MessageMerger)
    _parts: OrderedDict[tuple[bytes, ...], dict[int, bytes]] = field(default_factory=OrderedDict)
    _announced: int | None = None

    def read(self, line: bytes, now: int | None = None) -> dict[str, Any] | InvalidLine | None:
        """The row that the line completes, its fault, or null. `now`: the time of reception if
        the line has none, in ms."""
        line = line.strip()
        if line.startswith(b"$PGHP,1,"):
            self._announced = _pghp(line)
            return None
        found = _SENTENCE.search(line)
        if found is None:
            return _broken(Message("not an AIS sentence"), line) if b"!" in line else None
        if _checksum(found[0]) != int(found[7], 16):
            return _broken(Message("its checksum does not fit: the line was damaged"), line)
        before = line[: found.start()]
        tagged = _tagged(before)
        at = tagged if tagged is not None else self._announced
        at = _beside(before, line[found.end() :]) if at is None else at
        parts = self._together(found, before)
        if parts is None:
            return None
        self._announced = None
        at = now if at is None else at
        if not self.known.is_new(_content(parts), at or 0):
            return None
        try:
            message = decode(*parts).asdict()
        except (AISBaseException, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
            return _broken(Message("the message cannot be decoded: {error}", error=error), line)
        return self._row(message, at)

    def _together(self, match: re.Match[bytes], before: bytes) -> list[bytes] | None:
        """All parts of the message, or null while some are missing."""
        count, number = int(match[1]), int(match[2])
        if count == 1:
            return [match[0]]
        if len(match[0]) > PART_BYTES:
            return None
        group = _TAG_GROUP.search(before)
        key = (match[1], match[3], match[4], group[1] if group else b"")
        held = self._parts.pop(key, {})
        if number == 1 or number in held:
            # Another message under the same number: the one before was never completed.
            held = {}
        held[number] = match[0]
        if len(held) == count:
            return [held[part] for part in sorted(held)]
        self._parts[key] = held
        if len(self._parts) > PARTS_KEPT:
            self._parts.popitem(last=False)
        return None

    def _row(self, message: dict[str, Any], at: int | None) -> dict[str, Any] | None:
        mmsi = int(message["mmsi"])
        known = self.known.vessel(mmsi)
        self.known.learn(mmsi, described(message))
        if "lon" not in message:
            return None
        row: dict[str, Any] = {"mmsi": str(mmsi), "time": at}
        for name in COLUMNS[2:9]:
            value = _plain(message.get(name))
            row[name] = None if value == _UNKNOWN.get(name, ...) else value
        if row["lon"] is None or row["lat"] is None:
            return None
        code = known.get("ship_type")
        return {**row, "name": known.get("name"), "ship_type": code and int(code), "callsign": known.get("callsign")}


def read_nmea(stream: BinaryIO) -> Iterator[Chunk]:
    """A row for each message with a position."""
    yield from chunks_of(_of_lines(stream))


def _of_lines(stream: BinaryIO) -> Iterator[tuple[int, dict[str, Any] | InvalidLine]]:
    messages, number = Messages(), 0
    while line := stream.readline(LINE_BYTES):
        number += 1
        message = messages.read(line)
        if isinstance(message, InvalidLine):
            yield number, InvalidLine(number, message.problem, message.text)
        elif message is not None:
            yield number, message
        while len(line) == LINE_BYTES and not line.endswith(b"\n") and (line := stream.readline(LINE_BYTES)):
            continue


def _broken(problem: Message, line: bytes) -> InvalidLine:
    return InvalidLine(0, problem, line[:SHOWN].decode("ascii", "replace"))


def _content(parts: list[bytes]) -> bytes:
    """A short digest of the payload, which is the same from every receiver."""
    return hashlib.blake2b(b"".join(part.split(b",")[5] for part in parts), digest_size=12).digest()


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _checksum(sentence: bytes) -> int:
    checksum = 0
    for byte in sentence[1 : sentence.rindex(b"*")]:
        checksum ^= byte
    return checksum


def _pghp(line: bytes) -> int | None:
    """The time of reception of the next sentence:
    $PGHP,1,year,month,day,hour,minute,second,ms,..."""
    try:
        year, month, day, hour, minute, second, ms = (int(cell) for cell in line.split(b",")[2:9])
        return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()) * 1000 + ms
    except (ValueError, OverflowError):
        return None


def _tagged(before: bytes) -> int | None:
    """The time of reception in a tag block, in ms."""
    tag = _TAG_TIME.search(before)
    if tag is None:
        return None
    number = int(tag[1])
    return number if number >= 10**11 else number * 1000


def _beside(before: bytes, after: bytes) -> int | None:
    """The time before or after the sentence, in ms; null if there is none."""
    for text in (before.strip(), after.strip()):
        iso, epoch = _ISO.search(text), _EPOCH.search(text)
        try:
            if iso is not None:
                instant = datetime.fromisoformat(iso[1].decode())
                return round((instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):
            continue
        if epoch is not None:
            number = float(epoch[1])
            return round(number if number >= 10**11 else number * 1000)
    return None
