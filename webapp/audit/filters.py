"""Filters of the audit log."""

from __future__ import annotations

import django_filters
from django import forms

from webapp.audit.models import Entry, Outcome


class AddressFilter(django_filters.Filter):  # type: ignore[misc]
    """An IP address; anything else is refused before PostgreSQL sees it."""

    field_class = forms.GenericIPAddressField


class EntryFilter(django_filters.FilterSet):  # type: ignore[misc]
    """`?actor=ann&action=query.change&object_type=query&object_id=3`
    `&outcome=refused&address=192.0.2.1&from=2026-01-01T00:00Z&to=`."""

    actor = django_filters.CharFilter(field_name="actor_name", lookup_expr="startswith", help_text="Name of the user, or how it begins.")
    action = django_filters.CharFilter(lookup_expr="startswith", help_text="All of it or how it begins: `query.` is everything done to queries.")
    object_type = django_filters.CharFilter()
    object_id = django_filters.CharFilter()
    outcome = django_filters.MultipleChoiceFilter(choices=Outcome.choices, distinct=False)
    address = AddressFilter()

    class Meta:
        model = Entry
        fields = ("actor", "action", "object_type", "object_id", "outcome", "address")


# `from` is a keyword of Python.
EntryFilter.base_filters["from"] = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
EntryFilter.base_filters["to"] = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")
