"""Which language a reader reads: of a page, or of a mail that no request of theirs sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers


def language_of(*chosen: str) -> str:
    """The first that was chosen (empty: none was), else the installation's. For `translation.override` where no reader asks."""
    return next(filter(None, chosen), settings.LANGUAGE_CODE)


def language_of_address(email: str) -> str:
    """What the account with this e-mail address chose; empty without one, and where nothing was chosen."""
    from webapp.accounts.models import User

    found = User.objects.filter(email__iexact=email, is_active=True).exclude(language="")
    return found.values_list("language", flat=True).first() or ""


class ReaderLanguage:
    """Middleware: a request is answered in the language that its user chose, or else in one that the browser asks for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        user: Any = request.user
        chosen = getattr(user, "language", "") or translation.get_language_from_request(request)
        with translation.override(chosen):
            answer = self.get_response(request)
        answer.headers.setdefault("Content-Language", chosen)
        patch_vary_headers(answer, ["Accept-Language"])
        return answer
