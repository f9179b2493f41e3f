"""Reading JSON documents completely: every fault is noted with its JSON pointer, none stops the reading."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from engine.model.faults import Fault, Refused, unknown_name

_MISSING = object()


class Faults(list[Fault]):
    """The faults found so far."""

    def add(self, pointer: str, message: str) -> None:
        self.append(Fault(pointer, message))

    def raise_if_any(self) -> None:
        if self:
            raise Refused(self)


class Node:
    """One value of a document and its place. Readers give None (or the default) after noting what is wrong."""

    def __init__(self, value: Any, pointer: str, faults: Faults) -> None:
        self.value, self.pointer, self.faults = value, pointer, faults

    @property
    def present(self) -> bool:
        return self.value is not _MISSING

    @property
    def null(self) -> bool:
        return self.value is None

    def fault(self, message: str) -> None:
        self.faults.add(self.pointer, message)

    def get(self, key: str) -> Node:
        """The member `key`, present or not; only after `expect_object`."""
        return Node(self.value.get(key, _MISSING), f"{self.pointer}/{_escape(key)}", self.faults)

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def expect_object(self, known: Iterable[str]) -> bool:
        """Whether this is an object; its unknown keys are noted."""
        if not isinstance(self.value, dict):
            self.fault(f"must be an object, not {_name(self.value)}" if self.present else "is missing: an object is needed")
            return False
        names = list(known)
        for key in self.value:
            if key not in names:
                self.faults.add(f"{self.pointer}/{_escape(str(key))}", unknown_name(key, names, what="key"))
        return True

    def members(self) -> Iterator[tuple[str, Node]]:
        """Name and node of each member of an object with free keys."""
        if not isinstance(self.value, dict):
            self.fault(f"must be an object, not {_name(self.value)}" if self.present else "is missing: an object is needed")
            return
        for key in self.value:
            yield str(key), self.get(key)

    def items(self, *, least: int = 0, most: int | None = None, what: str = "items") -> list[Node]:
        """The nodes of a list; empty when it is none."""
        if not isinstance(self.value, (list, tuple)):
            self.fault(f"must be a list of {what}, not {_name(self.value)}" if self.present else f"is missing: a list of {what} is needed")
            return []
        if len(self.value) < least or (most is not None and len(self.value) > most):
            wanted = f"exactly {least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            self.fault(f"must have {wanted} {what}, not {len(self.value)}")
        return [Node(value, f"{self.pointer}/{n}", self.faults) for n, value in enumerate(self.value)]

    def text(self, *, required: bool = False, default: str | None = None) -> str | None:
        if self._absent(required):
            return default
        if not isinstance(self.value, str) or not self.value:
            return self._wrong("a non-empty string")
        return self.value

    def choice(self, known: Sequence[str], *, required: bool = False, default: str | None = None) -> str | None:
        if self._absent(required):
            return default
        if self.value not in known or not isinstance(self.value, str):
            self.fault(unknown_name(self.value, known, what="value"))
            return None
        return self.value

    def boolean(self, *, default: bool) -> bool | None:
        if self._absent(False):
            return default
        if not isinstance(self.value, bool):
            return self._wrong("true or false")
        return self.value

    def integer(self, *, required: bool = False, default: int | None = None, least: int | None = None, most: int | None = None) -> int | None:
        if self._absent(required):
            return default
        value = self.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return self._wrong("an integer")
        return self._bounded(value, least, most)

    def number(self, *, required: bool = False, default: float | None = None, check: Callable[[float], str | None] | None = None) -> float | None:
        """A finite number as float; `check` gives what is wrong with it."""
        if self._absent(required):
            return default
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            return self._wrong("a number")
        try:
            value = float(self.value)
        except OverflowError:
            return self._wrong("a number that a double can hold")
        if not math.isfinite(value):
            return self._wrong("a finite number")
        wrong = check(value) if check else None
        if wrong:
            self.fault(wrong)
            return None
        return value

    def _absent(self, required: bool) -> bool:
        if self.present:
            return False
        if required:
            self.fault("is missing")
        return True

    def _wrong(self, wanted: str) -> None:
        self.fault(f"must be {wanted}, not {_name(self.value)}")
        return None

    def _bounded(self, value: int, least: int | None, most: int | None) -> int | None:
        if least is not None and value < least:
            self.fault(f"must be at least {least}, not {value}")
            return None
        if most is not None and value > most:
            self.fault(f"must be at most {most}, not {value}")
            return None
        return value


def _escape(key: str) -> str:
    """A key as a token of a JSON pointer (RFC 6901, 3)."""
    return key.replace("~", "~0").replace("/", "~1")


def _name(value: Any) -> str:
    """A value as a reader would call it, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
