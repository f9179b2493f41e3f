"""Sentences of the family `arrival`."""

from __future__ import annotations

from django.utils.translation import gettext, gettext_lazy

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, duration, region_name, something, span_of

KINDS = {"arriving": gettext_lazy("On its way in")}


def arrival(specification: Specification, feed: Feed) -> str:
    """`Reports while something is on its way into port A: it would be inside within 10 minutes.`"""
    return gettext(
        "Reports while %(who)s is on its way into %(region)s: it would be inside within %(within)s, if it went straight on as it did over the last "
        "%(over)s. A report counts for %(gap)s."
    ) % {
        "who": something(specification.get("where")),
        "region": region_name(specification["region"], feed),
        "within": span_of(specification["within"], feed),
        "over": duration(specification["over"], feed),
        "gap": duration(specification["gap"], feed),
    }
