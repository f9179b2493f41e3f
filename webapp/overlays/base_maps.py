"""The base maps that the settings name."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings

from webapp.overlays.tile_archives import Archive, ArchiveError, archive

logger = logging.getLogger(__name__)


def base_map_archives() -> dict[int, Archive]:
    """Those whose tiles this server has, by their place in the list. One that cannot be read is
    left out; `manage.py check` names it too."""
    archives = {}
    for number, one in enumerate(settings.BASE_MAPS):
        try:
            if "pmtiles" in one:
                archives[number] = archive(one["pmtiles"])
        except ArchiveError as error:
            logger.warning("the base map %s is left out: %s", one["name"], error)
    return archives


def base_map_choices(*, logged_in: bool) -> list[dict[str, Any]]:
    """The maps as browsers get them. Tiles of this server are for those who are logged in."""
    archives = base_map_archives() if logged_in else {}
    choices: list[dict[str, Any]] = []
    for number, one in enumerate(settings.BASE_MAPS):
        if number in archives:
            choices.append({"name": one["name"], **_of_archive(number, archives[number], one.get("attribution"))})
        elif "pmtiles" not in one:
            choices.append(one)
    return choices


def _of_archive(number: int, archive: Archive, attribution: str | None) -> dict[str, Any]:
    """The settings take precedence over the archive's metadata."""
    return {
        "attribution": archive.attribution if attribution is None else attribution,
        "tiles": f"/api/v1/base-maps/{number}/{{z}}/{{x}}/{{y}}",
        "least_zoom": archive.least_zoom,
        "most_zoom": archive.most_zoom,
        "bounds": archive.bounds,
        "vector_layers": archive.vector_layers,
    }
