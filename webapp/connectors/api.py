"""`connectors/`: streams from outside into feeds, and answers that go out. Users who see a feed see
their status; users who may change it configure them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from engine.model.messages import Message
from engine.sinks.live import SinkKind
from webapp.accounts.authentication import person
from webapp.accounts.permissions import check_may_make
from webapp.audit.services import record
from webapp.config.known_keys import KnownKeys
from webapp.config.openapi import schema_of
from webapp.config.wording import TranslatedField, translated
from webapp.connectors import services
from webapp.connectors.words import protocol_text
from webapp.feeds.models import Connector, ConnectorState, Feed
from webapp.feeds.of_feed import FeedNameField, feed_named

NO_PROCESS = Message("The process that runs connectors (manage.py connect) does not run.")


class ConnectorSerializer(KnownKeys, serializers.ModelSerializer[Connector]):
    """A connector: `settings` (without the secret ones) and `reading` for users who may change it,
    and its status for all who see the feed."""

    feed = FeedNameField()
    settings = serializers.DictField(required=False)
    reading = serializers.DictField(required=False)
    last_error = TranslatedField(read_only=True)
    editable = serializers.SerializerMethodField()

    class Meta:
        model = Connector
        fields = (
            "id", "feed", "name", "kind", "settings", "reading", "enabled", "state", "rate", "messages", "merged", "rows", "dead", "failures",
            "failing_since", "last_error", "last_error_at", "last_message_at", "next_try_at", "created_at", "editable",
        )  # fmt: skip
        read_only_fields = (
            "state", "rate", "messages", "merged", "rows", "dead", "failures", "failing_since", "last_error", "last_error_at", "last_message_at",
            "next_try_at", "created_at",
        )  # fmt: skip
        validators: list[Any] = []

    def get_editable(self, connector: Connector) -> bool:
        return bool(getattr(connector, "editable", False))

    def to_representation(self, connector: Connector) -> dict[str, Any]:
        shown = super().to_representation(connector)
        if not shown["editable"]:
            shown |= {"settings": {}, "reading": {}}
        if connector.is_silent:
            shown |= {"state": ConnectorState.STOPPED, "rate": 0.0, "last_error": translated(NO_PROCESS)}
        return shown


class TrialSerializer(KnownKeys):
    """What is to be tested, before or after it is saved: as the connector would be stored."""

    feed = FeedNameField()
    name = serializers.CharField(required=False, help_text="Not needed for a test.")
    enabled = serializers.BooleanField(required=False, help_text="Not needed for a test.")
    kind = serializers.CharField(max_length=40)
    settings = serializers.DictField(required=False, default=dict)
    reading = serializers.DictField(required=False, default=dict)
    connector = serializers.IntegerField(required=False, allow_null=True, help_text="Whose secret settings are used where none are given.")


class ChoiceRow(TypedDict):
    """A value that a setting may have."""

    value: str
    label: str


class Condition(TypedDict):
    """Another setting, and its values with which this one applies."""

    field: str
    values: list[str | bool]


class SettingRow(TypedDict):
    """A setting of a protocol, for its form."""

    name: str
    label: str
    type: str
    default: Any
    required: bool
    hint: str
    choices: list[ChoiceRow]
    when: Condition | None


class KindRow(TypedDict):
    """A protocol; `direction`: in or out; `columns`: the columns that all its records have."""

    name: str
    title: str
    guarantee: str
    direction: Literal["in", "out"]
    needs_reading: bool
    columns: list[str]
    fields: list[SettingRow]


KINDS = schema_of(list[KindRow])


class ConnectorView(GenericViewSet[Connector]):
    """The connectors of feeds."""

    queryset = Connector.objects.all()
    serializer_class = ConnectorSerializer
    filter_backends = ()
    throttle_action: str | None = None

    def get_queryset(self) -> QuerySet[Connector]:
        user = person(self.request)
        connectors = Connector.objects.visible_to(user).with_editable(user).select_related("feed")
        name = self.request.query_params.get("feed")
        return connectors.filter(feed=feed_named(user, name)) if name else connectors

    def editable(self) -> Connector:
        """The connector of the address. Raises PermissionDenied when the user may see but not
        change it."""
        connector = self.get_object()
        if not getattr(connector, "editable", False):
            raise PermissionDenied(Message("You may see this connector but not change it."))
        return connector

    def _feed(self, feed: Feed) -> Feed:
        if not Feed.objects.editable_by(person(self.request)).filter(pk=feed.pk).exists():
            raise PermissionDenied(Message("Only users who may change the feed can set up its connectors."))
        return feed

    def _represent(self, connector: Connector) -> dict[str, Any]:
        return dict(self.get_serializer(self.get_queryset().get(pk=connector.pk)).data)

    @extend_schema(parameters=[OpenApiParameter("feed", str, OpenApiParameter.QUERY, description="Only those of this feed.")])
    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    def create(self, request: Request) -> Response:
        check_may_make(person(request), Feed.edit_role)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = {"settings": {}, **serializer.validated_data}
        self._feed(values["feed"])
        services.check_places(services.kind_of(values["kind"]), values["settings"])
        connector = services.connector_create(**values, set_by=person(request))
        record("connector.create", connector, feed=connector.feed.name, kind=connector.kind)
        return Response(self._represent(connector), status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        connector = self.editable()
        serializer = self.get_serializer(connector, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        changes = {name: value for name, value in serializer.validated_data.items() if name in ("name", "settings", "reading", "enabled")}
        if "settings" in changes:
            services.check_places(services.kind_of(connector.kind), changes["settings"])
        services.connector_update(connector=connector, set_by=person(request), **changes)
        record("connector.change", connector, feed=connector.feed.name, changed=sorted(changes))
        return Response(self._represent(connector))

    def destroy(self, request: Request, pk: int) -> Response:
        connector = self.editable()
        record("connector.delete", connector, feed=connector.feed.name)
        services.connector_delete(connector=connector)
        return Response(status=204)

    @extend_schema(summary="The protocols that are installed, with the fields of their forms", request=None, responses={200: KINDS})
    def kinds(self, request: Request) -> Response:
        return Response([_described(kind) for kind in services.kinds().values()])

    @extend_schema(
        summary="Test a connector",
        description="Connects, takes the first records (ten seconds at most) and returns the rows that they would become. Nothing is stored or sent.",
        request=TrialSerializer,
        responses={200: schema_of(services.Trial)},
    )
    def trial(self, request: Request) -> Response:
        serializer = TrialSerializer(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        data = dict(serializer.validated_data)
        feed = self._feed(data["feed"])
        settings = {**self._secrets(feed, data.pop("connector", None), data["kind"], data["settings"]), **data["settings"]}
        return Response(services.connector_try(feed=feed, kind=data["kind"], settings=settings, reading=data["reading"]))

    def _secrets(self, feed: Feed, pk: int | None, kind: str, settings: dict[str, Any]) -> dict[str, Any]:
        """The stored secrets of a connector that is tested again in place: users do not type them
        in again. Raises Refused."""
        connector = None if pk is None else Connector.objects.filter(pk=pk, feed=feed, kind=kind).first()
        if connector is None:
            return {}
        return services.kept_secrets(services.kind_of(kind), services.settings_of(connector), settings)


def _described(kind: services.Kind) -> KindRow:
    return {
        "name": kind.name,
        "title": protocol_text(kind.title),
        "guarantee": protocol_text(kind.guarantee),
        "direction": "out" if isinstance(kind, SinkKind) else "in",
        "needs_reading": not isinstance(kind, SinkKind) and kind.reading is None,
        "columns": [] if isinstance(kind, SinkKind) else list(kind.columns),
        "fields": [
            {
                "name": one.name,
                "label": protocol_text(one.label),
                "type": one.type,
                "default": one.default,
                "required": one.required,
                "hint": protocol_text(one.hint),
                "choices": [{"value": value, "label": protocol_text(label)} for value, label in one.choices],
                "when": None if one.when is None else {"field": one.when[0], "values": list(one.when[1])},
            }
            for one in kind.fields
        ],
    }
