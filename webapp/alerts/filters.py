"""Filters of the alerts list."""

from __future__ import annotations

import django_filters

from webapp.alerts.models import Alert, AlertState
from webapp.config.boxes import wholes
from webapp.queries.models import Severity


class AlertFilter(django_filters.FilterSet):  # type: ignore[misc]
    """`?feed=city&query=3&state=new&state=acknowledged&severity=high&kind=in&entity=car-1&from=&to=`."""

    feed = django_filters.CharFilter(field_name="feed__name")
    query = django_filters.CharFilter(method="of_queries")
    state = django_filters.MultipleChoiceFilter(choices=AlertState.choices, distinct=False)
    severity = django_filters.MultipleChoiceFilter(choices=Severity.choices, distinct=False)
    kind = django_filters.CharFilter()
    entity = django_filters.CharFilter(method="of_entity")

    class Meta:
        model = Alert
        fields = ("feed", "query", "state", "severity", "kind", "entity")

    def of_queries(self, found: object, name: str, value: str) -> object:
        """Alerts of these queries."""
        return found.filter(query__in=wholes([value], "query"))  # type: ignore[attr-defined]

    def of_entity(self, found: object, name: str, value: str) -> object:
        """Alerts in which the entity takes part."""
        return found.filter(entities__contains=[value])  # type: ignore[attr-defined]
