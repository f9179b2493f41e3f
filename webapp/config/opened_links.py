"""Links that open something for anyone who has them: a live view, an invitation, a
message's alerts, a new password.

The secret of such a link follows its `#`. Browsers do not send that part: it appears in no log of
a server or proxy and in no `Referer` (OWASP ASVS 5, 14.2.1). The page that the link leads to
sends it once, in a body; the opened object is recorded in the session, and the page that is then
shown has an address without the secret.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods


class LinkEnded(Http404):
    """An invalid link: it has expired, was revoked, or never existed."""


NOTED = "opened"
"""In the session: until when an object is accessible, by kind and key."""
MOST_OF_A_KIND = 20
Opens = Callable[[HttpRequest, str], str]
"""Records the object that a secret opens; returns the address of its page. Raises LinkEnded for an
invalid secret."""


def link_to(name: str, secret: str) -> str:
    """The path of the opening page of this name, with the secret behind it."""
    return f"{reverse(name)}#{secret}"


def opening_page(opens: Opens) -> Callable[[HttpRequest], HttpResponse]:
    """The view that takes a link's secret."""

    @require_http_methods(["GET", "HEAD", "POST"])
    def view(request: HttpRequest) -> HttpResponse:
        if request.method == "POST":
            return redirect(opens(request, request.POST.get("secret", "")))
        return unindexed(render(request, "pages/opening.html"))

    return view


def unindexed(response: HttpResponse) -> HttpResponse:
    """Pages behind a link are only for users who have it."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Robots-Tag"] = "noindex"
    return response


def note_opened(request: HttpRequest, kind: str, key: int, until: datetime) -> None:
    """From now on this session has access to the object."""
    noted = request.session.get(NOTED, {})
    of_kind = {**noted.get(kind, {}), str(key): until.timestamp()}
    request.session[NOTED] = {**noted, kind: dict(list(of_kind.items())[-MOST_OF_A_KIND:])}


def is_opened(session: object, kind: str, key: int) -> bool:
    """Whether a link of this kind was opened in the session, and is still valid."""
    noted = session.get(NOTED, {}) if hasattr(session, "get") else {}
    until = noted.get(kind, {}).get(str(key))
    return until is not None and timezone.now().timestamp() < until


def check_opened(request: HttpRequest, kind: str, key: int) -> None:
    """Raises LinkEnded unless the link has been opened."""
    if not is_opened(request.session, kind, key):
        raise LinkEnded
