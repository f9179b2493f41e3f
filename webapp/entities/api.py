"""`feeds/{name}/profile`, `registry`, `notes`, `watch`; `watches/`; `regions/{id}/activity`."""

from __future__ import annotations

from typing import Any, TypedDict

from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.config.boxes import whole, whole_between
from webapp.config.known_keys import KnownKeys
from webapp.config.openapi import TimeRangeRead, field_of, schema_of
from webapp.config.related import BoundedDictField
from webapp.config.tables import csv_download
from webapp.entities import selectors, services
from webapp.entities.models import ENTITY_LENGTH, NAME_LENGTH, NOTE_LENGTH, Note, Record, Watch
from webapp.entities.registry_files import FILE_BYTES, read_registry
from webapp.feeds.api import parameter
from webapp.feeds.models import Feed, Region
from webapp.feeds.selectors import feed_list
from webapp.queries.regions import region_list

ID = parameter("id", required=True, description="The entity.")
SPAN = [parameter("from", OpenApiTypes.INT64), parameter("to", OpenApiTypes.INT64)]
MOST_COLUMNS = 1_000
MOST_ACTIVITY_HOURS = 24 * 31


class RecordSerializer(KnownKeys):
    """The registry's entry of an entity."""

    name = serializers.CharField(max_length=NAME_LENGTH, allow_blank=True, required=False, default="")
    attributes = BoundedDictField(child=serializers.CharField(allow_blank=True), required=False, default=dict)


class NoteSerializer(KnownKeys, serializers.ModelSerializer[Note]):
    """A note on an entity."""

    author = serializers.CharField(source="author.username", read_only=True)
    text = serializers.CharField(max_length=NOTE_LENGTH)

    class Meta:
        model = Note
        fields = ("id", "entity", "author", "text", "at")
        read_only_fields = ("id", "at")


class WatchSerializer(serializers.ModelSerializer[Watch]):
    """A user's watch on an entity; `reported_t` is null until the entity reports."""

    feed = serializers.CharField(source="feed.name")

    class Meta:
        model = Watch
        fields = ("feed", "entity", "created_at", "reported_t")


class VisitedRegions(TimeRangeRead):
    """The regions in which an entity was; `complete` false: the log has more rows
    of the span than were read."""

    complete: bool
    visits: list[selectors.Visit]


class ProfileSerializer(serializers.Serializer[Any]):
    """The known data of an entity."""

    entity = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    attributes = serializers.DictField(child=serializers.CharField(allow_blank=True))
    notes = NoteSerializer(many=True)
    watch = WatchSerializer(allow_null=True)
    visited = field_of(VisitedRegions)


class Stored(TypedDict):
    """How many entries of a file were stored."""

    stored: int


class RecordOfEntity(TypedDict):
    """The registry's entry of an entity."""

    entity: str
    name: str
    attributes: dict[str, str]


class Records(TypedDict):
    """Entries of a registry."""

    results: list[RecordOfEntity]


class RegistryFileSerializer(KnownKeys):
    """A file of entities."""

    file = serializers.FileField()


class EntityView(GenericViewSet[Any]):
    """An entity of a feed: users who see the feed see it."""

    queryset = Record.objects.none()
    serializer_class = RecordSerializer
    throttle_action: str | None = None

    def feed(self, *, to_change: bool = False) -> Feed:
        """The feed of the address. Raises Http404, and PermissionDenied for a change that the user
        may not make."""
        feed: Any = get_object_or_404(feed_list(user=person(self.request)), name=self.kwargs["name"])
        if to_change and not feed.editable:
            raise PermissionDenied(Message("You may see this feed but not change its registry."))
        return feed  # type: ignore[no-any-return]

    def entity(self) -> str:
        """The entity of the address. Raises ValidationError."""
        entity = self.request.query_params.get("id", "")
        if not 1 <= len(entity) <= ENTITY_LENGTH:
            raise ValidationError({"id": Message("Name an entity of 1 to {most} characters.", most=ENTITY_LENGTH)})
        return entity

    @extend_schema(
        summary="An entity: its registry entry, visited regions, notes, the user's watch",
        description="Without a span, visits of the last ten minutes before its feed's newest row; of those that lasted `end` is null.",
        parameters=[ID, *SPAN],
        responses=ProfileSerializer,
    )
    def profile(self, request: Request, name: str) -> Response:
        feed, entity, asked = self.feed(), self.entity(), request.query_params
        user = person(request)
        record = selectors.record_of(feed=feed, entity=entity)
        watch = selectors.watch_list(user=user).filter(feed=feed, entity=entity).first()
        visited = selectors.visited(feed=feed, entity=entity, user=user, from_t=whole(asked.get("from"), "from"), to_t=whole(asked.get("to"), "to"))
        return Response(
            {
                "entity": entity,
                "name": record.name if record else "",
                "attributes": record.attributes if record else {},
                "notes": NoteSerializer(selectors.note_list(feed=feed, entity=entity)[:100], many=True).data,
                "watch": WatchSerializer(watch).data if watch else None,
                "visited": {"from": visited.from_t, "to": visited.to_t, "complete": visited.complete, "visits": visited.visits},
            }
        )

    @extend_schema(summary="Change an entity's registry entry; empty: remove it", parameters=[ID], responses=RecordSerializer)
    def put_record(self, request: Request, name: str) -> Response:
        feed, entity = self.feed(to_change=True), self.entity()
        serializer = RecordSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        record = services.record_put(feed=feed, entity=entity, **serializer.validated_data)
        return Response(RecordSerializer(record or Record()).data)

    @extend_schema(summary="Add a note to an entity", request=NoteSerializer, responses={201: NoteSerializer})
    def add_note(self, request: Request, name: str) -> Response:
        feed = self.feed()
        serializer = NoteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        note = services.note_add(feed=feed, author=person(request), **serializer.validated_data)
        return Response(NoteSerializer(note).data, status=201)

    @extend_schema(summary="Remove the user's own note", responses={204: None})
    def remove_note(self, request: Request, name: str, pk: int) -> Response:
        services.note_remove(note=get_object_or_404(Note, feed=self.feed(), pk=pk), user=person(request))
        return Response(status=204)

    @extend_schema(summary="Watch an entity: the user is notified of its next report", parameters=[ID], request=None, responses=WatchSerializer)
    def begin_watch(self, request: Request, name: str) -> Response:
        return Response(WatchSerializer(services.watch_begin(user=person(request), feed=self.feed(), entity=self.entity())).data)

    @extend_schema(summary="Stop watching an entity", parameters=[ID], responses={204: None})
    def end_watch(self, request: Request, name: str) -> Response:
        services.watch_end(user=person(request), feed=self.feed(), entity=self.entity())
        return Response(status=204)


class RegistryView(EntityView):
    """The registry of a feed: searched, from and to a file."""

    parser_classes = (MultiPartParser,)

    @extend_schema(
        summary="Import a registry from a file: CSV with a column `entity`, or GeoJSON whose features have a property `entity`",
        request={"multipart/form-data": RegistryFileSerializer},
        responses={201: schema_of(Stored)},
    )
    def import_registry(self, request: Request, name: str) -> Response:
        feed = self.feed(to_change=True)
        serializer = RegistryFileSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        file = serializer.validated_data["file"]
        if file.size > FILE_BYTES:
            raise ValidationError({"file": Message("The file has more than {most} MB.", most=FILE_BYTES // 1_000_000)})
        return Response({"stored": services.registry_import(feed=feed, entries=read_registry(file.read()))}, status=201)

    @extend_schema(
        summary="Entities of the registry whose id or name contains `search`, by id; at most 100",
        parameters=[parameter("search")],
        responses={200: schema_of(Records)},
    )
    def search(self, request: Request, name: str) -> Response:
        records = selectors.record_list(feed=self.feed(), search=request.query_params.get("search", ""))[:100]
        return Response({"results": [{"entity": one.entity, "name": one.name, "attributes": one.attributes} for one in records]})

    @extend_schema(summary="The registry as a CSV file, with the first 1,000 attributes by name", responses={(200, "text/csv"): OpenApiTypes.STR})
    def export_registry(self, request: Request, name: str) -> StreamingHttpResponse:
        records = selectors.record_list(feed=self.feed())
        # Each row has all attributes: without a limit, a small registry could become a table of
        # gigabytes.
        columns = sorted({key for attributes in records.values_list("attributes", flat=True) for key in attributes})[:MOST_COLUMNS]
        rows = ([one.entity, one.name, *(one.attributes.get(key, "") for key in columns)] for one in records.iterator(chunk_size=2000))
        return csv_download(f"registry-{name}.csv", ["entity", "name", *columns], rows)


class WatchesView(GenericAPIView[Watch]):
    """The user's own watches."""

    queryset = Watch.objects.none()
    pagination_class = None
    serializer_class = WatchSerializer

    @extend_schema(summary="The entities that the user watches, newest first", operation_id="watches_list", responses=WatchSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(WatchSerializer(selectors.watch_list(user=person(request)), many=True).data)


class ActivityView(GenericAPIView[Any]):
    """What happened in a region."""

    queryset = Region.objects.none()
    serializer_class = serializers.Serializer

    throttle_action = "export"

    @extend_schema(
        summary="Entities in a region, entries, exits and lengths of visits",
        description="Counted from the feed's rows: the newest million at most; `from` is the time of the first one counted.",
        parameters=[parameter("hours", OpenApiTypes.INT, description="Default 1. On a feed of ticks: thousands of ticks.")],
        responses={200: schema_of(selectors.RegionActivity)},
    )
    def get(self, request: Request, pk: int) -> Response:
        region = region_list(user=person(request)).filter(pk=pk).first()
        if region is None:
            raise Http404
        hours = whole_between(request.query_params.get("hours"), "hours", 1, MOST_ACTIVITY_HOURS, usual=1)
        unit = 3_600_000 if region.feed.time == "ms" else 1_000
        return Response(selectors.activity(region=region, span=hours * unit))
