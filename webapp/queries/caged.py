"""Tries a specification on a feed's log, in a separate process that can be killed
(`webapp/cage`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.model.messages import Message
from webapp.cage.warm_pool import ENGINE, FAULT, CageRequest, TookTooLong

SECONDS = 30.0
ROWS = 2_000_000
MEMORY_BYTES = 3 * 2**30
OUR_FAULT = Message("This failed because of an error in Vedette, not in the query. The server's log has the details.")


@dataclass(frozen=True)
class Period:
    """A period of history in the feed's unit, both ends closed. It ends with the log's newest
    moment where `to_t` is None or later, and is `span` long where `from_t` is None."""

    span: int
    from_t: int | None = None
    to_t: int | None = None

    def ends(self, newest: int) -> tuple[int, int]:
        """The first and the last moment, on a log whose newest moment is `newest`. A period that
        begins later is its first moment, without rows."""
        last = newest if self.to_t is None else min(newest, self.to_t)
        first = last - self.span if self.from_t is None else self.from_t
        return first, max(first, last)


class PreviewFailed(RuntimeError):
    """The program took too long or failed; the text describes what to do."""


def answer_of(
    program: str,
    request: Mapping[str, Any],
    *,
    seconds: float,
    too_long: Message,
    broke_off: Message,
    failures: Mapping[int, Message] | None = None,
) -> dict[str, Any]:
    """The answer of the module `program` to a request, which names the folder
    of the log as `log_root`.

    Raises PreviewFailed with one of the texts; `failures`: the texts of the
    program's own exit statuses.
    """
    try:
        status, written = ENGINE.ask(CageRequest(program, dict(request), seconds, MEMORY_BYTES, read=[request["log_root"]]))
    except TookTooLong as error:
        raise PreviewFailed(too_long) from error
    if status != 0:
        raise PreviewFailed(OUR_FAULT if status == FAULT else (failures or {}).get(status, broke_off))
    answer: dict[str, Any] = json.loads(written)
    return answer
