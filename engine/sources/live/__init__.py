"""Streams from outside: one contract for all protocols (decision 29).

A source yields batches of raw records, each with the offset to continue from. A `Reading`
(engine/sources/reading.py) defines what records mean; a source does not know feeds, the log or
databases. `docs/connectors.md` shows how to write one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from engine.sources.formats import InvalidLine

BATCH_ROWS = 4_000
"""A batch has at most about this many records."""
BATCH_BYTES = 4 << 20
"""And is made of at most about this many bytes: as records they take many times the memory."""
LINGER_S = 0.2
"""A source yields after at most this long, with what has arrived: a batch may be empty."""
RECEIVED = "received"
"""Every record has the time of its reception under this name, in ms since 1970."""

Record = Mapping[str, Any]
Settings = Mapping[str, Any]


class SourceUnavailable(Exception):
    """The other side cannot be reached, refuses the connection, or closed it: retried later. The
    text is for the user who set up the connector.

    `about`: the settings to which this may be due; the first one that the kind has is marked when
    the connector is tested.
    """

    def __init__(self, text: str = "", *about: str) -> None:
        super().__init__(text)
        self.about = about


@dataclass(frozen=True)
class Batch:
    """Records in the order of their arrival. `offset`: where to begin after them, as JSON; null
    where the protocol cannot repeat anything.

    `messages` counts received messages, `merged` those that repeated another one. `facts`: of
    entities of which the stream reports something new that is no event (a name, a size), all that
    it reported so far, as texts.
    """

    records: Sequence[Record | InvalidLine] = ()
    offset: Any = None
    messages: int = 0
    merged: int = 0
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Source(Protocol):
    """A stream that was opened. One thread uses it."""

    def batches(self, offset: Any) -> Iterator[Batch]:
        """From `offset` on (null: from now, or from what the other side kept), one at least every
        LINGER_S or so. Raises SourceUnavailable and OSError."""

    def acknowledge(self, offset: Any) -> None:
        """Everything up to the batch with this offset is stored: the other side may delete it."""

    def close(self) -> None:
        """Closes the connection. May be called twice."""


class Network(Protocol):
    """Network access: decides which addresses may be reached."""

    def address(self, host: str, port: int) -> str:
        """The numeric address to connect to for `host`. Raises SourceUnavailable if it may not be
        reached, OSError if there is none."""

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to the checked address. Raises SourceUnavailable, OSError."""

    def listen(self, port: int, *, datagrams: bool = False) -> socket.socket:
        """A socket that others send to. Raises SourceUnavailable, OSError."""


class FieldType(StrEnum):
    """How a field of a form is asked for. Lines and queries are texts: several lines; the numbers
    of queries of the feed, separated by commas."""

    TEXT = "text"
    LINES = "lines"
    SECRET = "secret"  # noqa: S105  the kind of a field
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    QUERIES = "queries"


@dataclass(frozen=True)
class Field:
    """A setting of a connector. `least` and `most` bound an integer; a secret is stored
    encrypted and never shown again.

    `listens`: a port that others send to, one of those that the operator named. `directs`: it
    determines where secrets are sent, or how they are protected on the way: a user who changes it
    enters them again. A kind that marks none is taken to mean all. `when`: a choice or box of the
    same form, and the values of it with which this field means something.
    """

    name: str
    label: str
    type: FieldType = FieldType.TEXT
    default: str | int | bool = ""
    required: bool = False
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    least: int = 0
    most: int = 2**31
    directs: bool = False
    listens: bool = False
    when: tuple[str, tuple[str | bool, ...]] | None = None


PORT = Field("port", "Port", FieldType.INTEGER, 0, required=True, least=1, most=65_535, directs=True)
LISTENING_PORT = replace(PORT, listens=True)
HOST = Field("host", "Host", required=True, hint="A name or an address.", directs=True)


@dataclass(frozen=True)
class SourceKind:
    """A protocol. `guarantee` states in a sentence or two what is lost or duplicated after a
    failure.

    `open(settings, network, identity)`: the identity is the same whenever a connector is opened,
    and empty in a test, which must not disturb it. `reading` is how its records are to be read, for
    protocols that define it themselves: the columns of RECORDS that a feed has become attributes.
    `check` names what is wrong with settings whose types are right, by field.
    """

    name: str
    title: str
    fields: tuple[Field, ...]
    guarantee: str
    open: Callable[[Settings, Network, str], Source]
    reading: Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()
    check: Callable[[Settings], Mapping[str, str]] = field(default=lambda settings: {})
