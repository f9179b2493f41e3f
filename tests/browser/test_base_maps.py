"""A base map of vector tiles from an archive on this server: drawn in both themes, with names,
over the bundled coastlines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.vector_tiles import town_archive
from tests.webapp.answers import a_feed
from webapp.platform.folders import next_free_port

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.data]
DRAWN = """() => {
  const colours = new Map();
  for (const tile of document.querySelectorAll("canvas.leaflet-tile[lang]")) {
    if (tile.width === 0) continue;
    const { data } = tile.getContext("2d").getImageData(0, 0, tile.width, tile.height);
    for (let i = 0; i < data.length; i += 4) {
      const colour = `${data[i]},${data[i + 1]},${data[i + 2]},${data[i + 3]}`;
      colours.set(colour, (colours.get(colour) ?? 0) + 1);
    }
  }
  return Object.fromEntries(colours);
}"""
"""How many pixels of the vector tiles have which colour."""
LIGHT = {"land": "245,244,239,255", "water": "219,231,237,255", "road": "207,202,188,255"}
DARK = {"land": "23,35,43,255", "water": "13,26,35,255", "road": "43,59,70,255"}


def wait_until_drawn(site: Site, wanted: dict[str, str]) -> None:
    def are_there() -> bool:
        colours = site.page.evaluate(DRAWN)
        return all(colours.get(colour, 0) > 300 for colour in wanted.values())

    site.world.wait(are_there, 60, f"vector tiles have the colours {wanted}")


def test_vector_tiles_are_drawn_in_both_themes(site: Site, tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "monaco.pmtiles"
    lon, lat = town_archive(data_folder / "osm_monaco", path, name="Principality")
    a_feed("bay", crs="geographic", view={"center": [lon, lat], "zoom": 15}, public=True)
    monkeypatch.setenv("VEDETTE_BASE_MAPS", json.dumps([{"name": "Monaco", "pmtiles": str(path)}]))
    site.kill_web()
    site.start_web()
    site.page.emulate_media(color_scheme="light", reduced_motion="reduce")
    site.log_in()
    page = site.page
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(f"{site.address}/feeds/")
    page.get_by_role("heading", name="Feeds").first.wait_for()
    assert not any("vector_base_map" in address for address in fetched), "what draws vector tiles comes only where one is shown"

    page.goto(f"{site.address}/?feed=bay")
    wait_until_drawn(site, LIGHT)
    credits = page.locator(".leaflet-control-attribution")
    assert credits.get_by_role("link", name="© OpenStreetMap").get_attribute("href") == "https://www.openstreetmap.org/copyright"
    assert credits.locator("img").count() == 0, "of an archive's markup links alone are kept"
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/vector-light.png")
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    wait_until_drawn(site, DARK)
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/vector-dark.png")

    page.get_by_role("button", name="Map layers").click()
    page.get_by_role("menuitem", name="Coastlines").click()
    site.world.wait(lambda: page.locator("canvas.leaflet-tile[lang]").count() == 0, 30, "the other map is shown")
    assert site.faults == []


def test_coastlines_are_shown_where_a_map_of_another_server_cannot_be_loaded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    a_feed("bay", crs="geographic", view={"center": [10.2, 54.5], "zoom": 9}, public=True)
    unused = next_free_port(8850)
    unused.release()
    monkeypatch.setenv("VEDETTE_BASE_MAPS", json.dumps([{"name": "Charts", "wms": f"http://127.0.0.1:{unused.port}/wms", "layers": "depth"}]))
    site.kill_web()
    site.start_web()
    site.log_in()
    site.page.goto(f"{site.address}/?feed=bay")
    site.page.get_by_text("The map “Charts” cannot be loaded: coastlines are shown instead.").wait_for()
    site.page.locator(".leaflet-tile-pane canvas").first.wait_for()
    assert site.faults == []
