"""The forms of the log-in."""

from __future__ import annotations

import time
from typing import Any

from allauth.account.forms import LoginForm
from allauth.mfa import app_settings
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base import forms as factors
from allauth.mfa.models import Authenticator
from django.db import transaction

USED = "used_in"
"""In an authenticator app's row: the last period of 30 seconds (RFC 6238) whose code was
accepted."""


class LogInForm(LoginForm):  # type: ignore[misc]
    """Name and password."""

    def add_prefix(self, field_name: str) -> str:
        """The name is sent as `username`: password managers and programs that log in expect
        this."""
        return str(super().add_prefix("username" if field_name == "login" else field_name))


class _Once:
    """Each code of an app is accepted once, in all processes together: allauth keeps used codes in
    the cache, which processes share only through Redis."""

    authenticator: Authenticator

    def clean_code(self) -> Any:
        code = super().clean_code()  # type: ignore[misc]
        if self.authenticator.type == Authenticator.Type.TOTP and not _taken(self.authenticator.pk):
            raise get_adapter().validation_error("incorrect_code")
        return code


@transaction.atomic
def _taken(pk: int) -> bool:
    """Accepts the code of the present period; false when it was used before."""
    row = Authenticator.objects.select_for_update().get(pk=pk)
    span = int(time.time()) // app_settings.TOTP_PERIOD
    if row.data.get(USED, -1) >= span:
        return False
    row.data[USED] = span
    row.save(update_fields=["data"])
    return True


class AuthenticateForm(_Once, factors.AuthenticateForm):  # type: ignore[misc]
    """The second factor at the log-in."""


class ReauthenticateForm(_Once, factors.ReauthenticateForm):  # type: ignore[misc]
    """The second factor before an action that asks for it again."""
