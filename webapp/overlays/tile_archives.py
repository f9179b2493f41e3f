"""Base maps from PMTiles archives on this server: each a file of picture tiles, which an operator names in VEDETTE_BASE_MAPS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pmtiles import reader as pmtiles
from pmtiles.tile import Compression, TileType

TYPES = {TileType.PNG: "image/png", TileType.JPEG: "image/jpeg", TileType.WEBP: "image/webp", TileType.AVIF: "image/avif"}


class ArchiveError(ValueError):
    """The file cannot be a base map; the text says why and what to do."""


@dataclass(frozen=True)
class Archive:
    """An open archive; threads share it."""

    reader: Any
    content_type: str
    least_zoom: int
    most_zoom: int

    def tile(self, z: int, x: int, y: int) -> bytes | None:
        """The picture at this place (Web Mercator, y downwards); null where there is none."""
        if not self.least_zoom <= z <= self.most_zoom or not (0 <= x < 1 << z and 0 <= y < 1 << z):
            return None
        found: bytes | None = self.reader.get(z, x, y)
        return found


@cache
def archive(path: str) -> Archive:
    """The archive in this file. Raises ArchiveError."""
    try:
        with Path(path).open("rb") as file:
            # The library has no types.
            reader: Any = pmtiles.Reader(pmtiles.MmapSource(file))  # type: ignore[no-untyped-call]
        header = reader.header()
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror}") from error
    except Exception as error:
        # The library raises its own kinds, and whatever comes of a header that is cut short.
        raise ArchiveError(f"{path} is no PMTiles archive of version 3") from error
    kind = header["tile_type"]
    if kind not in TYPES or header["tile_compression"] not in (Compression.NONE, Compression.UNKNOWN):
        raise ArchiveError(f"{path} has {kind.name} tiles: give an archive of pictures (PNG, JPEG, WebP or AVIF)")
    return Archive(reader, TYPES[kind], header["min_zoom"], header["max_zoom"])
