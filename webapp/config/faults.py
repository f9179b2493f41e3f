"""Refusals that are not faults of the input."""

from datetime import datetime, timedelta

from engine.model.faults import Fault, Refused
from engine.model.messages import Message


class InUse(Refused):
    """Something else still needs it (HTTP 409)."""


class Conflict(Refused):
    """Someone else was faster (HTTP 409)."""


CLIENTS_CLOCK = timedelta(milliseconds=1)
"""Many clients keep times at this precision."""


def refuse_if_changed(*, seen_at: datetime | None, updated_at: datetime) -> None:
    """Raises Conflict if something has been changed since the change that a client saw;
    `seen_at` None: no check."""
    if seen_at is not None and updated_at - seen_at >= CLIENTS_CLOCK:
        raise Conflict([Fault("/updated_at", Message("Somebody has changed it meanwhile: load it again before you change it."))])


class OverQuota(Refused):
    """The quota of the user or the team would be exceeded (HTTP 403)."""
