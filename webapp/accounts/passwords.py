"""What else ends when a password is changed, on whichever way: page, reset by mail, admin, command line."""

from __future__ import annotations

from typing import Any

from webapp.accounts.models import ApiToken


class TokensEnd:
    """Among Django's password validators, because these alone hear of every changed password, and of no mere change of the hash's form."""

    def validate(self, password: str, user: Any = None) -> None:
        """Any password will do."""

    def password_changed(self, password: str, user: Any = None) -> None:
        """Whoever knew the old password may have made tokens with it."""
        if user is not None and user.pk is not None:
            ApiToken.objects.filter(user=user).delete()

    def get_help_text(self) -> str:
        return "Changing it ends your tokens."
