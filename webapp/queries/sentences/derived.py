"""The end of a sentence about events that are answers of other queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext

from webapp.queries.sentences.kinds import kind_name
from webapp.queries.sentences.words import Specification, listed


def derived(specification: Specification) -> str:
    """` An event arrival is each answer “Entered” of Port: arrivals, at its end.`; empty for a
    query that derives from no other."""
    sources = specification.get("derive") or {}
    phrases = [_source(event, one) for event, one in sources.items()]
    return gettext(" An event %(events)s.") % {"events": listed(phrases, "and")} if phrases else ""


def _source(event: str, one: Mapping[str, Any]) -> str:
    values = {"event": event, "kind": kind_name(one["kind"]), "query": one["query"]}
    if one["at"] == "start":
        return gettext("%(event)s is each answer “%(kind)s” of %(query)s, at its start") % values
    return gettext("%(event)s is each answer “%(kind)s” of %(query)s, at its end") % values
