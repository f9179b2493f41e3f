"""The live page, and the shared view for readers with a link and no account."""

from __future__ import annotations

from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from webapp.audit.services import record
from webapp.config.opened_links import LinkEnded, check_opened, note_opened, unindexed
from webapp.config.pages import page_data
from webapp.feeds.plan import plan_of
from webapp.live.models import SharedView
from webapp.live.selectors import Permission
from webapp.live.shares import SHARED, share_find, share_page, share_shows


def live(request: HttpRequest) -> HttpResponse:
    """Map and timeline of one feed at a time."""
    return render(request, "pages/live.html", page_data(request))


def open_shared(request: HttpRequest, secret: str) -> str:
    """Opens the view of a link in this session; its address."""
    share = share_find(secret)
    if share is None:
        raise LinkEnded
    note_opened(request, SHARED, share.pk, share.expires_at)
    record("share.open", share.feed, share=share.pk)
    return reverse("shared-view", args=[share.pk])


def _opened(request: HttpRequest, pk: int) -> tuple[SharedView, Permission]:
    """The opened link. Raises LinkEnded if there is none (any more)."""
    check_opened(request, SHARED, pk)
    permission = share_shows(pk)
    if permission is None:
        raise LinkEnded
    return get_object_or_404(SharedView.objects.select_related("feed", "maker"), pk=pk), permission


def shared(request: HttpRequest, pk: int) -> HttpResponse:
    """The live view behind a link: read-only, and of one feed."""
    shown = share_page(*_opened(request, pk))
    if shown["feed"]["plan_image"] is not None:
        shown["feed"]["plan_image"] = f"{request.path}plan"
    return unindexed(render(request, "pages/shared.html", {"page_data": shown, "socket": f"/ws{request.path}"}))


def shared_plan(request: HttpRequest, pk: int) -> FileResponse:
    """The plan image behind the map of a shared view."""
    return plan_of(request, _opened(request, pk)[0].feed)
