"""What every template may use."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def product(request: HttpRequest) -> dict[str, Any]:
    """The map's settings for the front end (`{{ map_settings|json_script:"map-settings" }}`), and whether this server sends e-mail."""
    return {"map_settings": {"tile_url": settings.TILE_URL, "tile_attribution": settings.TILE_ATTRIBUTION}, "mail_is_sent": settings.EMAIL_GIVEN}
