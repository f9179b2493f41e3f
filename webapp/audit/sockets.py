"""Sockets that are refused, and feeds that are refused to a socket."""

from __future__ import annotations

from typing import Any

from webapp.audit.limits import RefusalLimit
from webapp.audit.models import Outcome
from webapp.audit.origin import of_socket
from webapp.audit.services import entry_write_or_log

_limit = RefusalLimit()


def socket_refused(scope: dict[str, Any], *, status: int, feed: str = "") -> None:
    """Records it with the status that an HTTP request would have got. `feed`: the requested one,
    whether it exists or not."""
    who = of_socket(scope)
    unrecorded = _limit.passed(who["actor"], who["address"])
    if unrecorded is None:
        return
    action, kind = ("feed.subscribe", "feed") if feed else ("socket.open", "socket")
    what = {"action": action, "object_type": kind, "object_id": feed[:100]}
    detail = {"unrecorded": unrecorded} if unrecorded else {}
    entry_write_or_log(outcome=Outcome.REFUSED, status=status, detail=detail, **who, **what)
