"""`jobs/`: the processes that evaluate queries. They serve all feeds: operators of any team may start and stop them."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.authentication import person
from webapp.accounts.models import User
from webapp.accounts.selectors import operates
from webapp.feeds.selectors import feed_list
from webapp.jobs.models import Job, JobEvent
from webapp.jobs.selectors import job_events, job_list
from webapp.jobs.services import job_start, job_stop

EVENT = inline_serializer(
    "JobEvent", {"at": serializers.DateTimeField(), "kind": serializers.CharField(), "text": serializers.CharField()}, many=True
)


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job, what is wanted of it, and what happened to it."""

    feeds = serializers.ListField(child=serializers.CharField())
    editable = serializers.BooleanField()
    events = EVENT

    class Meta:
        model = Job
        fields = (
            "name", "desired_state", "observed_state", "started_at", "heartbeat", "restarts", "failures", "last_error", "feeds", "editable", "events",
        )  # fmt: skip


def job_row(job: Job, *, user: User, events: int = 20) -> dict[str, Any]:
    """A job as pages and the API show it; of its feeds those that the user may see, and errors for operators alone."""
    visible = set(feed_list(user=user).values_list("pk", flat=True))
    may_operate = operates(user)
    return {
        "name": job.name,
        "desired_state": job.desired_state,
        "observed_state": job.observed_state,
        "started_at": job.started_at,
        "heartbeat": job.heartbeat,
        "restarts": job.restarts,
        "failures": job.failures,
        "last_error": job.last_error if may_operate else "",
        "feeds": sorted(head.feed.name for head in job.heads.all() if head.feed_id in visible),
        "editable": may_operate,
        "events": [_event_row(event) for event in job_events(job=job, limit=events) if event.feed_id in (None, *visible)],
    }


def _event_row(event: JobEvent) -> dict[str, Any]:
    return {"at": event.at, "kind": event.kind, "text": event.text}


def jobs_for_page(*, user: User) -> list[dict[str, Any]]:
    """All jobs, for the feeds page."""
    return [job_row(job, user=user) for job in job_list()]


class JobsView(APIView):
    """All jobs."""

    @extend_schema(responses=JobSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(jobs_for_page(user=person(request)))


class JobView(APIView):
    """One job with its latest events."""

    @extend_schema(responses=JobSerializer)
    def get(self, request: Request, name: str) -> Response:
        return Response(job_row(find(name), user=person(request), events=100))


class JobActionView(APIView):
    """Start or stop: what is wanted changes at once, the job follows within seconds."""

    action = "start"

    @extend_schema(request=None, responses=JobSerializer)
    def post(self, request: Request, name: str) -> Response:
        job = find(name)
        if not operates(person(request)):
            raise PermissionDenied("Operators start and stop jobs.")
        (job_start if self.action == "start" else job_stop)(job=job, user=person(request))
        return Response(job_row(find(name), user=person(request)))


def find(name: str) -> Job:
    """The job. Raises Http404."""
    job = job_list().filter(name=name).first()
    if job is None:
        raise Http404
    return job
