"""Sentences that read a query back in the reader's language: one function a family, in a table.

Texts for translators hold whole clauses with named places for what is put in, so that each language
has its own order of words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.model.feed import Feed
from webapp.queries.sentences.arrival import arrival
from webapp.queries.sentences.calculus import calculus
from webapp.queries.sentences.composite import composite
from webapp.queries.sentences.constraint import constraint
from webapp.queries.sentences.crossing import border, transition
from webapp.queries.sentences.derived import derived
from webapp.queries.sentences.encounter import encounter
from webapp.queries.sentences.motion import motion
from webapp.queries.sentences.occupancy import occupancy
from webapp.queries.sentences.words import Specification

SENTENCES: Mapping[str, Callable[[Specification, Feed], str]] = {
    "border": border,
    "transition": transition,
    "motion": motion,
    "occupancy": occupancy,
    "encounter": encounter,
    "arrival": arrival,
    "constraint": constraint,
    "composite": composite,
    "calculus": calculus,
}
"""Family to the function that writes its sentence; a new family adds its line here."""


def sentence_of(specification: Any, *, feed: Feed) -> str | None:
    """The sentence of a checked specification; null for a family without one."""
    family = specification.get("family") if isinstance(specification, dict) else None
    writer = SENTENCES.get(str(family))
    return None if writer is None else writer(specification, feed) + derived(specification)
