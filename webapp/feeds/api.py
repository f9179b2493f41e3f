"""`feeds/`: feeds, and what is read from their logs and counters. Ingest is in another module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, TypedDict, cast

from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from engine.model.faults import Refused
from engine.model.feed import KEYS, LARGEST_TIME
from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.config.boxes import box_from, whole, whole_between
from webapp.config.errors import serializer_faults
from webapp.config.known_keys import KnownKeys, OneOf
from webapp.config.openapi import Length, field_of, schema_of
from webapp.config.pagination import CURSOR, NewestFirst, newest_first
from webapp.config.related import BoundedListField
from webapp.config.tables import DOWNLOAD_ROWS, csv_download
from webapp.config.wording import TranslatedField
from webapp.detections.removal import FeedContents, feed_delete, feed_holdings
from webapp.feeds import corrections, history, recent, rows_file, services
from webapp.feeds.documents import read_schema
from webapp.feeds.filters import DeadLetterFilter
from webapp.feeds.models import NO_CONTROLS, DeadLetter, Feed
from webapp.feeds.selectors import (
    FeedCounters,
    FeedEvent,
    FeedHeadRow,
    dead_letter_list,
    failing_connectors,
    feed_counters,
    feed_damage,
    feed_events,
    feed_head,
    feed_list,
    plan_address,
)
from webapp.jobs.selectors import job_list
from webapp.supervisor.measures import Measures, feed_measures

SPANS = ("lateness", "ahead")
HISTOGRAM_BINS = 200


class SpanField(serializers.Field[Any, Any, Any, Any]):
    """A span of time: a number in the unit of `t` or, on an `ms` feed, an ISO 8601 duration. The
    engine checks it with the whole document."""

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: int) -> int:
        return value


class SpanFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # the base class registers it
    """Both forms of a SpanField in the OpenAPI document."""

    target_class = SpanField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        number = {"type": "integer"}
        return number if direction == "response" else {"oneOf": [number, {"type": "string", "format": "duration"}]}


class MapView(TypedDict, total=False):
    """The initial view of the map; empty: everything."""

    center: Annotated[list[float], Length(2)]
    zoom: float


class FeedSerializer(OwnedSerializer):
    """A feed with its counters and how far it has been processed. Written, it is the FEED.json of
    the specification, or more."""

    title = serializers.CharField(max_length=100, required=False, validators=[NO_CONTROLS], help_text="Default: the name.")
    lateness = SpanField(required=False, help_text="How far behind the newest row a row may come; default 0.")
    ahead = SpanField(required=False, allow_null=True, help_text="How far ahead of the clock a row may be; null: without bound.")
    columns = field_of(dict[str, str], required=False)
    view = field_of(MapView, required=False)
    plan_image = serializers.SerializerMethodField()
    plan_bounds = BoundedListField(child=serializers.FloatField(), min_length=4, max_length=4, required=False, allow_null=True)
    counters = serializers.SerializerMethodField()
    head = serializers.SerializerMethodField()
    job = serializers.SlugRelatedField(
        slug_field="name", queryset=job_list(), required=False, write_only=True, help_text="The job that evaluates its queries; read in `head`."
    )
    damage = serializers.SerializerMethodField()
    events = serializers.SerializerMethodField()
    failing_connectors = serializers.SerializerMethodField(help_text="The names of its connectors that keep failing or do not run.")

    class Meta:
        model = Feed
        fields = (
            "name", "title", "crs", "time", "tick", "lateness", "ahead", "dedupe", "columns", "wall_clock", "retention_hours", "query_version",
            "plan_image", "plan_bounds", "view", *OwnedSerializer.OWNED, "created_at", "counters", "head", "job", "damage", "events",
            "failing_connectors",
        )  # fmt: skip
        read_only_fields = ("query_version", "created_at")

    def to_internal_value(self, data: Any) -> Any:
        """The checked values, spans as numbers. Whatever is wrong is reported together, by
        pointers. Raises Refused."""
        members = data if isinstance(data, dict) else {}
        schema, faults = read_schema({**self._stored_schema(), **members})
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            reported = {fault.pointer for fault in faults}
            faults = [*faults, *(fault for fault in serializer_faults(error.detail) if fault.pointer not in reported)]
        if faults or schema is None:
            raise Refused(faults)
        return {**values, **{name: getattr(schema, name) for name in SPANS if name in members}}

    def _stored_schema(self) -> dict[str, Any]:
        """The schema that a change is made to."""
        return {} if self.instance is None else {name: getattr(self.instance, name) for name in (*KEYS, "view", "plan_bounds")}

    def get_plan_image(self, feed: Feed) -> str | None:
        return plan_address(feed)

    @extend_schema_field(schema_of(FeedCounters))
    def get_counters(self, feed: Feed) -> FeedCounters:
        return feed_counters(feed)

    def get_damage(self, feed: Feed) -> str | None:
        return feed_damage(feed)

    @extend_schema_field(schema_of(list[FeedEvent]))
    def get_events(self, feed: Feed) -> list[FeedEvent]:
        return feed_events(feed)

    def get_failing_connectors(self, feed: Feed) -> list[str]:
        return failing_connectors(feed)

    @extend_schema_field(schema_of(FeedHeadRow | None))
    def get_head(self, feed: Feed) -> FeedHeadRow | None:
        return feed_head(feed)


class DeadLetterSerializer(serializers.ModelSerializer[DeadLetter]):
    """One refused row."""

    detail = TranslatedField(read_only=True)

    class Meta:
        model = DeadLetter
        fields = ("id", "reason", "detail", "row", "line", "source", "received_at", "sent_at")


class CorrectionSerializer(KnownKeys):
    """One letter with the row to be sent in its place, or a rule for all, perhaps of one reason."""

    id = serializers.IntegerField(required=False)
    row = serializers.DictField(required=False)
    rule = OneOf(list(corrections.RULES), required=False)
    reason = serializers.CharField(required=False, allow_blank=True, default="")

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        if ("id" in attributes) != ("row" in attributes) or ("id" in attributes) == ("rule" in attributes):
            raise ValidationError(Message("Give id and row, or a rule."))
        return attributes


class AnyBytes(BaseParser):
    """The body as it is."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return bytes(stream.read(services.PLAN_BYTES + 1))


def parameter(name: str, kind: Any = OpenApiTypes.STR, **options: Any) -> OpenApiParameter:
    """A query parameter in the OpenAPI document."""
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, **options)


REFUSED_ROWS = [parameter("reason"), parameter("source")]
PERIOD = [parameter(name, OpenApiTypes.INT64, description="In the feed's unit; the period is closed.") for name in ("from", "to")]
PARQUET = "application/vnd.apache.parquet"


class FeedView(OwnedView):
    """Feeds: named streams, each with one schema and one clock."""

    queryset = Feed.objects.all()
    serializer_class = FeedSerializer
    lookup_field = "name"
    filterset_class = None

    def get_queryset(self) -> QuerySet[Any]:
        return feed_list(user=self.request.user)

    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, name: str) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        examples=[
            OpenApiExample("Vessels", {"name": "strait", "crs": "geographic", "lateness": "PT1M", "columns": {"sog": "float"}}, request_only=True)
        ]
    )
    def create(self, request: Request) -> Response:
        self.check_may_make()
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        feed = services.feed_create(owner=person(request), **{"title": values["name"], **values})
        return Response(self.represent(feed), status=201)

    def partial_update(self, request: Request, name: str) -> Response:
        feed = self.get_editable()
        serializer = self.get_serializer(feed, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        return Response(self.represent(services.feed_update(feed=feed, **serializer.validated_data)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, name: str) -> Response:
        feed_delete(feed=self.get_editable(), user=person(request))
        return Response(status=204)

    @extend_schema(summary="Counts of what would be removed with the feed", responses={200: schema_of(FeedContents)})
    def holdings(self, request: Request, name: str) -> Response:
        return Response(feed_holdings(feed=self.get_object(), user=person(request)))

    @extend_schema(
        summary="The plan image under a planar feed",
        request=dict.fromkeys(("image/png", "image/jpeg", "image/webp"), OpenApiTypes.BINARY),
        responses=FeedSerializer,
    )
    def put_plan(self, request: Request, name: str) -> Response:
        feed = self.get_editable()
        return Response(self.represent(services.feed_set_plan(feed=feed, data=cast(bytes, request.data))))

    @extend_schema(
        summary="Each entity's last position",
        parameters=[parameter("bbox", description="west,south,east,north")],
        responses={200: schema_of(recent.Positions)},
    )
    def positions(self, request: Request, name: str) -> Response:
        text = request.query_params.get("bbox")
        rows = recent.positions(self.get_object(), box_from(text) if text else None)
        return Response({"t": rows.t, "entities": rows.entities})

    @extend_schema(
        summary="Tracks of entities",
        parameters=[
            parameter("entity", many=True, required=True),
            parameter("from", OpenApiTypes.INT64),
            parameter("to", OpenApiTypes.INT64),
            parameter("limit", OpenApiTypes.INT),
        ],
        responses={200: schema_of(recent.Tracks)},
    )
    def tracks(self, request: Request, name: str) -> Response:
        feed, parameters = self.get_object(), request.query_params
        entities = parameters.getlist("entity")
        if not 1 <= len(entities) <= recent.TRACK_ENTITIES:
            raise ValidationError({"entity": Message("Name 1 to {most} entities.", most=recent.TRACK_ENTITIES)})
        limit = whole_between(parameters.get("limit"), "limit", 1, recent.TRACK_POINTS, usual=recent.TRACK_POINTS)
        rows = recent.tracks(feed, entities, whole(parameters.get("from"), "from"), whole(parameters.get("to"), "to"), limit)
        return Response({"complete": rows.complete, "tracks": rows.tracks})

    @extend_schema(
        summary="Positions of all entities during a span, sampled: for playback on the live page",
        description="A little-endian uint32 (the length of the header), a JSON header {from, to, begin, entities, count} padded with spaces "
        "so that the columns begin at a multiple of 8, then count float64 of t, of x and of y, and count int32 of entity "
        "(a position in the header's list).",
        parameters=[
            parameter("from", OpenApiTypes.INT64, required=True),
            parameter("to", OpenApiTypes.INT64, required=True),
            parameter("step", OpenApiTypes.INT64, description="Each entity's last sample in every span of this many units of the feed's time."),
        ],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def movements(self, request: Request, name: str) -> HttpResponse:
        feed, parameters = self.get_object(), request.query_params
        from_t, to_t = whole(parameters.get("from"), "from"), whole(parameters.get("to"), "to")
        if from_t is None or to_t is None or not from_t < to_t:
            raise ValidationError({"from": Message("Give from and to, from before to.")})
        movements = history.movements(feed, from_t, to_t, whole_between(parameters.get("step"), "step", 1, LARGEST_TIME, usual=1))
        return HttpResponse(movements.to_bytes(), content_type="application/octet-stream")

    @extend_schema(summary="Rows as a Parquet file", parameters=PERIOD, responses={(200, PARQUET): OpenApiTypes.BINARY})
    def rows_parquet(self, request: Request, name: str) -> HttpResponse:
        return self._rows_file(rows_file.rows_parquet, PARQUET, "parquet")

    @extend_schema(summary="Rows as a CSV file", parameters=PERIOD, responses={(200, "text/csv"): OpenApiTypes.STR})
    def rows_csv(self, request: Request, name: str) -> HttpResponse:
        return self._rows_file(rows_file.rows_csv, "text/csv; charset=utf-8", "csv")

    def _rows_file(self, made: Callable[..., tuple[bytes, bool]], media: str, ending: str) -> HttpResponse:
        feed, parameters = self.get_object(), self.request.query_params
        from_t, to_t = whole(parameters.get("from"), "from"), whole(parameters.get("to"), "to")
        if from_t is not None and to_t is not None and from_t > to_t:
            raise ValidationError({"to": Message("Give from and to, from before to.")})
        content, is_cut = made(feed, from_t, to_t)
        name = f"{feed.name}-first-{rows_file.MOST_ROWS}.{ending}" if is_cut else f"{feed.name}.{ending}"
        return HttpResponse(content, content_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    @extend_schema(
        summary="Ids of recently seen entities",
        parameters=[parameter("search")],
        responses=inline_serializer("Entities", {"entities": serializers.ListField(child=serializers.CharField())}),
    )
    def entities(self, request: Request, name: str) -> Response:
        return Response({"entities": recent.entities(self.get_object(), request.query_params.get("search", ""))})

    @extend_schema(
        summary="An entity's last report",
        description="Its newest row at or before `t` and the one before that at another time; null if there is none near.",
        parameters=[parameter("id", required=True), parameter("t", OpenApiTypes.INT64, description="Default: now.")],
        responses={200: schema_of(recent.LastRows)},
    )
    def entity(self, request: Request, name: str) -> Response:
        feed, parameters = self.get_object(), request.query_params
        if not parameters.get("id"):
            raise ValidationError({"id": Message("Name an entity.")})
        return Response(recent.entity_at(feed, parameters["id"], whole(parameters.get("t"), "t")))

    @extend_schema(
        summary="The progress of the feed's processing, every ten seconds",
        parameters=[parameter("minutes", OpenApiTypes.INT, description="Default 30; a day is stored.")],
        responses={200: schema_of(Measures)},
    )
    def measures(self, request: Request, name: str) -> Response:
        minutes = whole_between(request.query_params.get("minutes"), "minutes", 1, 1440, usual=30)
        return Response(feed_measures(feed=self.get_object(), minutes=minutes))

    @extend_schema(
        summary="The distribution of the newest values of an attribute",
        parameters=[parameter("column", required=True), parameter("bins", OpenApiTypes.INT)],
        responses={200: schema_of(recent.NumberHistogram | recent.ValueHistogram)},
    )
    def histogram(self, request: Request, name: str) -> Response:
        feed, column = self.get_object(), request.query_params.get("column", "")
        known = ["x", "y", "event", "entity", *feed.columns]
        if column not in known:
            raise ValidationError({"column": Message("One of {known}.", known=", ".join(known))})
        bins = whole_between(request.query_params.get("bins"), "bins", 1, HISTOGRAM_BINS, usual=40)
        return Response(recent.histogram(feed, column, bins))

    @extend_schema(summary="Refused rows, newest first", parameters=[*REFUSED_ROWS, *CURSOR], responses={200: newest_first(DeadLetterSerializer)})
    def dead_letters(self, request: Request, name: str) -> Response:
        paginator = NewestFirst()
        page = paginator.paginate_queryset(self._dead_letters(request), request, view=self)
        return paginator.get_paginated_response(DeadLetterSerializer(page, many=True).data)

    @extend_schema(summary="Refused rows as a CSV file", parameters=REFUSED_ROWS, responses={(200, "text/csv"): OpenApiTypes.STR})
    def dead_letters_csv(self, request: Request, name: str) -> StreamingHttpResponse:
        fields = DeadLetterSerializer.Meta.fields
        rows = self._dead_letters(request).values_list(*fields)[:DOWNLOAD_ROWS].iterator(chunk_size=2000)
        return csv_download(f"dead-letters-{name}.csv", fields, rows)

    @extend_schema(
        summary="Correct refused rows and send them again: one, or all by a rule",
        description="`sent` rows are in the log, `late` of them too late to count; `wrong` stay, the first with `problems`; `left` still wait.",
        request=CorrectionSerializer,
        responses={200: schema_of(corrections.Corrected)},
    )
    def correct(self, request: Request, name: str) -> Response:
        feed = self.get_editable()
        serializer = CorrectionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        if "id" in data:
            corrected = corrections.correct_one(feed=feed, pk=data["id"], row=data["row"])
        else:
            corrected = corrections.correct_all(feed=feed, rule=data["rule"], reason=data["reason"])
        return Response(asdict(corrected))

    def _dead_letters(self, request: Request) -> QuerySet[DeadLetter]:
        filters = DeadLetterFilter(request.query_params, queryset=dead_letter_list(feed=self.get_object()))
        if not filters.is_valid():
            raise ValidationError(filters.errors)
        letters: QuerySet[DeadLetter] = filters.qs
        return letters
