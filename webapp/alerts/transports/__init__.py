"""How messages are sent: one module for each kind of channel, behind one small interface. A new
kind is one module and one line in `TRANSPORTS`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from engine.model.messages import Message
from webapp.alerts.models import ChannelKind, Delivery
from webapp.alerts.transports import apprise, kafka, mail, mqtt, push, webhook
from webapp.alerts.webhooks import Answer


class Transport(Protocol):
    """`LONGEST`: the longest that one attempt takes; the claim on the message lasts as long."""

    LONGEST: timedelta

    def refuse(self, attributes: Mapping[str, Any]) -> dict[str, Message]:
        """The faults in the fields of a channel of this kind, by field;
        checked when it is saved."""

    def send(self, delivery: Delivery, now: datetime) -> Answer:
        """Sends the message once; never raises for failures of the receiver or the network."""


TRANSPORTS: Mapping[str, Transport] = {
    ChannelKind.WEBHOOK: webhook,
    ChannelKind.MAIL: mail,
    ChannelKind.MQTT: mqtt,
    ChannelKind.APPRISE: apprise,
    ChannelKind.PUSH: push,
    ChannelKind.KAFKA: kafka,
}
