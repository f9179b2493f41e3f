"""The one form in which an answer leaves: in frames, over the API, in files and to brokers
(ARCHITECTURE.md, WebSocket)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol, TypedDict

import msgspec

from engine.sinks.facts import Fact

_ENCODER = msgspec.json.Encoder()
"""1.2 µs for an answer; that of `json` takes 3.2."""


class Answer(Protocol):
    """The common fields of a fact of a batch and a stored answer."""

    @property
    def key(self) -> bytes | memoryview[int]: ...
    @property
    def query_id(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def entities(self) -> Sequence[str]: ...
    @property
    def value(self) -> str | None: ...
    @property
    def score(self) -> float | None: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int | None: ...


class EvidenceItem(TypedDict):
    """An event behind an answer; `seq`: its place in the log."""

    variable: str | None
    entity: str | None
    t: int
    x: float | None
    y: float | None
    seq: int | None


class AnswerFields(TypedDict):
    """All but query and evidence. `id`: the natural key in hexadecimal digits; `cut`: it ends where
    the job left its version, which had it open."""

    id: str
    version: int
    kind: str
    entities: list[str]
    value: str | float | None
    start: int
    end: int | None
    cut: bool
    weight: int
    backfill: bool
    detected_at: int


class AnswerRow(AnswerFields):
    """An answer of a registered query, without the evidence."""

    query: int


def answer_row(answer: Answer, *, weight: int, backfill: bool, detected_at: int, left_at: int | None = None) -> AnswerRow:
    """All but the evidence, which a fact has as text. `left_at`: when the job left the answer's
    version; it ends there if it was open."""
    is_cut = answer.end is None and left_at is not None
    return {
        "id": bytes(answer.key).hex(),
        "query": answer.query_id,
        "version": answer.version,
        "kind": answer.kind,
        "entities": list(answer.entities),
        "value": answer.value if answer.score is None else answer.score,
        "start": answer.start,
        "end": left_at if is_cut else answer.end,
        "cut": is_cut,
        "weight": weight,
        "backfill": backfill,
        "detected_at": detected_at,
    }


def answer_text(fact: Fact, *, backfill: bool, detected_at: int) -> str:
    """The row of a fact as JSON text in ASCII; weight -1 takes it away."""
    row = answer_row(fact, weight=1 if fact.weight else -1, backfill=backfill, detected_at=detected_at)
    # Evidence is text already: to read it and write it again would take ten times as long.
    text = _ENCODER.encode({**row, "evidence": msgspec.Raw((fact.evidence or "null").encode())}).decode()
    # Limits on what is sent count characters as bytes.
    return text if text.isascii() else json.dumps(json.loads(text), separators=(",", ":"))
