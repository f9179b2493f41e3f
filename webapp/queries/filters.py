"""Filters of the list of queries."""

from __future__ import annotations

import django_filters

from webapp.queries.models import Query


class QueryFilter(django_filters.FilterSet):  # type: ignore[misc]
    """`?feed=city&family=border&enabled=true&search=garage`."""

    feed = django_filters.CharFilter(field_name="feed__name")
    search = django_filters.CharFilter(field_name="name", lookup_expr="icontains")

    class Meta:
        model = Query
        fields = ("feed", "family", "enabled", "search")
