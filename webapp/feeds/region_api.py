"""`regions/`: stored regions, one by one, many together, from and to files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypedDict

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from engine.model.faults import Fault, in_row
from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer
from webapp.config.boxes import integers
from webapp.config.errors import FaultRow, FaultsBody, faults_body
from webapp.config.known_keys import KnownKeys, OneOf
from webapp.config.openapi import Length, schema_of
from webapp.config.parsers import Json
from webapp.config.related import BoundedListField
from webapp.config.tables import FormatOfFile
from webapp.feeds import services
from webapp.feeds.api import parameter
from webapp.feeds.exchange import MEDIA, Exported, read_features, write_features
from webapp.feeds.filters import RegionFilter
from webapp.feeds.models import MOST_TAGS, TAG, TAG_LENGTH, Region
from webapp.feeds.of_feed import FeedNameField, NamedSerializer, OfFeedSerializer, OfFeedView
from webapp.feeds.region_files import FILE_BYTES
from webapp.feeds.selectors import feed_get
from webapp.queries import region_import
from webapp.queries.regions import region_bulk_delete, region_delete, region_list, region_update

EXPORTED = 10_000
FORMATS = sorted(MEDIA)


class RegionSerializer(OfFeedSerializer):
    """A stored region."""

    feed = FeedNameField()
    geometry = serializers.JSONField()
    bbox = serializers.ListField(child=serializers.FloatField(), read_only=True, min_length=4, max_length=4)
    tags = BoundedListField(child=serializers.CharField(max_length=TAG_LENGTH, validators=[TAG]), required=False, max_length=MOST_TAGS)
    used_by = NamedSerializer(source="using", many=True, read_only=True)

    class Meta:
        model = Region
        fields = ("id", "feed", "name", "geometry", "bbox", "tags", "used_by", *OwnedSerializer.OWNED, "created_at", "updated_at")
        # Their service reports it with another pointer.
        validators: tuple[Any, ...] = ()


class ImportSerializer(KnownKeys):
    """A file of regions."""

    file = serializers.FileField()
    feed = FeedNameField()
    name_field = serializers.CharField(required=False, allow_blank=True, default="")
    tags = serializers.CharField(required=False, allow_blank=True, default="", help_text="Separated by commas.")
    partial = serializers.BooleanField(  # type: ignore[assignment]  # hides an attribute of the instance that is not used
        required=False, default=False, help_text="Store the good ones though others are refused."
    )
    only_new = serializers.BooleanField(required=False, default=False, help_text="Leave out regions of the shape of a stored one.")
    replace = serializers.BooleanField(required=False, default=False, help_text="Replace stored regions of the same names that you may change.")
    dry_run = serializers.BooleanField(required=False, default=False, help_text="Store nothing, say what would happen.")


class BulkRegionsSerializer(KnownKeys):
    """One action on many regions."""

    ids = BoundedListField(child=serializers.IntegerField(), allow_empty=False, max_length=5000)
    action = OneOf(["delete", "tag", "untag"])
    tags = BoundedListField(child=serializers.CharField(max_length=TAG_LENGTH), required=False, default=list, max_length=MOST_TAGS)


class _RegionRow(TypedDict):
    name: str
    geometry: dict[str, Any]
    bbox: Annotated[list[float], Length(4)]


class Replaceable(TypedDict):
    """A stored region of that name which the user may change, and what of it differs."""

    id: int
    changes: list[Literal["geometry", "tags"]]


class ImportedRegion(_RegionRow, total=False):
    """A region of a file; without an id where nothing was stored.

    `file_name`: its name in the file, if that was taken. `same_as`: a stored region of its shape.
    `could_replace`: what `replace` would change instead.
    """

    id: int
    file_name: str
    same_as: str
    could_replace: Replaceable


class ReplacedRegion(_RegionRow):
    """A stored region as the import left it, or would leave it."""

    id: int
    changes: list[Literal["geometry", "tags"]]


class RefusedRow(FaultsBody):
    """A row of a file that was refused."""

    row: int
    name: str


class _Imported(TypedDict):
    created: list[ImportedRegion]
    replaced: list[ReplacedRegion]
    refused: list[RefusedRow]


class ImportedRegions(_Imported, total=False):
    """What an import stored and replaced, or would; `faults`: those of all refused
    rows, where there are some."""

    faults: list[FaultRow]


class RefusedRegion(FaultsBody):
    """A region that could not be deleted, or would have too many tags."""

    id: int


class ChangedRegions(TypedDict):
    """The ids of the regions that were changed, and the others."""

    changed: list[int]
    refused: list[RefusedRegion]


class RegionView(OfFeedView):
    """Regions of feeds; specifications name them by `{"region": name}`."""

    queryset = Region.objects.all()
    serializer_class = RegionSerializer
    filterset_class = RegionFilter
    parser_classes: tuple[type[BaseParser], ...] = (Json,)
    content_negotiation_class = FormatOfFile

    def get_queryset(self) -> QuerySet[Any]:
        return region_list(user=self.request.user)

    @extend_schema(
        examples=[
            OpenApiExample(
                "A circle of 30 m", {"feed": "city", "name": "garage 12", "geometry": {"center": [11.5, 48.1], "radius": 30}}, request_only=True
            )
        ]
    )
    def create(self, request: Request) -> Response:
        self.check_may_make()
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(self.represent(services.region_create(owner=person(request), **serializer.validated_data)), status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        region = self.get_editable()
        changes = self.changes(region, request, moved=Message("A region cannot move to another feed: create a new one there."))
        return Response(self.represent(region_update(region=region, user=person(request), **changes)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        region_delete(region=self.get_editable(), user=person(request))
        return Response(status=204)

    @extend_schema(
        summary="Import regions from a file: GeoJSON, KML, KMZ, GPX, Shapefile (zip), GeoPackage or CSV with WKT",
        request={"multipart/form-data": ImportSerializer},
        responses={200: schema_of(ImportedRegions), 201: schema_of(ImportedRegions), 400: schema_of(ImportedRegions | FaultsBody)},
    )
    def import_file(self, request: Request) -> Response:
        self.check_may_make()
        serializer = ImportSerializer(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        if data["file"].size > FILE_BYTES:
            raise ValidationError({"file": Message("The file has more than {most} MB.", most=FILE_BYTES // 1_000_000)})
        imported = region_import.regions_import(
            owner=person(request),
            feed=data["feed"],
            features=read_features(data["file"].read(), geographic=data["feed"].crs == "geographic", name_field=data["name_field"] or None),
            tags=data["tags"].split(","),
            partial=data["partial"],
            only_new=data["only_new"],
            replace=data["replace"],
            dry_run=data["dry_run"],
        )
        stored = not data["dry_run"] and (data["partial"] or not imported.refused)
        return Response(_import_answer(imported, stored), status=201 if stored else 400 if imported.refused and not data["dry_run"] else 200)

    @extend_schema(
        summary="Export regions as a file",
        filters=True,
        parameters=[
            parameter("feed", required=True),
            parameter("format", enum=FORMATS),
            parameter("id", OpenApiTypes.INT64, many=True),
            parameter("tag"),
        ],
        responses={(200, media): OpenApiTypes.BINARY for media in MEDIA.values()},
    )
    def export_file(self, request: Request) -> HttpResponse:
        parameters = request.query_params
        feed = feed_get(user=person(request), name=parameters.get("feed", ""))
        if feed is None:
            raise ValidationError({"feed": Message("Name a feed that you may see.")})
        regions = self.filter_queryset(self.get_queryset()).filter(feed=feed)
        if ids := parameters.getlist("id"):
            regions = regions.filter(pk__in=integers(ids, "id"))
        kind = parameters.get("format", "geojson")
        if kind not in MEDIA:
            raise ValidationError({"format": Message("One of {known}.", known=", ".join(FORMATS))})
        exported = [Exported(region.name, region.geometry, region.tags) for region in regions[:EXPORTED]]
        data = write_features(exported, kind, geographic=feed.crs == "geographic")
        headers = {"Content-Disposition": f'attachment; filename="regions-{feed.name}.{kind}"'}
        return HttpResponse(data, content_type=MEDIA[kind], headers=headers)

    @extend_schema(summary="Delete, tag or untag many", request=BulkRegionsSerializer, responses={200: schema_of(ChangedRegions)})
    def bulk(self, request: Request) -> Response:
        serializer = BulkRegionsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        regions = [region for region in self.get_queryset().filter(pk__in=data["ids"]) if region.editable]
        refused: Iterable[tuple[int, list[Fault]]] = ()
        if data["action"] == "delete":
            changed, refused = region_bulk_delete(regions=regions, user=person(request))
        else:
            changed, refused = services.region_bulk_tag(regions=regions, tags=data["tags"], remove=data["action"] == "untag")
        return Response({"changed": changed, "refused": [{"id": pk, **faults_body(faults)} for pk, faults in refused]})


class RegionImportView(RegionView):
    """The import: a form with a file instead of JSON."""

    parser_classes = (MultiPartParser,)


def _import_answer(imported: region_import.Imported, stored: bool) -> ImportedRegions:
    refused: list[RefusedRow] = [{"row": row, "name": name, **faults_body(faults)} for row, name, faults in imported.refused]
    all_faults = faults_body(in_row(row, fault) for row, _, faults in imported.refused for fault in faults)["faults"]
    created = [_imported_row(one, stored) for one in imported.regions]
    answer: ImportedRegions = {"created": created, "replaced": [_replaced_row(one) for one in imported.replaced], "refused": refused}
    if all_faults:
        # The common form of refusals, for clients that read only that.
        answer["faults"] = all_faults
    return answer


def _replaced_row(one: region_import.Replacement) -> ReplacedRegion:
    region = one.stored
    return {"id": region.pk, "name": region.name, "geometry": region.geometry, "bbox": region.bbox, "changes": list(one.changes)}


def _imported_row(one: region_import.ImportedRegion, stored: bool) -> ImportedRegion:
    row: ImportedRegion = {"name": one.region.name, "geometry": one.region.geometry, "bbox": one.region.bbox}
    if one.file_name is not None:
        row["file_name"] = one.file_name
    if one.same_as is not None:
        row["same_as"] = one.same_as
    if one.could_replace is not None:
        row["could_replace"] = {"id": one.could_replace.stored.pk, "changes": list(one.could_replace.changes)}
    if stored:
        row["id"] = one.region.pk
    return row
