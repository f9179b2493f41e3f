"""`jobs/`: the processes that evaluate queries. Users who may change all feeds of a job start and
stop it; teams have separate jobs."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.models import User
from webapp.accounts.owned import TeamField
from webapp.accounts.permissions import check_team
from webapp.config.known_keys import KnownKeys
from webapp.config.wording import translated
from webapp.feeds.heads import may_operate
from webapp.feeds.models import Feed
from webapp.feeds.selectors import feed_list
from webapp.jobs.models import Job, JobEvent
from webapp.jobs.selectors import is_shown, job_events, job_list
from webapp.jobs.services import job_create, job_remove, job_start, job_stop

EVENT = inline_serializer(
    "JobEvent", {"at": serializers.DateTimeField(), "kind": serializers.CharField(), "text": serializers.CharField()}, many=True
)


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job, its desired state, and its events."""

    team = TeamField(read_only=True, allow_null=True)
    feeds = serializers.ListField(child=serializers.CharField())
    editable = serializers.BooleanField()
    events = EVENT

    class Meta:
        model = Job
        fields = (
            "name", "team", "desired_state", "observed_state", "started_at", "heartbeat", "restarts", "failures", "last_error", "feeds", "editable",
            "events",
        )  # fmt: skip


def job_row(job: Job, *, user: User, events: int = 20) -> dict[str, Any]:
    """A job in pages and the API: only feeds that the user may see, and
    errors only for operators."""
    visible = set(feed_list(user=user).values_list("pk", flat=True))
    editable = may_operate(job, user=user)
    return {
        "name": job.name,
        "team": {"id": job.team.pk, "name": job.team.name} if job.team else None,
        "desired_state": job.desired_state,
        "observed_state": job.observed_state,
        "started_at": job.started_at,
        "heartbeat": job.heartbeat,
        "restarts": job.restarts,
        "failures": job.failures,
        "last_error": translated(job.last_error) if editable else "",
        "feeds": sorted(head.feed.name for head in job.heads.all() if head.feed_id in visible),
        "editable": editable,
        "events": [_event_row(event) for event in job_events(job=job, feed_ids=visible, limit=events)],
    }


def _event_row(event: JobEvent) -> dict[str, Any]:
    return {"at": event.at, "kind": event.kind, "text": translated(event.text)}


def jobs_for_page(*, user: User) -> list[dict[str, Any]]:
    """All jobs, for the feeds page."""
    return [job_row(job, user=user) for job in job_list() if is_shown(job, user=user)]


class NewJobSerializer(KnownKeys):
    """A job of the user's own team; its feeds are given to it with `PATCH feeds/{name}/`."""

    name = serializers.SlugField(max_length=63)
    team = TeamField()


class JobsView(APIView):
    """All jobs."""

    @extend_schema(request=NewJobSerializer, responses={201: JobSerializer})
    def post(self, request: Request) -> Response:
        serializer = NewJobSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        check_team(person(request), data["team"].pk, Feed.edit_role)
        job_create(**data)
        return Response(job_row(find(data["name"], person(request)), user=person(request)), status=201)

    @extend_schema(responses=JobSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(jobs_for_page(user=person(request)))


class JobView(APIView):
    """One job with its latest events."""

    @extend_schema(responses=JobSerializer)
    def get(self, request: Request, name: str) -> Response:
        return Response(job_row(find(name, person(request)), user=person(request), events=100))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        job = find(name, person(request))
        if not may_operate(job, user=person(request)):
            raise PermissionDenied(Message("Only users who may change all feeds of a job can remove it."))
        job_remove(job=job)
        return Response(status=204)


class JobActionView(APIView):
    """Start or stop: the desired state changes immediately, the job follows within seconds."""

    action = "start"

    @extend_schema(request=None, responses=JobSerializer)
    def post(self, request: Request, name: str) -> Response:
        job = find(name, person(request))
        if not may_operate(job, user=person(request)):
            raise PermissionDenied(Message("Only users who may change all feeds of a job can start and stop it."))
        (job_start if self.action == "start" else job_stop)(job=job, user=person(request))
        return Response(job_row(find(name, person(request)), user=person(request)))


def find(name: str, user: User) -> Job:
    """The job. Raises Http404."""
    job = job_list().filter(name=name).first()
    if job is None or not is_shown(job, user=user):
        raise Http404
    return job
