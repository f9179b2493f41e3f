"""The heads of the language's rules and declarations, with their numbers of arguments."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

RULE_HEADS: Mapping[str, tuple[int, ...]] = {
    "initiatedAt": (2, 4), "terminatedAt": (2, 4), "initiates": (3,), "terminates": (3,), "happensAt": (2,), "holdsFor": (2, 3), "initially": (1,),
}  # fmt: skip
IGNORED_DECLARATIONS: Mapping[str, tuple[int, ...]] = {
    "index": (2,), "cachingOrder": (1,), "cachingOrder2": (2,), "event": (1,), "simpleFluent": (1,), "sDFluent": (1,), "needsGrounding": (1, 3),
    "cyclic": (1,), "collectGrounds": (2,), "dgrounded": (2,),
}  # fmt: skip
"""RTEC's hints to its own compiler; here the rules imply them."""
DECLARATIONS: Mapping[str, tuple[int, ...]] = {
    "grounding": (1,), "dynamicDomain": (1,), "outputEntity": (1,), "inputEntity": (1,), "points": (1,), "collectIntervals": (1,),
    "buildFromPoints": (1,), "fi": (3,), "maxDuration": (3,), "maxDurationUE": (3,), "p": (1,), "spatial": (2,), **IGNORED_DECLARATIONS,
}  # fmt: skip
HEADS = frozenset([*RULE_HEADS, *DECLARATIONS])
"""The heads of all rules and declarations."""


def is_misspelt(name: str, arity: int) -> bool:
    """Whether the name of unused facts may be a misspelt rule or declaration."""
    heads = {head.lower() for known in (RULE_HEADS, DECLARATIONS) for head, arities in known.items() if arity in arities}
    return bool(difflib.get_close_matches(name.lower(), heads, n=1, cutoff=0.8))
