"""Pages of lists: `{"next", "previous", "results"}`."""

from drf_spectacular.utils import OpenApiParameter
from rest_framework.pagination import CursorPagination, PageNumberPagination


class Pages(PageNumberPagination):
    """Numbered pages for the lists that people make: feeds, regions, queries; `?page=2&page_size=100`."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class NewestFirst(CursorPagination):
    """Cursor pages for tables that grow by themselves: a position in the order stays right while rows are added."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000
    ordering = "-id"


CURSOR = [OpenApiParameter("cursor", str), OpenApiParameter("page", exclude=True)]
"""The parameters of an address that makes such pages although its view has others."""
