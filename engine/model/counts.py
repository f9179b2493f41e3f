"""Counts in readable form."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """The count with its noun; `many` when the plural is not `one` with an s.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "query", "queries")
    ('1 row', '1,200 rows', '2 queries')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
