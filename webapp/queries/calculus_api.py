"""Endpoints of the rule editor in addition to `queries/check`: the gallery of templates, and a
program tried on a period of history."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.config.known_keys import KnownKeys
from webapp.config.openapi import schema_of
from webapp.config.related import BoundedListField
from webapp.feeds.logs import folder_of_logs
from webapp.feeds.models import Region
from webapp.feeds.of_feed import FeedNameField
from webapp.queries.api import PreviewSerializer, Unavailable, check_for_trial, checked_for_trial, read
from webapp.queries.caged import PreviewFailed
from webapp.queries.derivation import documents_above
from webapp.queries.gallery import POSITION, Filled, Gallery, fill, gallery
from webapp.queries.newest_rows import has_places, usual_event
from webapp.queries.periods import period_of
from webapp.queries.sandbox import sandbox
from webapp.queries.trial_answers import Sandbox


class OfFeedSerializer(KnownKeys):
    """A feed that the user may see."""

    feed = FeedNameField()


class FilledSerializer(OfFeedSerializer):
    """A template and values for its parameters."""

    template = serializers.CharField(max_length=100)
    values = serializers.DictField(required=False, default=dict)


class SandboxSerializer(PreviewSerializer):
    """A program, over which period of the log, and for which entities."""

    entities = BoundedListField(child=serializers.CharField(max_length=200), required=False, default=list, max_length=200)


class GalleryView(APIView):
    """Rule programs to begin with, their parameters in words."""

    throttle_action = "check"

    @extend_schema(summary="The templates, with values for the feed", parameters=[OpenApiParameter("feed", str)], responses={200: schema_of(Gallery)})
    def get(self, request: Request) -> Response:
        serializer = OfFeedSerializer(data=request.query_params, context={"request": request})
        serializer.is_valid(raise_exception=True)
        feed = serializer.validated_data["feed"]
        tags = dict(Region.objects.visible_to(person(request)).filter(feed=feed).order_by("name").values_list("name", "tags"))
        return Response({"templates": gallery(feed.engine_feed(), tags, has_places=has_places(feed))})

    @extend_schema(summary="The specification that a template gives with these values", request=FilledSerializer, responses={200: schema_of(Filled)})
    def post(self, request: Request) -> Response:
        serializer = FilledSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        data, feed = serializer.validated_data, serializer.validated_data["feed"]
        event = usual_event(feed, POSITION)
        filled = fill(data["template"], data["values"], feed.engine_feed(), wall_clock=feed.wall_clock, event=event)
        return Response({"specification": filled})


class SandboxView(APIView):
    """A rule program over a period of history: every fluent, inner ones too, with the rule that
    made each edge; nothing is stored."""

    throttle_action = "preview"

    @extend_schema(request=SandboxSerializer, responses={200: schema_of(Sandbox)})
    def post(self, request: Request) -> Response:
        feed, specification, data = read(SandboxSerializer(data=request.data, context={"request": request}))
        check_for_trial(feed, specification, person(request))
        if specification["family"] != "calculus":
            raise refuse("/specification/family", Message("Only rule programs have inner fluents to show: the family calculus."))
        ready = checked_for_trial(feed, specification, person(request))
        try:
            answer = sandbox(
                log_root=folder_of_logs(feed),
                feed=feed.engine_feed().to_json(),
                specification=ready,
                period=period_of(data, feed),
                entities=data["entities"],
                above=documents_above(ready),
            )
        except PreviewFailed as error:
            raise Unavailable(str(error)) from error
        return Response(answer)
