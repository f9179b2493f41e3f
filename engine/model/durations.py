"""Time bounds in specifications: plain numbers in the unit of `t`, or ISO 8601 durations on feeds in milliseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from engine.model.documents import Node

_ISO = re.compile(
    r"(?P<sign>[+-]?)P(?=\d|T\d)(?:(?P<W>\d+(?:[.,]\d+)?)W)?(?:(?P<D>\d+(?:[.,]\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<H>\d+(?:[.,]\d+)?)H)?(?:(?P<M>\d+(?:[.,]\d+)?)M)?(?:(?P<S>\d+(?:[.,]\d+)?)S)?)?"
)
_MILLISECONDS = {"W": 604_800_000, "D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000}
GREATEST = 2**53
"""No bound may exceed this: sums of a time and a bound stay far from the ends of int64."""


def iso_milliseconds(text: str) -> int | None:
    """Milliseconds of an ISO 8601 duration in weeks, days, hours, minutes and seconds; None when it is none, or not whole.

    Years and months have no fixed length and are none.

    >>> iso_milliseconds("PT3M"), iso_milliseconds("P1DT0.5S"), iso_milliseconds("P1M")
    (180000, 86400500, None)
    """
    found = _ISO.fullmatch(text)
    if not found:
        return None
    total = sum(
        (Fraction(found[part].replace(",", ".")) * factor for part, factor in _MILLISECONDS.items() if found[part]), Fraction(0)
    )
    if total.denominator != 1:
        return None
    return -int(total) if found["sign"] == "-" else int(total)


def read_bound(node: Node, *, milliseconds: bool, default: int | None = None, required: bool = False) -> int | None:
    """A whole number of the feed's time unit, of either sign, from a number or a duration."""
    if isinstance(node.value, str):
        if not milliseconds:
            node.fault("a duration needs a feed whose time is in ms; write a plain number of the feed's ticks")
            return None
        bound = iso_milliseconds(node.value)
        if bound is None:
            node.fault(f"{node.value!r} is no duration in whole milliseconds; write for example \"PT3M\" or a plain number")
        return bound
    return node.integer(default=default, required=required, least=-GREATEST, most=GREATEST)


def read_duration(node: Node, *, milliseconds: bool, default: int | None = None, required: bool = False) -> int | None:
    """The same, not negative."""
    bound = read_bound(node, milliseconds=milliseconds, default=default, required=required)
    if bound is not None and bound < 0:
        node.fault(f"must not be negative, but is {bound}")
        return None
    return bound
