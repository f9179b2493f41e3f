"""Reads of stored answers and of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict, cast

from django.db.models import (
    BigIntegerField,
    Case,
    Expression,
    ExpressionWrapper,
    F,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    When,
)
from django.db.models.functions import Cast

from engine.sinks.answer_rows import AnswerRow, EvidenceItem, answer_row
from webapp.accounts.models import User
from webapp.detections.counts import WIDTHS
from webapp.detections.models import AnswerCount, Detection, Outbox
from webapp.queries.models import Query, QueryVersion


def outbox_since(*, feed_id: int, seq: int, limit: int = 100) -> list[tuple[int, str]]:
    """Number and payload of the outbox rows after number `seq`, in order; the
    payload as the text that it is."""
    rows = Outbox.objects.filter(feed_id=feed_id, seq__gt=seq).order_by("seq")
    return list(rows.values_list("seq", Cast("payload", TextField()))[:limit])


def outbox_range(*, feed_id: int) -> tuple[int, int] | None:
    """The oldest and the newest number that is still there; None in an empty outbox."""
    found = Outbox.objects.filter(feed_id=feed_id).aggregate(oldest=Min("seq"), newest=Max("seq"))
    return None if found["oldest"] is None else (found["oldest"], found["newest"])


def with_ends(answers: QuerySet[Detection]) -> QuerySet[Detection]:
    """`answers` with `left_at`: an open one whose version no longer runs ended when the job left
    the version (decision 20)."""
    version = QueryVersion.objects.filter(query=OuterRef("query_id"), version=OuterRef("version"))
    return answers.annotate(left_at=Case(When(end=None, then=Subquery(version.values("left_at")[:1])), output_field=BigIntegerField()))


def detection_list(
    *,
    feed_id: int | None = None,
    query_ids: Sequence[int] | None = None,
    from_t: int | None = None,
    to_t: int | None = None,
    entities: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    withdrawn: bool = False,
    all_versions: bool = False,
) -> QuerySet[Detection]:
    """Answers that touch the time span `[from_t, to_t)` (open intervals reach to the end of time),
    newest start first; those about any of `entities`.

    `withdrawn`: retracted answers instead of those that hold. Of an edited query only answers
    of its newest version, which has answered for the history too; `all_versions`: those of
    earlier versions as well.
    """
    found = with_ends(Detection.objects.filter(weight=0 if withdrawn else 1))
    if not all_versions:
        found = found.filter(version=F("query__version"))
    if feed_id is not None:
        found = found.filter(feed_id=feed_id)
    if query_ids is not None:
        found = found.filter(query_id__in=query_ids)
    if entities is not None:
        found = found.filter(entities__overlap=list(entities))
    if kinds is not None:
        found = found.filter(kind__in=kinds)
    if to_t is not None:
        found = found.filter(start__lt=to_t)
    if from_t is not None:
        found = _ended_since(found.filter(Q(start__gte=from_t) | _lasting(from_t)), from_t)
    return found.order_by("-start", "key")


def detection_parts(
    *, feed_id: int | None = None, query_ids: Sequence[int] | None = None, from_t: int | None = None, to_t: int | None = None, **wanted: Any
) -> list[QuerySet[Detection]]:
    """`detection_list` in parts that follow one another by `begun`, the start: what holds since
    before `from_t`, and what begins in the span.

    For pages: with both in one statement and a limit PostgreSQL expects to find a page of rows
    early, and reads half a million of a day's answers for the twenty that hold at an instant.
    """
    during = detection_list(feed_id=feed_id, query_ids=query_ids, to_t=to_t, **wanted).alias(begun=F("start"))
    if from_t is None:
        return [during]
    # No index contains sums. By the order, or query by query, PostgreSQL would read all that began
    # before.
    before = detection_list(feed_id=feed_id, query_ids=query_ids if feed_id is None else None, **wanted).alias(begun=_sum("start"))
    if feed_id is not None and query_ids is not None:
        before = before.alias(asked=_sum("query_id")).filter(asked__in=query_ids)
    before = before.filter(_lasting(from_t), start__lt=from_t if to_t is None else min(from_t, to_t))
    return [_ended_since(part, from_t) for part in (before, during.filter(start__gte=from_t))]


def _sum(column: str) -> Expression:
    """The column's value in a form that no index has. Django assumes a sum of 32 bits."""
    return ExpressionWrapper(F(column) + 0, BigIntegerField())


def _lasting(from_t: int) -> Q:
    """Intervals that reach to `from_t`. The second branch repeats the condition of the index
    `detections_lasting`, which then answers it."""
    return Q(end__isnull=True) | Q(end__gt=F("start"), end__gte=from_t)


def _ended_since(answers: QuerySet[Detection], from_t: int) -> QuerySet[Detection]:
    """Without the open ones whose version ended before `from_t`."""
    return answers.filter(Q(end__isnull=False) | Q(left_at=None) | Q(left_at__gte=from_t))


class DetectionRow(AnswerRow):
    """A stored answer, as in frames; `evidence` null: intervals that were computed from
    intervals."""

    evidence: list[EvidenceItem] | None


def detection_row(detection: Detection, left_at: int | None = None) -> DetectionRow:
    """A stored answer in its serialised form. `left_at`: when the job stopped running its version,
    if not known from `with_ends`."""
    left_at = getattr(detection, "left_at", left_at)
    row = answer_row(detection, weight=detection.weight, backfill=detection.backfill, detected_at=detection.detected_at, left_at=left_at)
    return {**row, "evidence": detection.evidence}


def detections_recent(*, feed_id: int, query_ids: Sequence[int] | None, from_t: int | None = None, limit: int) -> list[DetectionRow]:
    """The initial state of a page: the newest answers of these queries that touch the time
    after `from_t`, oldest first."""
    found = detection_list(feed_id=feed_id, query_ids=query_ids, from_t=from_t)[:limit]
    return [detection_row(detection) for detection in reversed(found)]


def answers_by_key(*, feed_id: int, query_ids: Sequence[int], after: bytes, limit: int) -> list[Detection]:
    """All answers of these queries whose key is greater than `after`, in the order of their keys;
    those that were retracted too."""
    found = with_ends(Detection.objects.filter(feed_id=feed_id, query_id__in=query_ids, key__gt=after))
    return list(found.order_by("key")[:limit])


REMOVED_QUERIES = 500


class RemovedQuery(TypedDict):
    """A removed query; `answers`: how many of its last version are stored."""

    id: int
    name: str
    feed: str
    family: str
    removed_at: datetime
    answers: int


def removed_queries(*, user: User) -> list[RemovedQuery]:
    """The removed queries whose answers the user still sees, the last removed first, each with how
    many answers of its last version are stored."""
    found = list(
        Query.objects.visible_to(user).filter(deleted_at__isnull=False).select_related("feed").order_by("-deleted_at", "-pk")[:REMOVED_QUERIES]
    )
    counted = AnswerCount.objects.filter(query_id__in=[query.pk for query in found], width=WIDTHS[-1]).values_list("query_id", "version")
    counts = {(query, version): total for query, version, total in counted.annotate(total=Sum("count"))}
    return [
        {
            "id": query.pk,
            "name": query.name,
            "feed": query.feed.name,
            "family": query.family,
            "removed_at": cast(datetime, query.deleted_at),
            "answers": counts.get((query.pk, query.version), 0),
        }
        for query in found
    ]
