"""`audit/`: who did what to which object, when and from where. Superusers see all entries, admins
of teams those about their teams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from webapp.accounts.audit_log import entry_list, reads_entries
from webapp.accounts.authentication import LoggedInWithinScope
from webapp.audit.filters import EntryFilter
from webapp.audit.models import Entry
from webapp.config.pagination import NewestFirst
from webapp.config.tables import download

AT_ONCE = 2_000
"""Rows in memory while an export is written."""


class EntrySerializer(serializers.ModelSerializer[Entry]):
    """One act."""

    class Meta:
        model = Entry
        fields = (
            "id", "at", "actor", "actor_name", "means", "token", "address", "action", "outcome", "status",
            "object_type", "object_id", "object_name", "team", "request", "detail",
        )  # fmt: skip


class ReadsEntries(BasePermission):
    """Superusers, and admins of a team."""

    message = "The audit log is for administrators."

    def has_permission(self, request: Request, view: APIView) -> bool:
        return reads_entries(user=request.user)


class EntryView(GenericViewSet[Entry]):
    """The audit log. Its entries cannot be changed or removed."""

    queryset = Entry.objects.none()
    serializer_class = EntrySerializer
    pagination_class = NewestFirst
    filterset_class = EntryFilter
    permission_classes = (LoggedInWithinScope, ReadsEntries)
    throttle_action: str | None = None

    def get_queryset(self) -> QuerySet[Entry]:
        return entry_list(user=self.request.user)

    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        summary="All entries that match the filters, as JSON lines, newest first",
        filters=True,
        responses={(200, "application/x-ndjson"): OpenApiResponse(str)},
    )
    def export(self, request: Request) -> Any:
        return download("audit.jsonl", "application/x-ndjson", json_lines(self.filter_queryset(self.get_queryset())))


def json_lines(entries: QuerySet[Entry]) -> Iterator[str]:
    """One JSON object a line. Read in pieces, so that no statement takes long."""
    rest = entries.order_by("-id")
    while piece := list(rest[:AT_ONCE]):
        for entry in piece:
            yield json.dumps(EntrySerializer(entry).data, separators=(",", ":")) + "\n"
        rest = entries.order_by("-id").filter(pk__lt=piece[-1].pk)
