"""Messages to a user's browser through the push service of its maker (RFC 8030), whether a page is
open or not.

Encrypted for the browser alone (RFC 8291); the push service identifies the sender by a signature
(VAPID, RFC 8292). At least once: a repeated message replaces the previous one, at the push service
by its topic and in the browser by its tag.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parseaddr
from typing import Any
from urllib.parse import SplitResult

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.urls import reverse
from py_vapid import Vapid02

from engine.model.messages import Message, message_of
from webapp.alerts.models import Delivery
from webapp.alerts.transports import mail
from webapp.alerts.webhooks import Answer, check_url, post_bytes
from webapp.config.outside import RefusedAddress, check_host

LONGEST = timedelta(seconds=30)
KEPT_SECONDS = 86_400
"""How long the push service keeps a message for a browser that is offline."""
TOKEN_SECONDS = 3_600
LISTED = 3
TITLE_LENGTH, BODY_LENGTH = 150, 700
"""Characters: a push service takes 4,096 bytes, encrypted (RFC 8030, 7.2)."""
AUTH_BYTES = 16
GONE = (404, 410)
"""The browser, or its owner, has ended the subscription."""


def refuse(attributes: Mapping[str, Any]) -> dict[str, Message]:
    """The subscription as the browser gave it: the address of its push service, and its keys."""
    if not settings.PUSH_KEY:
        return {"kind": Message("This installation sends no push messages: an operator gives it a key in VEDETTE_PUSH_KEY.")}
    try:
        check_host(check_url(attributes.get("url") or "").hostname or "")
    except RefusedAddress as error:
        return {"url": message_of(error)}
    try:
        _keys(attributes.get("browser_keys") or "")
    except ValueError:
        return {"browser_keys": Message("The subscription's keys p256dh and auth, with a space between them, as the browser gives them.")}
    return {}


def send(delivery: Delivery, now: datetime) -> Answer:
    """Encrypts the message and hands it to the push service."""
    try:
        parts = check_url(delivery.channel.url)
    except RefusedAddress as error:
        return Answer(None, message_of(error))
    public, auth = _keys(delivery.channel.browser_keys)
    written = json.dumps(content_of(delivery), ensure_ascii=False, separators=(",", ":")).encode()
    encrypted = http_ece.encrypt(written, private_key=ec.generate_private_key(ec.SECP256R1()), dh=public, auth_secret=auth, version="aes128gcm")
    headers = {
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(KEPT_SECONDS),
        "Urgency": "high" if _is_urgent(delivery) else "normal",
        "Topic": delivery.webhook_id.hex,
        **_signed(parts),
    }
    answer = post_bytes(delivery.channel.url, encrypted, headers)
    return Answer(410, Message("The browser has ended its subscription.")) if answer.status in GONE else answer


def public_key() -> str | None:
    """The public key for subscriptions; None if this installation sends no push messages."""
    if not settings.PUSH_KEY:
        return None
    point = _vapid().public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.urlsafe_b64encode(point).rstrip(b"=").decode()


def content_of(delivery: Delivery) -> dict[str, str]:
    """The text that the browser shows, and the page that it opens."""
    with mail.in_words_of(delivery.channel.owner):
        message = mail.message_of(delivery)
        alerts: list[dict[str, Any]] = message["data"].get("alerts", [])
        subject, _ = mail.words_of(delivery)
        lines = [mail.line_of(alert) for alert in alerts[:LISTED]] or [message["data"]["text"]]
        more = message["data"].get("count", 0) - LISTED
        body = "\n".join([*lines, *([mail.and_more(more)] if more > 0 else [])])
    is_one = len(alerts) == 1
    link = reverse("alert", args=[alerts[0]["id"]]) if is_one else reverse("alerts") if alerts else reverse("account")
    tag = f"alert-{alerts[0]['id']}" if is_one else str(delivery.webhook_id)
    return {"title": _shown(subject)[:TITLE_LENGTH], "body": _shown(body)[:BODY_LENGTH], "link": link, "tag": tag}


def _shown(text: str) -> str:
    return "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in text)


def _is_urgent(delivery: Delivery) -> bool:
    return any(alert["severity"] in ("high", "critical") for alert in json.loads(delivery.body)["data"].get("alerts", []))


def _keys(text: str) -> tuple[ec.EllipticCurvePublicKey, bytes]:
    """The browser's public key and its secret. Raises ValueError."""
    p256dh, _, auth = text.partition(" ")
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _bytes(p256dh))
        secret = _bytes(auth)
    except (binascii.Error, TypeError) as error:
        raise ValueError(str(error)) from error
    if len(secret) != AUTH_BYTES:
        raise ValueError("auth")
    return public, secret


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _signed(parts: SplitResult) -> dict[str, str]:
    """The sender's signature, valid for this push service and for a short time."""
    contact = settings.PUBLIC_URL if settings.PUBLIC_URL.startswith("https://") else f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}"
    claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": int(time.time()) + TOKEN_SECONDS, "sub": contact}
    signed: dict[str, str] = _vapid().sign(claims)
    return signed


def _vapid() -> Any:
    vapid = Vapid02.from_raw(settings.PUSH_KEY.encode())
    # The library's pattern for a contact does not allow a port; the
    # address is that of the operator.
    vapid.conf = {"no-strict": True}
    return vapid
