"""What Django looks at before the server starts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register

from webapp.overlays.tile_archives import ArchiveError, archive


@register(Tags.files)
def base_maps_can_be_read(**_: Any) -> list[Error]:
    """One that cannot is left out of the pages."""
    errors = []
    for one in settings.BASE_MAPS:
        try:
            if "pmtiles" in one:
                archive(one["pmtiles"])
        except ArchiveError as error:
            errors.append(Error(f"VEDETTE_BASE_MAPS, {one['name']}: {error}.", id="vedette.E002"))
    return errors
