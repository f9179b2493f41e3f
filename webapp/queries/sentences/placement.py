"""Which parts of a query several partitions share, in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext, ngettext

from webapp.config.wording import translated
from webapp.queries.sentences.words import listed

SHOWN = 4
"""Fluents and events that are named; the others are counted."""


def placement(parts: Mapping[str, Any]) -> str | None:
    """The result of `Operator.parts` as text; null for a query without parts.

    >>> parts = {"by_entity": ["pace"], "by_pair": []}
    >>> one = {"in_each_partition": [], "in_one_partition": {"any": "any: it joins"}}
    >>> placement({**parts, **one})
    'Several partitions share its work: pace by entity. any stays in one partition (any: it joins).'
    >>> parts = {"by_entity": [], "by_pair": [], "in_each_partition": []}
    >>> placement({**parts, "in_one_partition": {"a": "b: why", "b": "b: why"}})
    'All of it is in one partition (b: why).'
    """
    if not parts:
        return None
    whole: Mapping[str, str] = parts["in_one_partition"]
    # A reason that several have is given for the first of them.
    reasons = f" ({'; '.join({reason.rpartition(': ')[2]: _translated_reason(reason) for reason in reversed([*whole.values()])}.values())})"
    places = {
        "by_entity": gettext("%(names)s by entity"),
        "by_pair": gettext("%(names)s by pair"),
        "in_each_partition": gettext("%(names)s in each of them"),
    }
    spread = [words % {"names": _some(parts[place])} for place, words in places.items() if parts[place]]
    if not spread:
        return gettext("All of it is in one partition%(reasons)s.") % {"reasons": reasons} if whole else None
    shared = gettext("Several partitions share its work: %(spread)s.") % {"spread": "; ".join(spread)}
    if not whole:
        return shared
    stays = ngettext("%(names)s stays in one partition%(reasons)s.", "%(names)s stay in one partition%(reasons)s.", len(whole))
    return f"{shared} {stays % {'names': _some([*whole]), 'reasons': reasons}}"


def _translated_reason(reason: str) -> str:
    """`name: reason` with the reason in the reader's language."""
    name, colon, why = reason.rpartition(": ")
    return f"{name}{colon}{translated(why)}"


def _some(names: Sequence[str]) -> str:
    more = gettext("%(count)s more") % {"count": len(names) - SHOWN + 1}
    return listed(names if len(names) <= SHOWN else [*names[: SHOWN - 1], more], "and")
