"""`detections/scores`: how good the demo's queries are."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.authentication import person
from webapp.config.boxes import whole
from webapp.demo.truth import truth_scores
from webapp.feeds.selectors import feed_get


class ScoresView(APIView):
    """On a demo feed: what its queries found of what the simulated world says truly happened."""

    @extend_schema(
        summary="Precision and recall of demo queries",
        parameters=[
            OpenApiParameter("feed", OpenApiTypes.STR, required=True),
            OpenApiParameter("minutes", OpenApiTypes.INT, description="Back from the watermark; 30, at most 1440."),
        ],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request) -> Response:
        feed = feed_get(user=person(request), name=request.query_params.get("feed") or "")
        if feed is None:
            raise NotFound("There is no such feed, or it is not shared with you.")
        minutes = min(max(whole(request.query_params.get("minutes"), "minutes") or 30, 1), 1440)
        return Response({"scores": truth_scores(feed=feed, user=person(request), span_ms=minutes * 60_000)})
