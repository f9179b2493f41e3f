"""Logging in, with a limit on failures: of one account, and of one address. Nobody is locked out for longer than the window."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from redis.exceptions import RedisError

from webapp.config.addresses import address_of

logger = logging.getLogger(__name__)


def _keys(request: HttpRequest, username: str) -> tuple[tuple[str, int], tuple[str, int]]:
    account = hashlib.sha256(username.strip().casefold().encode()).hexdigest()[:32]
    address = hashlib.sha256(address_of(request).encode()).hexdigest()[:32]
    return (f"login:account:{account}", settings.LOGIN_ATTEMPTS_PER_ACCOUNT), (f"login:address:{address}", settings.LOGIN_ATTEMPTS_PER_ADDRESS)


def is_barred(request: HttpRequest, username: str) -> bool:
    """Whether too many log-ins have failed lately."""
    try:
        return any(cache.get(key, 0) >= limit for key, limit in _keys(request, username))
    except RedisError as error:
        logger.warning("failed log-ins are not counted: %s", error)
        return False


def note_failure(request: HttpRequest, username: str) -> None:
    """Counts a failed log-in."""
    with contextlib.suppress(RedisError):
        _count(request, username)


def _count(request: HttpRequest, username: str) -> None:
    for key, _ in _keys(request, username):
        cache.add(key, 0, settings.LOGIN_WINDOW_SECONDS)
        try:
            cache.incr(key)
        except ValueError:
            # It expired between the two calls.
            cache.set(key, 1, settings.LOGIN_WINDOW_SECONDS)


class LimitedForm(AuthenticationForm):
    """Name and password; after too many failures neither is looked at any more."""

    def clean(self) -> dict[str, Any]:
        username = self.data.get("username", "")
        assert self.request is not None
        if is_barred(self.request, username):
            minutes = settings.LOGIN_WINDOW_SECONDS // 60
            raise ValidationError(f"Too many log-ins have failed. Try again in {minutes} minutes.", code="barred")
        try:
            return super().clean()
        except ValidationError:
            note_failure(self.request, username)
            raise


class Login(LoginView):
    """The log-in page."""

    template_name = "pages/login.html"
    authentication_form = LimitedForm
    redirect_authenticated_user = True
