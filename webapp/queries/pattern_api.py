"""Endpoints of the editors of motion patterns, occupancy, constraint and composite queries,
in addition to check and preview."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engine.derive import with_answers
from engine.model.faults import refuse
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.config.openapi import schema_of
from webapp.feeds.logs import folder_of_logs
from webapp.feeds.models import Feed
from webapp.feeds.selectors import regions_of_feed
from webapp.queries.api import PreviewSerializer, QueryView, SpecificationSerializer, Unavailable, check_for_trial, read
from webapp.queries.caged import Period, PreviewFailed
from webapp.queries.constraint_graph import constraint_graph
from webapp.queries.occupancy import occupancy_course
from webapp.queries.patterns import pattern_answer
from webapp.queries.periods import PeriodSerializer, period_of
from webapp.queries.progress import progress
from webapp.queries.references import frozen
from webapp.queries.selectors import version_list
from webapp.queries.trial_answers import Closure, OccupancyCourse, PatternAnswer, ProgressAnswer


def _progress(feed: Feed, ready: Mapping[str, Any], entity: str | None) -> Response:
    if ready.get("family") != "motion":
        raise refuse("/specification/family", Message("Only motion patterns have steps that can be half done."))
    try:
        return Response(progress(log_root=folder_of_logs(feed), feed=feed.engine_feed().to_json(), specification=ready, entity=entity))
    except PreviewFailed as error:
        raise Unavailable(str(error)) from error


class QueryProgressView(QueryView):
    """Half-finished patterns of a registered query."""

    throttle_action = "progress"

    @extend_schema(
        summary="The steps of a motion pattern that each entity has done",
        parameters=[OpenApiParameter("entity", str, description="only this one")],
        responses={200: schema_of(ProgressAnswer)},
    )
    def progress(self, request: Request, pk: int) -> Response:
        query = self.get_object()
        newest = version_list(query=query).first()
        ready = query.specification if newest is None else newest.specification
        return _progress(query.feed, ready, request.query_params.get("entity"))


class ProgressSerializer(SpecificationSerializer):
    """A pattern, and whether it is requested for a single entity."""

    entity = serializers.CharField(required=False, allow_null=True, default=None)


class ProgressView(APIView):
    """Half-finished patterns of a specification that is being written."""

    throttle_action = "preview"

    @extend_schema(request=ProgressSerializer, responses={200: schema_of(ProgressAnswer)})
    def post(self, request: Request) -> Response:
        feed, specification, data = read(ProgressSerializer(data=request.data, context={"request": request}))
        check_for_trial(feed, specification, person(request))
        return _progress(feed, frozen(specification, regions_of_feed(feed, user=person(request))), data["entity"])


def _course(feed: Feed, ready: Mapping[str, Any], period: Period) -> Response:
    if ready.get("family") != "occupancy":
        raise refuse("/specification/family", Message("Only queries of the family occupancy count who is there."))
    try:
        answer = occupancy_course(log_root=folder_of_logs(feed), feed=feed.engine_feed().to_json(), specification=ready, period=period)
    except PreviewFailed as error:
        raise Unavailable(str(error)) from error
    return Response(answer)


class QueryOccupancyView(QueryView):
    """How many a registered query of the family occupancy counted."""

    throttle_action = "progress"

    @extend_schema(
        operation_id="queries_occupancy_retrieve",
        summary="The number of entities in the region over time",
        parameters=[PeriodSerializer],
        responses={200: schema_of(OccupancyCourse)},
    )
    def occupancy(self, request: Request, pk: int) -> Response:
        query = self.get_object()
        newest = version_list(query=query).first()
        ready = query.specification if newest is None else newest.specification
        parameters = PeriodSerializer(data=request.query_params.dict())
        parameters.is_valid(raise_exception=True)
        return _course(query.feed, ready, period_of(parameters.validated_data, query.feed))


class OccupancyView(APIView):
    """The count over time of a specification that is being written."""

    throttle_action = "preview"

    @extend_schema(request=PreviewSerializer, responses={200: schema_of(OccupancyCourse)})
    def post(self, request: Request) -> Response:
        feed, specification, data = read(PreviewSerializer(data=request.data, context={"request": request}))
        check_for_trial(feed, specification, person(request))
        return _course(feed, frozen(specification, regions_of_feed(feed, user=person(request))), period_of(data, feed))


class OfFamilyView(APIView, ABC):
    """Base of endpoints for one family's editor; the specification may have faults."""

    throttle_action = "check"
    family: str
    refusal: Message
    """The message for a specification of another family."""

    @abstractmethod
    def answer(self, specification: Mapping[str, Any], feed: EngineFeed, regions: Mapping[str, Any]) -> Closure | PatternAnswer:
        """The response; faults of the specification are part of it."""

    def post(self, request: Request) -> Response:
        feed, specification, _ = read(SpecificationSerializer(data=request.data, context={"request": request}))
        if not isinstance(specification, dict) or specification.get("family") != self.family:
            raise refuse("/specification/family", self.refusal)
        # The check decides whether its conditions may name columns of answers: an editor sends only
        # one part of the document.
        return Response(self.answer(specification, with_answers(feed.engine_feed()), regions_of_feed(feed, user=person(request))))


@extend_schema_view(post=extend_schema(request=SpecificationSerializer, responses={200: schema_of(Closure)}))
class ClosureView(OfFamilyView):
    """A constraint query as document, text and closed graph."""

    family, refusal = "constraint", Message("Only constraint queries have a graph.")

    def answer(self, specification: Mapping[str, Any], feed: EngineFeed, regions: Mapping[str, Any]) -> Closure:
        return constraint_graph(specification, feed, regions)


@extend_schema_view(post=extend_schema(request=SpecificationSerializer, responses={200: schema_of(PatternAnswer)}))
class PatternView(OfFamilyView):
    """A composite query's pattern as tree and in words."""

    family, refusal = "composite", Message("Only composite queries have a pattern.")

    def answer(self, specification: Mapping[str, Any], feed: EngineFeed, regions: Mapping[str, Any]) -> PatternAnswer:
        return pattern_answer(specification, feed, regions)
