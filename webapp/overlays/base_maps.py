"""The base maps that the settings name."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings

from webapp.overlays.tile_archives import Archive, ArchiveError, archive

logger = logging.getLogger(__name__)


def base_map_archives() -> dict[int, Archive]:
    """Those whose tiles this server has, by their place in the list. One that cannot be read is left out; `manage.py check` names it too."""
    found = {}
    for number, one in enumerate(settings.BASE_MAPS):
        try:
            if "pmtiles" in one:
                found[number] = archive(one["pmtiles"])
        except ArchiveError as error:
            logger.warning("the base map %s is left out: %s", one["name"], error)
    return found


def base_map_choices(*, logged_in: bool) -> list[dict[str, Any]]:
    """The maps as browsers get them. Tiles of this server are for those who are logged in."""
    own = base_map_archives() if logged_in else {}
    found: list[dict[str, Any]] = []
    for number, one in enumerate(settings.BASE_MAPS):
        if number in own:
            found.append({"name": one["name"], **_of_archive(number, own[number], one.get("attribution"))})
        elif "pmtiles" not in one:
            found.append(one)
    return found


def _of_archive(number: int, own: Archive, attribution: str | None) -> dict[str, Any]:
    """The settings take precedence over the archive's metadata."""
    return {
        "attribution": own.attribution if attribution is None else attribution,
        "tiles": f"/api/v1/base-maps/{number}/{{z}}/{{x}}/{{y}}",
        "least_zoom": own.least_zoom,
        "most_zoom": own.most_zoom,
        "bounds": own.bounds,
        "vector_layers": own.vector_layers,
    }
