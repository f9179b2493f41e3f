"""A GeoJSON file on the map: shown, kept with the feed, hidden, removed."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.browser.forms import DROPPED, walked

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]
FENCE = {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": [[0, 0], [90, 40], [90, 90]]}}

DRAWN = """() => {
  const canvas = document.querySelector(".leaflet-overlays-pane canvas");
  if (canvas === null || canvas.width === 0) return 0;
  return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.filter((value, i) => i % 4 === 3 && value > 0).length;
}"""
"""The number of drawn pixels of the overlays."""


def wait_until_drawn(site: Site, is_drawn: bool) -> None:
    site.world.wait(lambda: (site.page.evaluate(DRAWN) > 50) == is_drawn, 60, f"the overlay is {'drawn' if is_drawn else 'gone'}")


def test_a_file_is_shown_kept_hidden_and_removed(site: Site) -> None:
    walked(site)
    page = site.page
    page.goto(f"{site.address}/?feed=yard")
    layers = page.get_by_role("button", name="Map layers")
    layers.wait_for()
    page.get_by_label("Overlay file").set_input_files([{"name": "fence.geojson", "mimeType": "application/json", "buffer": b"{"}])
    page.get_by_text("cannot be shown: it is not JSON").wait_for()
    fence = {"name": "fence.geojson", "mimeType": "application/json", "buffer": json.dumps(FENCE).encode()}
    page.get_by_label("Overlay file").set_input_files([fence])  # type: ignore[list-item]
    wait_until_drawn(site, True)
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        layers.click()
        page.screenshot(path=f"{folder}/overlay.png")
        page.keyboard.press("Escape")
    layers.click()
    page.get_by_role("menuitem", name="Keep fence for everybody").click()
    page.get_by_text("is kept with the feed").wait_for()

    page.reload()
    wait_until_drawn(site, True)
    layers.click()
    page.get_by_role("menuitem", name="Hide fence").click()
    wait_until_drawn(site, False)
    # The menu is opened before the server has named the overlays.
    held: list[Route] = []
    page.route("**/api/v1/feeds/yard/overlays/", lambda route: held.append(route))
    page.reload()
    layers.click()
    page.get_by_role("menuitem", name="Add a GeoJSON file…").wait_for()
    site.world.wait(lambda: (page.wait_for_timeout(20), held)[1], 60, "the page asks for the overlays")
    held[0].continue_()
    page.get_by_role("menuitem", name="Show fence").click()
    wait_until_drawn(site, True)
    layers.click()
    page.get_by_role("menuitem", name="Remove fence").click()
    page.get_by_role("button", name="Remove overlay").click()
    wait_until_drawn(site, False)
    assert site.faults == []


def test_a_dropped_file_can_be_removed_and_one_dropped_beside_the_map_does_not_leave_the_page(site: Site) -> None:
    walked(site)
    page = site.page
    page.goto(f"{site.address}/?feed=yard")
    layers = page.get_by_role("button", name="Map layers")
    layers.wait_for()
    assert page.evaluate(DROPPED, [".leaflet-container", "fence.geojson", json.dumps(FENCE)])
    wait_until_drawn(site, True)
    layers.click()
    page.get_by_role("menuitem", name="Remove fence").click()
    wait_until_drawn(site, False)
    layers.click()
    assert page.get_by_role("menuitem", name="fence").count() == 0
    page.keyboard.press("Escape")
    assert page.evaluate(DROPPED, ["header, .bar, body", "fence.geojson", json.dumps(FENCE)]), "the browser would open the file"
    assert page.evaluate(DRAWN) <= 50
    assert site.faults == []
