"""Sentences of the family `encounter`."""

from __future__ import annotations

from typing import Any

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, counting, distance, duration, region_name


def encounter(specification: Specification, feed: Feed) -> str:
    """`Tells while something whose kind is tug and something whose kind is cargo are within 300 m of each other.`"""
    first, second = (_who(specification.get(role)) for role in "ab")
    pair = f"two whose {first}" if first and first == second else f"{_one(first)} and {_one(second)}" if first != second else "any two"
    place = f" in {region_name(specification['inside'])}" if specification.get("inside") else ""
    lasting = f" for {duration(specification['lasting'], feed)} or longer" if specification.get("lasting") else ""
    between = ", also on the way between two reports" if specification.get("position") == "interpolated" else ""
    return (
        f"Tells while {pair} are within {distance(specification['distance'], feed)} of each other{place}{lasting}. It looks every "
        f"{duration(specification['every'], feed)}{between}; a report counts for {duration(specification['gap'], feed)}.{counting(specification)}"
    )


def _who(role: Any) -> str:
    return conditions((role or {}).get("where"))


def _one(phrase: str) -> str:
    return f"something whose {phrase}" if phrase else "something"
