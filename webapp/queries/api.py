"""`queries/`: registered queries, their versions, checks and previews."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime
from typing import Any, TypedDict

from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, PolymorphicProxySerializer, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engine.model.faults import Fault, Refused, refuse
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message
from engine.specification import notices_of
from webapp.accounts.authentication import person
from webapp.accounts.models import User
from webapp.accounts.owned import OwnedSerializer
from webapp.alerts.models import Channel
from webapp.alerts.selectors import choosing_channels
from webapp.alerts.services import query_channels_set
from webapp.config.errors import faults_body
from webapp.config.known_keys import KnownKeys
from webapp.config.openapi import schema_of
from webapp.config.related import BoundedListField, ByKey
from webapp.config.wording import TranslatedField, translated
from webapp.feeds.logs import folder_of_logs
from webapp.feeds.models import TAG, Feed
from webapp.feeds.of_feed import FeedNameField, NamedSerializer, OfFeedSerializer, OfFeedView
from webapp.feeds.selectors import regions_of_feed
from webapp.queries import services
from webapp.queries.caged import PreviewFailed
from webapp.queries.derivation import Derivation, derivation, documents_above, upstream_of, with_upstream
from webapp.queries.families import kinds_of
from webapp.queries.filters import QueryFilter
from webapp.queries.models import Query, QueryStop, QueryVersion
from webapp.queries.periods import PeriodSerializer, period_of
from webapp.queries.preview import preview
from webapp.queries.references import frozen, stands_alone
from webapp.queries.selectors import is_unchanged, placement_of, query_list, shapes_of, specification_faults, version_list, with_nothing_beside
from webapp.queries.sentences import sentence_of
from webapp.queries.trial_answers import Preview

STOP_DEPENDENTS = "The query may be switched off or removed though others derive from its answers, which then stop."
BORDER = {"family": "border", "version": 1, "region": {"center": [11.5, 48.1], "radius": 300}}
TOGETHER = 1_000
"""Queries in one request."""
FAULT = inline_serializer("Fault", {"pointer": serializers.CharField(allow_blank=True), "message": serializers.CharField()}, many=True)


class Unavailable(APIException):
    """The server cannot do this at present."""

    status_code = 503


class StopSerializer(serializers.ModelSerializer[QueryStop]):
    """Why the job runs without the query; it starts again when the query is
    edited, or switched off and on."""

    reason = TranslatedField(read_only=True)

    class Meta:
        model = QueryStop
        fields = ("reason", "at")


class ChannelsOfUser(serializers.Serializer[Any]):
    """For serializers with a field `channels`: those that the user may see."""

    @staticmethod
    def field() -> Any:
        """The field itself, without a channel until the user is known."""
        return ByKey(many=True, required=False, queryset=Channel.objects.none())

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if request := self.context.get("request"):
            channels: Any = fields["channels"]
            channels.child_relation.queryset = Channel.objects.visible_to(request.user)
        return fields


class QuerySerializer(ChannelsOfUser, OfFeedSerializer):
    """A registered query."""

    feed = FeedNameField()
    specification = serializers.JSONField()
    alert_kinds = BoundedListField(child=serializers.CharField(max_length=100), required=False, max_length=100)
    tags = BoundedListField(child=serializers.CharField(max_length=50, validators=[TAG]), required=False, max_length=20)
    channels = ChannelsOfUser.field()
    kinds = serializers.SerializerMethodField()
    sentence = serializers.SerializerMethodField()
    regions = NamedSerializer(many=True, read_only=True)
    stopped = StopSerializer(read_only=True, allow_null=True)
    stop_dependents = serializers.BooleanField(write_only=True, required=False, help_text=STOP_DEPENDENTS)
    left_at = serializers.IntegerField(
        read_only=True, allow_null=True, default=None, help_text="Event time at which the job left this version; null while it runs."
    )

    class Meta:
        model = Query
        fields = (
            "id", "feed", "name", "description", "folder", "tags", "family", "version", "left_at", "enabled", "severity", "alert_kinds", "calls",
            "calls_per_hour", "channels",
            "kinds", "specification", "sentence", "regions", "stopped", "stop_dependents", *OwnedSerializer.OWNED, "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = ("family", "version", "created_at")
        validators: tuple[Any, ...] = ()

    def get_kinds(self, query: Query) -> list[str]:
        return kinds_of(query.specification)

    def validate_tags(self, tags: list[str]) -> list[str]:
        return list(dict.fromkeys(tags))

    def get_sentence(self, query: Query) -> str | None:
        return sentence_of(query.specification, feed=query.feed.engine_feed())


class SpecificationSerializer(KnownKeys):
    """A specification and the feed that it is for."""

    feed = FeedNameField()
    specification = serializers.JSONField()


class PreviewSerializer(PeriodSerializer, SpecificationSerializer):
    """The specification to try, and the period of the log."""


ONE_OR_MANY = PolymorphicProxySerializer("QueryOrQueries", [QuerySerializer, QuerySerializer(many=True)], resource_type_field_name=None, many=False)


class VersionRow(TypedDict):
    """A version of a query; `current`: the one that runs."""

    version: int
    specification: dict[str, Any]
    sentence: str | None
    created_at: datetime
    created_by: str | None
    current: bool


class VersionDetail(VersionRow):
    """With its regions in the specification; `unchanged`: the query is still the same."""

    unchanged: bool


class Shapes(TypedDict):
    """Regions as in specifications."""

    shapes: list[Any]


class QueryView(OfFeedView):
    """Continuous queries. The running job takes up each change within two seconds."""

    queryset = Query.objects.all()
    serializer_class = QuerySerializer
    filterset_class = QueryFilter

    def get_queryset(self) -> QuerySet[Any]:
        return query_list(user=self.request.user).prefetch_related(Prefetch("channels", choosing_channels(user=self.request.user)))

    @extend_schema(
        request=ONE_OR_MANY,
        responses={201: ONE_OR_MANY},
        examples=[
            OpenApiExample(
                "Everything that enters or leaves a circle",
                {"feed": "city", "name": "Square", "specification": BORDER, "alert_kinds": ["in"]},
                request_only=True,
            )
        ],
    )
    def create(self, request: Request) -> Response:
        """One query, or a list of them: then all are registered in one transaction, or none."""
        self.check_may_make()
        if isinstance(request.data, list):
            return self._create_together(request)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = {name: value for name, value in serializer.validated_data.items() if name != "stop_dependents"}
        channels = data.pop("channels", None)
        with transaction.atomic() if channels else nullcontext():
            query = services.query_register(owner=person(request), **data)
            if channels:
                query_channels_set(query=query, user=person(request), channels=channels)
        if not stands_alone(query.specification) or channels:
            return Response(self.represent(query), status=201)
        serializer.instance = with_nothing_beside(query, channels=Channel.objects.none())
        return Response(serializer.data, status=201)

    def _create_together(self, request: Request) -> Response:
        if not 0 < len(request.data) <= TOGETHER:
            raise refuse(
                "", Message("A list holds 1 to {most:,} queries, this one {count:,}: send them in parts.", most=TOGETHER, count=len(request.data))
            )
        serializer = self.get_serializer(data=request.data, many=True)
        serializer.is_valid(raise_exception=True)
        feed = serializer.validated_data[0]["feed"]
        faults = [
            Fault(f"/{place}/feed", Message("All queries of a list must belong to one feed."))
            for place, one in enumerate(serializer.validated_data)
            if one["feed"] != feed
        ]
        if faults:
            raise Refused(faults)
        documents = [{name: value for name, value in one.items() if name not in ("feed", "stop_dependents")} for one in serializer.validated_data]
        channels = [one.pop("channels", ()) for one in documents]
        with transaction.atomic():
            made = services.queries_register_together(owner=person(request), feed=feed, documents=documents)
            for place, query in enumerate(made):
                if channels[place]:
                    with services.faults_at(place, faults):
                        query_channels_set(query=query, user=person(request), channels=channels[place])
            if faults:
                raise Refused(faults)
        stored = self.get_queryset().in_bulk([query.pk for query in made])
        return Response(self.get_serializer([stored[query.pk] for query in made], many=True).data, status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        query = self.get_editable()
        data = self.changes(query, request, moved=Message("A query cannot move to another feed: register a new one there."))
        channels = data.pop("channels", None)
        with transaction.atomic():
            query = services.query_edit(query=query, user=person(request), **data)
            if channels is not None:
                query_channels_set(query=query, user=person(request), channels=channels)
        return Response(self.represent(query))

    @extend_schema(parameters=[OpenApiParameter("stop_dependents", OpenApiTypes.BOOL, description=STOP_DEPENDENTS)], responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        text = request.query_params.get("stop_dependents", "false")
        if text not in ("true", "false"):
            raise ValidationError({"stop_dependents": Message("true or false.")})
        services.query_remove(query=self.get_editable(), user=person(request), stop_dependents=text == "true")
        return Response(status=204)

    @extend_schema(summary="The queries that a query derives from, and those that derive from it", responses={200: schema_of(Derivation)})
    def derivation(self, request: Request, pk: int) -> Response:
        return Response(derivation(query=self.get_object(), user=request.user))

    @extend_schema(summary="All generations of a query, newest first", responses={200: schema_of(list[VersionRow])})
    def versions(self, request: Request, pk: int) -> Response:
        query = self.get_object()
        feed = query.feed.engine_feed()
        return Response([_of_version(version, feed) for version in version_list(query=query)])

    @extend_schema(
        operation_id="queries_version_retrieve",
        summary="One generation of a query, with its regions as they were",
        responses={200: schema_of(VersionDetail)},
    )
    def version(self, request: Request, pk: int, version: int) -> Response:
        query = self.get_object()
        query_version = get_object_or_404(version_list(query=query), version=version)
        row = _of_version(query_version, query.feed.engine_feed())
        return Response({**row, "specification": query_version.specification, "unchanged": is_unchanged(query, query_version)})

    @extend_schema(summary="Every region of the query, for a map", responses={200: schema_of(Shapes)})
    def shapes(self, request: Request, pk: int) -> Response:
        return Response({"shapes": shapes_of(self.get_object())})


def _of_version(version: QueryVersion, feed: EngineFeed) -> VersionRow:
    return {
        "version": version.version,
        "specification": version.document,
        "sentence": sentence_of(version.document, feed=feed),
        "created_at": version.created_at,
        "created_by": version.created_by.username if version.created_by else None,
        "current": version.to_feed_version is None,
    }


def read(serializer: serializers.Serializer[Any]) -> tuple[Feed, Any, dict[str, Any]]:
    """Feed, specification and the other values of a valid request. Raises ValidationError."""
    serializer.is_valid(raise_exception=True)
    data = dict(serializer.validated_data)
    return data.pop("feed"), data.pop("specification"), data


class CheckView(APIView):
    """Checks whether a specification can be registered, and describes it in a sentence."""

    throttle_action = "check"

    @extend_schema(
        request=SpecificationSerializer,
        responses=inline_serializer(
            "CheckAnswer",
            {
                "faults": FAULT,
                "sentence": serializers.CharField(allow_null=True),
                "kinds": serializers.ListField(child=serializers.CharField()),
                "notices": serializers.ListField(child=serializers.CharField()),
                "placement": serializers.CharField(allow_null=True),
            },
        ),
        examples=[OpenApiExample("A border", {"feed": "city", "specification": BORDER}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        feed, specification, _ = read(SpecificationSerializer(data=request.data, context={"request": request}))
        user = person(request)
        faults = specification_faults(feed=feed, specification=specification, user=user)
        if faults:
            return Response({**faults_body(faults), "sentence": None, "kinds": [], "notices": [], "placement": None})
        found = {
            "sentence": sentence_of(specification, feed=feed.engine_feed()),
            "kinds": kinds_of(specification),
            "notices": [translated(notice) for notice in notices_of(specification, feed.engine_feed())],
            "placement": placement_of(feed=feed, specification=specification, user=user),
        }
        return Response({"faults": [], **found})


def check_for_trial(feed: Feed, specification: Any, user: User) -> None:
    """Raises Refused with all that is wrong with the specification of a request."""
    if faults := specification_faults(feed=feed, specification=specification, user=user):
        raise Refused(fault.below(services.SPECIFICATION) for fault in faults)


def checked_for_trial(feed: Feed, specification: Any, user: User) -> dict[str, Any]:
    """A checked specification with its regions, and with its upstream queries by id."""
    upstream = upstream_of(feed=feed, document=specification, user=user)
    ready: dict[str, Any] = with_upstream(frozen(specification, regions_of_feed(feed, user=user)), upstream)
    return ready


class PreviewView(APIView):
    """The answers that a specification would have given in a period of history; nothing is
    stored."""

    throttle_action = "preview"

    @extend_schema(
        request=PreviewSerializer,
        responses={200: schema_of(Preview)},
        examples=[OpenApiExample("Ten minutes", {"feed": "city", "specification": BORDER, "minutes": 10}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        feed, specification, data = read(PreviewSerializer(data=request.data, context={"request": request}))
        check_for_trial(feed, specification, person(request))
        ready = checked_for_trial(feed, specification, person(request))
        try:
            answer = preview(
                log_root=folder_of_logs(feed),
                feed=feed.engine_feed().to_json(),
                specification=ready,
                period=period_of(data, feed),
                above=documents_above(ready),
            )
        except PreviewFailed as error:
            raise Unavailable(str(error)) from error
        return Response(answer)
