"""`alerts/` and `channels/`."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.alerts import deliveries, services
from webapp.alerts.evidence import evidence_of
from webapp.alerts.filters import AlertFilter
from webapp.alerts.models import Alert, AlertComment, Channel, Delivery
from webapp.alerts.selectors import alert_list, alert_summary, channel_list, deliveries_of, delivery_list
from webapp.alerts.webhooks import RefusedAddress, check_url
from webapp.config.pagination import CURSOR, NewestFirst
from webapp.queries.models import Query
from webapp.queries.selectors import behind

COMMENT_LENGTH = 4000


@extend_schema_field(serializers.CharField())
class HexField(serializers.Field[Any, Any, str, Any]):
    """Bytes as hexadecimal digits."""

    def to_representation(self, value: Any) -> str:
        return bytes(value).hex()


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """One alert in a list."""

    feed = serializers.CharField(source="feed.name")
    query = serializers.IntegerField(source="query_id")
    query_name = serializers.CharField(source="query.name")
    detection = HexField(source="detection_key")
    acknowledged_by = serializers.CharField(source="acknowledged_by.username", default=None)
    resolved_by = serializers.CharField(source="resolved_by.username", default=None)
    comments = serializers.IntegerField(source="comment_count")
    editable = serializers.BooleanField()

    class Meta:
        model = Alert
        fields = (
            "id", "feed", "query", "query_name", "kind", "entities", "value", "start", "end", "severity", "state", "opened_at", "detection",
            "acknowledged_by", "acknowledged_at", "resolved_by", "resolved_at", "resolution", "comments", "editable",
        )  # fmt: skip


class CommentSerializer(serializers.ModelSerializer[AlertComment]):
    """What somebody said."""

    author = serializers.CharField(source="author.username", default=None, read_only=True)

    class Meta:
        model = AlertComment
        fields = ("id", "author", "text", "at")
        read_only_fields = ("at",)


class DecisionSerializer(serializers.Serializer[Any]):
    """A comment that goes with a decision."""

    comment = serializers.CharField(required=False, allow_blank=True, max_length=COMMENT_LENGTH, default="")


class BulkSerializer(DecisionSerializer):
    """One decision about many alerts."""

    ids = serializers.ListField(child=serializers.IntegerField(), allow_empty=False, max_length=1000)
    action = serializers.ChoiceField(["acknowledge", "resolve"])


ACTIONS = {"acknowledge": services.alerts_acknowledge, "resolve": services.alerts_resolve}
CHANGED = inline_serializer("ChangedAlerts", {"changed": serializers.ListField(child=serializers.IntegerField())})
SEVERITY_COUNTS = inline_serializer("SeverityCounts", {name: serializers.IntegerField() for name in ("info", "low", "high", "critical")})


class AlertView(GenericViewSet[Alert]):
    """Alerts of the queries that you may see; who may change the query may handle its alerts."""

    queryset = Alert.objects.none()
    serializer_class = AlertSerializer
    filterset_class = AlertFilter
    pagination_class = NewestFirst

    def get_queryset(self) -> QuerySet[Alert]:
        return alert_list(user=self.request.user)

    def get_editable(self) -> Alert:
        """The alert of the address. Raises PermissionDenied when it is visible but not the user's to handle."""
        alert = self.get_object()
        if not getattr(alert, "editable", False):
            raise PermissionDenied("You may see this alert but not handle it.")
        return alert

    @extend_schema(summary="List alerts, newest first")
    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(summary="One alert with its evidence, comments and deliveries")
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self._detail(self.get_object()))

    @extend_schema(summary="Take an alert on: new -> acknowledged", request=DecisionSerializer)
    def acknowledge(self, request: Request, pk: int) -> Response:
        return self._decide("acknowledge")

    @extend_schema(summary="Be done with an alert: -> resolved", request=DecisionSerializer)
    def resolve(self, request: Request, pk: int) -> Response:
        return self._decide("resolve")

    @extend_schema(summary="Say something about an alert", request=CommentSerializer, responses={201: CommentSerializer})
    def comment(self, request: Request, pk: int) -> Response:
        alert = self.get_editable()
        serializer = CommentSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        comment = services.alert_comment(alert=alert, user=person(request), text=serializer.validated_data["text"])
        return Response(CommentSerializer(comment).data, status=201)

    @extend_schema(
        summary="One decision about many alerts",
        request=BulkSerializer,
        responses=CHANGED,
        examples=[OpenApiExample("Acknowledge two", {"ids": [11, 12], "action": "acknowledge", "comment": "On it."}, request_only=True)],
    )
    def bulk(self, request: Request) -> Response:
        serializer = BulkSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given = serializer.validated_data
        alerts = [alert for alert in self.get_queryset().filter(pk__in=given["ids"]) if getattr(alert, "editable", False)]
        return Response({"changed": ACTIONS[given["action"]](alerts=alerts, user=person(request), comment=given["comment"])})

    @extend_schema(
        summary="How many alerts wait, by severity",
        responses=inline_serializer("AlertSummary", {"new": SEVERITY_COUNTS, "acknowledged": SEVERITY_COUNTS}),
    )
    def summary(self, request: Request) -> Response:
        return Response(alert_summary(user=person(request)))

    def _decide(self, action: str) -> Response:
        alert = self.get_editable()
        serializer = DecisionSerializer(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        ACTIONS[action](alerts=[alert], user=person(self.request), comment=serializer.validated_data["comment"])
        return Response(self._detail(self.get_object()))

    def _detail(self, alert: Alert) -> dict[str, Any]:
        sentence, regions = behind(alert.query, alert.query_version)
        return {
            **self.get_serializer(alert).data,
            "version": alert.query_version,
            "comments": CommentSerializer(alert.comments.select_related("author"), many=True).data,
            "sentence": sentence,
            "shapes": regions,
            "evidence": evidence_of(alert),
            "deliveries": deliveries_of(alert, user=person(self.request)),
        }


class ChannelSerializer(OwnedSerializer):
    """A webhook without its secret."""

    queries = serializers.PrimaryKeyRelatedField(many=True, required=False, queryset=Query.objects.none())
    last_sent_at = serializers.DateTimeField(read_only=True)
    waiting = serializers.IntegerField(read_only=True)

    class Meta:
        model = Channel
        fields = (
            "id", "name", "url", "enabled", "disabled_reason", "min_severity", "per_minute", "all_queries", "queries", "failures", "last_sent_at",
            "waiting", *OwnedSerializer.OWNED, "created_at",
        )  # fmt: skip
        read_only_fields = ("disabled_reason", "failures", "created_at")
        extra_kwargs: ClassVar[dict[str, Any]] = {"per_minute": {"min_value": 1, "max_value": 600}}

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if request := self.context.get("request"):
            queries: Any = fields["queries"]
            queries.child_relation.queryset = Query.objects.visible_to(request.user).filter(deleted_at=None)
        return fields

    def validate_url(self, url: str) -> str:
        try:
            check_url(url)
        except RefusedAddress as error:
            raise serializers.ValidationError(str(error)) from error
        return url


class NewChannelSerializer(ChannelSerializer):
    """A channel with its signing secret: shown when it is made or rotated, never again."""

    secret = serializers.CharField()

    class Meta(ChannelSerializer.Meta):
        fields = (*ChannelSerializer.Meta.fields, "secret")


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One message to a channel."""

    alerts = serializers.SerializerMethodField()

    class Meta:
        model = Delivery
        fields = ("id", "webhook_id", "test", "alerts", "created_at", "attempts", "next_at", "sent_at", "failed_at", "status_code", "error")

    def get_alerts(self, delivery: Delivery) -> list[int]:
        return [notification.alert_id for notification in delivery.notifications.all()][:100]


class ChannelView(OwnedView):
    """Webhooks that alerts leave by."""

    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer

    def get_queryset(self) -> QuerySet[Any]:
        return channel_list(user=self.request.user)

    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        responses={201: NewChannelSerializer},
        examples=[
            OpenApiExample("A duty desk", {"name": "Duty desk", "url": "https://hooks.example.org/x", "min_severity": "high"}, request_only=True)
        ],
    )
    def create(self, request: Request) -> Response:
        self.check_may_make()
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        channel = deliveries.channel_create(owner=person(request), **serializer.validated_data)
        return Response({**self.represent(channel), "secret": channel.secret}, status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        channel = self.get_editable()
        serializer = self.get_serializer(channel, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        return Response(self.represent(deliveries.channel_update(channel=channel, user=person(request), **serializer.validated_data)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        deliveries.channel_delete(channel=self.get_editable())
        return Response(status=204)

    @extend_schema(summary="A new signing secret; the old one is good for a day more", request=None, responses=NewChannelSerializer)
    def rotate(self, request: Request, pk: int) -> Response:
        channel = self.get_editable()
        secret = deliveries.channel_rotate(channel=channel)
        return Response({**self.represent(channel), "secret": secret})

    @extend_schema(
        summary="Send a test message now",
        request=None,
        responses=inline_serializer(
            "TestAnswer",
            {"ok": serializers.BooleanField(), "status": serializers.IntegerField(allow_null=True), "error": serializers.CharField()},
        ),
    )
    def test(self, request: Request, pk: int) -> Response:
        answer = deliveries.channel_test(channel=self.get_editable())
        return Response({"ok": answer.ok, "status": answer.status, "error": answer.error})

    @extend_schema(summary="What was sent, newest first", parameters=CURSOR, responses=DeliverySerializer(many=True))
    def deliveries(self, request: Request, pk: int) -> Response:
        channel = self.get_editable()
        paginator = NewestFirst()
        page = paginator.paginate_queryset(delivery_list(channel=channel), request, view=self)
        return paginator.get_paginated_response(DeliverySerializer(page, many=True).data)
