"""Which passwords are refused, and which sessions and tokens end when a password is changed in any
way: page, reset by mail, admin, command line."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError

from engine.model.messages import Message
from webapp.accounts.models import ApiToken
from webapp.config.wording import translated


class TokensEnd:
    """One of Django's password validators, because only these are called for every changed
    password, and not when only the form of the hash changes."""

    def validate(self, password: str, user: Any = None) -> None:
        """Accepts every password."""

    def password_changed(self, password: str, user: Any = None) -> None:
        """A user who knew the old password may have made tokens with it."""
        if user is not None and user.pk is not None:
            ApiToken.objects.filter(user=user).delete()

    def get_help_text(self) -> str:
        return "Changing it ends your tokens."


class NoCommonWords:
    """Refuses passwords that consist mainly of a word that everybody in the organisation knows (the
    product, the site, words that the operator names)."""

    OTHERS = 8
    """A password is accepted if it has this many more characters than the word."""

    def validate(self, password: str, user: Any = None) -> None:
        plain = password.casefold()
        for word in self._words():
            if word in plain and len(plain) - len(word) * plain.count(word) < self.OTHERS:
                raise ValidationError(
                    translated(Message("The password consists mainly of the word {word}, which everybody in the organisation knows.", word=word)),
                    code="password_of_the_place",
                )

    def get_help_text(self) -> str:
        return f"It must have at least {self.OTHERS} characters besides words that everybody here knows, such as vedette."

    def _words(self) -> list[str]:
        names = [part for host in settings.ALLOWED_HOSTS for part in host.strip(".").split(".")]
        return sorted({word.casefold() for word in ("vedette", *names, *settings.PASSWORD_WORDS) if len(word) > 3}, key=len, reverse=True)


class NoBreachedPassword:
    """Refuses passwords whose SHA-1 digest is in a sorted file of breached ones, `DIGEST:COUNT` a
    line, in the format of Have I Been Pwned."""

    def validate(self, password: str, user: Any = None) -> None:
        path = settings.BREACHED_PASSWORDS
        if path and is_in_order(Path(path), hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()):
            raise ValidationError(
                translated(Message("This password is known from data breaches elsewhere: choose another one.")), code="password_breached"
            )

    def get_help_text(self) -> str:
        return "It must not be known from a theft elsewhere." if settings.BREACHED_PASSWORDS else ""


LONGEST_LINE = 100


def is_in_order(path: Path, digest: bytes) -> bool:
    """Whether a line begins with `digest`; the file, of any size, has its lines in order."""
    with path.open("rb") as file:
        low, high = 0, path.stat().st_size
        # The line sought, if there is one, begins in [low, high).
        while high - low > LONGEST_LINE:
            middle = (low + high) // 2
            file.seek(middle)
            file.readline(LONGEST_LINE)
            begins = file.tell()
            line = file.readline(LONGEST_LINE)
            if line and line[: len(digest)].upper() <= digest:
                low = begins
            else:
                high = middle + 1
        file.seek(low)
        return any(line[: len(digest)].upper() == digest for line in file.read(3 * LONGEST_LINE).splitlines())
