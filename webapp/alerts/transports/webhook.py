"""A signed message to an address (Standard Webhooks). The receiver recognises
a repeated one by its id."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from engine.model.messages import Message, message_of
from webapp.alerts.models import Channel, Delivery
from webapp.alerts.webhooks import Answer, check_url, post
from webapp.config.outside import RefusedAddress, check_host

LONGEST = timedelta(seconds=30)


def refuse(attributes: Mapping[str, Any]) -> dict[str, Message]:
    """The address must be a permitted one."""
    try:
        check_host(check_url(attributes.get("url") or "").hostname or "")
    except RefusedAddress as error:
        return {"url": message_of(error)}
    return {}


def send(delivery: Delivery, now: datetime) -> Answer:
    """Posts the body as it is stored."""
    secrets = secrets_at(delivery.channel, now)
    return post(url=delivery.channel.url, secrets_in_use=secrets, webhook_id=str(delivery.webhook_id), body=delivery.body, now=now)


def secrets_at(channel: Channel, now: datetime) -> list[str]:
    """The signing secrets in use: during a rotation the old one too."""
    rotating = channel.old_secret and channel.old_secret_until is not None and now < channel.old_secret_until
    return [channel.secret, channel.old_secret] if rotating else [channel.secret]
