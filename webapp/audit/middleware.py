"""An entry for every change and every refusal that no service has recorded itself: none can be forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from webapp.audit.models import Outcome
from webapp.audit.origin import Work, answering, of_request
from webapp.audit.services import entry_write_or_log

SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
REFUSALS = (401, 403, 404, 429)
VERBS = {"partial_update": "change", "update": "change", "destroy": "remove"}
"""Of the actions that views share with all of their kind; other actions have good names already."""
METHODS = {"POST": "create", "PUT": "change", "PATCH": "change", "DELETE": "remove"}
CHANGE_NOTHING = frozenset(
    {
        "api-query-check",
        "api-query-closure",
        "api-query-gallery",
        "api-query-pattern",
        "api-query-preview",
        "api-query-progress-of",
        "api-query-sandbox",
        "api-feed-events",
        "account_login",
        "account_logout",
        "mfa_authenticate",
        "mfa_login_webauthn",
        "openid_connect_login",
        "openid_connect_callback",
        "account_reset_password",
        "account_reauthenticate",
        "mfa_reauthenticate",
        "mfa_reauthenticate_webauthn",
    }
)
"""Addresses whose POST computes an answer, adds rows (the feed counts them), or is recorded by the signals of logging in."""
READS_RECORDED = frozenset({"api-detections-export", "api-regions-export", "api-dead-letters-csv", "api-audit-export"})
"""Whoever takes much away at once is recorded too."""
REFUSALS_A_MINUTE = 60


class Audit:
    """Records what came of a request. Stands behind the middleware that knows the user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.refusals = RefusalLimit()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with answering(request) as work:
            response = self.get_response(request)
            self._note(work, response)
        return response

    def _note(self, work: Work, response: HttpResponseBase) -> None:
        match = work.request.resolver_match
        # An address that the site does not have says nothing about anybody's objects.
        if match is None or work.entries:
            return
        if response.status_code in REFUSALS:
            self._refused(work.request, response)
        elif _changed(work.request, response, match.url_name or ""):
            entry_write_or_log(outcome=Outcome.DONE, status=response.status_code, **of_request(work.request), **_what(work.request, response))

    def _refused(self, request: HttpRequest, response: HttpResponseBase) -> None:
        who = of_request(request)
        unrecorded = self.refusals.passed((who["actor"], who["address"]))
        if unrecorded is not None:
            detail = {"unrecorded": unrecorded} if unrecorded else {}
            entry_write_or_log(outcome=Outcome.REFUSED, status=response.status_code, detail=detail, **who, **_what(request, response))


def _changed(request: HttpRequest, response: HttpResponseBase, url_name: str) -> bool:
    if request.method in SAFE:
        return url_name in READS_RECORDED and response.status_code == 200
    # A page that comes back with 200 shows its form again: nothing was changed. The API says so with 4xx.
    wanted = range(200, 300) if request.path.startswith("/api/") else range(300, 400)
    return response.status_code in wanted and url_name not in CHANGE_NOTHING


def _what(request: HttpRequest, response: HttpResponseBase) -> dict[str, Any]:
    """What was done to which object, as far as the address, its view and the response's data say."""
    match = request.resolver_match
    assert match is not None
    noun = (match.url_name or "page").removeprefix("api-")
    model = getattr(getattr(getattr(match.func, "cls", None), "queryset", None), "model", None)
    kind = model._meta.model_name if model is not None else noun
    method = request.method or ""
    verb = getattr(match.func, "actions", {}).get(method.lower()) or METHODS.get(method, "read")
    data = getattr(response, "data", None)
    shown = data if isinstance(data, dict) else {}
    team = shown.get("team")
    return {
        "action": ".".join([*match.namespaces, kind, VERBS.get(verb, verb)])[:100],
        "object_type": kind[:50],
        "object_id": str(shown.get("id", "") or next(iter(match.kwargs.values()), ""))[:100],
        "object_name": str(shown.get("name", ""))[:200],
        "team": team.get("id") if isinstance(team, dict) else None,
    }


class RefusalLimit:
    """At most REFUSALS_A_MINUTE entries of one actor at one address in a minute and a process, so that refusals cannot fill the disk.

    The first entry after a pause says how many were left out.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._minute = 0
        self._seen: dict[Any, int] = {}
        self._left_out: dict[Any, int] = {}

    def passed(self, key: Any) -> int | None:
        """How many were left out before this one, or None when this one is left out too."""
        with self._lock:
            minute = int(time.monotonic() // 60)
            if minute != self._minute:
                self._minute = minute
                self._left_out = {key: count - REFUSALS_A_MINUTE for key, count in self._seen.items() if count > REFUSALS_A_MINUTE}
                self._seen = {}
            self._seen[key] = self._seen.get(key, 0) + 1
            return self._left_out.pop(key, 0) if self._seen[key] <= REFUSALS_A_MINUTE else None
