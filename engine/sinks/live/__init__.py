"""Answers on their way out: one contract for all protocols, the counterpart of
`engine.sources.live` (decision 35).

A sink writes records under keys that stay: the last record of each key is the answer as it is
stored. It does not know what is written, or how far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.sources.live import Field, FieldType, Network, Settings


@dataclass(frozen=True)
class Keyed:
    """The value of `key` from the outbox number `seq` on: a JSON text, or null where
    the answer was retracted."""

    key: str
    value: str | None
    seq: int


class Sink(Protocol):
    """A place outside that was opened. One thread uses it."""

    def write(self, records: Sequence[Keyed]) -> None:
        """Returns when the other side has all of them, in their order. Raises SourceUnavailable and
        OSError; then all are written again, later."""

    def check(self) -> None:
        """For a sink that has nothing to write, several times a second: returns as long as the
        other side can be reached. Raises SourceUnavailable and OSError."""

    def description(self) -> str:
        """A sentence about the other side, for the user who sets it up."""

    def close(self) -> None:
        """Closes the connection. May be called twice."""


WANTED = (
    Field("queries", "Answers of", FieldType.QUERIES),
    Field("start", "Begin with", FieldType.CHOICE, "all", choices=(("all", "all answers that are stored"), ("now", "what changes from now on"))),
)
"""Which answers are written: fields of every kind."""


@dataclass(frozen=True)
class SinkKind:
    """A protocol, as `SourceKind` is one: `identity` is the same whenever a connector is opened,
    and empty in a test, which writes nothing."""

    name: str
    title: str
    fields: tuple[Field, ...]
    guarantee: str
    open: Callable[[Settings, Network, str], Sink]
    check: Callable[[Settings], Mapping[str, str]] = field(default=lambda settings: {})
