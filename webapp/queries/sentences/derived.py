"""What stands at a sentence's end for answers of other queries that are events of a query."""

from __future__ import annotations

from webapp.queries.sentences.words import Specification, listed


def derived(specification: Specification) -> str:
    """` An event arrival is each answer in of Port: arrivals, at its end.`; empty for a query that derives from no other."""
    sources = specification.get("derive") or {}
    phrases = [f"{event} is each answer {one['kind'].replace('_', ' ')} of {one['query']}, at its {one['at']}" for event, one in sources.items()]
    return f" An event {listed(phrases, 'and')}." if phrases else ""
