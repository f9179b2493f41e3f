"""`mutes/`."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.alerts import mutes
from webapp.alerts.models import Mute
from webapp.config.related import BoundedListField, ByKey
from webapp.feeds.models import Region
from webapp.feeds.of_feed import FeedNameField
from webapp.queries.models import Query

WINDOW = {"starts_at": "window_from", "until": "window_until"}
"""By the key of the body, the key that it is read with."""


class MuteSerializer(OwnedSerializer):
    """Mutes: which alerts are not delivered, from when until when, by whom and why. Without
    `starts_at` and `until` a new one has the window that it is read with, if it is sent."""

    feed = FeedNameField()
    query = ByKey(queryset=Query.objects.none(), required=False, allow_null=True)
    region = ByKey(queryset=Region.objects.none(), required=False, allow_null=True)
    entities = BoundedListField(child=serializers.CharField(max_length=500), required=False, max_length=2)
    starts_at = serializers.DateTimeField(required=False, write_only=True)
    until = serializers.DateTimeField(required=False, allow_null=True, write_only=True)
    of = serializers.CharField(read_only=True, help_text="What is muted, in words.")
    alerts = serializers.IntegerField(source="alerts.count", read_only=True)

    class Meta:
        model = Mute
        fields = (
            "id", "of", "feed", "query", "region", "entities", "reason", "starts_at", "until", "rule", "zone", "window_from", "window_until",
            "ended_at", "alerts", *OwnedSerializer.OWNED, "created_at",
        )  # fmt: skip
        read_only_fields = ("window_from", "window_until", "ended_at", "created_at")

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        if request := self.context.get("request"):
            fields["query"].queryset = Query.objects.editable_by(request.user).filter(deleted_at=None)
            fields["region"].queryset = Region.objects.visible_to(request.user)
        return fields

    def to_internal_value(self, data: Any) -> Any:
        """The checked values. What was read would otherwise be muted for good."""
        if isinstance(data, dict) and not isinstance(data, QueryDict):
            data = {**{name: data[read] for name, read in WINDOW.items() if read in data}, **data}
        return super().to_internal_value(data)


class MuteView(OwnedView):
    """Mutes, snoozes and maintenance windows."""

    queryset = Mute.objects.all()
    serializer_class = MuteSerializer

    def get_queryset(self) -> QuerySet[Any]:
        return mutes.mute_list(user=self.request.user)

    @extend_schema(
        examples=[
            OpenApiExample(
                "A snooze", {"feed": "city", "entities": ["car-1"], "until": "2026-11-23T14:00Z", "reason": "Our own van"}, request_only=True
            )
        ]
    )
    def create(self, request: Request) -> Response:
        self.check_may_make()
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        region, team = data.pop("region", None), data.pop("team", None)
        mute = mutes.mute_create(owner=person(request), region=region and region.pk, team=team and team.pk, **data)
        return Response(self.represent(mute), status=201)

    @extend_schema(summary="Remove a mute: its alerts are shown again", responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        mutes.mute_lift(mute=self.get_editable())
        return Response(status=204)
