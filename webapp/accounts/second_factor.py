"""A second factor for everybody, where the operator asks for it (`VEDETTE_SECOND_FACTOR=required`; OWASP ASVS 5, 6.3.3)."""

from __future__ import annotations

from collections.abc import Callable

from allauth.account.authentication import get_authentication_records
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect

from webapp.config.middleware import OPEN_PATHS

Next = Callable[[HttpRequest], HttpResponseBase]
STILL_OPEN = (*OPEN_PATHS, "/logout/", "/account/security/", "/account/confirm/", "/account/password/")
"""What somebody without the second factor reaches: the pages that set one up, and what needs no log-in."""
NEEDED = "This installation asks everybody for a second factor: set one up first."


def is_missing(request: HttpRequest) -> bool:
    """Whether the session's user has to set a second factor up first. Who logged in by a provider answered for it there."""
    user = request.user
    if not settings.SECOND_FACTOR_REQUIRED or not user.is_authenticated or is_mfa_enabled(user):
        return False
    return not any(one.get("method") == "socialaccount" for one in get_authentication_records(request, user))


class SecondFactorRequired:
    """Leads sessions without a second factor to the page that sets one up; the API refuses them. Tokens are no sessions."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(STILL_OPEN) or not is_missing(request):
            return self.get_response(request)
        if request.path.startswith("/api/"):
            return JsonResponse({"faults": [{"pointer": "", "message": NEEDED}]}, status=403)
        messages.warning(request, NEEDED)
        return redirect("mfa_index")
