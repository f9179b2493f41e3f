"""The language of a reader: of a page, a socket, or a mail that is sent outside their requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers

from webapp.accounts.models import User
from webapp.accounts.services import browser_language_note

API = "/api/"


def language_of(*chosen: str) -> str:
    """The first language that was chosen (empty: none), else the installation's. For
    `translation.override` where there is no request."""
    return next(filter(None, chosen), settings.LANGUAGE_CODE)


def language_of_address(email: str) -> str:
    """The language of messages to the account with this e-mail address; empty when
    there is no account or its language is not known."""
    accounts = User.objects.filter(email__iexact=email, is_active=True)
    return next(filter(None, (account.language_of_messages for account in accounts)), "")


def language_of_socket(scope: Any) -> str:
    """The language of a socket's reader (ASGI), as `ReaderLanguage` finds it for a request."""
    chosen = getattr(scope.get("user"), "language", "")
    header = next((value.decode("latin1") for name, value in scope.get("headers", ()) if name.lower() == b"accept-language"), "")
    return chosen or translation.get_language_from_request(_Handshake(header))


class _Handshake(HttpRequest):
    def __init__(self, accept_language: str) -> None:
        super().__init__()
        self.META["HTTP_ACCEPT_LANGUAGE"] = accept_language


class ReaderLanguage:
    """Middleware: a request is answered in the language that its user chose, or else in one
    that the browser asks for. The latter is remembered when a page is opened."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        user: Any = request.user
        asked = translation.get_language_from_request(request)
        if user.is_authenticated and "Accept-Language" in request.headers and not request.path.startswith(API):
            browser_language_note(user=user, language=asked)
        chosen = getattr(user, "language", "") or asked
        with translation.override(chosen):
            answer = self.get_response(request)
        answer.headers.setdefault("Content-Language", chosen)
        patch_vary_headers(answer, ["Accept-Language"])
        return answer
