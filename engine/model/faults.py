"""What is wrong with a document somebody wrote, and where."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One fault: a JSON pointer (RFC 6901, "" is the whole document) and a sentence that names the remedy."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


class Refused(ValueError):
    """A feed, region or specification that cannot be accepted; `faults` is never empty."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(str(fault) for fault in self.faults))


def refuse(pointer: str, message: str) -> Refused:
    """The exception for a single fault, to be raised by the caller."""
    return Refused([Fault(pointer, message)])


def unknown_name(name: object, known: Iterable[str], *, what: str) -> str:
    """A sentence for a name nobody declared: the nearest known one, then all of them.

    >>> unknown_name("widht", ["width", "height"], what="column")
    "unknown column 'widht'; did you mean 'width'? Known: height, width"
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    return f"unknown {what} {name!r}{hint} Known: {', '.join(names) or 'none'}"
