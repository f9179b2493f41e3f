"""Where a request came from."""

from django.conf import settings
from django.http import HttpRequest


def address_of(request: HttpRequest) -> str:
    """The client's address: of a trusted proxy the last one it added, never one that the client made up."""
    forwarded = request.headers.get("X-Forwarded-For", "") if settings.SECURE_PROXY_SSL_HEADER else ""
    return forwarded.split(",")[-1].strip() or request.META.get("REMOTE_ADDR", "")
