"""The alerts page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from webapp.alerts.selectors import alert_list
from webapp.config.pages import page_data


def alerts(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    """The inbox, with one alert opened when the address names it."""
    if pk is not None:
        get_object_or_404(alert_list(user=request.user), pk=pk)
    return render(request, "pages/alerts.html", page_data(request, alert=pk))
