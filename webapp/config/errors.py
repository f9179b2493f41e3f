"""One form for all errors: `{"faults": [{"pointer": JSON pointer, "message": sentence}]}`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypedDict

from django.core.exceptions import ValidationError as ModelValidationError
from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_noop
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from engine.model.faults import MOST_FAULTS, Fault, Refused
from engine.model.messages import Message, untranslated
from engine.sources.segments import LogDamaged
from webapp.cage.slots import Busy
from webapp.config.faults import Conflict, InUse, OverQuota
from webapp.config.opened_links import LinkEnded
from webapp.config.wording import translated
from webapp.platform.disk import is_full

log = logging.getLogger(__name__)
MOST_CHARACTERS = 2_000
"""Of a message in an answer."""
UNIQUE_VIOLATION = "23505"
"""PostgreSQL's code."""
CSRF_FAILED = "CSRF Failed"
"""How the framework's refusal of a page's token begins."""
OUTDATED = "X-Page-Outdated"
"""A header for pages whose token is no longer valid: the reader has logged in again since."""
REFUSED_WITH: dict[type[Refused], int] = {InUse: 409, Conflict: 409, OverQuota: 403}


def as_faults(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler; None lets an unforeseen error become a plain 500 without details."""
    if isinstance(error, LogDamaged):
        # Damage of one feed: the others are read as usual.
        return Response(
            faults_body(
                [
                    Fault(
                        "",
                        Message(
                            "The log of a feed cannot be read. {error}. An operator repairs it with: manage.py repair {feed}",
                            error=error,
                            feed=error.feed,
                        ),
                    )
                ]
            ),
            status=503,
            headers={"Retry-After": "60"},
        )
    if isinstance(error, Busy):
        return Response(
            faults_body([Fault("", Message("The server is busy with other computations. Try again in some seconds."))]),
            status=503,
            headers={"Retry-After": "10"},
        )
    if isinstance(error, RecursionError):
        # Of a document from outside: nothing else here recurses without limit.
        log.warning("a document is nested too deeply", exc_info=error)
        return Response(faults_body([Fault("", Message("The document is nested too deeply."))]), status=400)
    if isinstance(error, Refused):
        return Response(faults_body(error.faults), status=REFUSED_WITH.get(type(error), 400))
    if isinstance(error, ModelValidationError):
        return Response(faults_body(_model_faults(error)), status=400)
    if isinstance(error, IntegrityError) and getattr(error.__cause__, "pgcode", None) == UNIQUE_VIOLATION:
        # Passed the check of its name while somebody else was storing the same.
        return Response(faults_body([Fault("", Message("Somebody else stored the same at this moment. Load it again and repeat."))]), status=409)
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, exceptions.ValidationError):
        faults = serializer_faults(error.detail)
    elif isinstance(error, Http404):
        faults = [Fault("", Message("There is nothing here, or it is not shared with you."))]
    elif isinstance(error, exceptions.PermissionDenied) and str(error.detail).startswith(CSRF_FAILED):
        response[OUTDATED] = "1"
        faults = [Fault("", Message("This page is out of date. Load it again and repeat what you did."))]
    elif isinstance(error, exceptions.NotAuthenticated):
        faults = [Fault("", Message("Log in, or send a token: Authorization: Bearer <token>."))]
    elif isinstance(error, exceptions.Throttled):
        faults = [Fault("", Message("Too many requests. Try again in {seconds} s.", seconds=response.headers.get("Retry-After", "1")))]
    else:
        faults = [Fault("", untranslated(response.data.get("detail", gettext("Refused."))))]
    response.data = faults_body(faults)
    return response


class FaultRow(TypedDict):
    """What is wrong, and where: a JSON pointer into what was sent, empty for all of it."""

    pointer: str
    message: str


class FaultsBody(TypedDict):
    """Why something was refused."""

    faults: list[FaultRow]


def faults_body(faults: Iterable[Fault]) -> FaultsBody:
    """The answer's body."""
    return {"faults": [{"pointer": fault.pointer, "message": _shortened(translated(fault.message))} for fault in islice(faults, MOST_FAULTS)]}


def _shortened(text: str) -> str:
    """Shortens the middle of a text from the request that the message repeats."""
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]}...{text[-half:]}"


def pointer_step(key: object) -> str:
    """One step of a JSON pointer (RFC 6901)."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def serializer_faults(detail: Any) -> list[Fault]:
    """A serializer's faults, by pointer."""
    return list(islice(_nested(detail, ""), MOST_FAULTS))


def _nested(detail: Any, pointer: str) -> Iterator[Fault]:
    if isinstance(detail, dict):
        for key, inner in detail.items():
            yield from _nested(inner, pointer if key == "non_field_errors" else pointer + pointer_step(key))
    elif isinstance(detail, list):
        for position, inner in enumerate(detail):
            yield from _nested(inner, pointer + pointer_step(position) if isinstance(inner, dict | list) else pointer)
    else:
        yield Fault(pointer, untranslated(detail))


def _model_faults(error: ModelValidationError) -> list[Fault]:
    if hasattr(error, "error_dict"):
        fields = error.message_dict.items()
        return [Fault("" if name == "__all__" else pointer_step(name), untranslated(text)) for name, texts in fields for text in texts]
    return [Fault("", untranslated(text)) for text in error.messages]


def _plain(request: HttpRequest, status: int, message: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse(faults_body([Fault("", untranslated(message))]), status=status)
    return render(request, "error.html", {"status": status, "message": gettext(message)}, status=status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The request came without the page's own token."""
    return _plain(request, 403, gettext_noop("This page is out of date. Load it again and repeat what you did."))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _plain(request, 400, gettext_noop("The request cannot be understood."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _plain(request, 403, gettext_noop("You are not permitted to do this. Ask the owner, or an admin of the team."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, LinkEnded):
        return _plain(request, 404, gettext_noop("This link has expired or was revoked."))
    return _plain(request, 404, gettext_noop("There is nothing here, or it is not shared with you."))


def server_error(request: HttpRequest) -> HttpResponse:
    """Without the template engine, which may have caused the error."""
    error = sys.exc_info()[1]
    status, message, headers = 500, Message("An error occurred on the server. It has been logged."), {}
    if error is not None and is_full(error):
        status, message, headers = 503, Message("A disk of this server is full. Nothing can be stored until there is room."), {"Retry-After": "60"}
    elif isinstance(error, OperationalError | InterfaceError):
        status, message, headers = 503, Message("The database does not answer. Try again in a moment."), {"Retry-After": "5"}
    if request.path.startswith("/api/"):
        return JsonResponse(faults_body([Fault("", message)]), status=status, headers=headers)
    return HttpResponse(translated(message), status=status, content_type="text/plain; charset=utf-8", headers=headers)
