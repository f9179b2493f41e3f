"""Limits on the number of objects that belong to another one: of two concurrent requests, the
second one counts the first one's object.

Rows are locked in one order everywhere, so that no two requests wait for each other: the feed, the
user, the team, then the feed's heads and counter (`detections.removal`), then the objects
themselves (regions, queries, alerts).
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
    ends. Other rows can refer to it meanwhile. Raises Http404 when it has been removed."""
    rows: QuerySet[Any] = holder._meta.model._base_manager.select_for_update(of=("self",), no_key=True)
    row: M = get_object_or_404(rows.only("pk", *fields) if fields else rows, pk=holder.pk)
    return row


def room_check(things: QuerySet[Any], most: int, *, of: Model, full: Message, pointer: str = "", more: int = 1) -> None:
    """Raises Refused with `full` when `more` objects would exceed the maximum number that `of` may
    have.

    To be called in the transaction that makes them.
    """
    hold(of, "pk")
    if things.count() + more > most:
        raise refuse(pointer, full)
