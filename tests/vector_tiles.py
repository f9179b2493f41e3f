"""A PMTiles archive of vector tiles, made of the streets and places of an OpenStreetMap extract by
GDAL, in the layers of Protomaps."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd
import shapely
from pmtiles import reader as pmtiles
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import write

LEAST_ZOOM, MOST_ZOOM = 11, 14
ROADS = {"primary": "major_road", "secondary": "major_road", "tertiary": "major_road", "motorway": "highway", "trunk": "highway"}
ATTRIBUTION = '<a href="https://www.openstreetmap.org/copyright">© OpenStreetMap</a><img src=x onerror="document.title=1">'


def town_archive(extract: Path, path: Path, *, name: str, attribution: str = ATTRIBUTION) -> tuple[float, float]:
    """Writes the archive of the extract in this folder to `path`; the
    middle of the town (lon, lat)."""
    edges = pd.read_parquet(extract / "road_edges.parquet")
    lines = [shapely.LineString([tuple(map(float, one.split(","))) for one in text.split()]) for text in edges["coords"]]
    kinds = [ROADS.get(kind, "minor_road") for kind in edges["highway"]]
    roads = gpd.GeoDataFrame({"kind": kinds, "name": edges["name"]}, geometry=lines, crs=4326)
    land = shapely.concave_hull(shapely.MultiPoint([point for line in lines for point in line.coords]), 0.2)
    box = land.envelope.buffer(0.01)
    middle = land.centroid
    layers = {
        "earth": gpd.GeoDataFrame({"kind": ["earth"]}, geometry=[land], crs=4326),
        "water": gpd.GeoDataFrame({"kind": ["ocean"]}, geometry=[box.difference(land)], crs=4326),
        "roads": roads,
        "places": gpd.GeoDataFrame({"kind": ["locality"], "name": [name], "min_zoom": [5]}, geometry=[middle], crs=4326),
    }
    about = {"attribution": attribution, "vector_layers": [{"id": layer, "fields": {}} for layer in layers]}
    _write(path, layers, about, box.bounds)
    return middle.x, middle.y


def _write(path: Path, layers: Mapping[str, gpd.GeoDataFrame], about: Mapping[str, Any], bounds: tuple[float, float, float, float]) -> None:
    tiles: dict[int, bytes] = {}
    for layer, frame in layers.items():
        one = path.with_name(f"{path.stem}-{layer}.pmtiles")
        # GDAL writes one layer at a time. A tile of several layers is the tiles of
        # each, one after the other.
        frame.to_file(one, driver="PMTiles", layer=layer, engine="pyogrio", MINZOOM=LEAST_ZOOM, MAXZOOM=MOST_ZOOM)
        with one.open("rb") as file:
            source = pmtiles.MmapSource(file)
            header = pmtiles.Reader(source).header()
            for (z, x, y), tile in pmtiles.all_tiles(source):
                unpacked = gzip.decompress(tile) if header["tile_compression"] is Compression.GZIP else tile
                tiles[zxy_to_tileid(z, x, y)] = tiles.get(zxy_to_tileid(z, x, y), b"") + unpacked
        one.unlink()
    with write(str(path)) as writer:
        for number in sorted(tiles):
            writer.write_tile(number, gzip.compress(tiles[number]))
        west, south, east, north = (round(bound * 1e7) for bound in bounds)
        header = {"tile_type": TileType.MVT, "tile_compression": Compression.GZIP, "center_zoom": MOST_ZOOM, "min_lon_e7": west, "min_lat_e7": south}
        header |= {"max_lon_e7": east, "max_lat_e7": north, "center_lon_e7": (west + east) // 2, "center_lat_e7": (south + north) // 2}
        writer.finalize(header, json.loads(json.dumps(about)))
