"""Refusals that are not faults of the input."""

from engine.model.faults import Refused


class InUse(Refused):
    """Something else still needs it (HTTP 409)."""


class Conflict(Refused):
    """Someone else was faster: the fault says who did what (HTTP 409)."""


class OverQuota(Refused):
    """There would be more of it than the user or the team may have (HTTP 403)."""
