"""Messages to chats, pagers and SMS gateways through Apprise, whose addresses name service, keys
and receiver, such as `slack://...` or `ntfys://host/topic`.

A separate child process sends each message (`webapp.alerts.apprise_child`); it reaches only
permitted addresses. At least once.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from engine.model.messages import Message, untranslated
from webapp.alerts.models import Delivery
from webapp.alerts.transports import mail
from webapp.alerts.webhooks import Answer
from webapp.cage.confinement import child_environment
from webapp.platform.folders import ROOT

LONGEST = timedelta(seconds=60)
TOTAL_SECONDS = 30.0
TAKEN = 200
BODY_LENGTH = 4_000
SERVICES = frozenset({
    "46elks", "atalk", "bark", "barks", "betterstack", "brevo", "bulksms", "burstsms", "chanify", "clickatell", "clicksend", "cliq", "d7sms",
    "dapnet", "dingtalk", "discord", "feishu", "flock", "gchat", "goalert", "goalerts", "gotify", "gotifys", "groupme", "guilded", "hassio",
    "hassios", "httpsms", "ifttt", "ilert", "incidentio", "infobip", "jira", "join", "kaleyra", "kavenegar", "lametric", "lametrics", "lark",
    "line", "mailersend", "mailgun", "mastodon", "mastodons", "matrix", "matrixs", "misskey", "misskeys", "mmost", "mmosts", "msg91", "msgbird",
    "ncloud", "nclouds", "nctalk", "nctalks", "nexmo", "notica", "noticas", "notifiarr", "notifico", "ntfy", "ntfys", "o365", "onesignal",
    "opsgenie", "pagerduty", "pagertree", "pbul", "pjet", "pjets", "plivo", "postmark", "pover", "prowl", "psafer", "psafers", "push",
    "pushdeer", "pushed", "pushme", "pushplus", "pushy", "qq", "resend", "revolt", "rocket", "rockets", "ryver", "schan", "sendgrid", "seven",
    "sfr", "signal", "signals", "signl4", "simplepush", "sinch", "slack", "smseagle", "smseagles", "smsmanager", "smtp2go", "sns", "sparkpost",
    "spike", "splunk", "spugpush", "squadcast", "synology", "synologys", "telnyx", "tgram", "threema", "twilio", "twist", "viber", "victorops",
    "voipms", "vonage", "webex", "wecombot", "whatsapp", "workflow", "workflows", "wxpusher", "wxteams", "xmatters", "zoom", "zulip",
})  # fmt: skip
"""Services of Apprise that use HTTP and need no file; those that run programs, open sockets
or read files are left out."""


def refuse(attributes: Mapping[str, Any]) -> dict[str, Message]:
    """The address names one of the services."""
    address = attributes.get("url") or ""
    service, found, rest = address.partition("://")
    if not found or not rest or re.search(r"[\s\x00-\x1f\x7f]", address):
        return {"url": Message("An address of Apprise, such as slack://TokenA/TokenB/TokenC or ntfys://ntfy.example.org/topic.")}
    if service.lower() not in SERVICES:
        return {"url": Message("“{service}” is not one of the services: docs/api.md, Channels, lists them.", service=service[:40])}
    return {}


def send(delivery: Delivery, now: datetime) -> Answer:
    """Passes the message to a child process and waits for its result."""
    if faults := refuse({"url": delivery.channel.url}):
        return Answer(None, faults["url"])
    title, text = mail.words_of(delivery)
    message = {
        "url": delivery.channel.url,
        "title": title,
        "body": text[:BODY_LENGTH],
        "networks": settings.WEBHOOK_NETWORKS,
        "public": settings.PUBLIC_ADDRESSES,
    }
    command = [sys.executable, "-m", "webapp.alerts.apprise_child"]
    try:
        ended = subprocess.run(
            command, input=json.dumps(message).encode(), capture_output=True, timeout=TOTAL_SECONDS, env=child_environment(), cwd=ROOT, check=False
        )
        answer = json.loads(ended.stdout)
    except subprocess.TimeoutExpired:
        return Answer(None, Message("The service did not answer within {seconds} s.", seconds=f"{TOTAL_SECONDS:g}"))
    except ValueError:
        return Answer(None, Message("The message could not be sent: its process ended early."))
    return Answer(TAKEN) if answer["sent"] else Answer(None, untranslated(without_secrets(answer["problem"], delivery.channel.url)))


def without_secrets(text: str, address: str) -> str:
    """`text` without the parts of the address that may be keys."""
    for part in sorted(re.split(r"[/:@?&=]+", address.partition("://")[2]), key=len, reverse=True):
        if len(part) > 4:
            text = text.replace(part, "***")
    return text
