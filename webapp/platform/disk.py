"""Recognises errors of a full disk: this machine's, or the database's."""

from __future__ import annotations

import errno

DISK_FULL = "53100"
"""PostgreSQL's SQLSTATE."""


def is_full(error: BaseException) -> bool:
    """Whether `error` was caused by a full disk."""
    state = getattr(error, "pgcode", None) or getattr(error.__cause__, "pgcode", None)
    return state == DISK_FULL or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT))
