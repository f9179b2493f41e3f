"""The alerts page."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from webapp.alerts import links
from webapp.alerts.links import alerts_of, delivery_of
from webapp.alerts.models import Delivery
from webapp.alerts.selectors import alert_list
from webapp.config.opened_links import LinkEnded, check_opened, note_opened, unindexed
from webapp.config.pages import page_data
from webapp.feeds.heads import outbox_numbers

MESSAGE = "message"
"""The kind of these links, in sessions."""
OPEN_FOR = timedelta(hours=1)
"""How long the page stays accessible once its link was opened; the link
itself is valid for longer."""


def alerts(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    """The desk, with one alert open if the address names it."""
    if pk is not None:
        get_object_or_404(alert_list(user=request.user), pk=pk)
    return render(request, "pages/alerts.html", page_data(request, alert=pk, outbox=outbox_numbers(user=request.user)))


def numbers(request: HttpRequest) -> HttpResponse:
    """Statistics of the desk."""
    return render(request, "pages/alert_numbers.html", page_data(request))


def open_message(request: HttpRequest, secret: str) -> str:
    """Opens the page of a message's link in this session; returns its address."""
    delivery = delivery_of(secret)
    if delivery is None:
        raise LinkEnded
    note_opened(request, MESSAGE, delivery.pk, timezone.now() + OPEN_FOR)
    return reverse("acknowledge-message", args=[delivery.pk])


@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    """The page behind the link of a message: asks first, as mail programs
    follow links automatically."""
    check_opened(request, MESSAGE, pk)
    delivery = get_object_or_404(Delivery.objects.select_related("channel__owner"), pk=pk, channel__enabled=True)
    changed = links.acknowledge(delivery) if request.method == "POST" else None
    shown = {"alerts": alerts_of(delivery), "changed": changed, "owner": delivery.channel.owner.username}
    return unindexed(render(request, "pages/acknowledge.html", shown))
