"""The plan image under a planar feed."""

from __future__ import annotations

from django.http import FileResponse, Http404, HttpRequest

from webapp.feeds.selectors import feed_get


def plan(request: HttpRequest, name: str) -> FileResponse:
    """The image, for who may see the feed."""
    feed = feed_get(user=request.user, name=name)
    if feed is None or not feed.plan_image:
        raise Http404
    response = FileResponse(feed.plan_image.open("rb"))
    response.headers["Cache-Control"] = "private, max-age=86400"
    return response
