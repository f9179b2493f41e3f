"""The live page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.config.pages import page_data


def live(request: HttpRequest) -> HttpResponse:
    """Map and timeline of one feed at a time."""
    return render(request, "pages/live.html", page_data(request))
