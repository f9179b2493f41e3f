"""The content of an outbox row, parsed only as far as necessary: each answer stays the text that
the batch wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from webapp.detections.selectors import outbox_since

Chunk = dict[str, Any]
"""One outbox row: `seq`; `detections` and `alerts`, each row as its query and its text; `queries`,
as in ARCHITECTURE.md, WebSocket."""


class _Row(msgspec.Struct):
    """The rest of it is for pages."""

    query: int


class _Payload(msgspec.Struct):
    detections: list[msgspec.Raw] = []
    alerts: list[msgspec.Raw] = []
    queries: list[int] = []


_payload_of = msgspec.json.Decoder(_Payload).decode
_row_of = msgspec.json.Decoder(_Row).decode


def chunks_after(*, feed_id: int, seq: int, limit: int) -> list[Chunk]:
    """The outbox rows after number `seq`, as they are sent to pages."""
    return [_chunk(number, payload) for number, payload in outbox_since(feed_id=feed_id, seq=seq, limit=limit)]


def _chunk(seq: int, payload: str) -> Chunk:
    held = _payload_of(payload)
    return {"seq": seq, "detections": list(_rows(held.detections)), "alerts": list(_rows(held.alerts)), "queries": held.queries}


def _rows(texts: Sequence[msgspec.Raw]) -> Iterator[tuple[int, str]]:
    for text in texts:
        yield _row_of(text).query, str(text, "utf-8")
