"""Links in messages: to an alert, and one that acknowledges what a message
reports, without a log-in.

The link is signed and valid for a week. Following it changes nothing, as mail programs and scanners
follow links by themselves: the page behind it has the button. It acts in the name of the channel's
owner, and only while they may handle the alerts.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils.translation import gettext

from webapp.alerts.handling import FROM, Decision, alerts_decide
from webapp.alerts.models import Alert, Delivery, Step
from webapp.alerts.selectors import alert_list
from webapp.config.opened_links import link_to

SALT = "alerts.acknowledge"
GOOD_FOR = timedelta(days=7)


def alert_link(alert_id: int) -> str | None:
    """The alert's page; None if the installation's address is not configured."""
    return f"{settings.PUBLIC_URL}{reverse('alert', args=[alert_id])}" if settings.PUBLIC_URL else None


def desk_link() -> str | None:
    """The page of all alerts; None if the installation's address is not configured."""
    return f"{settings.PUBLIC_URL}{reverse('alerts')}" if settings.PUBLIC_URL else None


def acknowledging_link(delivery: Delivery) -> str | None:
    """The page that acknowledges what the message reports."""
    token = signing.dumps(str(delivery.webhook_id), salt=SALT)
    return f"{settings.PUBLIC_URL}{link_to('acknowledge', token)}" if settings.PUBLIC_URL else None


def delivery_of(token: str) -> Delivery | None:
    """The message that contained the link; None if the link is forged, too old, or of a channel
    that was removed or disabled."""
    try:
        webhook_id = signing.loads(token, salt=SALT, max_age=GOOD_FOR)
    except signing.BadSignature:
        return None
    return Delivery.objects.select_related("channel__owner").filter(webhook_id=webhook_id, channel__enabled=True).first()


def alerts_of(delivery: Delivery) -> list[Alert]:
    """The alerts of the message that nobody has acknowledged and its channel's owner may handle."""
    return list(alert_list(user=delivery.channel.owner, to_handle=True).filter(notifications__delivery=delivery, state__in=FROM[Step.ACKNOWLEDGED]))


def acknowledge(delivery: Delivery) -> list[int]:
    """Acknowledges them; returns the ids of those that were not acknowledged yet."""
    comment = gettext("By the link in a message to %(name)s") % {"name": delivery.channel.recipient or delivery.channel.name}
    return alerts_decide(alerts=alerts_of(delivery), decision=Decision(Step.ACKNOWLEDGED, delivery.channel.owner, comment))
