"""Pages of lists: `{"next", "previous", "results"}`."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination, PageNumberPagination

from engine.model.messages import Message
from webapp.config.boxes import page_size, whole


class _Size:
    page_size: Any = 100
    page_size_query_param: Any = "page_size"
    max_page_size: Any = 1000

    def get_page_size(self, request: Any) -> int:
        """Raises ValidationError."""
        return page_size(request.query_params.get("page_size"), self.page_size, self.max_page_size)


class Pages(_Size, PageNumberPagination):
    """Numbered pages for lists of objects that users make: feeds, regions, queries;
    `?page=2&page_size=100`."""


class NewestFirst(_Size, CursorPagination):
    """Cursor pages for tables that grow continuously: a position in the order stays right while
    rows are added."""

    ordering = "-id"

    def decode_cursor(self, request: Any) -> Any:
        """The place in the order. Raises ValidationError for an impossible id."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                whole(str(cursor.position), "cursor")
            except ValidationError as error:
                raise ValidationError({"cursor": Message("Use `next` of the previous page.")}) from error
        return cursor


CURSOR = [OpenApiParameter("cursor", str), OpenApiParameter("page_size", int)]
"""The parameters of an address that makes such pages although its view has others."""


def newest_first(row: type[serializers.Serializer[Any]]) -> Any:
    """What such an address answers."""
    name = f"{row.__name__.removesuffix('Serializer')}Page"
    return inline_serializer(
        name, {"next": serializers.URLField(allow_null=True), "previous": serializers.URLField(allow_null=True), "results": row(many=True)}
    )
