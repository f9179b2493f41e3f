"""Which language a reader reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers


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
