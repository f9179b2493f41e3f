"""`detections/`: stored answers."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import APIException, NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from engine.model.messages import Message, message_of
from webapp.accounts.authentication import person
from webapp.config.boxes import integers, page_size, whole, whole_between
from webapp.config.openapi import Length, TimeRange, page_of, schema_of
from webapp.config.tables import DOWNLOAD_ROWS, FORMAT, FORMATS, FormatOfFile, format_of, table_download
from webapp.detections.changes import Changes, NoSuchNumber, NotKept, Wanted, changes_after
from webapp.detections.counts import answer_counts
from webapp.detections.evidence import AnswerBehind, answers_behind, detection_find, tracks_around
from webapp.detections.export import COLUMNS, named, rows_of
from webapp.detections.models import Detection
from webapp.detections.selectors import DetectionRow, RemovedQuery, detection_list, detection_parts, detection_row, removed_queries
from webapp.feeds.models import Feed
from webapp.feeds.recent import Track
from webapp.feeds.selectors import feed_get
from webapp.queries.selectors import behind, queries_visible, specification_then

PAGE_SIZE, LARGEST_PAGE = 100, 1_000
ORDERS = {"-start": ("-begun", "-key"), "start": ("begun", "key")}


class DetectionPages:
    """By time: newest first, or oldest first with `order=start`. A cursor is the (start, key) of
    the last answer of the previous page.

    DRF's cursor counts within answers of one start, which may be many, and repeats some
    when others come between.
    """

    def paginate(self, parts: list[QuerySet[Detection]], request: Request) -> list[Detection]:
        """A page of at most `page_size` (100, at most 1000) of `detection_parts`. Raises
        ValidationError for an invalid cursor."""
        self.request = request
        size = page_size(request.query_params.get("page_size"), PAGE_SIZE, LARGEST_PAGE)
        ascending, cursor = request.query_params.get("order") == "start", request.query_params.get("cursor")
        found: list[Detection] = []
        for part in parts if ascending else reversed(parts):
            rows = part if cursor is None else part.filter(_beyond(cursor, ascending=ascending))
            found += rows.order_by(*ORDERS["start" if ascending else "-start"])[: size + 1 - len(found)]
            if len(found) > size:
                break
        self.more = len(found) > size
        self.page = found[:size]
        return self.page

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"next": self._next(), "previous": None, "results": data})

    def _next(self) -> str | None:
        if not self.more:
            return None
        last = self.page[-1]
        return replace_query_param(self.request.build_absolute_uri(), "cursor", f"{last.start}.{bytes(last.key).hex()}")


def _beyond(cursor: str, *, ascending: bool) -> Q:
    """The answers after the cursor's place. Raises ValidationError."""
    try:
        text, digits = cursor.split(".")
        start, key = int(text), bytes.fromhex(digits)
        if not -(2**63) <= start < 2**63:
            raise ValueError(cursor)
    except ValueError as error:
        raise ValidationError({"cursor": Message("Use `next` of the previous page.")}) from error
    # PostgreSQL begins to read an index at the first condition, not at an alternative.
    if ascending:
        return Q(start__gte=start) & (Q(start__gt=start) | Q(key__gt=key))
    return Q(start__lte=start) & (Q(start__lt=start) | Q(key__lt=key))


class AnswerCounts(TimeRange):
    """`counts`: by query and kind, [number of the bucket, answers that begin in it], without
    empty buckets of `width`."""

    width: int
    counts: dict[str, dict[str, list[Annotated[list[int], Length(2)]]]]


class DetectionDetail(DetectionRow):
    """An answer with what explains it."""

    feed: str
    query_name: str
    sentence: str | None
    tracks: list[Track]


class AnswerFile(DetectionDetail):
    """An answer with all that it rests on. `specification`: of the version that gave it, with
    its stored regions as they were then."""

    specification: dict[str, Any]
    saved_at: str


class AnswersBehind(TypedDict):
    """The answers from which one was derived."""

    answers: list[AnswerBehind]


class RemovedQueries(TypedDict):
    """Removed queries, the last one first."""

    results: list[RemovedQuery]


FILTERS = [
    OpenApiParameter("feed", OpenApiTypes.STR, description="Name of a feed; this or query is required."),
    OpenApiParameter("query", OpenApiTypes.INT64, many=True),
    OpenApiParameter("without", OpenApiTypes.INT64, many=True, description="All queries but these; an address has room for some 1,000."),
    OpenApiParameter("kind", OpenApiTypes.STR, many=True),
    OpenApiParameter("entity", OpenApiTypes.STR, many=True, description="Answers about any of them."),
    OpenApiParameter("from", OpenApiTypes.INT64, description="Overlap with [from, to)."),
    OpenApiParameter("to", OpenApiTypes.INT64),
    OpenApiParameter("withdrawn", OpenApiTypes.BOOL, description="true: those that later events withdrew, instead of the valid ones."),
    OpenApiParameter("order", OpenApiTypes.STR, enum=list(ORDERS)),
    OpenApiParameter("versions", OpenApiTypes.STR, enum=["newest", "all"], description="all: also answers of earlier versions of an edited query."),
]


FOLLOWED = OpenApiParameter("after", OpenApiTypes.INT64, description="Instead of a page by time: all changes after this number, in order.")
PAGES = [OpenApiParameter("cursor", OpenApiTypes.STR), OpenApiParameter("page_size", OpenApiTypes.INT)]


BY_TIME = ("cursor", "from", "to", "order", "withdrawn")


def named_queries(request: Request) -> set[int]:
    """The queries that the address names. Raises ValidationError."""
    return set(integers(request.query_params.getlist("query"), "query"))


def visible_queries(request: Request, feed: Feed | None) -> list[int]:
    """Those that the address names, or all, as far as the user may see them, but those left out."""
    visible, named = queries_visible(user=person(request), feed=feed), named_queries(request)
    left_out = integers(request.query_params.getlist("without"), "without")
    return sorted((visible & named if named else visible).difference(left_out))


def asked_for(request: Request) -> dict[str, Any]:
    """The arguments of `detection_list` from the request's parameters. Raises ValidationError, and
    NotFound for a feed that the user may not see."""
    parameters = request.query_params
    name = parameters.get("feed")
    feed = feed_get(user=person(request), name=name) if name else None
    if name and feed is None:
        raise NotFound(Message("There is no such feed, or it is not shared with you."))
    if feed is None and not named_queries(request):
        raise ValidationError({"feed": Message("Name a feed or a query.")})
    return {
        "feed_id": None if feed is None else feed.pk,
        "query_ids": visible_queries(request, feed),
        "from_t": whole(parameters.get("from"), "from"),
        "to_t": whole(parameters.get("to"), "to"),
        "entities": [name for name in parameters.getlist("entity") if name] or None,
        "kinds": parameters.getlist("kind") or None,
        "withdrawn": parameters.get("withdrawn") == "true",
        "all_versions": parameters.get("versions") == "all",
    }


class Gone(APIException):
    """The requested changes are no longer kept."""

    status_code = 410


def changes_asked_for(request: Request) -> Changes:
    """The changes after a number. Raises ValidationError, NotFound, and Gone when some of them are
    no longer kept."""
    parameters = request.query_params
    after = whole(parameters.get("after"), "after")
    feed = feed_get(user=person(request), name=parameters.get("feed") or "")
    wrong = {
        name: Message("Changes are returned in their order: this parameter is only for pages by time.") for name in BY_TIME if name in parameters
    }
    if after is None or after < 0:
        wrong["after"] = Message("The number `seq` of the answer before; head.outbox_seq of the feed to begin with.")
    if wrong:
        raise ValidationError(wrong)
    if feed is None:
        raise NotFound(Message("Name a feed that you may see: numbers are counted for each feed."))
    assert after is not None
    entities, kinds = (frozenset(filter(None, parameters.getlist(name))) for name in ("entity", "kind"))
    wanted = Wanted(frozenset(visible_queries(request, feed)), entities, kinds)
    size = page_size(parameters.get("page_size"), LARGEST_PAGE, LARGEST_PAGE)
    try:
        return changes_after(feed_id=feed.pk, seq=after, wanted=wanted, size=size)
    except NoSuchNumber as error:
        raise ValidationError({"after": message_of(error)}) from error
    except NotKept as error:
        raise Gone(str(error)) from error


LISTED = {"anyOf": [page_of(DetectionRow), schema_of(Changes)]}


class DetectionsView(APIView):
    """Answers of the queries that you may see, by time."""

    @extend_schema(
        operation_id="detections_list", summary="List answers, or follow them", parameters=[*FILTERS, FOLLOWED, *PAGES], responses={200: LISTED}
    )
    def get(self, request: Request) -> Response:
        if "after" in request.query_params:
            return Response(changes_asked_for(request))
        paginator = DetectionPages()
        page = paginator.paginate(detection_parts(**asked_for(request)), request)
        return paginator.get_paginated_response([detection_row(detection) for detection in page])


class CountsView(APIView):
    """Counts of answers by start time: a timeline shows them where single answers would be too
    many."""

    @extend_schema(
        summary="The number of answers that begin in each of equal buckets",
        description="Exact, of any span. The buckets cover [from, to) and may reach beyond it: the answer's own `from`, `to` and `width` hold.",
        parameters=[
            OpenApiParameter("feed", OpenApiTypes.STR, required=True),
            OpenApiParameter("from", OpenApiTypes.INT64, required=True),
            OpenApiParameter("to", OpenApiTypes.INT64, required=True),
            OpenApiParameter("buckets", OpenApiTypes.INT, description="The number of buckets, approximately; 200 when absent, at most 2000."),
        ],
        responses={200: schema_of(AnswerCounts)},
    )
    def get(self, request: Request) -> HttpResponse:
        asked = request.query_params
        feed = feed_get(user=person(request), name=asked.get("feed") or "")
        from_t, to_t = whole(asked.get("from"), "from"), whole(asked.get("to"), "to")
        if feed is None:
            raise NotFound(Message("There is no such feed, or it is not shared with you."))
        if from_t is None or to_t is None or not from_t < to_t:
            raise ValidationError({"from": Message("Give from and to, from before to.")})
        buckets = whole_between(asked.get("buckets"), "buckets", 1, 2_000, usual=200)
        counts = answer_counts(feed_id=feed.pk, query_ids=visible_queries(request, feed), from_t=from_t, to_t=to_t, buckets=buckets)
        return HttpResponse(counts, content_type="application/json")


class DetectionView(APIView):
    """One answer with what explains it."""

    @extend_schema(summary="One answer and the tracks around it", parameters=FILTERS[:1], responses={200: schema_of(DetectionDetail)})
    def get(self, request: Request, key: str) -> Response:
        return Response(_detail(found_for(request, key)))


class EvidenceView(APIView):
    """One answer with all that it rests on, as a file."""

    throttle_action = "export"

    @extend_schema(summary="The evidence of an answer as a file", parameters=FILTERS[:1], responses={200: schema_of(AnswerFile)})
    def get(self, request: Request, key: str) -> Response:
        found = found_for(request, key)
        body = {**_detail(found), "specification": specification_then(found.query, found.version), "saved_at": timezone.now().isoformat()}
        return Response(body, headers={"Content-Disposition": f'attachment; filename="evidence-{key[:8]}.json"'})


def found_for(request: Request, key: str) -> Detection:
    """The answer of this id, if the user may see it. Raises Http404."""
    found = detection_find(user=person(request), key=bytes.fromhex(key), feed=request.query_params.get("feed"))
    if found is None:
        raise Http404
    return found


def _detail(found: Detection) -> dict[str, Any]:
    return {
        **detection_row(found),
        "feed": found.feed.name,
        "query_name": found.query.name,
        "sentence": behind(found.query, found.version)[0],
        "tracks": tracks_around(feed=found.feed, detection=found),
    }


class AnswersBehindView(APIView):
    """The answers of other queries from which one was derived."""

    @extend_schema(
        summary="The answers of other queries from which an answer was derived", parameters=FILTERS[:1], responses={200: schema_of(AnswersBehind)}
    )
    def get(self, request: Request, key: str) -> Response:
        return Response({"answers": answers_behind(user=person(request), detection=found_for(request, key))})


class ExportView(APIView):
    """Answers as a file of at most 100,000 rows."""

    throttle_action = "export"
    content_negotiation_class = FormatOfFile

    @extend_schema(
        summary="Export answers as a file",
        parameters=[*FILTERS, FORMAT],
        responses={(200, media): OpenApiTypes.BINARY for media in FORMATS.values()},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        kind = format_of(request)
        order = ORDERS.get(request.query_params.get("order", "start"), ORDERS["start"])
        asked = asked_for(request)
        queries = named(asked["query_ids"])
        answers = detection_list(**asked).alias(begun=F("start"))
        rows = answers.order_by(*order)[:DOWNLOAD_ROWS].iterator(chunk_size=2000)
        is_cut = answers.order_by(*order)[DOWNLOAD_ROWS : DOWNLOAD_ROWS + 1].exists()
        return table_download("answers", kind, COLUMNS, rows_of(rows, queries), first=DOWNLOAD_ROWS if is_cut else None)


class RemovedQueriesView(APIView):
    """Queries that were removed, whose answers stay."""

    @extend_schema(
        summary="Removed queries and the number of stored answers of each; at most 500, the last removed first",
        responses={200: schema_of(RemovedQueries)},
    )
    def get(self, request: Request) -> Response:
        return Response({"results": removed_queries(user=person(request))})
