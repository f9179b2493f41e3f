"""The pages of one entity and of one region."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from webapp.config.pages import page_data
from webapp.feeds.selectors import feed_list
from webapp.queries.regions import region_list


def entity(request: HttpRequest, name: str) -> HttpResponse:
    """`/feeds/<name>/entity?id=`: its reports, visited regions, and answers."""
    user = request.user
    assert user.is_authenticated
    feed = get_object_or_404(feed_list(user=user), name=name)
    identifier = request.GET.get("id", "")
    if identifier == "":
        return redirect(f"/?feed={feed.name}")
    return render(request, "pages/entity.html", page_data(request, feed=feed.name, entity=identifier))


def region(request: HttpRequest, pk: int) -> HttpResponse:
    """`/regions/<id>`: entities inside, entries and exits."""
    user = request.user
    assert user.is_authenticated
    row: Any = get_object_or_404(region_list(user=user), pk=pk)
    using = [{"id": query.pk, "name": query.name} for query in row.using]
    shown = {"id": row.pk, "name": row.name, "feed": row.feed.name, "geometry": row.geometry, "tags": row.tags, "used_by": using}
    return render(request, "pages/region.html", page_data(request, region=shown))
