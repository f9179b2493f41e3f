"""`POST /api/v1/feeds/{name}/events`: rows over HTTP, answered when they are on disk.

The work is done by a few long-lived threads with lasting database connections: under ASGI each
request has a thread, and connections die with theirs; a new one for each request would cost more
than everything else here.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections
from django.http import HttpRequest
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engine.model.faults import Fault
from engine.model.messages import untranslated
from engine.sources.files import UnreadableFile
from engine.sources.segments import LogDamaged
from webapp.accounts.models import ApiToken, Scope
from webapp.accounts.services import token_authenticate
from webapp.config.errors import FaultsBody, faults_body
from webapp.config.openapi import schema_of
from webapp.feeds.bodies import ARROW, BODY_BYTES, CSV, NDJSON, TooLarge, Unsupported, inflate, read_body
from webapp.feeds.damage import feed_set_aside
from webapp.feeds.ingest import Delivery, KeyReused, Receipt, ingest
from webapp.feeds.models import Feed, LogDamage
from webapp.feeds.rates import BUCKETS, limits_of
from webapp.feeds.selectors import feed_get
from webapp.platform.disk import is_full
from webapp.platform.waits import hangs

log = logging.getLogger(__name__)

WORKERS = 6
WAITING = 100
"""More concurrent requests are asked to retry later."""
KEY_CHARACTERS = 200
RETRY_AFTER_S = 1
DAMAGED_RETRY_S = 60
"""An operator has to run a command first."""
OTHER_FEED = "The token is only for another feed."
T = TypeVar("T")

_pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="ingest")


class Refused(Exception):
    """A refused request: status and reason of the response."""

    def __init__(self, status: HTTPStatus, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


@dataclass(frozen=True)
class Posted:
    """The parts of a request that ingest needs; they outlive the request's own thread."""

    content_type: str
    encoding: str
    key: str | None
    body: bytes


class EventsView(APIView):
    """Takes rows into a feed's log."""

    # Tokens are looked up by the pool's threads; there is no session here, so no CSRF either. No
    # throttle: it would need Redis, and the limit on waiting requests has the same effect.
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    @extend_schema(
        operation_id="feeds_events_create",
        summary="Send rows",
        description=(
            "NDJSON, CSV with a header, or an Arrow stream; gzip allowed. Needs a token with the scope `ingest` of somebody who may edit the "
            "feed. 202 means that the good rows are on disk; refused rows are kept as dead letters with their reason."
        ),
        parameters=[
            OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER, description="A request that is repeated with its key appends nothing."),
        ],
        request={NDJSON: OpenApiTypes.STR, CSV: OpenApiTypes.STR, ARROW: OpenApiTypes.BINARY},
        responses={
            202: inline_serializer(
                "IngestReceipt",
                {
                    "received": serializers.IntegerField(),
                    "appended": serializers.IntegerField(),
                    "dead": serializers.IntegerField(),
                    "late": serializers.IntegerField(help_text="Of the appended rows: those that came too late to count."),
                    "first_seq": serializers.IntegerField(allow_null=True),
                    "last_seq": serializers.IntegerField(allow_null=True),
                    "dead_letters": serializers.ListField(child=serializers.DictField()),
                    "repeated": serializers.BooleanField(),
                },
            ),
            **dict.fromkeys((400, 401, 403, 404, 413, 415, 422, 429, 503), schema_of(FaultsBody)),
        },
        auth=[{"token": []}],  # type: ignore[list-item]  # the list goes into the document as it is
    )
    def post(self, request: Request, name: str) -> Response:
        try:
            sender = in_pool(lambda: permit(request.headers.get("Authorization", ""), name))
            posted = read_request(request._request)
            receipt = in_pool(lambda: take(sender, posted))
        except Refused as refused:
            return Response(faults_body([Fault("", untranslated(refused.message))]), status=refused.status, headers=refused.headers)
        return Response(as_answer(receipt), status=HTTPStatus.ACCEPTED)


def read_request(request: HttpRequest) -> Posted:
    """The request with its whole body, if that is not too large. Raises Refused."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdigit() and int(length) > BODY_BYTES:
        raise too_large()
    body = request.read(BODY_BYTES + 1)
    if len(body) > BODY_BYTES:
        raise too_large()
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (1 <= len(key) <= KEY_CHARACTERS and key.isprintable()):
        raise Refused(HTTPStatus.BAD_REQUEST, f"An Idempotency-Key has 1 to {KEY_CHARACTERS} printable characters.")
    headers = request.headers
    return Posted(
        content_type=headers.get("Content-Type", ""),
        encoding=headers.get("Content-Encoding", "").strip().lower(),
        key=key,
        body=body,
    )


def too_large() -> Refused:
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has at most {BODY_BYTES} bytes; send smaller parts.")


def in_pool(work: Callable[[], T]) -> T:
    """The result of `work`, done by a thread with a lasting database connection. Raises Refused
    when too many wait or a service is unavailable."""
    if _pool._work_queue.qsize() > WAITING:
        raise away("Too many requests wait.")
    if hangs():
        raise away("The database does not answer.")

    def connected() -> T:
        close_old_connections()
        return work()

    try:
        return _pool.submit(connected).result()
    except (OperationalError, InterfaceError) as error:
        log.warning("ingest: the database is away: %s", error)
        raise away("The database's disk is full." if is_full(error) else "The database is away.") from error
    except OSError as error:
        log.error("ingest: the log cannot be written: %s", error)
        raise away("The disk of the event log is full." if is_full(error) else "The log cannot be written.") from error
    except DatabaseError as error:
        # The next request settles what was appended; the same key then finds it.
        log.exception("ingest: the database refuses")
        raise away("The database refuses.") from error


def away(message: str) -> Refused:
    return Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{message} Send it again, with the same Idempotency-Key.", **{"Retry-After": str(RETRY_AFTER_S)})


@dataclass(frozen=True)
class Sender:
    """The sender and the feed."""

    token: ApiToken
    feed: Feed


def permit(authorization: str, name: str) -> Sender:
    """Checks who may send to the feed, before the body is read. Raises Refused."""
    word, _, text = authorization.partition(" ")
    token = token_authenticate(text.strip()) if word.lower() == "bearer" else None
    if token is None:
        raise Refused(HTTPStatus.UNAUTHORIZED, "Send a valid token: Authorization: Bearer <token>.", **{"WWW-Authenticate": "Bearer"})
    if Scope.INGEST not in token.scopes:
        raise Refused(HTTPStatus.FORBIDDEN, "The token lacks the scope ingest.")
    feed = Feed.objects.editable_by(token.user).select_related("team").filter(name=name).first()
    if feed is None or token.feed_id not in (None, feed.pk):
        if feed_get(user=token.user, name=name) is None:
            raise Refused(HTTPStatus.NOT_FOUND, "There is no such feed.")
        raise Refused(HTTPStatus.FORBIDDEN, OTHER_FEED if feed is not None else "The token's user may see this feed but not send to it.")
    for limit in limits_of(token, feed):
        if wait := BUCKETS.wait(limit):
            seconds = str(math.ceil(wait))
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, f"{limit.what} is used up. Send it again in {seconds} s.", **{"Retry-After": seconds})
    for limit in limits_of(token, feed):
        if not limit.of_rows:
            BUCKETS.take(limit, 1)
    return Sender(token, feed)


def take(sender: Sender, posted: Posted) -> Receipt:
    """Reads, checks and stores a request's rows. Raises Refused."""
    token, feed = sender.token, sender.feed
    try:
        piece = read_body(inflate(posted.body, posted.encoding), posted.content_type, feed.engine_feed())
        digest = hashlib.sha256(posted.body).hexdigest() if posted.key is not None else ""
        for limit in limits_of(token, feed):
            if limit.of_rows:
                BUCKETS.take(limit, piece.read)
        return ingest(feed, Delivery(piece.rows, piece.dead(), f"http:{token.prefix}", posted.key, digest))
    except UnreadableFile as error:
        raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from error
    except TooLarge as error:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error)) from error
    except Unsupported as error:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, str(error)) from error
    except KeyReused as error:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
    except LogDamaged as damage:
        feed_set_aside(feed=feed, damage=damage)
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(LogDamage.objects.get(feed=feed)), **{"Retry-After": str(DAMAGED_RETRY_S)}) from damage


def as_answer(receipt: Receipt) -> dict[str, Any]:
    """The 202's body."""
    return {
        "received": receipt.received,
        "appended": receipt.appended,
        "dead": receipt.dead,
        "late": receipt.late,
        "first_seq": receipt.first_seq,
        "last_seq": receipt.last_seq,
        "dead_letters": receipt.dead_letters,
        "repeated": receipt.repeated,
    }
