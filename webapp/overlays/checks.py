"""Checks of Django before the server starts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register

from webapp.overlays.tile_archives import ArchiveError, archive


@register(Tags.files)
def base_maps_can_be_read(**_: Any) -> list[Warning]:
    """An unusable one is left out of the pages; the server starts nevertheless."""
    warnings = []
    for one in settings.BASE_MAPS:
        try:
            if "pmtiles" in one:
                archive(one["pmtiles"])
        except ArchiveError as error:
            warnings.append(Warning(f"VEDETTE_BASE_MAPS, {one['name']}: {error}. The pages are without this map.", id="vedette.W002"))
    return warnings
