"""The plan image under a planar feed."""

from __future__ import annotations

from django.http import FileResponse, Http404, HttpRequest

from webapp.feeds.models import Feed
from webapp.feeds.selectors import feed_get


def plan(request: HttpRequest, name: str) -> FileResponse:
    """The image, for users who may see the feed."""
    feed = feed_get(user=request.user, name=name)
    if feed is None:
        raise Http404
    return plan_of(request, feed)


def plan_of(request: HttpRequest, feed: Feed) -> FileResponse:
    """The image of a feed that the caller has permitted. Raises Http404 when there is none."""
    if not feed.plan_image:
        raise Http404
    response = FileResponse(feed.plan_image.open("rb"))
    response.headers["Cache-Control"] = "private, max-age=86400"
    return response
