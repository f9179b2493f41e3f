"""ADS-B as lines of text over TCP (SBS or BaseStation format, port 30003 of receivers)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from engine.sources.formats import SHOWN, Broken
from engine.sources.live import HOST, RECEIVED, Batch, Field, FieldType, Network, Record, Settings, SourceKind
from engine.sources.live.arrivals import Arrivals, Lines, Part

LINE_BYTES = 1_000
CELLS = 22
AIRCRAFT_KEPT = 50_000
HEX, CALLSIGN, ALTITUDE, SPEED, TRACK, LAT, LON = 4, 10, 11, 12, 13, 14, 15
COLUMNS = ("flight", "altitude", "speed", "track")
REMEMBERED = {"flight": CALLSIGN, "altitude": ALTITUDE, "speed": SPEED, "track": TRACK}


class SbsSource:
    """Messages that tell a place; what others told of an aircraft is on its later rows."""

    def __init__(self, settings: Settings, network: Network, identity: str) -> None:
        self._arrivals = Arrivals()
        self._arrivals.follow(network.connect(settings["host"], settings["port"]))
        self._lines = Lines(LINE_BYTES)
        self._aircraft: OrderedDict[str, dict[str, str]] = OrderedDict()

    def batches(self, offset: Any) -> Iterator[Batch]:
        for parts in self._arrivals.taken():
            lines = [(part, line) for part in parts for line in self._lines.of(part)]
            yield Batch([found for part, line in lines if (found := self._read(line, part)) is not None], messages=len(lines))

    def acknowledge(self, offset: Any) -> None:
        """SBS has nothing to acknowledge."""

    def close(self) -> None:
        self._arrivals.close()

    def _read(self, line: bytes, part: Part) -> Record | Broken | None:
        text = line.decode("ascii", "replace").strip()
        if not text:
            return None
        cells = text.split(",")
        if len(cells) != CELLS or not cells[HEX].strip():
            return Broken(0, f"a line has {CELLS} values, and the fifth is the aircraft", text[:SHOWN])
        entity = cells[HEX].strip().lower()
        known = self._aircraft.setdefault(entity, {})
        self._aircraft.move_to_end(entity)
        if len(self._aircraft) > AIRCRAFT_KEPT:
            self._aircraft.popitem(last=False)
        known.update({name: cells[at].strip() for name, at in REMEMBERED.items() if cells[at].strip()})
        if not cells[LAT].strip() or not cells[LON].strip():
            return None
        # The receiver's own clock stands in the line without its zone.
        return {"hex": entity, "lat": cells[LAT], "lon": cells[LON], RECEIVED: part.at, **{name: known.get(name) for name in COLUMNS}}


KINDS = (
    SourceKind(
        "adsb-sbs",
        "ADS-B from a receiver (SBS or BaseStation over TCP)",
        (HOST, Field("port", "Port", FieldType.INTEGER, 30_003, required=True, least=1, most=65_535)),
        "The protocol cannot repeat anything: what is sent while the connection or Vedette is away is missing. Nothing is doubled.",
        SbsSource,
        {"entity": ["hex"], "time": [RECEIVED], "time_format": "epoch_ms", "x": "lon", "y": "lat"},
        COLUMNS,
    ),
)
