"""Adds an entry for every change and every refusal that no service has recorded, so
that none can be forgotten.

A change and its entry are one transaction: if one cannot be stored, the other is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponseBase

from webapp.audit.limits import RefusalLimit
from webapp.audit.models import Outcome
from webapp.audit.origin import SECRET_PARTS, Work, answering, of_request, present_work
from webapp.audit.services import entry_write, entry_write_or_log

SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
REFUSALS = (401, 403, 404, 429)
MALFORMED = (400, 405, 413, 415)
"""Requests that no page of Vedette sends: attempts to bypass validation (OWASP ASVS 5, 16.3.3), or
mistakes. Limited more strictly."""
VERBS = {"partial_update": "change", "update": "change", "destroy": "remove"}
"""Of the actions that views share with all of their kind; other actions have good names already."""
METHODS = {"POST": "create", "PUT": "change", "PATCH": "change", "DELETE": "remove"}
CHANGE_NOTHING = frozenset(
    {
        "api-query-check",
        "api-query-closure",
        "api-query-gallery",
        "api-query-occupancy-of",
        "api-query-pattern",
        "api-query-preview",
        "api-query-progress-of",
        "api-query-sandbox",
        "api-rules-dry-run",
        "api-feed-events",
        "api-track",
        "api-track-token",
        "api-upload",
        "api-upload-inspection",
        "acknowledge",
        "invitation",
        "password-key",
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
"""Addresses whose POST computes an answer, adds rows (the feed counts them) or bytes of a file, or
is recorded by the signals of logging in."""
OWN_TRANSACTIONS = frozenset({"api-channel-test", "api-connectors-trial", "api-dead-letters-correct"})
"""Endpoints that call other machines or send rows hold no transaction meanwhile: their entry has a
separate one. Sent rows have to be stored before they are in the log, and on shared storage a log's
end is locked as briefly as possible."""
READS_RECORDED = frozenset(
    {
        "api-detections-export",
        "api-alert-export",
        "api-regions-export",
        "api-dead-letters-csv",
        "api-feed-rows",
        "api-feed-rows-csv",
        "api-detection-evidence",
        "api-feed-registry-csv",
        "api-audit-export",
    }
)
"""Large downloads are recorded too."""


class Audit:
    """Records the outcome of a request. Placed after the middleware that sets the user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.refusals = RefusalLimit()
        self.malformed = RefusalLimit(malformed=True)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with answering(request) as work:
            response = self.get_response(request)
            self._note(work, response)
        return response

    def _note(self, work: Work, response: HttpResponseBase) -> None:
        match = work.request.resolver_match
        # A request to an unknown address concerns no object.
        if match is None or work.entries:
            return
        if response.status_code in REFUSALS:
            self._refused(work.request, response, self.refusals)
        elif response.status_code in MALFORMED:
            self._refused(work.request, response, self.malformed)
        elif _changed(work.request, response, match.url_name or ""):
            entry_write_or_log(**_done(work.request, response))

    def _refused(self, request: HttpRequest, response: HttpResponseBase, limit: RefusalLimit) -> None:
        who = of_request(request)
        unrecorded = limit.passed(who["actor"], who["address"])
        if unrecorded is not None:
            detail = {"unrecorded": unrecorded} if unrecorded else {}
            entry_write_or_log(outcome=Outcome.REFUSED, status=response.status_code, detail=detail, **who, **_what(request, response))


class ChangeWithEntry:
    """Puts a request that may change something into one transaction with its entry. Placed last:
    requests refused by others need none."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: Any, kwargs: Any) -> HttpResponseBase | None:
        """The view's response. A refusal is rolled back."""
        work, match = present_work(), request.resolver_match
        if work is None or match is None or request.method in SAFE or match.url_name in CHANGE_NOTHING | OWN_TRANSACTIONS:
            return None
        with transaction.atomic():
            response = view(request, *args, **kwargs)
            if response.status_code >= 400:
                transaction.set_rollback(True)
                work.entries = 0
            elif not work.entries and _changed(request, response, match.url_name or ""):
                entry_write(**_done(request, response))
                work.entries += 1
        return response


def _named(parts: Mapping[str, Any]) -> Any:
    """The part of an address that identifies the object."""
    if "pk" in parts:
        return parts["pk"]
    return next((value for name, value in parts.items() if name not in SECRET_PARTS), "")


def _done(request: HttpRequest, response: HttpResponseBase) -> dict[str, Any]:
    return {"outcome": Outcome.DONE, "status": response.status_code, **of_request(request), **_what(request, response)}


def _changed(request: HttpRequest, response: HttpResponseBase, url_name: str) -> bool:
    if request.method in SAFE:
        return url_name in READS_RECORDED and response.status_code == 200
    # A page with status 200 shows its form again: nothing was changed. The API responds with 4xx.
    successful = range(200, 300) if request.path.startswith("/api/") else range(300, 400)
    return response.status_code in successful and url_name not in CHANGE_NOTHING


def _what(request: HttpRequest, response: HttpResponseBase) -> dict[str, Any]:
    """What was done to which object, from the address, its view and the response's data."""
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
        "object_id": str(shown.get("id", "") or _named(match.kwargs))[:100],
        "object_name": str(shown.get("name", ""))[:200],
        "team": team.get("id") if isinstance(team, dict) else None,
    }
