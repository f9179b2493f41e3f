"""Sentences of the family `calculus`."""

from __future__ import annotations

from django.utils.translation import gettext

from engine.model.feed import Feed
from webapp.queries.families import kinds_of
from webapp.queries.sentences.words import Specification, counting, last, listed, span_of

SHOWN = 6
"""Outputs named in a sentence; the others are counted."""


def calculus(specification: Specification, feed: Feed) -> str:
    """`Runs a program of rules: recognises greeting and meeting over the last 100
    seconds, every 10 seconds.`"""
    outputs = [name.replace("_", " ") for name in kinds_of(specification)]
    named = outputs if len(outputs) <= SHOWN else [*outputs[: SHOWN - 1], gettext("%(count)s more") % {"count": len(outputs) - SHOWN + 1}]
    text = gettext("Runs a program of rules: recognises %(found)s over the %(last)s, every %(step)s.") % {
        "found": listed(named, "and") or gettext("what it defines"),
        "last": last(specification["window"], feed),
        "step": span_of(specification["step"], feed),
    }
    return text + counting(specification)
