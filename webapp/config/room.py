"""How many things something may have: of two requests at the same time, the second one counts what
the first one makes.

Rows are held in one order everywhere, so that no two requests wait for each other: the feed, the
user, the team, then the feed's heads and counter (`detections.removal`), then the things themselves
(regions, queries, alerts).
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.shortcuts import get_object_or_404

from engine.model.faults import refuse
from engine.model.messages import Message

M = TypeVar("M", bound=Model)


def hold(holder: M, *fields: str) -> M:
    """The holder as it is now, with these fields (none: all); its row is held until the transaction
    ends. Things can refer to it meanwhile. Raises Http404 when it is gone."""
    rows: QuerySet[Any] = holder._meta.model._base_manager.select_for_update(of=("self",), no_key=True)
    row: M = get_object_or_404(rows.only("pk", *fields) if fields else rows, pk=holder.pk)
    return row


def room_check(things: QuerySet[Any], most: int, *, of: Model, full: Message, pointer: str = "", more: int = 1) -> None:
    """Raises Refused with `full` when there are so many things that `of` may not have `more`.

    To be called in the transaction that makes them.
    """
    hold(of, "pk")
    if things.count() + more > most:
        raise refuse(pointer, full)
