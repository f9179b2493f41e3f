"""Times as the API and files write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime.fromtimestamp(0, UTC)


def iso(moment: datetime) -> str:
    """A time in the form of the API."""
    return moment.isoformat().replace("+00:00", "Z")


def iso_of_event(t: int | None, unit: str) -> str | None:
    """An event time of a feed whose unit is `unit`; null for ticks, and where the number is no
    time.

    >>> iso_of_event(1_700_000_000_500, "ms"), iso_of_event(7, "ticks"), iso_of_event(10**17, "ms")
    ('2023-11-14T22:13:20.500000Z', None, None)
    """
    if t is None or unit != "ms":
        return None
    try:
        return iso(_EPOCH + timedelta(milliseconds=t))
    except OverflowError:
        return None
