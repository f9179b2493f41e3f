"""The live page, and the same for somebody who has a link to it and no account."""

from __future__ import annotations

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.config.pages import page_data
from webapp.feeds.plan import plan_of
from webapp.live.models import SharedView
from webapp.live.selectors import Permission
from webapp.live.shares import share_find, share_page, share_shows


def live(request: HttpRequest) -> HttpResponse:
    """Map and timeline of one feed at a time."""
    return render(request, "pages/live.html", page_data(request))


def _opened(text: str) -> tuple[SharedView, Permission]:
    """What the link opens. Raises Http404 when it opens nothing (any more)."""
    share = share_find(text)
    permission = None if share is None else share_shows(share.pk)
    if share is None or permission is None:
        raise Http404
    return share, permission


def shared(request: HttpRequest, text: str) -> HttpResponse:
    """The live view behind a link: read-only, and of one feed."""
    shown = share_page(*_opened(text))
    if shown["feed"]["plan_image"] is not None:
        shown["feed"]["plan_image"] = f"{request.path}plan"
    response = render(request, "pages/shared.html", {"page_data": shown, "socket": f"/ws{request.path}"})
    # The address is the secret: it goes to no other site, into no cache and no index.
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Robots-Tag"] = "noindex"
    return response


def shared_plan(request: HttpRequest, text: str) -> FileResponse:
    """The plan image behind the map of a shared view."""
    return plan_of(request, _opened(text)[0].feed)
