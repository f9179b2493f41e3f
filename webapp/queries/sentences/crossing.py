"""Sentences of the families `border` and `transition`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, distance, duration, listed, ranges, region_name


def border(specification: Specification, feed: Feed) -> str:
    """`Tells when something enters or leaves port A.`"""
    place = place_of(specification)
    moves = ", also between two reports" if specification.get("segments") else ""
    return f"Tells when {who(specification)} {place.enters} or {place.leaves}{moves}.{options(specification, feed)}"


def transition(specification: Specification, feed: Feed) -> str:
    """`Tells when something enters port A and does not leave it within 3 minutes.`"""
    place, within = place_of(specification), duration(specification["within"], feed)
    wanted = specification.get("types") or list(STEPS)
    steps = [step(place, within) for name, step in STEPS.items() if name in wanted]
    return f"Tells when {who(specification)} {listed(steps, 'or')}.{options(specification, feed)}"


def options(specification: Specification, feed: Feed) -> str:
    """What the options change, each in a sentence of its own; empty when all are off."""
    parts = []
    if specification.get("hysteresis"):
        parts.append(f"It has left only when it is more than {distance(specification['hysteresis'], feed)} away")
    if specification.get("accuracy"):
        parts.append(f"Positions are trusted to within {specification['accuracy']}")
    if specification.get("first") == "enter":
        parts.append("What is inside at its first report has entered")
    if specification.get("dwell"):
        parts.append(f"A visit counts only when it lasts for more than {duration(specification['dwell'], feed)}")
    if specification.get("while"):
        parts.append(f"It is inside only while {conditions(specification['while'])}")
    return "".join(f" {text}." for text in parts)


class Place:
    """The words for entering and leaving a region or a box of values."""

    def __init__(self, enters: str, leaves: str, back: str, again: str) -> None:
        self.enters, self.leaves, self.back, self.again = enters, leaves, back, again


STEPS: Mapping[str, Callable[[Place, str], str]] = {
    "passed": lambda place, within: f"{place.enters} and {place.again} within {within}",
    "returned": lambda place, within: f"{place.leaves} and {place.back} within {within}",
    "stayed_in": lambda place, within: f"{place.enters} and stays for more than {within}",
    "stayed_out": lambda place, within: f"{place.leaves} and stays away for more than {within}",
}


def place_of(specification: Specification) -> Place:
    """The place or the values that the query watches."""
    if "region" in specification:
        name = region_name(specification["region"])
        return Place(f"enters {name}", f"leaves {name}", "comes back", "leaves again")
    values = ranges(specification.get("ranges", {}))
    return Place(f"comes to have {values}", f"no longer has {values}", "has it again", "loses it again")


def who(specification: Specification) -> str:
    """`something`, or `something whose speed is above 3`."""
    phrase = conditions(specification.get("where"))
    return f"something whose {phrase}" if phrase else "something"
