"""AIS: NMEA 0183 sentences of receivers, over TCP connections in either
direction, or in datagrams."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.sources.formats import InvalidLine
from engine.sources.formats.nmea import COLUMNS, LINE_BYTES, MessageMerger, Messages
from engine.sources.live import HOST, LISTENING_PORT, PORT, RECEIVED, Batch, Field, FieldType, Network, Record, Settings, SourceKind
from engine.sources.live.arrivals import Arrivals, Lines, ReceivedBytes

PEERS_KEPT = 256
"""Senders of datagrams whose incomplete messages are remembered: addresses can be forged."""
MERGE_S = 10
MERGE = Field(
    "merge_seconds",
    "Merge duplicates within, in seconds",
    FieldType.INTEGER,
    MERGE_S,
    most=600,
    hint="The same message from several receivers. 0: none.",
)
READING = {"entity": ["mmsi"], "time": ["time"], "time_format": "epoch_ms", "x": "lon", "y": "lat"}
LOST = "AIS cannot repeat anything: messages that are sent while the connection or Vedette is down are missing. Nothing is stored twice."


@dataclass
class _Peer:
    messages: Messages
    lines: Lines = field(default_factory=lambda: Lines(LINE_BYTES))


class AisSource:
    """The messages of all receivers on the sockets of `arrivals`."""

    def __init__(self, arrivals: Arrivals, merge_seconds: int) -> None:
        self._arrivals = arrivals
        self._known = MessageMerger(merge_seconds * 1000)
        self._peers: OrderedDict[Hashable, _Peer] = OrderedDict()

    def batches(self, offset: Any) -> Iterator[Batch]:
        for parts in self._arrivals.taken():
            yield self._batch(parts)

    def acknowledge(self, offset: Any) -> None:
        """AIS has nothing to acknowledge."""

    def close(self) -> None:
        self._arrivals.close()

    def _batch(self, parts: list[ReceivedBytes]) -> Batch:
        merged, count = self._known.merged, 0
        records: list[Record | InvalidLine] = []
        for part in parts:
            peer = self._peer(part)
            for line in peer.lines.of(part):
                count += 1
                message = peer.messages.read(line, part.at)
                if isinstance(message, InvalidLine):
                    records.append(message)
                elif message is not None:
                    records.append({**message, RECEIVED: part.at})
        facts = {str(mmsi): facts for mmsi, facts in self._known.changed().items()}
        return Batch(records, messages=count, merged=self._known.merged - merged, facts=facts)

    def _peer(self, part: ReceivedBytes) -> _Peer:
        peer = self._peers.pop(part.peer, None) or _Peer(Messages(self._known))
        if not part.ended:
            self._peers[part.peer] = peer
            if len(self._peers) > PEERS_KEPT:
                self._peers.popitem(last=False)
        return peer


def open_client(settings: Settings, network: Network, identity: str) -> AisSource:
    """A receiver, or a server that collects those of many, that we connect to."""
    arrivals = Arrivals()
    arrivals.follow(network.connect(settings["host"], settings["port"]))
    return AisSource(arrivals, settings["merge_seconds"])


def open_server(settings: Settings, network: Network, identity: str) -> AisSource:
    """Receivers that connect to us."""
    arrivals = Arrivals()
    arrivals.accept(network.listen(settings["port"]))
    return AisSource(arrivals, settings["merge_seconds"])


def open_datagrams(settings: Settings, network: Network, identity: str) -> AisSource:
    """Receivers that send datagrams to us."""
    arrivals = Arrivals()
    arrivals.datagrams(network.listen(settings["port"], datagrams=True))
    return AisSource(arrivals, settings["merge_seconds"])


KINDS = (
    SourceKind("ais-tcp", "AIS from a receiver (TCP)", (HOST, PORT, MERGE), LOST, open_client, READING, COLUMNS),
    SourceKind("ais-tcp-server", "AIS: receivers connect to Vedette (TCP)", (LISTENING_PORT, MERGE), LOST, open_server, READING, COLUMNS),
    SourceKind(
        "ais-udp",
        "AIS: receivers send to Vedette (UDP)",
        (LISTENING_PORT, MERGE),
        f"{LOST} Datagrams that come faster than they are read are lost too.",
        open_datagrams,
        READING,
        COLUMNS,
    ),
)
