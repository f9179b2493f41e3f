"""`/api/v1/track/{feed}/{token}`: reports of trackers and of Traccar servers, one request each,
answered when they are on disk.

Phone apps take only an address, so the token may be part of it; clients that can set a header send
it there.
"""

from __future__ import annotations

from http import HTTPStatus

from django.http import QueryDict
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engine.model.faults import Fault
from engine.model.faults import Refused as Unsuitable
from engine.model.messages import untranslated
from engine.sources.live.payloads import now_ms
from engine.sources.segments import LogDamaged
from engine.sources.trackers import COLUMNS, READING, reports_of
from webapp.config.errors import faults_body
from webapp.connectors.rows import own_reading, rows_of
from webapp.feeds.damage import feed_set_aside
from webapp.feeds.ingest import Delivery, Receipt, ingest
from webapp.feeds.ingest_views import Refused, Sender, as_answer, away, in_pool, permit, read_request
from webapp.feeds.rates import BUCKETS, limits_of


class TrackerView(APIView):
    """Takes reports into a feed's log."""

    # As for rows of other programs: the token is looked up by the pool's threads.
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    # Not in the OpenAPI document, whose list of parameters is closed: trackers add any parameters.
    # docs/connectors.md describes it.
    @extend_schema(exclude=True)
    def post(self, request: Request, name: str, token: str = "") -> Response:
        """OsmAnd's protocol, the JSON of Traccar Client, or the JSON that a Traccar server
        forwards."""
        authorization = f"Bearer {token}" if token else request.headers.get("Authorization", "")
        try:
            sender = in_pool(lambda: permit(authorization, name))
            body = read_request(request._request).body
            query = {**{key: str(value) for key, value in request._request.GET.items()}, **_form(request, body)}
            receipt = in_pool(lambda: take(sender, query, body))
        except Refused as refused:
            return Response(faults_body([Fault("", untranslated(refused.message))]), status=refused.status, headers=refused.headers)
        return Response(as_answer(receipt), status=HTTPStatus.ACCEPTED)

    @extend_schema(exclude=True)
    def get(self, request: Request, name: str, token: str = "") -> Response:
        """The oldest trackers write all of it into the address."""
        return self.post(request, name, token)


def _form(request: Request, body: bytes) -> dict[str, str]:
    """The fields of a form that was sent."""
    if request.headers.get("Content-Type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        return {}
    try:
        return {key: str(value) for key, value in QueryDict(body, encoding="utf-8").items()}
    except (UnicodeError, ValueError):
        return {}


def take(sender: Sender, query: dict[str, str], body: bytes) -> Receipt:
    """Reads and stores the reports of a request. An invalid one becomes a dead letter: trackers
    would send it again forever. Raises Refused."""
    token, feed = sender.token, sender.feed
    engine_feed = feed.engine_feed()
    try:
        piece = rows_of(list(reports_of(query, body, now_ms())), own_reading(READING, COLUMNS, engine_feed), engine_feed)
    except Unsuitable as unsuitable:
        raise Refused(HTTPStatus.BAD_REQUEST, " ".join(fault.message for fault in unsuitable.faults)) from unsuitable
    for limit in limits_of(token, feed):
        if limit.of_rows:
            BUCKETS.take(limit, piece.read)
    try:
        return ingest(feed, Delivery(piece.rows, piece.dead(), f"tracker:{token.prefix}", None, ""))
    except LogDamaged as damage:
        feed_set_aside(feed=feed, damage=damage)
        raise away("The feed's log is damaged.") from damage
