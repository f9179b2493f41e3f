"""The forms of the log-in."""

from __future__ import annotations

from allauth.account.forms import LoginForm


class LogInForm(LoginForm):  # type: ignore[misc]
    """Name and password."""

    def add_prefix(self, field_name: str) -> str:
        """The name is sent as `username`: what password managers, and programs that log in, know it by."""
        return str(super().add_prefix("username" if field_name == "login" else field_name))
