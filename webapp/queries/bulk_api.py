"""`queries/bulk`: a file of regions becomes as many queries. `queries/remove`: many queries
together, stopped for good."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypedDict

from django.db import transaction
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engine.model.faults import Fault, Refused, in_row
from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer
from webapp.accounts.permissions import check_may_make
from webapp.alerts.services import channels_take
from webapp.config.errors import FaultRow, FaultsBody, faults_body
from webapp.config.known_keys import KnownKeys
from webapp.config.openapi import schema_of
from webapp.config.parsers import Json, read_json
from webapp.config.related import BoundedListField
from webapp.feeds.exchange import read_features
from webapp.feeds.models import Feed
from webapp.feeds.of_feed import FeedNameField
from webapp.feeds.region_files import FILE_BYTES, Feature
from webapp.queries.api import ChannelsOfUser
from webapp.queries.bulk import NAMING, Registered, Removed, queries_register, queries_remove
from webapp.queries.models import Query
from webapp.queries.sentences import sentence_of

TEMPLATE = {"family": "transition", "version": 1, "region": {"region": "$feature"}, "within": "PT3M", "types": ["stayed_in"]}

REMOVED_AT_MOST = 100_000
SHOWN_AT_MOST = 100


class Document(serializers.JSONField):
    """JSON, also as the text that a form carries."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            return super().to_internal_value(data)
        try:
            return read_json(data.encode())
        except ParseError as error:
            raise ValidationError(error.detail) from error
        except Refused as error:
            raise ValidationError(error.faults[0].message) from error


class BulkQueriesSerializer(ChannelsOfUser, OwnedSerializer):
    """A file of regions (or GeoJSON in place) and the query that each of them is to get."""

    feed = FeedNameField()
    template = Document(help_text='A specification; `{"region": "$feature"}` is replaced by each region.')
    file = serializers.FileField(required=False, help_text="GeoJSON, KML, KMZ, GPX, Shapefile (zip), GeoPackage or CSV with WKT.")
    geojson = serializers.JSONField(required=False, help_text="Instead of a file.")
    naming = serializers.CharField(default=NAMING, max_length=200, help_text="`{name}`: the feature's name; `{row}`: its place in the file.")
    name_field = serializers.CharField(required=False, allow_blank=True, default="", help_text="The property that names a feature.")
    alert_kinds = Document(required=False)
    channels = ChannelsOfUser.field()
    partial = serializers.BooleanField(  # type: ignore[assignment]  # hides an attribute of the instance that is not used
        default=False, help_text="Register the good ones though others are refused."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Register nothing, say what would happen.")

    class Meta:
        model = Query
        fields = (
            "feed", "template", "file", "geojson", "naming", "name_field", "severity", "alert_kinds", "enabled", "channels", "team", "public",
            "calls", "calls_per_hour", "partial", "dry_run",
        )  # fmt: skip
        validators: tuple[Any, ...] = ()

    def validate_alert_kinds(self, kinds: Any) -> list[str]:
        """A list of names, in a form as JSON text."""
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            raise serializers.ValidationError(Message("A list of kinds of answers."))
        return kinds


class MadeQuery(TypedDict):
    """The query of a row; `id` null where nothing is registered."""

    row: int
    name: str
    id: int | None
    geometry: dict[str, Any]


class ExistingQuery(TypedDict):
    """A query that has the name already; `same`: and the same specification."""

    row: int
    name: str
    id: int
    same: bool


class RefusedQuery(FaultsBody):
    """A row without a query."""

    row: int
    name: str


class _BulkAnswer(TypedDict):
    queries: list[MadeQuery]
    existing: list[ExistingQuery]
    refused: list[RefusedQuery]
    registered: int
    stored: bool
    sentence: str | None


class BulkAnswer(_BulkAnswer, total=False):
    """The result for the rows; `faults`: those of all refused rows, if any; `sentence`: that of the
    first query."""

    faults: list[FaultRow]


class KeptQuery(TypedDict):
    """A query that the user may not remove."""

    id: int
    name: str


class _RemovedAnswer(TypedDict):
    removed: list[int]
    refused: list[KeptQuery]
    missing: list[int | str]
    stored: bool


class RemovedAnswer(_RemovedAnswer, total=False):
    """Ids of the removed queries, and those that prevent the removal."""

    faults: list[FaultRow]


class BulkView(APIView):
    """One query for each region of a file: one transaction, one version of
    the feed's set of queries."""

    parser_classes = (Json, MultiPartParser)
    throttle_action: str | None = None

    @extend_schema(
        request={"multipart/form-data": BulkQueriesSerializer, "application/json": BulkQueriesSerializer},
        responses={200: schema_of(BulkAnswer), 201: schema_of(BulkAnswer), 400: schema_of(BulkAnswer | FaultsBody)},
        examples=[
            OpenApiExample(
                "Everything that stays in one of these areas",
                {"feed": "city", "template": TEMPLATE, "geojson": {"type": "FeatureCollection", "features": []}, "naming": "Stays in {name}"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        check_may_make(person(request), Query.edit_role)
        serializer = BulkQueriesSerializer(data=request.data, context={"request": request, "view": self})
        serializer.is_valid(raise_exception=True)
        data = dict(serializer.validated_data)
        features = _features(data["feed"], data.pop("file", None), data.pop("geojson", None), data.pop("name_field"))
        channels = data.pop("channels", ())
        with transaction.atomic():
            outcome = queries_register(owner=person(request), features=features, **data)
            channels_take(queries=outcome.queries, user=person(request), channels=channels)
        stored = not data["dry_run"] and (data["partial"] or not outcome.refused)
        status = 201 if outcome.queries else 400 if outcome.refused and not data["dry_run"] else 200
        return Response(_answer(outcome, stored=stored, sentence=_sentence(outcome, data["feed"])), status=status)


class RemoveQueriesSerializer(KnownKeys):
    """The queries of a feed to remove: all, or those that match every given choice."""

    feed = FeedNameField()
    ids = BoundedListField(child=serializers.IntegerField(), required=False, max_length=REMOVED_AT_MOST)
    names = BoundedListField(child=serializers.CharField(max_length=100), required=False, max_length=REMOVED_AT_MOST)
    family = serializers.CharField(required=False, max_length=20)
    search = serializers.CharField(required=False, max_length=100, help_text="Part of the name, as in the list.")
    partial = serializers.BooleanField(  # type: ignore[assignment]  # hides an attribute of the instance that is not used
        default=False, help_text="Remove those that may be though others are refused or missing."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Remove nothing, say what would happen.")
    stop_dependents = serializers.BooleanField(default=False, help_text="Remove them though others derive from them, which then stop.")


class RemoveView(APIView):
    """Many queries of one feed removed in one transaction and one version of
    its set; their answers stay."""

    throttle_action: str | None = None

    @extend_schema(
        request=RemoveQueriesSerializer,
        responses={200: schema_of(RemovedAnswer), 400: schema_of(RemovedAnswer | FaultsBody)},
        examples=[OpenApiExample("All borders of a feed", {"feed": "city", "family": "border"}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        serializer = RemoveQueriesSerializer(data=request.data, context={"request": request, "view": self})
        serializer.is_valid(raise_exception=True)
        data = dict(serializer.validated_data)
        outcome = queries_remove(user=person(request), **data)
        faults = list(islice(_in_the_way(outcome), SHOWN_AT_MOST))
        refused: list[KeptQuery] = [{"id": query.pk, "name": query.name} for query in outcome.refused]
        answer: RemovedAnswer = {"removed": outcome.removed, "refused": refused, "missing": outcome.missing, "stored": outcome.stored}
        if faults:
            answer["faults"] = faults_body(faults)["faults"]
        return Response(answer, status=200 if outcome.stored or data["dry_run"] else 400)


def _in_the_way(removed: Removed) -> Iterator[Fault]:
    for query in removed.refused:
        yield Fault("", Message("The query {name} is not yours to remove.", name=repr(query.name)))
    for one in removed.missing:
        yield Fault("", Message("The feed has no query {one}.", one=repr(one)))


def _features(feed: Feed, file: Any, geojson: Any, name_field: str) -> list[Feature]:
    if (file is None) == (geojson is None):
        raise ValidationError({"file": Message("Send either a file or geojson.")})
    if file is not None and file.size > FILE_BYTES:
        raise ValidationError({"file": Message("The file has more than {most} MB.", most=FILE_BYTES // 1_000_000)})
    data = file.read() if file is not None else json.dumps(geojson).encode()
    return read_features(data, geographic=feed.crs == "geographic", name_field=name_field or None)


def _answer(registered: Registered, *, stored: bool, sentence: str | None) -> BulkAnswer:
    ids: Sequence[int | None] = [query.pk for query in registered.queries] or [None] * len(registered.made)
    made: list[MadeQuery] = [
        {"row": one.row, "name": one.name, "id": pk, "geometry": one.geometry} for one, pk in zip(registered.made, ids, strict=True)
    ]
    existing: list[ExistingQuery] = [{"row": row, "name": query.name, "id": query.pk, "same": same} for row, query, same in registered.existing]
    refused: list[RefusedQuery] = [{"row": row, "name": name, **faults_body(faults)} for row, name, faults in registered.refused]
    faults = faults_body(in_row(row, fault) for row, _, its in registered.refused for fault in its)["faults"]
    answer: BulkAnswer = {
        "queries": made,
        "existing": existing,
        "refused": refused,
        "registered": len(registered.queries),
        "stored": stored,
        "sentence": sentence,
    }
    if faults:
        # The common form of refusals, for clients that read only that.
        answer["faults"] = faults
    return answer


def _sentence(registered: Registered, feed: Any) -> str | None:
    """The sentence of the first of them."""
    first = registered.made[0].specification if registered.made else registered.existing[0][1].specification if registered.existing else None
    return None if first is None else sentence_of(first, feed=feed.engine_feed())
