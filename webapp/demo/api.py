"""`detections/scores`: the quality of the demo's queries; `samples/`: recordings to start with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypedDict
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.models import User
from webapp.accounts.permissions import check_may_make
from webapp.config.boxes import whole_between
from webapp.config.known_keys import KnownKeys
from webapp.config.openapi import Length, TimeRangeRead, schema_of
from webapp.demo.samples import Sample, all_samples, sample_load
from webapp.demo.truth import ScoreRow, truth_scores
from webapp.feeds.api import FeedSerializer
from webapp.feeds.models import Feed, Upload
from webapp.feeds.selectors import feed_get, upload_list
from webapp.feeds.uploads.api import UploadSerializer


class Scores(TypedDict):
    """One for each demo query."""

    scores: list[ScoreRow]


class ScoresView(APIView):
    """On a demo feed: how much of the simulated world's ground truth its queries found."""

    @extend_schema(
        summary="Precision and recall of demo queries",
        parameters=[
            OpenApiParameter("feed", OpenApiTypes.STR, required=True),
            OpenApiParameter("minutes", OpenApiTypes.INT, description="Back from the watermark; default 30, at most 1440."),
        ],
        responses={200: schema_of(Scores)},
    )
    def get(self, request: Request) -> Response:
        feed = feed_get(user=person(request), name=request.query_params.get("feed") or "")
        if feed is None:
            raise NotFound(Message("There is no such feed, or it is not shared with you."))
        minutes = whole_between(request.query_params.get("minutes"), "minutes", 1, 1440, usual=30)
        return Response({"scores": truth_scores(feed=feed, user=person(request), span_ms=minutes * 60_000)})


class SampleSerializer(KnownKeys):
    """Which sample, for which team, and from which uploaded file if the sample's own
    file is not on this server."""

    name = serializers.CharField(max_length=63)
    team = serializers.IntegerField(required=False, allow_null=True, default=None)
    upload = serializers.UUIDField(required=False, allow_null=True, default=None)


class SampleQuery(TypedDict):
    """A query that comes with a sample."""

    name: str
    description: str


class MapPlace(TypedDict):
    """What the map shows."""

    x: float
    y: float
    zoom: float


class SampleView(TypedDict):
    """Where the live page opens, in the form of its address; times in milliseconds."""

    window: Annotated[list[int], Length(2)]
    instant: int
    map: MapPlace


class SampleRow(TimeRangeRead):
    """A recording, or a simulated world (`live`), to start with. `here`: its rows are on this
    server; otherwise `file` has to be uploaded."""

    name: str
    title: str
    about: str
    licence: str
    origin: str
    live: bool
    here: bool
    file: str
    rows: int
    minutes: float | None
    opens: SampleView | None
    queries: list[SampleQuery]


class Samples(TypedDict):
    """All of them."""

    results: list[SampleRow]


class SamplesView(APIView):
    """Recordings to start with, each with queries for it."""

    @extend_schema(
        summary="The included samples",
        description="`here` is false where the recording is not included: upload its `file`, then name the upload.",
        responses={200: schema_of(Samples)},
    )
    def get(self, request: Request) -> Response:
        return Response({"results": [_row_of(sample.in_words()) for sample in all_samples()]})

    @extend_schema(
        summary="Create a feed from a sample",
        description="A real recording is loaded as history, made minutes as if they happened now. The answer is the upload that brings the rows. "
        "`upload` is the uploaded file of a recording that is not included.",
        request=SampleSerializer,
        responses={201: UploadSerializer},
    )
    def post(self, request: Request) -> Response:
        user = person(request)
        check_may_make(user, Feed.edit_role)
        serializer = SampleSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        # The team is checked as that of any new feed.
        feed = FeedSerializer(data={"name": "sample", "title": "Sample", "crs": "geographic", "team": data["team"]}, context={"request": request})
        feed.is_valid(raise_exception=True)
        upload = sample_load(name=data["name"], user=user, team=feed.validated_data.get("team"), uploaded=_file_of(user, data["upload"]))
        return Response(UploadSerializer(upload, context={"request": request}).data, status=201)


def _file_of(user: User, upload: UUID | None) -> Upload | None:
    """The file that the user uploaded. Raises Refused."""
    if upload is None:
        return None
    file = upload_list(user=user).filter(pk=upload, owner=user).first()
    if file is None:
        raise refuse("/upload", Message("You have no such file."))
    return file


def _row_of(sample: Sample) -> SampleRow:
    return {
        "name": sample.name,
        "title": sample.title,
        "about": sample.about,
        "licence": sample.licence,
        "origin": sample.origin,
        "live": bool(sample.made),
        "here": sample.is_here,
        "file": sample.file,
        "rows": sample.rows,
        "from": _milliseconds(sample.span[0]) if sample.span else None,
        "to": _milliseconds(sample.span[1]) if sample.span else None,
        "minutes": sample.made.get("minutes"),
        "opens": _view_of(sample.opens) if sample.opens else None,
        "queries": [{"name": query["name"], "description": query.get("description", "")} for query in sample.queries],
    }


def _view_of(opens: Mapping[str, Any]) -> SampleView:
    """In the form of addresses of the live page."""
    x, y, zoom = opens["map"]
    return {"window": [_milliseconds(one) for one in opens["window"]], "instant": _milliseconds(opens["at"]), "map": {"x": x, "y": y, "zoom": zoom}}


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
