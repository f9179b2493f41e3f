"""Options of a border or transition query: when an entity counts as inside
(docs/specification.md, 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.context import Context
from engine.model.conditions import Conditions
from engine.model.feed import ColumnType
from engine.model.messages import Message

KEYS = ("hysteresis", "accuracy", "first", "dwell", "while")
FIRST = ("ignore", "enter")


@dataclass(frozen=True)
class Options:
    """All off by default; true when any is on.

    `hysteresis`: metres (the plane's unit) beyond the region that an entity must go to leave it;
    `accuracy`: column with the radius of the circle in which the fix lies; `enter_first`: being
    inside at the first tuple is an in; `dwell`: how long an entity must stay before its in counts
    (unit of `t`); `holds`: what a tuple must satisfy to be inside.
    """

    hysteresis: float = 0.0
    accuracy: str | None = None
    enter_first: bool = False
    dwell: int = 0
    holds: Conditions = field(default_factory=Conditions)

    def __bool__(self) -> bool:
        return bool(self.hysteresis or self.accuracy or self.enter_first or self.dwell or self.holds)


NO_OPTIONS = Options()


def check_options(document: Mapping[str, Any], context: Context) -> Options:
    """The options of a document; faults are noted in `context`."""
    hysteresis = context.at("hysteresis").number(document.get("hysteresis", 0), least=0)
    accuracy = None
    if document.get("accuracy") is not None:
        accuracy = context.at("accuracy").column(document["accuracy"], kinds=(ColumnType.INT, ColumnType.FLOAT))
    first = context.at("first").choice(document.get("first", "ignore"), FIRST)
    dwell = context.at("dwell").duration(document.get("dwell", 0))
    holds = context.at("while").where(document.get("while", []))
    _refuse_combinations(document, context)
    return Options(float(hysteresis or 0), accuracy, first == "enter", dwell or 0, holds)


def _refuse_combinations(document: Mapping[str, Any], context: Context) -> None:
    if "ranges" in document:
        for key in ("hysteresis", "accuracy"):
            if document.get(key):
                context.at(key).fault(Message("needs a region: ranges have no distances; leave the key out"))
    if document.get("segments") is True:
        reasons = {
            "hysteresis": Message("a move that only passes has no stay that hysteresis could prolong"),
            "accuracy": Message("a move between two fixes has no accuracy of its own"),
            "dwell": Message("a move that only passes has no sample inside, so it never dwells"),
            "while": Message("a move that only passes has no sample inside at which a condition could hold"),
        }
        for key, reason in reasons.items():
            if document.get(key):
                context.at(key).fault(Message("cannot go with 'segments': {reason}; leave one of the two out", reason=reason))
