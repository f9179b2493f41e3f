"""E-mail over the installation's mail server, as text and as HTML, with a link that acknowledges.

At least once: a crash between the server's "250" and its recording sends again, with the same
Message-ID, by which mail programs recognise it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from email.mime.image import MIMEImage
from smtplib import (
    SMTPAuthenticationError,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
    SMTPSenderRefused,
    SMTPServerDisconnected,
)
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from engine.model.messages import Message
from webapp.accounts.language import language_of, language_of_address
from webapp.accounts.models import User
from webapp.alerts.links import acknowledging_link, alert_link, desk_link
from webapp.alerts.models import Alert, Delivery
from webapp.alerts.picture import picture_of
from webapp.alerts.reasons import LONGEST_REASON, reason_of
from webapp.alerts.webhooks import Answer
from webapp.queries.models import Severity
from webapp.queries.sentences.kinds import kind_name

LONGEST = timedelta(seconds=120)
"""The connection and a session of SESSION_SECONDS."""
SMTP = "django.core.mail.backends.smtp.EmailBackend"
BOUNDED = "webapp.alerts.transports.smtp_session.Backend"
LISTED = 20
PICTURE = "picture@vedette"
SENT = 250
BUTTON = "padding:8px 14px;background:#0b6b8a;color:#fff;border-radius:6px"


def refuse(attributes: Mapping[str, Any]) -> dict[str, Message]:
    """Without a mail server no message can be sent."""
    if not settings.EMAIL_GIVEN:
        return {"kind": Message("This installation has no mail server: an operator names one in EMAIL_URL.")}
    return {} if attributes.get("recipient") else {"recipient": Message("The address that the alerts go to.")}


def send(delivery: Delivery, now: datetime) -> Answer:
    """Sends the message that the body describes."""
    try:
        with in_words_of(delivery.channel.owner, language_of_address(delivery.channel.recipient)):
            mail = _mail_of(delivery)
        mail.send()
    except (SMTPException, OSError) as error:
        return Answer(None, _reason_of(error))
    return Answer(SENT)


def _reason_of(error: Exception) -> Message:
    """A sentence that says what the mail server refuses, or that it cannot be reached."""
    match error:
        case SMTPRecipientsRefused():
            return Message("The mail server refuses the recipient: {why}", why=_reply(*next(iter(error.recipients.values()))))
        case SMTPSenderRefused():
            return Message(
                "The mail server refuses the sender {sender}, which an operator sets in VEDETTE_MAIL_FROM: {why}",
                sender=error.sender,
                why=_reply(error.smtp_code, error.smtp_error),
            )
        case SMTPAuthenticationError():
            return Message("The mail server refuses the log-in of EMAIL_URL: {why}", why=_reply(error.smtp_code, error.smtp_error))
        case SMTPResponseException():
            return Message("The mail server refuses the message: {why}", why=_reply(error.smtp_code, error.smtp_error))
        case TimeoutError() | SMTPServerDisconnected(__context__=TimeoutError()):
            return Message("The mail server did not answer in time.")
        case SMTPServerDisconnected():
            return Message("The connection to the mail server ended before it accepted the message.")
        case SMTPException():
            return reason_of(error)
        case OSError():
            return Message("The mail server of EMAIL_URL cannot be reached: {why}", why=error.strerror or str(error))
    return reason_of(error)


def _reply(code: int, text: bytes | str) -> str:
    """The server's reply: its code and its text on one line."""
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    return f"{code} {' '.join(words.split())}"[:LONGEST_REASON]


@contextmanager
def in_words_of(owner: User, language: str = "") -> Iterator[None]:
    """Texts inside are in this language or, without one, in the owner's, and
    times in the owner's zone."""
    with translation.override(language_of(language, owner.language_of_messages)), timezone.override(ZoneInfo(owner.time_zone)):
        yield


def words_of(delivery: Delivery) -> tuple[str, str]:
    """Subject and plain text of the message in its owner's language, without a link that
    acknowledges, because anybody may read a chat."""
    with in_words_of(delivery.channel.owner):
        message = message_of(delivery)
        alerts: list[dict[str, Any]] = message["data"].get("alerts", [])
        subject = _subject(message["data"].get("count", 0), alerts, is_digest=message["type"] == "alerts.digest")
        return subject, _text(message["data"], alerts, None)


def message_of(delivery: Delivery) -> dict[str, Any]:
    """The message of the body, or the text of a test in the current language."""
    message: dict[str, Any] = json.loads(delivery.body)
    if not message["data"].get("alerts"):
        message["data"]["text"] = gettext("A test of the channel %(channel)s.") % {"channel": delivery.channel.name}
    return message


def _mail_of(delivery: Delivery) -> EmailMultiAlternatives:
    message = message_of(delivery)
    alerts: list[dict[str, Any]] = message["data"].get("alerts", [])
    subject = _subject(message["data"].get("count", 0), alerts, is_digest=message["type"] == "alerts.digest")
    link = acknowledging_link(delivery) if alerts else None
    mail = EmailMultiAlternatives(
        subject=subject,
        body=_text(message["data"], alerts, link),
        to=[delivery.channel.recipient],
        headers={"Message-ID": f"<{delivery.webhook_id}@vedette>", "Auto-Submitted": "auto-generated"},
        connection=get_connection(BOUNDED if settings.EMAIL_BACKEND == SMTP else None, timeout=settings.EMAIL_TIMEOUT),
    )
    picture = _picture(alerts)
    alternative = gettext("Where it was: regions, tracks and evidence")
    shown = format_html('<p><img src="cid:{}" width="560" alt="{}"></p>', PICTURE, alternative) if picture else ""
    mail.attach_alternative(_html(subject, message["data"], alerts, link) + shown, "text/html")
    if picture:
        mail.mixed_subtype = "related"  # type: ignore[attr-defined]  # not in the stubs
        mail.attach(_inline(picture))
    return mail


def _picture(alerts: list[dict[str, Any]]) -> bytes | None:
    """The picture, in a message about one alert."""
    pictured = Alert.objects.select_related("query", "feed").filter(pk__in=[alert["id"] for alert in alerts]) if len(alerts) == 1 else []
    return next((picture_of(alert) for alert in pictured), None)


def _inline(picture: bytes) -> MIMEImage:
    part = MIMEImage(picture, "png")
    part.add_header("Content-ID", f"<{PICTURE}>")
    part.add_header("Content-Disposition", "inline", filename="alert.png")
    return part


def _subject(count: int, alerts: list[dict[str, Any]], *, is_digest: bool) -> str:
    if not alerts:
        return gettext("A test of Vedette's alerts")
    gravest = max(alerts, key=lambda alert: Severity.values.index(alert["severity"]))
    what = f"{gravest['query_name']}: {', '.join(gravest['entities']) or kind_name(gravest['kind'])}"
    if count > 1:
        what = ngettext("%(what)s and %(count)s more", "%(what)s and %(count)s more", count - 1) % {"what": what, "count": count - 1}
    if is_digest:
        what = gettext("Digest: %(what)s") % {"what": what}
    # Names of entities come from outside: a line break in one must not begin a header.
    return " ".join(f"[{gettext(Severity(gravest['severity']).label)}] {what}".split())[:200]


def line_of(alert: dict[str, Any]) -> str:
    """An alert of a message in one line, with the time in the current zone."""
    values = {
        "severity": gettext(Severity(alert["severity"]).label),
        "what": ", ".join([alert["query_name"], *alert["entities"]]),
        "kind": kind_name(alert["kind"]),
        "opened_at": date_format(timezone.localtime(datetime.fromisoformat(alert["opened_at"])), gettext("j F Y, H:i:s T"), use_l10n=False),
        "rule": alert.get("rule"),
        "minutes": alert.get("after_minutes"),
    }
    line = gettext("%(severity)s: %(what)s (%(kind)s), opened %(opened_at)s") % values
    by = gettext(". Sent by the rule “%(rule)s”") % values if values["rule"] else ""
    return line + by + (gettext(": nobody acknowledged it within %(minutes)s min") % values if values["minutes"] else "")


def and_more(count: int) -> str:
    """How many alerts a message does not list."""
    return ngettext("and %(count)s more", "and %(count)s more", count) % {"count": count}


def _text(data: dict[str, Any], alerts: list[dict[str, Any]], link: str | None) -> str:
    if not alerts:
        return f"{data.get('text', '')}\n"
    lines = [f"{line_of(alert)}\n  {alert_link(alert['id']) or ''}".rstrip() for alert in alerts[:LISTED]]
    more = [f"{and_more(data['count'] - LISTED)}\n  {desk_link() or ''}".rstrip()] if data["count"] > LISTED else []
    acknowledge = [gettext("Acknowledge: %(link)s") % {"link": link}] if link else []
    return "\n\n".join([*lines, *more, *acknowledge]) + "\n"


def _html(subject: str, data: dict[str, Any], alerts: list[dict[str, Any]], link: str | None) -> SafeString:
    if not alerts:
        return format_html("<p>{}</p>", data.get("text", ""))
    rows = format_html_join("", "<li>{}</li>", ((_linked(alert),) for alert in alerts[:LISTED]))
    desk, left = desk_link(), and_more(data["count"] - LISTED)
    others = format_html('<a href="{}">{}</a>', desk, left) if desk else left
    more = format_html("<p>{}</p>", others) if data["count"] > LISTED else ""
    acknowledge = format_html('<p><a href="{}" style="{}">{}</a></p>', link, BUTTON, gettext("Acknowledge")) if link else ""
    return format_html("<h2>{}</h2><ul>{}</ul>{}{}", subject, rows, more, acknowledge)


def _linked(alert: dict[str, Any]) -> SafeString | str:
    address = alert_link(alert["id"])
    return format_html('<a href="{}">{}</a>', address, line_of(alert)) if address else line_of(alert)
