"""ADS-B as lines of text over TCP (SBS or BaseStation format, port 30003 of receivers)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from engine.model.messages import Message
from engine.sources.formats import SHOWN, InvalidLine
from engine.sources.live import HOST, RECEIVED, Batch, Field, FieldType, Network, Record, Settings, SourceKind
from engine.sources.live.arrivals import Arrivals, Lines

LINE_BYTES = 1_000
CELLS = 22
AIRCRAFT_KEPT = 50_000
HEX, CALLSIGN, ALTITUDE, SPEED, TRACK, LAT, LON = 4, 10, 11, 12, 13, 14, 15
COLUMNS = ("flight", "altitude", "speed", "track")
REMEMBERED = {"flight": CALLSIGN, "altitude": ALTITUDE, "speed": SPEED, "track": TRACK}


class Aircraft:
    """The latest values from one receiver's lines, by aircraft."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, dict[str, str]] = OrderedDict()

    def read(self, line: bytes, at: int) -> Record | InvalidLine | None:
        """The row of the line, its fault, or null if it has no position. `at`:
        its time of arrival, in ms."""
        text = line.decode("ascii", "replace").strip()
        if not text:
            return None
        cells = text.split(",")
        if len(cells) != CELLS or not cells[HEX].strip():
            return InvalidLine(0, Message("a line has {count} values, and the fifth is the aircraft", count=CELLS), text[:SHOWN])
        entity = cells[HEX].strip().lower()
        known = self._known.setdefault(entity, {})
        self._known.move_to_end(entity)
        if len(self._known) > AIRCRAFT_KEPT:
            self._known.popitem(last=False)
        known.update({name: cells[cell].strip() for name, cell in REMEMBERED.items() if cells[cell].strip()})
        if not cells[LAT].strip() or not cells[LON].strip():
            return None
        # The line has the time of the receiver's clock without its zone.
        return {"hex": entity, "lat": cells[LAT], "lon": cells[LON], RECEIVED: at, **{name: known.get(name) for name in COLUMNS}}


class SbsSource:
    """Messages with a position; values of other messages are added to the aircraft's later rows."""

    def __init__(self, settings: Settings, network: Network, identity: str) -> None:
        self._arrivals = Arrivals()
        self._arrivals.follow(network.connect(settings["host"], settings["port"]))
        self._lines = Lines(LINE_BYTES)
        self._aircraft = Aircraft()

    def batches(self, offset: Any) -> Iterator[Batch]:
        for parts in self._arrivals.taken():
            lines = [(part, line) for part in parts for line in self._lines.of(part)]
            yield Batch([record for part, line in lines if (record := self._aircraft.read(line, part.at)) is not None], messages=len(lines))

    def acknowledge(self, offset: Any) -> None:
        """SBS has nothing to acknowledge."""

    def close(self) -> None:
        self._arrivals.close()


KINDS = (
    SourceKind(
        "adsb-sbs",
        "ADS-B from a receiver (SBS or BaseStation over TCP)",
        (HOST, Field("port", "Port", FieldType.INTEGER, 30_003, required=True, least=1, most=65_535)),
        "The protocol cannot repeat anything: messages that are sent while the connection or Vedette is down are missing. Nothing is stored twice.",
        SbsSource,
        {"entity": ["hex"], "time": [RECEIVED], "time_format": "epoch_ms", "x": "lon", "y": "lat"},
        COLUMNS,
    ),
)
