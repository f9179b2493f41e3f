"""Sentences of the family `calculus`."""

from __future__ import annotations

from engine.model.feed import Feed
from webapp.queries.families import kinds_of
from webapp.queries.sentences.words import Specification, counting, duration, last, listed

SHOWN = 6
"""Outputs named in a sentence; the others are counted."""


def calculus(specification: Specification, feed: Feed) -> str:
    """`Runs a program of rules: recognises greeting and meeting over the last 100 seconds, every 10 seconds.`"""
    outputs = [name.replace("_", " ") for name in kinds_of(specification)]
    named = outputs if len(outputs) <= SHOWN else [*outputs[: SHOWN - 1], f"{len(outputs) - SHOWN + 1} more"]
    found = f"recognises {listed(named, 'and')}" if named else "recognises what it defines"
    window, step = last(specification["window"], feed), duration(specification["step"], feed)
    return f"Runs a program of rules: {found} over the {window}, every {step}.{counting(specification)}"
