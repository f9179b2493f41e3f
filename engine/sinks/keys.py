"""The natural key of a stored fact: computed again from the same input, a fact finds its own
row."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from engine.families import ENDS_LATER, REVISED
from engine.sinks.texts import number_or_null, numbers, quoted, text_or_null, texts

KEY_BYTES = 16


def natural_key(
    query: str, version: int, kind: str, entities: Sequence[str], value: str | None, start: int, end: int | None, evidence: Sequence[int] | None
) -> bytes:
    """16 bytes that identify a fact on its feed.

    A fact made of events (`evidence`: their positions in the log) is identified by them, and by its
    end where that never comes later; an interval of interval algebra (`evidence` None) by its
    start, so that closing or revising it updates the same row. The evidence of REVISED ones is
    revised too: it does not identify the interval.

    >>> (
    ...     natural_key("7", 1, "near", ["a"], None, 5, None, None)
    ...     == natural_key("7", 1, "near", ["a"], None, 5, 9, None)
    ... )
    True
    >>> (
    ...     natural_key("7", 1, "match", ["a"], None, 5, None, [1])
    ...     == natural_key("7", 1, "match", ["a"], None, 5, 9, [1])
    ... )
    True
    >>> (
    ...     natural_key("7", 1, "met", ["a", "b"], None, 5, None, [1, 2])
    ...     == natural_key("7", 1, "met", ["a", "b"], None, 5, 9, [3, 4])
    ... )
    True
    >>> (
    ...     natural_key("7", 1, "in", ["a"], None, 5, 5, [1, 2])
    ...     == natural_key("7", 1, "in", ["a"], None, 5, 5, [1, 3])
    ... )
    False
    """
    text = f"{quoted(query)},{version},{quoted(kind)},{texts(entities)},{text_or_null(value)},{start}"
    if evidence is not None and kind not in REVISED:
        text = f"{text},{number_or_null(None if may_be_revised(kind, True) else end)},{numbers(evidence)}"
    return blake2b(f"[{text}]".encode(), digest_size=KEY_BYTES).digest()


def may_be_revised(kind: str, has_evidence: bool) -> bool:
    """Whether a fact may be an interval, whose end is asserted later."""
    return not has_evidence or kind in ENDS_LATER or kind in REVISED
