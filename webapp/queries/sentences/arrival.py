"""Sentences of the family `arrival`."""

from __future__ import annotations

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, duration, region_name


def arrival(specification: Specification, feed: Feed) -> str:
    """`Tells while something is on its way into port A: it would be inside within 10 minutes.`"""
    which = conditions(specification.get("where"))
    who = f"something whose {which}" if which else "something"
    within, over, gap = (duration(specification[key], feed) for key in ("within", "over", "gap"))
    return (
        f"Tells while {who} is on its way into {region_name(specification['region'])}: it would be inside within {within}, if it went straight on "
        f"as it did over the last {over}. A report counts for {gap}."
    )
