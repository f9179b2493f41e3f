"""Kinds of answers in the reader's language, as the pages name them."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise

from webapp.queries.sentences.arrival import KINDS as ARRIVAL
from webapp.queries.sentences.composite import KINDS as COMPOSITE
from webapp.queries.sentences.constraint import KINDS as CONSTRAINT
from webapp.queries.sentences.crossing import KINDS as CROSSING
from webapp.queries.sentences.encounter import KINDS as ENCOUNTER
from webapp.queries.sentences.motion import KINDS as MOTION
from webapp.queries.sentences.occupancy import KINDS as OCCUPANCY

KINDS: Mapping[str, Promise] = {**CROSSING, **OCCUPANCY, **ENCOUNTER, **ARRIVAL, **MOTION, **CONSTRAINT, **COMPOSITE}
"""Those of all families but the calculus, whose programs name their answers."""


def kind_name(kind: str) -> str:
    """`Stayed in`; what a program names is shown as it is named, with spaces.

    >>> kind_name("illegal_parking")
    'illegal parking'
    """
    return str(KINDS.get(kind, kind.replace("_", " ")))
