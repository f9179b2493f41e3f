"""ISO 8601 durations as whole milliseconds."""

from __future__ import annotations

import re
from decimal import Decimal

from engine.model.messages import Message

_NUMBER = r"(\d+(?:[.,]\d+)?)"
_PATTERN = re.compile(rf"([+-]?)P(?:{_NUMBER}W|(?:{_NUMBER}D)?(?:(T)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?)", re.ASCII)
_CALENDAR = re.compile(r"[+-]?P(?:\d+Y|(?:\d+Y)?\d+M)")
_MILLISECONDS = {"W": 604_800_000, "D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1_000}
_UNITS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1_000, "ms": 1}


def parse_duration(text: str) -> int:
    """Milliseconds of an ISO 8601 duration of weeks, days, hours, minutes and seconds; a
    leading minus is allowed.

    Raises ValueError, with the remedy, for anything else: calendar years and
    months have no fixed length.

    >>> parse_duration("PT3M"), parse_duration("P1DT0.5S"), parse_duration("-PT1H")
    (180000, 86400500, -3600000)
    """
    match = _PATTERN.fullmatch(text)
    if match is None or text.endswith(("P", "T")):
        if _CALENDAR.match(text):
            raise ValueError(Message("{text}: years and months have no fixed length; use weeks, days, hours, minutes or seconds", text=repr(text)))
        raise ValueError(Message('{text} is not an ISO 8601 duration; write for example "PT90S", "PT3M", "PT1H30M" or "P1D"', text=repr(text)))
    sign, weeks, days, _, hours, minutes, seconds = match.groups()
    parts = zip("WDHMS", (weeks, days, hours, minutes, seconds), strict=True)
    total = sum(Decimal(number.replace(",", ".")) * _MILLISECONDS[unit] for unit, number in parts if number)
    if total != int(total):
        raise ValueError(Message("{text} is not a whole number of milliseconds", text=repr(text)))
    return -int(total) if sign == "-" else int(total)


def duration_text(milliseconds: int) -> str:
    """A length of time of at least 0 with the symbols of its units, which languages share.

    >>> duration_text(5_400_000), duration_text(86_400_500), duration_text(0)
    ('1 h 30 min', '1 d 500 ms', '0 s')
    """
    parts = []
    for symbol, size in _UNITS.items():
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count} {symbol}")
    return " ".join(parts) or "0 s"
