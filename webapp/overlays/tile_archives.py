"""Base maps from PMTiles archives on this server: each a file of picture tiles or of vector tiles,
which an operator names in VEDETTE_BASE_MAPS."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pmtiles import reader as pmtiles
from pmtiles.tile import Compression, SpecVersionUnsupported, TileType

from webapp.overlays.credits import safe_credits

PICTURES = {TileType.PNG: "image/png", TileType.JPEG: "image/jpeg", TileType.WEBP: "image/webp", TileType.AVIF: "image/avif"}
VECTORS = "application/vnd.mapbox-vector-tile"
UNPACKED = (Compression.NONE, Compression.UNKNOWN)
METADATA_BYTES, VECTOR_LAYERS, LONGEST_ATTRIBUTION = 4_000_000, 500, 1_000
"""The maximum size of an archive's metadata that is read."""
GZIP_WINDOW = 31


class ArchiveError(ValueError):
    """The file cannot be a base map; the text gives the reason and the remedy."""


@dataclass(frozen=True)
class Archive:
    """An open archive; threads share it.

    `bounds` are west, south, east and north; `vector_layers` names the layers of its tiles, none
    when these are pictures; `encoding` is that of HTTP, in which the tiles are stored;
    `attribution` is safe HTML.
    """

    reader: Any
    content_type: str
    encoding: str
    least_zoom: int
    most_zoom: int
    bounds: tuple[float, float, float, float]
    attribution: str = ""
    vector_layers: tuple[str, ...] = ()

    def tile(self, z: int, x: int, y: int) -> bytes | None:
        """The tile at these coordinates (Web Mercator, y downwards); null if there is none."""
        if not self.least_zoom <= z <= self.most_zoom or not (0 <= x < 1 << z and 0 <= y < 1 << z):
            return None
        content: bytes | None = self.reader.get(z, x, y)
        return content


@cache
def archive(path: str) -> Archive:
    """The archive in this file. Raises ArchiveError."""
    try:
        with Path(path).open("rb") as file:
            # The library has no types.
            source: Any = pmtiles.MmapSource(file)  # type: ignore[no-untyped-call]
        size = Path(path).stat().st_size
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ArchiveError(f"{path} is empty") from error
    reader: Any = pmtiles.Reader(source)  # type: ignore[no-untyped-call]
    header = _header(path, reader)
    if size < (whole := header["tile_data_offset"] + header["tile_data_length"]):
        raise ArchiveError(f"{path} is cut short: it has {size:,} of {whole:,} bytes. Copy it again")
    return _checked(path, reader, header)


def _header(path: str, reader: Any) -> Mapping[str, Any]:
    try:
        header: Mapping[str, Any] = reader.header()
    except SpecVersionUnsupported as error:
        raise ArchiveError(f"{path} is a PMTiles archive of another version: `pmtiles convert` makes one of version 3 of an earlier one") from error
    except Exception as error:
        # The library raises its own errors, and arbitrary ones for a truncated header.
        raise ArchiveError(f"{path} is no PMTiles archive of version 3") from error
    return header


def _checked(path: str, reader: Any, header: Mapping[str, Any]) -> Archive:
    kind, packed = header["tile_type"], header["tile_compression"]
    if kind is not TileType.MVT and kind not in PICTURES:
        raise ArchiveError(f"{path} has {kind.name} tiles: give an archive of pictures (PNG, JPEG, WebP or AVIF) or of vector tiles (MVT)")
    allowed = (*UNPACKED, Compression.GZIP) if kind is TileType.MVT else UNPACKED
    if packed not in allowed:
        compression = "gzip or nothing" if kind is TileType.MVT else "nothing: pictures are small already"
        raise ArchiveError(f"{path} has tiles compressed by {packed.name.lower()}: write it again with {compression}")
    try:
        about = _metadata(reader, header)
        reader.get(header["min_zoom"], 0, 0)
    except Exception as error:
        raise ArchiveError(f"{path} is damaged: its directory or its metadata cannot be read") from error
    layers = _vector_layers(about) if kind is TileType.MVT else ()
    if kind is TileType.MVT and not layers:
        raise ArchiveError(f"{path} does not say which layers its vector tiles have: its metadata need `vector_layers`")
    return Archive(
        reader,
        VECTORS if kind is TileType.MVT else PICTURES[kind],
        "gzip" if packed is Compression.GZIP else "",
        header["min_zoom"],
        header["max_zoom"],
        _bounds(header),
        safe_credits(str(about.get("attribution") or "")[:LONGEST_ATTRIBUTION]),
        layers,
    )


def _metadata(reader: Any, header: Mapping[str, Any]) -> Mapping[str, Any]:
    """The archive's metadata. Raises arbitrary errors for a damaged archive or too much
    metadata."""
    length = header["metadata_length"]
    if length > METADATA_BYTES:
        raise ValueError(f"metadata of {length} bytes")
    text = bytes(reader.get_bytes(header["metadata_offset"], length))
    if header["internal_compression"] is Compression.GZIP and text:
        unpacking = zlib.decompressobj(GZIP_WINDOW)
        text = unpacking.decompress(text, METADATA_BYTES)
        if unpacking.unconsumed_tail:
            raise ValueError(f"metadata of more than {METADATA_BYTES} bytes")
    metadata = json.loads(text or b"{}")
    if not isinstance(metadata, dict):
        raise ValueError("metadata that are no object")
    return metadata


def _vector_layers(about: Mapping[str, Any]) -> tuple[str, ...]:
    listed = about.get("vector_layers")
    named = [one.get("id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple(name for name in named if isinstance(name, str))[:VECTOR_LAYERS]


def _bounds(header: Mapping[str, Any]) -> tuple[float, float, float, float]:
    west, south, east, north = (header[f"{name}_e7"] / 1e7 for name in ("min_lon", "min_lat", "max_lon", "max_lat"))
    return (west, south, east, north) if west < east and south < north else (-180.0, -90.0, 180.0, 90.0)
