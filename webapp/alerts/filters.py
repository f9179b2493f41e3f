"""Filters of the alerts list."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import F, Func, Q, QuerySet, TextField, Value

from webapp.alerts.models import Alert, AlertState, Feedback, Verdict
from webapp.config.boxes import integers, whole
from webapp.feeds.of_feed import FeedNameFilter
from webapp.queries.models import Severity

LONGEST_SEARCH = 200
ME = "me"
NOBODY = "nobody"


class AlertFilter(django_filters.FilterSet):  # type: ignore[misc]
    """`?search=&feed=city&query=3&region=5&state=new&state=seen&severity=high&kind=in`
    `&entity=car-1&assignee=me&over=true&from=&to=&opened_from=&opened_to=`."""

    search = django_filters.CharFilter(
        method="of_words", max_length=LONGEST_SEARCH, help_text="Words, each in the query's name, the kind or an entity."
    )
    feed = FeedNameFilter()
    query = django_filters.CharFilter(method="of_queries")
    region = django_filters.CharFilter(method="of_regions", help_text="Ids of stored regions that the query names.")
    state = django_filters.MultipleChoiceFilter(choices=AlertState.choices, distinct=False)
    severity = django_filters.MultipleChoiceFilter(choices=Severity.choices, distinct=False)
    kind = django_filters.CharFilter()
    entity = django_filters.CharFilter(method="of_entity")
    assignee = django_filters.CharFilter(method="of_assignee", help_text="A user's name, `me` or `nobody`.")
    over = django_filters.BooleanFilter(field_name="over_at", lookup_expr="isnull", exclude=True, help_text="The answer behind it has ended.")
    muted = django_filters.BooleanFilter(field_name="mute", lookup_expr="isnull", exclude=True)
    verdict = django_filters.MultipleChoiceFilter(method="of_verdicts", choices=Verdict.choices)
    opened_from = django_filters.IsoDateTimeFilter(field_name="opened_at", lookup_expr="gte")
    opened_to = django_filters.IsoDateTimeFilter(field_name="opened_at", lookup_expr="lt")

    class Meta:
        model = Alert
        fields = (
            "search",
            "feed",
            "query",
            "region",
            "state",
            "severity",
            "kind",
            "entity",
            "assignee",
            "over",
            "muted",
            "verdict",
            "opened_from",
            "opened_to",
        )

    def of_words(self, queryset: QuerySet[Alert], name: str, value: str) -> QuerySet[Alert]:
        """Alerts that match all of the words."""
        joined = Func(F("entities"), Value(" "), function="array_to_string", output_field=TextField())
        queryset = queryset.alias(entity_text=joined)
        for word in value.split():
            queryset = queryset.filter(Q(query__name__icontains=word) | Q(entity_text__icontains=word) | Q(kind__icontains=word))
        return queryset

    def of_queries(self, queryset: QuerySet[Alert], name: str, value: str) -> QuerySet[Alert]:
        """Alerts of these queries."""
        return queryset.filter(query__in=integers([value], "query"))

    def of_regions(self, queryset: QuerySet[Alert], name: str, value: str) -> QuerySet[Alert]:
        """Alerts of queries that use one of these regions."""
        from webapp.queries.models import Query

        return queryset.filter(query__in=Query.objects.filter(regions__in=integers([value], "region")).values("pk"))

    def of_entity(self, queryset: QuerySet[Alert], name: str, value: str) -> QuerySet[Alert]:
        """Alerts in which the entity takes part."""
        return queryset.filter(entities__contains=[value])

    def of_verdicts(self, queryset: QuerySet[Alert], name: str, value: list[str]) -> QuerySet[Alert]:
        """Alerts with one of these verdicts on their answer."""
        return queryset.filter(pk__in=Feedback.objects.filter(verdict__in=value).values("alert"))

    def of_assignee(self, queryset: QuerySet[Alert], name: str, value: str) -> QuerySet[Alert]:
        """Alerts that are assigned to this person."""
        if value == NOBODY:
            return queryset.filter(assignee=None)
        user: Any = self.request.user
        return queryset.filter(assignee=user) if value == ME else queryset.filter(assignee__username=value)

    def from_t(self, queryset: QuerySet[Alert], name: str, value: str) -> QuerySet[Alert]:
        """Alerts that begin at this time or later: event time, in the unit of the alert's feed."""
        return queryset.filter(start__gte=whole(value, "from"))

    def to_t(self, queryset: QuerySet[Alert], name: str, value: str) -> QuerySet[Alert]:
        """Alerts that begin before that."""
        return queryset.filter(start__lt=whole(value, "to"))


# `from` is a keyword of Python.
AlertFilter.base_filters["from"] = django_filters.CharFilter(method="from_t", help_text="Event time: the alert begins then or later.")
AlertFilter.base_filters["to"] = django_filters.CharFilter(method="to_t", help_text="Event time: it begins before that.")
