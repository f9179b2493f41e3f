"""Base maps from PMTiles archives, written by the format's own library."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import write
from rest_framework.test import APIClient

from webapp.overlays.base_maps import base_map_choices
from webapp.overlays.checks import base_maps_can_be_read
from webapp.overlays.tile_archives import ArchiveError, archive


def picture(z: int, x: int, y: int) -> bytes:
    """A tile of one colour, depending on its coordinates."""
    written = io.BytesIO()
    Image.new("RGB", (256, 256), (40 * z, 60 * x, 60 * y)).save(written, "PNG")
    return written.getvalue()


def archive_in(
    path: Path, kind: TileType = TileType.PNG, zooms: int = 3, packed: Compression = Compression.NONE, about: dict[str, Any] | None = None
) -> Path:
    with write(str(path)) as writer:
        for z in range(zooms):
            for x in range(1 << z):
                for y in range(1 << z):
                    if (z, x, y) != (2, 3, 3):
                        writer.write_tile(zxy_to_tileid(z, x, y), picture(z, x, y))
        header = {"tile_type": kind, "tile_compression": packed, "center_zoom": 0, "center_lon_e7": 0, "center_lat_e7": 0}
        header |= {"min_lon_e7": -1_800_000_000, "min_lat_e7": -850_000_000, "max_lon_e7": 1_800_000_000, "max_lat_e7": 850_000_000}
        writer.finalize(header, about or {})
    return path


def test_tiles_are_found_by_their_coordinates(tmp_path: Path) -> None:
    found = archive(str(archive_in(tmp_path / "a.pmtiles")))
    assert (found.content_type, found.least_zoom, found.most_zoom) == ("image/png", 0, 2)
    assert found.tile(2, 1, 2) == picture(2, 1, 2)
    assert found.tile(2, 3, 3) is None, "the archive has none there"
    for z, x, y in ((3, 0, 0), (2, 4, 0), (2, 0, 4), (99, 0, 0), (1, 10**30, 0)):
        assert found.tile(z, x, y) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"PMTiles", "is no PMTiles archive of version 3"),
        (b"no archive" * 50, "is no PMTiles archive of version 3"),
        (b"PMTiles\x02" + bytes(200), "another version"),
    ],
    ids=["empty", "cut short", "other", "old"],
)
def test_invalid_archives_are_refused_with_the_position(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "b.pmtiles").write_bytes(content)
    with pytest.raises(ArchiveError, match=rf"b\.pmtiles .*{why}"):
        archive(str(tmp_path / "b.pmtiles"))


ROADS = {"vector_layers": [{"id": "roads", "fields": {}}], "attribution": "Us"}


@pytest.mark.parametrize(
    ("kind", "packed", "about", "why"),
    [
        (TileType.MVT, Compression.BROTLI, ROADS, "tiles compressed by brotli: write it again with gzip or nothing"),
        (TileType.PNG, Compression.GZIP, {}, "tiles compressed by gzip: write it again with nothing"),
        (TileType.MVT, Compression.GZIP, {}, "does not say which layers"),
        (TileType.MLT, Compression.NONE, ROADS, "has MLT tiles: give an archive of pictures"),
        (TileType.UNKNOWN, Compression.NONE, {}, "has UNKNOWN tiles: give an archive of pictures"),
    ],
)
def test_tiles_that_browsers_cannot_draw_are_refused(kind: TileType, packed: Compression, about: dict[str, Any], why: str, tmp_path: Path) -> None:
    path = archive_in(tmp_path / "c.pmtiles", kind, packed=packed, about=about)
    with pytest.raises(ArchiveError, match=rf"c\.pmtiles .*{why}"):
        archive(str(path))


def test_truncated_and_damaged_archives_are_refused(tmp_path: Path) -> None:
    whole = archive_in(tmp_path / "whole.pmtiles").read_bytes()
    (tmp_path / "short.pmtiles").write_bytes(whole[:-100])
    with pytest.raises(ArchiveError, match=f"cut short: it has {len(whole) - 100:,} of {len(whole):,} bytes"):
        archive(str(tmp_path / "short.pmtiles"))
    (tmp_path / "damaged.pmtiles").write_bytes(whole[:127] + b"\xff" * 30 + whole[157:])
    with pytest.raises(ArchiveError, match="is damaged"):
        archive(str(tmp_path / "damaged.pmtiles"))


def test_metadata_that_decompress_to_too_much_are_refused(tmp_path: Path) -> None:
    path = archive_in(tmp_path / "bomb.pmtiles", TileType.MVT, packed=Compression.GZIP, about=ROADS | {"more": "0" * 5_000_000})
    assert path.stat().st_size < 100_000
    with pytest.raises(ArchiveError, match="is damaged"):
        archive(str(path))


def test_unusable_and_missing_archives_are_reported_and_left_out(tmp_path: Path, settings: Any) -> None:
    unnamed = archive_in(tmp_path / "unnamed.pmtiles", TileType.MVT)
    settings.BASE_MAPS = [
        {"name": "Unnamed", "pmtiles": str(unnamed)},
        {"name": "Away", "pmtiles": str(tmp_path / "away.pmtiles")},
        {"name": "Sea", "tiles": "https://a/{z}/{x}/{y}.png"},
    ]
    warnings = base_maps_can_be_read()
    assert [warning.msg.split(", ")[1].split(":")[0] for warning in warnings] == ["Unnamed", "Away"]
    assert not any(warning.is_serious() for warning in warnings), "one map does not keep the server from starting"
    assert [one["name"] for one in base_map_choices(logged_in=True)] == ["Sea"]


@pytest.mark.services
@pytest.mark.django_db
def test_only_logged_in_users_get_tiles(people: SimpleNamespace, client_of: Callable[..., APIClient], tmp_path: Path, settings: Any) -> None:
    settings.BASE_MAPS = [
        {"name": "Sea", "tiles": "https://a/{z}/{x}/{y}.png"},
        {"name": "Harbour", "pmtiles": str(archive_in(tmp_path / "a.pmtiles")), "attribution": "Us"},
    ]
    (sea, harbour) = base_map_choices(logged_in=True)
    assert base_map_choices(logged_in=False) == [sea]
    assert (harbour["most_zoom"], harbour["attribution"]) == (2, "Us")
    client = client_of(people.viewer)
    answer = client.get(harbour["tiles"].format(z=2, x=1, y=2))
    assert (answer.status_code, answer["Content-Type"], answer.content) == (200, "image/png", picture(2, 1, 2))
    assert client.get(harbour["tiles"].format(z=2, x=3, y=3)).status_code == 204
    assert client.get("/api/v1/base-maps/0/0/0/0").status_code == 404
    assert client_of(None).get(harbour["tiles"].format(z=2, x=1, y=2)).status_code == 401


@pytest.mark.services
@pytest.mark.django_db
def test_vector_tiles_come_as_they_are_stored(people: SimpleNamespace, client_of: Callable[..., APIClient], tmp_path: Path, settings: Any) -> None:
    path = archive_in(tmp_path / "v.pmtiles", TileType.MVT, packed=Compression.GZIP, about=ROADS)
    settings.BASE_MAPS = [{"name": "Streets", "pmtiles": str(path)}, {"name": "Ours", "pmtiles": str(path), "attribution": "Them"}]
    streets, ours = base_map_choices(logged_in=True)
    assert (streets["vector_layers"], streets["attribution"], ours["attribution"]) == (("roads",), "Us", "Them")
    assert streets["bounds"] == (-180.0, -85.0, 180.0, 85.0)
    client = client_of(people.viewer)
    answer = client.get(streets["tiles"].format(z=2, x=1, y=2))
    assert (answer.status_code, answer["Content-Type"], answer["Content-Encoding"]) == (200, "application/vnd.mapbox-vector-tile", "gzip")
    assert answer.content == picture(2, 1, 2)
    absent = client.get(streets["tiles"].format(z=2, x=3, y=3))
    assert (absent.status_code, absent.has_header("Content-Encoding")) == (204, False)
