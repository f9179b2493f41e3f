"""Addresses below /api/v1/."""

from django.urls import path

from webapp.audit.api import EntryView

urlpatterns = [
    path("audit/", EntryView.as_view({"get": "list"}), name="api-audit"),
    path("audit/export", EntryView.as_view({"get": "export"}, throttle_action="export"), name="api-audit-export"),
]
