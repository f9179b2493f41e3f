"""Services that change users and their tokens."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.accounts.models import ApiToken, Scope, User
from webapp.accounts.quotas import quota_check, tokens_held
from webapp.config.algorithms import digest_of, digests_of

TOKEN_PREFIX = "vdt_"  # noqa: S105  what tokens are recognised by
LAST_USED_RESOLUTION = timedelta(minutes=1)


@dataclass(frozen=True)
class NewToken:
    """A new token; `text` is the only copy of the secret."""

    token: ApiToken
    text: str


@transaction.atomic
def token_create(*, user: User, name: str, scopes: list[str], expires_at: datetime | None = None, feed: Any = None) -> NewToken:
    """A new token of 256 random bits for `user`, for only one feed if given; without `expires_at`
    it has the maximum lifetime.

    Raises ValueError for an unknown or no scope, Refused for one that would live too long, or whose
    scopes permit more than sending to its feed.
    """
    if not scopes or not set(scopes) <= set(Scope.values):
        raise ValueError(f"scopes are some of {', '.join(Scope.values)}")
    if feed is not None and set(scopes) != {Scope.INGEST.value}:
        raise refuse("/scopes", Message("A token for one feed has only the scope ingest."))
    latest = timezone.now() + timedelta(days=settings.TOKEN_DAYS)
    if expires_at is not None and expires_at > latest:
        raise refuse(
            "/expires_at", Message("A token is valid for at most {days} days: until {latest}.", days=settings.TOKEN_DAYS, latest=f"{latest:%Y-%m-%d}")
        )
    quota_check("tokens", user=user, more=1, held=tokens_held)
    text = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=text[: len(TOKEN_PREFIX) + 6],
        digest=digest_of(text),
        scopes=sorted(set(scopes)),
        feed=feed,
        expires_at=expires_at or latest,
    )
    return NewToken(token, text)


def token_revoke(*, token: ApiToken) -> None:
    """Ends the token immediately."""
    token.delete()


def token_authenticate(text: str, scope: str | None = None) -> ApiToken | None:
    """The valid token (with its `user`) behind `text`, or None: unknown, expired, user inactive, or
    without `scope`."""
    if not text.startswith(TOKEN_PREFIX) or len(text) > 100:
        return None
    token = ApiToken.objects.select_related("user").filter(digest__in=digests_of(text)).first()
    now = timezone.now()
    if token is None or not token.user.is_active:
        return None
    # The maximum age also applies to tokens that were made before there was one.
    if now >= min(token.expires_at or now + timedelta(days=1), token.created_at + timedelta(days=settings.TOKEN_DAYS, minutes=1)):
        return None
    if scope is not None and scope not in token.scopes:
        return None
    # At most one write a minute: ingest authenticates many times a second.
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_RESOLUTION)
    if token.last_used_at is None or token.last_used_at < now - LAST_USED_RESOLUTION:
        # A request holds the row until its changes are stored; other requests with the
        # token do not wait for it.
        with transaction.atomic(savepoint=False):
            free = ApiToken.objects.filter(stale, pk=token.pk).select_for_update(skip_locked=True, no_key=True)
            ApiToken.objects.filter(pk__in=free.values("pk")).update(last_used_at=now)
    return token


def profile_update(
    *, user: User, email: str | None = None, time_zone: str | None = None, units: str | None = None, language: str | None = None
) -> User:
    """Changes the given fields."""
    # An address is stored in the form in which a password reset and a log-in by a provider compare
    # it.
    changes = {"email": None if email is None else email.lower(), "time_zone": time_zone, "units": units, "language": language}
    changed = {name: value for name, value in changes.items() if value is not None}
    for name, value in changed.items():
        setattr(user, name, value)
    user.save(update_fields=list(changed))
    return user


def browser_language_note(*, user: User, language: str) -> None:
    """Remembers the language that the user's browser asks for, for messages that are sent outside
    their requests."""
    if language != user.browser_language:
        User.objects.filter(pk=user.pk).update(browser_language=language)


def password_change(*, user: User, password: str) -> None:
    """Sets a checked password. Sessions are bound to its hash: all of the user's sessions end
    except the caller's, which the caller renews. All tokens end."""
    user.set_password(password)
    user.save(update_fields=["password"])
