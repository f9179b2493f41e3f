"""`/healthz`: whether this process can do its work, and whether the jobs do theirs."""

from __future__ import annotations

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse

from webapp.jobs.selectors import jobs_down

RETRY_AFTER_S = "5"


def healthz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers, else 503. `jobs` is false when a job that should run
    does not; with `?jobs` that is a 503 too, for a monitor of the whole machine. It has no further
    information, because it needs no log-in.
    """
    try:
        down = jobs_down()
    except DatabaseError:
        return JsonResponse({"database": False}, status=503, headers={"Retry-After": RETRY_AFTER_S})
    body = {"database": True, "jobs": not down}
    if down and "jobs" in request.GET:
        return JsonResponse(body, status=503, headers={"Retry-After": RETRY_AFTER_S})
    return JsonResponse(body)
