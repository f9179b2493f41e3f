"""Faults of a document, and where they are."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from engine.model.messages import Message, listed, message_from_json

MOST_FAULTS = 500
"""The maximum number of faults of one document: users do not read more, and a document of
megabytes could have a million."""
SHOWN_CHARACTERS = 100
"""Of an unknown name."""
LISTED_NAMES = 30
"""Of more known names only the nearest are shown."""
NEAREST = 3


@dataclass(frozen=True)
class Fault:
    """One fault: a JSON pointer (RFC 6901, "" is the whole document) and a
    sentence that names the remedy."""

    pointer: str
    message: Message

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"

    def below(self, pointer: str) -> Fault:
        """The same fault for a document at `pointer` in another one."""
        return Fault(pointer + self.pointer, self.message)

    def to_json(self) -> list[Any]:
        """The form that `fault_from_json` reads."""
        return [self.pointer, self.message.to_json()]


def fault_from_json(written: Any) -> Fault:
    """The fault that `to_json` wrote, in a child process perhaps. Raises
    ValueError for anything else."""
    pointer, message = written
    return Fault(str(pointer), message_from_json(message))


def in_row(row: int, fault: Fault) -> Fault:
    """A fault of a row of a file, which its message names."""
    return Fault(fault.pointer, Message("Row {row}: {fault}", row=row, fault=fault.message))


class Refused(ValueError):
    """A feed, region or specification that cannot be accepted; `faults` is never empty."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(str(fault) for fault in self.faults))


def refuse(pointer: str, message: Message) -> Refused:
    """The exception for a single fault, to be raised by the caller."""
    return Refused([Fault(pointer, message)])


class Faults(list[Fault]):
    """Collects faults. Raises Refused with those collected when there are MOST_FAULTS."""

    def note(self, pointer: str, message: Message) -> None:
        """Adds a fault."""
        self.append(Fault(pointer, message))
        if len(self) >= MOST_FAULTS:
            raise Refused(self)


def unknown_among(names: Iterable[str], known: Container[str]) -> list[str]:
    """The names that are not known, MOST_FAULTS of them at most."""
    return list(islice((name for name in names if name not in known), MOST_FAULTS))


def unknown_name(name: object, known: Iterable[str], *, what: Message) -> Message:
    """A sentence for an undeclared name: the nearest known one, then all of them; of many the
    nearest few, and how many there are.

    >>> unknown_name("widht", ["width", "height"], what=Message("column"))
    "unknown column 'widht'; did you mean 'width'? Known: height, width"
    >>> gates = [f"gate {number:03}" for number in range(400)]
    >>> unknown_name("gate12", gates, what=Message("region"))
    "unknown region 'gate12'; did you mean one of 'gate 312', 'gate 212', 'gate 192'? 400 are known"
    """
    names = sorted(known)
    shown = repr(name[:SHOWN_CHARACTERS] + "..." if isinstance(name, str) and len(name) > SHOWN_CHARACTERS else name)
    nearest = difflib.get_close_matches(str(name)[: 2 * SHOWN_CHARACTERS], names, n=NEAREST)
    if len(names) > LISTED_NAMES:
        return _unknown_among_many(shown, names, nearest, what)
    if nearest:
        near = repr(nearest[0])
        return Message("unknown {what} {name}; did you mean {nearest}? Known: {known}", what=what, name=shown, nearest=near, known=listed(names))
    return Message("unknown {what} {name}. Known: {known}", what=what, name=shown, known=listed(names))


def _unknown_among_many(shown: str, names: Sequence[str], nearest: Sequence[str], what: Message) -> Message:
    count = len(names)
    if nearest:
        near = ", ".join(map(repr, nearest))
        return Message("unknown {what} {name}; did you mean one of {nearest}? {count:,} are known", what=what, name=shown, nearest=near, count=count)
    some = ", ".join(names[:NEAREST])
    return Message("unknown {what} {name}. {count:,} are known, such as {known}", what=what, name=shown, count=count, known=some)
