"""The link that sets a new password: its key comes in a body, and is kept in the session for
allauth's page."""

from __future__ import annotations

from allauth.account.views import INTERNAL_RESET_SESSION_KEY
from django.http import HttpRequest
from django.urls import reverse

from webapp.config.opened_links import LinkEnded

IN_ADDRESS = "set-password"
"""The text in the page's address in place of the key."""


def open_reset(request: HttpRequest, secret: str) -> str:
    """Takes `<user>-<key>`; returns the address of the page that checks the key, reports what is
    wrong with it, or asks for the password."""
    user, _, key = secret.partition("-")
    if not (user.isascii() and user.isalnum()):
        raise LinkEnded
    request.session[INTERNAL_RESET_SESSION_KEY] = key
    return reverse("account_reset_password_from_key", args=[user, IN_ADDRESS])
