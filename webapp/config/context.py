"""Variables of every template."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from webapp.accounts.audit_log import reads_entries
from webapp.overlays.base_maps import base_map_choices


def product(request: HttpRequest) -> dict[str, Any]:
    """The map's settings for the front end (`{{ map_settings|json_script:"map-settings" }}`),
    whether this server sends e-mail, and whether the reader sees the audit log (asked only where
    the page has the navigation)."""
    return {
        "map_settings": {"base_maps": base_map_choices(logged_in=hasattr(request, "user") and request.user.is_authenticated)},
        "mail_is_sent": settings.EMAIL_GIVEN,
        "reads_audit": SimpleLazyObject(lambda: reads_entries(user=request.user)),
    }
