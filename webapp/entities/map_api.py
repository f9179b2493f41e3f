"""`feeds/{name}/density` and `feeds/{name}/attribute`: data that the live map draws in addition to
positions."""

from __future__ import annotations

from typing import Any, TypedDict

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from engine.model.messages import Message, message_of
from webapp.accounts.authentication import person
from webapp.config.boxes import box_from, whole
from webapp.config.openapi import TimeRange, schema_of
from webapp.detections.api import visible_queries
from webapp.detections.selectors import detection_list
from webapp.entities import attributes
from webapp.entities.density import MOST_CELLS, Grid, TooMany, density
from webapp.feeds.api import parameter
from webapp.feeds.models import Feed
from webapp.feeds.selectors import feed_list


class Density(TimeRange):
    """Reports by cell of the grid, row by row from the south."""

    total: int
    counts: list[int]


class AttributeValues(TypedDict):
    """The names of all attributes, and the values of one by entity."""

    names: list[str]
    values: dict[str, Any]


class MapView(GenericViewSet[Any]):
    """Drawings of a feed's map: users who see the feed see them."""

    queryset = Feed.objects.none()
    serializer_class = serializers.Serializer
    throttle_action: str | None = None

    def feed(self) -> Feed:
        """The feed of the address. Raises Http404."""
        feed: Feed = get_object_or_404(feed_list(user=person(self.request)), name=self.kwargs["name"])
        return feed

    @extend_schema(
        summary="The number of reports from each cell of a grid over the map",
        description="Reports in `[from, to)` by cell, row by row from the south; cells are equal on the screen (Mercator). With `of=answers`, "
        "reports of entities while they were in an answer of the visible queries, or of those that `query` names. `to` of the answer is earlier "
        "than asked for where the reports are more than two million.",
        parameters=[
            parameter("from", OpenApiTypes.INT64, required=True),
            parameter("to", OpenApiTypes.INT64, required=True),
            parameter("bbox", required=True, description="`w,s,e,n`"),
            parameter("columns", OpenApiTypes.INT, required=True),
            parameter("rows", OpenApiTypes.INT, required=True, description=f"At most {MOST_CELLS:,} cells."),
            parameter("of", description="`reports` (when absent) or `answers`."),
            parameter("query", description="Ids, separated by commas."),
        ],
        responses={200: schema_of(Density)},
    )
    def density(self, request: Request, name: str) -> Response:
        feed, parameters = self.feed(), request.query_params
        from_t, to_t = whole(parameters.get("from"), "from"), whole(parameters.get("to"), "to")
        if from_t is None or to_t is None or not from_t < to_t:
            raise ValidationError({"from": Message("Give from and to, from before to.")})
        columns, rows = whole(parameters.get("columns"), "columns") or 0, whole(parameters.get("rows"), "rows") or 0
        if columns < 1 or rows < 1 or columns * rows > MOST_CELLS:
            raise ValidationError({"columns": Message("Give columns and rows of at least 1, with at most {most:,} cells.", most=MOST_CELLS)})
        of = parameters.get("of") or "reports"
        if of not in ("reports", "answers"):
            raise ValidationError({"of": Message("reports or answers.")})
        answers = detection_list(feed_id=feed.pk, query_ids=visible_queries(request, feed)) if of == "answers" else None
        grid = Grid(box_from(parameters.get("bbox", "")), columns, rows, feed.crs == "geographic")
        try:
            cells = density(feed, from_t, to_t, grid, answers)
        except TooMany as error:
            raise ValidationError({"from": message_of(error)}) from error
        return Response({"from": cells.from_t, "to": cells.to_t, "total": int(cells.counts.sum()), "counts": cells.counts.tolist()})

    @extend_schema(
        summary="The values of an attribute by entity",
        description="`names`: attributes of the feed's rows and of its registry. `values`: of the attribute `name`, the registry's value or the last "
        "one reported; empty without a name.",
        parameters=[parameter("name")],
        responses={200: schema_of(AttributeValues)},
    )
    def attribute(self, request: Request, name: str) -> Response:
        feed, wanted = self.feed(), request.query_params.get("name", "")
        return Response({"names": attributes.names(feed), "values": attributes.values(feed, wanted) if wanted else {}})
