"""Overlays are checked and stored with a feed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from rest_framework.test import APIClient

from webapp.config.settings.environment import base_maps
from webapp.overlays import services

OVERLAYS = "/api/v1/feeds/yard/overlays/"
LINE = {"type": "LineString", "coordinates": [[0, 0, 7], [1, 1]]}


def drawing(*geometries: Any) -> dict[str, Any]:
    features = [{"type": "Feature", "properties": {"name": "fence", "secret": 1}, "geometry": geometry} for geometry in geometries]
    return {"type": "FeatureCollection", "features": features}


@pytest.mark.services
@pytest.mark.django_db
def test_an_overlay_is_kept_replaced_and_removed(feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.operator)
    kept = client.post(OVERLAYS, {"name": "fences", "document": drawing(LINE)}, format="json").json()
    assert client_of(people.viewer).get(OVERLAYS).json() == [kept]
    found = client_of(people.viewer).get(f"{OVERLAYS}{kept['id']}/").json()["features"]
    assert found == [{"type": "Feature", "properties": {"name": "fence"}, "geometry": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}}]
    point = {"type": "Point", "coordinates": [3, 4]}
    assert client.post(OVERLAYS, {"name": "fences", "document": drawing(point)}, format="json").json() == kept
    assert client.get(f"{OVERLAYS}{kept['id']}/").json()["features"][0]["geometry"] == point
    assert client_of(people.stranger).get(f"{OVERLAYS}{kept['id']}/").status_code == 404
    assert client.delete(f"{OVERLAYS}{kept['id']}/").status_code == 204
    assert client.get(OVERLAYS).json() == []


@pytest.mark.services
@pytest.mark.django_db
def test_the_number_of_overlays_per_feed_is_limited(
    feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "OVERLAYS", 1)
    client = client_of(people.operator)
    assert [client.post(OVERLAYS, {"name": name, "document": drawing(LINE)}, format="json").status_code for name in "aab"] == [201, 201, 400]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "FeatureCollection is needed"),
        ({"type": "FeatureCollection", "features": []}, "1 to 20,000 features"),
        (drawing(None), "the geometry is one of"),
        (drawing({"type": "GeometryCollection", "geometries": []}), "the geometry is one of"),
        (drawing({"type": "LineString", "coordinates": [[0]]}), "a position is two numbers"),
        (drawing({"type": "LineString", "coordinates": [[0, True]]}), "a position is two numbers"),
        (drawing({"type": "Polygon", "coordinates": [[0, 1]]}), "coordinates are missing"),
        (drawing({"type": "LineString", "coordinates": [[0, 1]] * (services.CORNERS + 1)}), "corners together"),
    ],
)
def test_invalid_geojson_is_refused_with_a_pointer(document: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        services.check_document(document)


def test_too_many_corners_are_refused_before_one_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "CORNERS", 5)
    monkeypatch.setattr(services, "_positions", None)
    for geometry in (
        {"type": "LineString", "coordinates": [[0, 1]] * 6},
        {"type": "MultiPolygon", "coordinates": [[[[0, 1]] * 3], [[[0, 1]] * 3]]},
    ):
        with pytest.raises(ValueError, match="more than 5 corners together"):
            services.check_document(drawing(geometry))


@pytest.mark.parametrize("text", ["{", "[1]", '[{"name": "a"}]', '[{"name": "a", "wms": "https://x"}]', '[{"name": "a", "tiles": "x", "wms": "y"}]'])
def test_faults_of_base_map_settings_are_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEDETTE_BASE_MAPS", text)
    with pytest.raises(ImproperlyConfigured, match="VEDETTE_BASE_MAPS"):
        base_maps("VEDETTE_BASE_MAPS")


def test_base_maps_are_tiles_or_wms(monkeypatch: pytest.MonkeyPatch) -> None:
    given = '[{"name": "Sea", "tiles": "https://a/{z}/{x}/{y}.png"}, {"name": "Depth", "wms": "https://b", "layers": "depth", "attribution": "Them"}]'
    monkeypatch.setenv("VEDETTE_BASE_MAPS", given)
    assert [one["name"] for one in base_maps("VEDETTE_BASE_MAPS")] == ["Sea", "Depth"]


@pytest.mark.services
@pytest.mark.django_db
def test_overlays_that_cannot_be_drawn_are_refused(feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.operator)
    for coordinates in ([10**400, 0], [0, -(10**400)], [1e301, 0]):
        answer = client.post(OVERLAYS, {"name": "far", "document": drawing({"type": "Point", "coordinates": coordinates})}, format="json")
        assert answer.status_code == 400 and "a position is two numbers" in answer.json()["faults"][0]["message"]
