"""Sentences of the family `occupancy`."""

from __future__ import annotations

from django.utils.translation import gettext, gettext_lazy, pgettext

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, duration, lasting, ranges, region_name

KINDS = {"occupied": gettext_lazy("Number reached")}


def occupancy(specification: Specification, feed: Feed) -> str:
    """`Reports while at least 5 are in the anchorage for 10 minutes or longer.`"""
    op, n = specification["count"]
    is_none = op == "<=" and n == 0
    at_least, at_most = gettext("at least %(count)s"), gettext("at most %(count)s")
    values = {
        "who": gettext("nothing") if is_none else (at_least if op == ">=" else at_most) % {"count": n},
        "conditions": conditions(specification.get("where")),
        "are": pgettext("one thing", "is") if n == 1 or is_none else pgettext("several things", "are"),
        "where": _place(specification, feed),
        "lasting": lasting(specification, feed),
    }
    if values["conditions"]:
        text = gettext("Reports while %(who)s whose %(conditions)s %(are)s %(where)s%(lasting)s.") % values
    else:
        text = gettext("Reports while %(who)s %(are)s %(where)s%(lasting)s.") % values
    if specification.get("stale") is None:
        return text
    return text + gettext(" A report counts for %(gap)s.") % {"gap": duration(specification["stale"], feed)}


def _place(specification: Specification, feed: Feed) -> str:
    if "region" in specification:
        return gettext("in %(region)s") % {"region": region_name(specification["region"], feed)}
    return gettext("at %(values)s") % {"values": ranges(specification.get("ranges", {}))}
