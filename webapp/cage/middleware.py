"""Attributes work in the cage to the user who made the request."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from webapp.cage.slots import requested_by


class AskedByUser:
    """Comes after the middleware that knows the user; a token's user is
    put into the request later."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with requested_by(lambda: request.user.pk):
            return self.get_response(request)
