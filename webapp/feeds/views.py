"""The pages of feeds and regions."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.cage.warm_pool import INSPECTIONS, PARSERS
from webapp.config.pages import page_data
from webapp.jobs.api import jobs_for_page


def feeds(request: HttpRequest) -> HttpResponse:
    """Feeds and the jobs that process them."""
    assert request.user.is_authenticated
    return render(request, "pages/feeds.html", page_data(request, jobs=jobs_for_page(user=request.user)))


def feed_new(request: HttpRequest) -> HttpResponse:
    """A new feed, from a file or without one."""
    INSPECTIONS.prepare()
    return render(request, "pages/feed_new.html", page_data(request))


def regions(request: HttpRequest) -> HttpResponse:
    """The library of regions."""
    PARSERS.prepare()
    return render(request, "pages/regions.html", page_data(request))
