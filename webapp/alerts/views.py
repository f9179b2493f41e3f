"""The alerts page."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from webapp.alerts import links
from webapp.alerts.links import alerts_of, delivery_of
from webapp.alerts.selectors import alert_list
from webapp.config.pages import page_data


def alerts(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    """The inbox, with one alert opened when the address names it."""
    if pk is not None:
        get_object_or_404(alert_list(user=request.user), pk=pk)
    return render(request, "pages/alerts.html", page_data(request, alert=pk))


def numbers(request: HttpRequest) -> HttpResponse:
    """How the desk does."""
    return render(request, "pages/alert_numbers.html", page_data(request))


@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge(request: HttpRequest, token: str) -> HttpResponse:
    """Behind the link of a message: asks first, as mail programs follow links by themselves."""
    delivery = delivery_of(token)
    if delivery is None:
        raise Http404("The link is too old, or was made up.")
    changed = links.acknowledge(delivery) if request.method == "POST" else None
    shown = {"alerts": alerts_of(delivery), "changed": changed, "owner": delivery.channel.owner.username}
    return render(request, "pages/acknowledge.html", shown)
