"""`alert-views/`."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.alerts.models import SavedView
from webapp.config.room import room_check

VIEWS = 200
"""Of one owner."""


class SavedViewSerializer(OwnedSerializer):
    """A named set of filters."""

    class Meta:
        model = SavedView
        fields = ("id", "name", "parameters", *OwnedSerializer.OWNED, "created_at")
        read_only_fields = ("created_at",)


class SavedViewView(OwnedView):
    """Named sets of filters of the desk: the user's own, and shared ones."""

    queryset = SavedView.objects.all()
    serializer_class = SavedViewSerializer

    def get_queryset(self) -> QuerySet[Any]:
        return SavedView.objects.visible_to(self.request.user).with_editable(self.request.user).select_related("owner", "team")

    def create(self, request: Request) -> Response:
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        owner = person(request)
        full = Message("You have {most} saved views, the maximum for one user: remove one first.", most=VIEWS)
        with transaction.atomic():
            room_check(SavedView.objects.filter(owner=owner), VIEWS, of=owner, full=full)
            view = serializer.save(owner=owner)
        return Response(self.represent(view), status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        serializer = self.get_serializer(self.get_editable(), data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        return Response(self.represent(serializer.save()))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        self.get_editable().delete()
        return Response(status=204)
