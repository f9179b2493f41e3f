"""Where a request came from."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest


def address_of(request: HttpRequest) -> str:
    """The client's address: of a trusted proxy the last one it added, never one that the client made up."""
    return _chosen(request.headers.get("X-Forwarded-For", ""), request.META.get("REMOTE_ADDR", ""))


def address_of_scope(scope: Mapping[str, Any]) -> str:
    """The same of a socket."""
    forwarded = b",".join(value for name, value in scope.get("headers", ()) if name.lower() == b"x-forwarded-for").decode("latin1")
    return _chosen(forwarded, (scope.get("client") or ("",))[0])


def _chosen(forwarded: str, remote: str) -> str:
    return (forwarded.split(",")[-1].strip() if settings.SECURE_PROXY_SSL_HEADER else "") or remote
