"""The progress of jobs on feeds, and which job a feed belongs to."""

from __future__ import annotations

from typing import Any, TypedDict

from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import OuterRef, QuerySet
from django.utils import timezone

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.accounts.models import Membership, Role, User
from webapp.accounts.permissions import AnyUser
from webapp.config.openapi import Moment
from webapp.feeds.models import Connector, Feed
from webapp.jobs.models import FeedHead, Job, JobEvent, ObservedState
from webapp.jobs.services import job_default, job_event_add


def feed_head_ensure(feed: Feed) -> FeedHead:
    """The feed's head row; if it is missing, it is created and assigned to the default job."""
    head, _ = FeedHead.objects.get_or_create(feed=feed, defaults={"job": job_default()})
    return head


def feed_heads_ensure() -> None:
    """A head row for every feed."""
    for feed in Feed.objects.filter(head=None):
        feed_head_ensure(feed)


@transaction.atomic
def feed_place(*, feed: Feed, job: Job) -> None:
    """Moves the feed to another job, which continues where the previous one stopped. Raises Refused
    for another team's job.

    Without an epoch the head belongs to no start: the former job writes nothing more, and the next
    generation of the checkpoint is its own.
    """
    if job.team_id not in (None, feed.team_id):
        raise refuse("/job", Message("A team's job takes the team's own feeds."))
    feed_head_ensure(feed)
    head = FeedHead.objects.select_for_update(of=("self",)).get(feed=feed)
    if head.job_id != job.pk:
        FeedHead.objects.filter(feed=feed).update(job=job, epoch=0)


def feed_reopen(*, feed: Feed, why: Message) -> None:
    """Makes the feed's job continue with the feed's present settings. Call it in the transaction
    that changes the feed.

    Without an epoch the head takes nothing more from the running start: no batch that was evaluated
    under the former feed is stored after this.
    """
    head = feed_head_ensure(feed)
    FeedHead.objects.filter(feed=feed).update(epoch=0)
    running = Job.objects.filter(pk=head.job_id, observed_state__in=(ObservedState.STARTING, ObservedState.RUNNING))
    if running.update(observed_state=ObservedState.STOPPING, suspect_since=None):
        job_event_add(head.job, JobEvent.Kind.REQUESTED, Message("Starts again: {why}", why=why))


def feed_head_follow_team(feed: Feed) -> None:
    """Moves a feed that has left its job's team to the default job."""
    if FeedHead.objects.filter(feed=feed, job__team__isnull=False).exclude(job__team=feed.team_id).exists():
        feed_place(feed=feed, job=job_default())


def feed_event_add(feed: Feed, kind: JobEvent.Kind | str, text: Message) -> None:
    """Records an event of one feed, for users: on its page and on its job's."""
    JobEvent.objects.create(job=feed_head_ensure(feed).job, feed=feed, kind=kind, text=text)


class CatchingUp(TypedDict):
    """New queries that read the feed's history: their ids, and how many rows of it they have read,
    of how many. Their answers are not complete yet."""

    queries: list[int]
    read: int
    rows: int


class FeedStatus(TypedDict):
    """The progress of a feed; `job`: the state of its job; `rate`: rows a second; `catching_up`:
    null when no new query reads the history; `stalled_at`: since when rows wait and nothing is
    processed; `failing_connectors`: the names of those that keep failing or do not run.
    """

    watermark: int | None
    max_t: int | None
    rate: float | None
    batch_ms: float | None
    job: str
    last_seq: int
    processed: int
    duplicates: int
    late: int
    outbox_seq: int
    query_version: int
    catching_up: CatchingUp | None
    updated_at: Moment | None
    stalled_at: Moment | None
    failing_connectors: list[str]


def feed_status(*, feed_id: int) -> FeedStatus:
    """The state of a feed's processing, for the feeds page and the `status` frames."""
    head = _heads().filter(feed_id=feed_id).first()
    return _status(head) if head is not None else _NONE


def outbox_numbers(*, user: AnyUser) -> dict[str, int]:
    """The number of the newest change, by name of visible feed: a page that reads the
    rest by API resumes after it."""
    heads = FeedHead.objects.filter(feed__in=Feed.objects.visible_to(user))
    return dict(heads.values_list("feed__name", "outbox_seq"))


def newest_outbox_numbers() -> dict[int, int]:
    """The number of the newest change of each feed that has a head, by feed id."""
    return dict(FeedHead.objects.values_list("feed_id", "outbox_seq"))


def feed_position(*, feed_id: int) -> int:
    """The last row whose answers are stored; -1 before the first."""
    last: int | None = FeedHead.objects.filter(feed_id=feed_id).values_list("last_seq", flat=True).first()
    return -1 if last is None else last


def feed_statuses() -> dict[int, FeedStatus]:
    """`feed_status` of all feeds that have a head, by feed id."""
    return {head.feed_id: _status(head) for head in _heads()}


def _heads() -> QuerySet[Any]:
    """The heads, with the relations that `_status` reads."""
    failing = Connector.objects.failing().filter(feed=OuterRef("feed")).order_by("name").values("name")
    return FeedHead.objects.select_related("job").annotate(failing_connectors=ArraySubquery(failing))


_NONE: FeedStatus = {
    "watermark": None, "max_t": None, "rate": None, "batch_ms": None, "job": "stopped", "last_seq": -1, "processed": 0, "duplicates": 0,
    "late": 0, "outbox_seq": 0, "query_version": 0, "catching_up": None, "updated_at": None, "stalled_at": None,
    "failing_connectors": [],
}  # fmt: skip


RATE_SECONDS = 10
"""After this long without a batch the arrival rate is 0."""


def _rate(head: FeedHead) -> float | None:
    """Rows a second that arrive now."""
    if head.updated_at is None:
        return None
    return head.rows_per_s if (timezone.now() - head.updated_at).total_seconds() < RATE_SECONDS else 0.0


def _status(head: Any) -> FeedStatus:
    return {
        "watermark": head.watermark,
        "max_t": head.max_t,
        "rate": _rate(head),
        "batch_ms": head.batch_ms,
        "job": head.job.observed_state,
        "last_seq": head.last_seq,
        "processed": head.processed,
        "duplicates": head.duplicates,
        "late": head.late,
        "outbox_seq": head.outbox_seq,
        "query_version": head.query_version,
        "catching_up": head.catching_up,
        "updated_at": head.updated_at.isoformat() if head.updated_at else None,
        "stalled_at": head.stalled_at.isoformat() if head.stalled_at else None,
        "failing_connectors": head.failing_connectors,
    }


def may_operate(job: Job, *, user: User) -> bool:
    """Whether the user may start and stop the job: users who may change all of its feeds, because
    stopping it stops each of them.

    A team's job without feeds is for the team's operators, the default one for superusers.
    """
    if user.is_superuser:
        return True
    feeds = {head.feed_id for head in job.heads.all()}
    if feeds:
        return Feed.objects.editable_by(user).filter(pk__in=feeds).count() == len(feeds)
    return job.team_id is not None and Membership.objects.filter(user=user, team=job.team_id, role__in=Role.OPERATOR.and_above).exists()
