"""Filters of the list of queries."""

from __future__ import annotations

import django_filters
from django.db.models import QuerySet

from webapp.feeds.of_feed import FeedNameFilter
from webapp.queries.models import Query


class NumbersFilter(django_filters.BaseInFilter, django_filters.NumberFilter):  # type: ignore[misc]
    """Numbers with commas between them."""


class QueryFilter(django_filters.FilterSet):  # type: ignore[misc]
    """`?id=3,7&feed=city&family=border&enabled=true&folder=Harbour/Night`
    `&tag=weekly&mine=true&search=garage`."""

    id = NumbersFilter(field_name="id", lookup_expr="in", help_text="Those of these numbers that there are.")
    feed = FeedNameFilter()
    folder = django_filters.CharFilter(help_text="The folder itself; not those below it.")
    tag = django_filters.CharFilter(method="with_tag")
    mine = django_filters.BooleanFilter(method="owned")
    search = django_filters.CharFilter(field_name="name", lookup_expr="icontains")

    class Meta:
        model = Query
        fields = ("id", "feed", "family", "enabled", "folder", "tag", "mine", "search")

    def with_tag(self, queryset: QuerySet[Query], name: str, value: str) -> QuerySet[Query]:
        return queryset.filter(tags__contains=[value])

    def owned(self, queryset: QuerySet[Query], name: str, value: bool) -> QuerySet[Query]:
        """Those that the user owns, or those that others own."""
        return queryset.filter(owner=self.request.user) if value else queryset.exclude(owner=self.request.user)
