"""A second factor for everybody, where the operator requires it (`VEDETTE_SECOND_FACTOR=required`;
OWASP ASVS 5, 6.3.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_noop

from webapp.config.middleware import OPEN_PATHS

Next = Callable[[HttpRequest], HttpResponseBase]
STILL_OPEN = (*OPEN_PATHS, "/logout/", "/account/security/", "/account/confirm/", "/account/password/")
"""The addresses that are open without a second factor: the pages that set one up, and
those that need no log-in."""
PROVED = "provider_proved"
"""In the session: the provider that reported in this log-in that it had asked for two factors."""
TRUSTED = "trusted"
"""Instead of a provider's values: the operator guarantees that everybody
proves two factors there."""
NEEDED = gettext_noop("This installation requires a second factor of every user: set one up first.")


def is_missing(request: HttpRequest) -> bool:
    """Whether the session's user has to set up a second factor first. Users who proved two factors
    to a provider need not (OWASP ASVS 5, 6.8.4)."""
    user = request.user
    if not settings.SECOND_FACTOR_REQUIRED or not user.is_authenticated or is_mfa_enabled(user):
        return False
    proved = request.session.get(PROVED)
    used = {one.get("provider") for one in get_authentication_records(request, user) if one.get("method") == "socialaccount"}
    return proved is None or proved not in used


def are_two(claims: Mapping[str, Any], required: str | Collection[str]) -> bool:
    """Whether a provider's ID token states that two factors were proved: by its `amr` (RFC 8176) or
    `acr`, which has one of the values `required`.

    >>> are_two({"amr": ["pwd", "mfa"]}, ["mfa"]), are_two({"acr": "gold"}, ["gold"])
    (True, True)
    >>> are_two({"amr": ["pwd"]}, ["mfa"]), are_two({}, ["mfa"])
    (False, False)
    """
    if required == TRUSTED:
        return True
    methods = claims.get("amr")
    values = {one for one in (*(methods if isinstance(methods, list) else [methods]), claims.get("acr")) if isinstance(one, str)}
    return not values.isdisjoint(required)


def note_provider(request: HttpRequest, provider: str, claims: Mapping[str, Any], required: str | Collection[str]) -> None:
    """Keeps in the session whether the provider asked for two factors in this log-in."""
    if are_two(claims, required):
        request.session[PROVED] = provider
    else:
        request.session.pop(PROVED, None)


class SecondFactorRequired:
    """Redirects sessions without a second factor to the page that sets one up; the API refuses
    them. Tokens are no sessions."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(STILL_OPEN) or not is_missing(request):
            return self.get_response(request)
        if request.path.startswith("/api/"):
            return JsonResponse({"faults": [{"pointer": "", "message": NEEDED}]}, status=403)
        messages.warning(request, gettext(NEEDED))
        return redirect("mfa_index")
