"""Filters of regions and dead letters."""

from __future__ import annotations

from typing import Any

import django_filters

from webapp.config.boxes import box_from
from webapp.feeds.models import DeadLetter, Region
from webapp.feeds.of_feed import FeedNameFilter
from webapp.feeds.selectors import in_box


class RegionFilter(django_filters.FilterSet):  # type: ignore[misc]
    """`?feed=city&tag=garage&search=12&bbox=w,s,e,n`."""

    feed = FeedNameFilter()
    tag = django_filters.CharFilter(method="with_tag")
    search = django_filters.CharFilter(field_name="name", lookup_expr="icontains")
    bbox = django_filters.CharFilter(method="in_bbox")

    class Meta:
        model = Region
        fields = ("feed", "tag", "search", "bbox")

    def with_tag(self, queryset: Any, name: str, value: str) -> Any:
        """Regions that carry the tag."""
        return queryset.filter(tags__contains=[value])

    def in_bbox(self, queryset: Any, name: str, value: str) -> Any:
        """Regions whose bounding box meets the given one."""
        return in_box(queryset, box_from(value))


class DeadLetterFilter(django_filters.FilterSet):  # type: ignore[misc]
    """`?reason=late`."""

    class Meta:
        model = DeadLetter
        fields = ("reason", "source")
