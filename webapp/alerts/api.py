"""`alerts/`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, NoReturn, TypedDict, cast

from django.db.models import QuerySet
from django.http import QueryDict, StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.models import User
from webapp.alerts import handling
from webapp.alerts.desk import ORDER, PIECE, DeskPages, in_order, order_of, piece_of
from webapp.alerts.evidence import Evidence, evidence_of
from webapp.alerts.export import COLUMNS, rows_of
from webapp.alerts.filters import AlertFilter
from webapp.alerts.groups import BY, AlertGroup, alert_groups
from webapp.alerts.handling import Decision
from webapp.alerts.models import Alert, AlertStep, Feedback, Mute, Step
from webapp.alerts.numbers import AlertNumbers, alert_numbers
from webapp.alerts.rows import ListedAlertRow, listed_row
from webapp.alerts.selectors import DeliveryRow, alert_list, alert_summary, alerts_seen, deliveries_of, handlers_of
from webapp.config.boxes import whole, whole_between
from webapp.config.known_keys import KnownKeys, OneOf
from webapp.config.openapi import field_of, schema_of, serializer_of
from webapp.config.parameters import faults_of, known_parameters
from webapp.config.related import BoundedListField
from webapp.config.tables import DOWNLOAD_ROWS, FORMAT, FORMATS, FormatOfFile, format_of, table_download
from webapp.queries.selectors import behind

COMMENT_LENGTH = 4000


class AlertSerializer(serializer_of(ListedAlertRow)):  # type: ignore[misc]
    """One alert in a list."""

    def to_representation(self, instance: Alert) -> Any:
        return listed_row(instance)


class StepSerializer(KnownKeys, serializers.ModelSerializer[AlertStep]):
    """A step of an alert: who (null: automatic) did what, with which comment."""

    author = serializers.CharField(source="author.username", default=None, allow_null=True, read_only=True)
    assignee = serializers.CharField(source="assignee.username", default=None, allow_null=True, read_only=True)

    class Meta:
        model = AlertStep
        fields = ("id", "action", "author", "assignee", "text", "at")
        read_only_fields = ("action", "at")
        extra_kwargs: ClassVar[dict[str, Any]] = {"text": {"required": True, "allow_blank": False}}


class DecisionSerializer(KnownKeys):
    """A comment on a decision, and the `revision` of the alert that the user saw."""

    comment = serializers.CharField(required=False, allow_blank=True, max_length=COMMENT_LENGTH, default="")
    revision = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=0)


class AssigneeField(serializers.SlugRelatedField[User]):
    """An active user, by user name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(slug_field="username", queryset=User.objects.filter(is_active=True), **options)

    def fail(self, key: str, **values: Any) -> NoReturn:
        if key == "does_not_exist":
            raise serializers.ValidationError(
                Message("There is no active user {name}: give the user name of somebody who may handle the alert.", name=repr(values["value"]))
            )
        super().fail(key, **values)


class AssignmentSerializer(DecisionSerializer):
    """The user to whom the alert is assigned."""

    assignee = AssigneeField()


class FeedbackSerializer(KnownKeys, serializers.ModelSerializer[Feedback]):
    """A user's verdict on the answer behind an alert."""

    author = serializers.CharField(source="author.username", read_only=True)

    class Meta:
        model = Feedback
        fields = ("author", "verdict", "reason", "at")
        read_only_fields = ("at",)


class MuteWords(TypedDict):
    """The mute that kept an alert from being delivered."""

    id: int
    by: str
    reason: str
    until: datetime | None


class AlertDetailSerializer(AlertSerializer):
    """An alert with its evidence, comments and deliveries: sentence and regions are those of the
    query version that raised it."""

    version = serializers.IntegerField()
    removed = serializers.BooleanField(help_text="The query was removed.")
    sentence = serializers.CharField(allow_null=True)
    shapes = serializers.ListField(child=serializers.JSONField())
    steps = StepSerializer(many=True)
    feedback = FeedbackSerializer(many=True)
    # Here the comments themselves; lists have only their number.
    comments = StepSerializer(many=True)
    mute = field_of(MuteWords | None)
    handlers = serializers.ListField(child=serializers.CharField())
    evidence = field_of(Evidence)
    deliveries = field_of(list[DeliveryRow])


ACTIONS = {"acknowledge": Step.ACKNOWLEDGED, "assign": Step.ASSIGNED, "resolve": Step.RESOLVED, "reopen": Step.REOPENED, "seen": Step.SEEN}


class BulkSerializer(KnownKeys):
    """One decision about many alerts: those in `ids`, or all that match a list's filters, in
    pieces."""

    ids = BoundedListField(child=serializers.IntegerField(), required=False, allow_empty=False, max_length=PIECE)
    matching = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    below = serializers.IntegerField(required=False, allow_null=True, default=None, help_text="`below` of the answer before.")
    action = OneOf([name for name in ACTIONS if name != "seen"])
    assignee = AssigneeField(required=False)
    comment = serializers.CharField(required=False, allow_blank=True, max_length=COMMENT_LENGTH, default="")

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        if ("ids" in attributes) == ("matching" in attributes):
            raise serializers.ValidationError(Message("Either `ids` or `matching`."))
        if (attributes["action"] == "assign") != ("assignee" in attributes):
            raise serializers.ValidationError({"assignee": Message("Name the assignee if, and only if, the alerts are assigned.")})
        return attributes


class _Changed(TypedDict):
    changed: list[int]


class ChangedAlerts(_Changed, total=False):
    """Ids of the changed alerts; for a filter also how many were looked at. Repeat the request with
    `below` while it is not null."""

    looked_at: int
    below: int | None


HOURS = OpenApiParameter("hours", int, description="1 to 2160; default 168")


class Groups(TypedDict):
    """Groups of alerts, the most severe first."""

    results: list[AlertGroup]


class AlertView(GenericViewSet[Alert]):
    """Alerts of the queries that you may see; users who may change the
    query may handle its alerts."""

    queryset = Alert.objects.none()
    serializer_class = AlertSerializer
    throttle_action: str | None = None
    filterset_class = AlertFilter
    pagination_class = DeskPages
    content_negotiation_class = FormatOfFile

    def get_queryset(self) -> QuerySet[Alert]:
        return alert_list(user=self.request.user)

    def get_editable(self) -> Alert:
        """The alert of the address. Raises PermissionDenied when the user may see but not handle
        it."""
        alert = self.get_object()
        if not getattr(alert, "editable", False):
            raise PermissionDenied(Message("You may see this alert but not handle it."))
        return alert

    @extend_schema(summary="List alerts, newest first unless `order` is given")
    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(summary="One alert with its evidence, comments and deliveries", responses=AlertDetailSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self._detail(self.get_object()))

    @extend_schema(
        summary="The number of alerts that match the filters",
        filters=True,
        parameters=[OpenApiParameter("at_most", int, description="Counting stops at this number. From 1.")],
        responses=inline_serializer("AlertCount", {"count": serializers.IntegerField()}),
    )
    def count(self, request: Request) -> Response:
        alerts, most = self.filter_queryset(alerts_seen(user=request.user)), whole(request.query_params.get("at_most"), "at_most")
        if most is not None and most < 1:
            raise serializers.ValidationError({"at_most": Message("At least 1.")})
        return Response({"count": alerts[:most].count()})

    @extend_schema(
        summary="The alerts that match the filters, in groups",
        filters=True,
        parameters=[
            OpenApiParameter("by", str, enum=BY, description="query (default), entity or region"),
            OpenApiParameter("hours", int, description="Length of the strip, 1 to 168; default 24"),
        ],
        responses={200: schema_of(Groups)},
    )
    def groups(self, request: Request) -> Response:
        by, hours = request.query_params.get("by") or "query", whole_between(request.query_params.get("hours"), "hours", 1, 168, usual=24)
        if by not in BY:
            raise serializers.ValidationError({"by": Message("One of {known}.", known=", ".join(BY))})
        alerts = self.filter_queryset(alerts_seen(user=request.user))
        return Response({"results": alert_groups(alerts, by=by, hours=hours, now=timezone.now())})

    @extend_schema(
        summary="Figures of the desk: open alerts, response times, the queries with most alerts",
        filters=True,
        parameters=[HOURS],
        responses={200: schema_of(AlertNumbers)},
    )
    def numbers(self, request: Request) -> Response:
        hours = whole_between(request.query_params.get("hours"), "hours", 1, 2160, usual=168)
        return Response(alert_numbers(self.filter_queryset(alerts_seen(user=request.user)), hours=hours, now=timezone.now()))

    @extend_schema(
        summary="The alerts that match the filters, as a file of at most 100,000 rows",
        filters=True,
        parameters=[ORDER, FORMAT],
        responses={(200, media): OpenApiTypes.BINARY for media in FORMATS.values()},
    )
    def export(self, request: Request) -> StreamingHttpResponse:
        kind, order = format_of(request), order_of(request.query_params.get("order"))
        alerts = self.filter_queryset(self.get_queryset())
        rows = rows_of(alerts, user=request.user, order=order, most=DOWNLOAD_ROWS, with_places=kind == "geojson")
        counted = in_order(self.filter_queryset(alerts_seen(user=request.user)), order)
        is_cut = counted[DOWNLOAD_ROWS : DOWNLOAD_ROWS + 1].exists()
        return table_download("alerts", kind, COLUMNS, rows, first=DOWNLOAD_ROWS if is_cut else None)

    @extend_schema(summary="Report whether the answer was right", request=FeedbackSerializer, responses=FeedbackSerializer)
    def feedback(self, request: Request, pk: int) -> Response:
        alert = self.get_editable()
        serializer = FeedbackSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(FeedbackSerializer(handling.alert_judge(alert=alert, user=person(request), **serializer.validated_data)).data)

    @extend_schema(summary="Mark an alert as seen: new -> seen", request=None, responses=AlertDetailSerializer)
    def seen(self, request: Request, pk: int) -> Response:
        return self._decide("seen", DecisionSerializer(data={}))

    @extend_schema(
        summary="Acknowledge an alert: -> acknowledged; resolved when its answer has ended",
        request=DecisionSerializer,
        responses=AlertDetailSerializer,
    )
    def acknowledge(self, request: Request, pk: int) -> Response:
        return self._decide("acknowledge", DecisionSerializer(data=request.data))

    @extend_schema(summary="Assign an alert to a user: -> assigned", request=AssignmentSerializer, responses=AlertDetailSerializer)
    def assign(self, request: Request, pk: int) -> Response:
        return self._decide("assign", AssignmentSerializer(data=request.data))

    @extend_schema(summary="Resolve an alert: -> resolved", request=DecisionSerializer, responses=AlertDetailSerializer)
    def resolve(self, request: Request, pk: int) -> Response:
        return self._decide("resolve", DecisionSerializer(data=request.data))

    @extend_schema(summary="Reopen a resolved alert: -> reopened", request=DecisionSerializer, responses=AlertDetailSerializer)
    def reopen(self, request: Request, pk: int) -> Response:
        return self._decide("reopen", DecisionSerializer(data=request.data))

    @extend_schema(summary="Comment on an alert", request=StepSerializer, responses={201: StepSerializer})
    def comment(self, request: Request, pk: int) -> Response:
        alert = self.get_editable()
        serializer = StepSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        comment = handling.alert_comment(alert=alert, user=person(request), text=serializer.validated_data["text"])
        return Response(StepSerializer(comment).data, status=201)

    @extend_schema(
        summary="One decision about many alerts",
        request=BulkSerializer,
        responses={200: schema_of(ChangedAlerts)},
        examples=[
            OpenApiExample("Acknowledge two", {"ids": [11, 12], "action": "acknowledge", "comment": "On it."}, request_only=True),
            OpenApiExample("Resolve all that match", {"matching": "state=new&severity=low", "action": "resolve"}, request_only=True),
        ],
    )
    def bulk(self, request: Request) -> Response:
        serializer = BulkSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        decision = Decision(ACTIONS[data["action"]], person(request), data["comment"], data.get("assignee"))
        to_handle = alert_list(user=request.user, to_handle=True)
        if "ids" in data:
            return Response({"changed": handling.alerts_decide(alerts=list(to_handle.filter(pk__in=data["ids"])), decision=decision)})
        piece = piece_of(self._matching(to_handle, data["matching"]), data["below"])
        changed = handling.alerts_decide(alerts=piece, decision=decision)
        return Response({"changed": changed, "looked_at": len(piece), "below": piece[-1].pk if len(piece) == PIECE else None})

    def _matching(self, alerts: QuerySet[Alert], parameters: str) -> QuerySet[Alert]:
        """The alerts that a list with these parameters would show. Raises ValidationError for an
        unknown parameter or value."""
        data, known = QueryDict(parameters), known_parameters()["api/v1/alerts/count", "GET"]
        if faults := faults_of(data, {name: known[name] for name in AlertFilter.base_filters}):
            raise serializers.ValidationError({"matching": faults})
        filters = AlertFilter(data, alerts, request=self.request)
        if not filters.is_valid():
            raise serializers.ValidationError({"matching": filters.errors})
        return cast(QuerySet[Alert], filters.qs)

    @extend_schema(
        summary="The number of open alerts, by state and severity",
        responses={200: schema_of(dict[str, dict[str, int]])},
    )
    def summary(self, request: Request) -> Response:
        return Response(alert_summary(user=person(request)))

    def _decide(self, action: str, serializer: DecisionSerializer) -> Response:
        alert = self.get_editable()
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        decision = Decision(ACTIONS[action], person(self.request), data["comment"], data.get("assignee"))
        handling.alert_decide(alert=alert, decision=decision, revision=data["revision"])
        return Response(self._detail(self.get_object()))

    def _detail(self, alert: Alert) -> dict[str, Any]:
        sentence, regions = behind(alert.query, alert.query_version)
        steps = StepSerializer(alert.steps.select_related("author", "assignee"), many=True).data
        return {
            **self.get_serializer(alert).data,
            "version": alert.query_version,
            "removed": alert.query.deleted_at is not None,
            "steps": steps,
            "comments": [step for step in steps if step["text"]],
            "feedback": FeedbackSerializer(alert.feedback.select_related("author"), many=True).data,
            "mute": None if alert.mute is None else _mute_words(alert.mute),
            "handlers": list(handlers_of(alert.query).values_list("username", flat=True)),
            "sentence": sentence,
            "shapes": regions,
            "evidence": evidence_of(alert),
            "deliveries": deliveries_of(alert, user=person(self.request)),
        }


def _mute_words(mute: Mute) -> MuteWords:
    return {"id": mute.pk, "by": mute.owner.username, "reason": mute.reason, "until": mute.window_until}
