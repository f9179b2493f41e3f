"""The order of the desk: keyset pages in any order, and bulk decisions about all matching
alerts in bounded batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from engine.model.messages import Message
from webapp.alerts.models import Alert
from webapp.config.boxes import page_size, whole

PIECE = 1000
"""At most this many alerts per request: about half a second, and three rows of the outbox."""


@dataclass(frozen=True)
class Order:
    """By `column`, ties by id; a partial index of the model gives each without sorting."""

    column: str | None
    descending: bool


ORDERS: Mapping[str, Order] = {
    "newest": Order(None, True),
    "oldest": Order(None, False),
    "severity": Order("rank", True),
    "event": Order("start", True),
    "-event": Order("start", False),
}
ORDER = OpenApiParameter("order", str, enum=list(ORDERS), description="newest, oldest, severity (highest first), event, -event (event time)")


class DeskPages(BasePagination):
    """`?order=severity&page_size=200&cursor=`: the rows after the last row of the previous page,
    however many rows came since."""

    page_size = 100
    max_page_size = 1000

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.address = request.build_absolute_uri()
        order = order_of(request.query_params.get("order"))
        size = page_size(request.query_params.get("page_size"), self.page_size, self.max_page_size)
        after = _cursor(request.query_params.get("cursor"), order)
        rows = list(in_order(queryset, order, after)[: size + 1])
        self.cursor = None if len(rows) <= size else _cursor_of(rows[size - 1], order)
        return rows[:size]

    def get_paginated_response(self, data: Any) -> Response:
        after = None if self.cursor is None else replace_query_param(self.address, "cursor", self.cursor)
        return Response({"next": after, "previous": None, "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "nullable": True, "format": "uri"}
        return {"type": "object", "required": ["results"], "properties": {"next": link, "previous": link, "results": schema}}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}, "description": "Take it from `next`."},
            {"name": "page_size", "in": "query", "required": False, "schema": {"type": "integer", "maximum": self.max_page_size}},
            {"name": "order", "in": "query", "required": False, "schema": {"type": "string", "enum": list(ORDERS)}, "description": ORDER.description},
        ]


def order_of(name: str | None) -> Order:
    """Raises ValidationError for an order that is not known."""
    order = ORDERS.get(name or "newest")
    if order is None:
        raise ValidationError({"order": Message("One of {known}.", known=", ".join(ORDERS))})
    return order


def in_order(alerts: QuerySet[Alert], order: Order, after: Sequence[int] | None = None) -> QuerySet[Alert]:
    """The alerts in this order after the row with these keys."""
    sign, beyond = ("-", "lt") if order.descending else ("", "gt")
    if order.column is None:
        alerts = alerts.order_by(f"{sign}id")
        return alerts if after is None else alerts.filter(**{f"id__{beyond}": after[-1]})
    alerts = alerts.order_by(f"{sign}{order.column}", f"{sign}id")
    if after is None:
        return alerts
    value, pk = after
    # The first condition bounds the index scan, the second excludes ties.
    rest = Q(**{f"{order.column}__{beyond}": value}) | Q(**{f"id__{beyond}": pk})
    return alerts.filter(rest, **{f"{order.column}__{beyond}e": value})


def pieces(alerts: QuerySet[Alert], order: Order, *, size: int, most: int) -> Iterator[list[Alert]]:
    """At most `most` alerts in this order, `size` at a time."""
    after = None
    while piece := list(in_order(alerts, order, after)[: min(size, most)]):
        yield piece
        most -= len(piece)
        after = _keys_of(piece[-1], order)


def piece_of(alerts: QuerySet[Alert], below: int | None) -> list[Alert]:
    """The next batch: the newest alerts below an id. Alerts that arrive meanwhile are
    above it and stay untouched."""
    rest = alerts.order_by("-id") if below is None else alerts.order_by("-id").filter(id__lt=below)
    return list(rest[:PIECE])


def _keys_of(row: Alert, order: Order) -> list[int]:
    return [row.pk] if order.column is None else [getattr(row, order.column), row.pk]


def _cursor_of(row: Alert, order: Order) -> str:
    return ".".join(str(key) for key in _keys_of(row, order))


def _cursor(text: str | None, order: Order) -> list[int] | None:
    if not text:
        return None
    try:
        parts = [whole(part, "cursor") for part in text.split(".")]
    except ValidationError as error:
        raise ValidationError({"cursor": Message("Use `next` of the previous page.")}) from error
    keys = [part for part in parts if part is not None]
    if len(keys) != len(parts) or len(keys) != (1 if order.column is None else 2):
        raise ValidationError({"cursor": Message("Use `next` of the previous page, with the same order.")})
    return keys
