"""The library of regions: drawn with the pointer, read from files, written to files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.forms import page_asks
from tests.webapp.answers import a_feed
from webapp.accounts.models import Membership, Role
from webapp.feeds.models import Region

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

SQUARE = [[10.0, 55.0], [10.2, 55.0], [10.2, 55.1], [10.0, 55.1], [10.0, 55.0]]
GEOJSON = {
    "type": "FeatureCollection",
    "features": [{"type": "Feature", "properties": {"name": "anchorage"}, "geometry": {"type": "Polygon", "coordinates": [SQUARE]}}],
}
KML = """<?xml version="1.0" encoding="UTF-8"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><name>reserve</name>
<Polygon><outerBoundaryIs><LinearRing><coordinates>11,56 11.3,56 11.3,56.2 11,56.2 11,56</coordinates></LinearRing></outerBoundaryIs></Polygon>
</Placemark></Document></kml>"""


def test_regions_are_drawn_imported_and_exported(site: Site, tmp_path: Path) -> None:
    a_feed("bay", crs="geographic", view={"center": [10.5, 55.5], "zoom": 8})
    site.log_in()
    page = site.page
    page.goto(site.address + "/regions/?feed=bay")
    _draw(site)
    for name, text, found in (("harbour.geojson", json.dumps(GEOJSON), "anchorage"), ("parks.kml", KML, "reserve")):
        file = tmp_path / name
        file.write_text(text)
        page.locator("input[type=file]").set_input_files(file)
        page.locator(".region-name", has_text=found).wait_for()
    assert list(Region.objects.order_by("name").values_list("name", flat=True)) == ["anchorage", "drawn here", "reserve"]
    assert Region.objects.get(name="anchorage").geometry["coordinates"] == [SQUARE]
    exported = json.loads(_exported(site, "GeoJSON"))
    assert {feature["properties"]["name"] for feature in exported["features"]} == {"anchorage", "drawn here", "reserve"}
    assert set(re.findall(r"<name>([^<]+)</name>", _exported(site, "KML"))) >= {"anchorage", "drawn here", "reserve"}
    assert site.faults == []


def test_an_import_shows_what_came_and_counts_what_is_refused(site: Site) -> None:
    a_feed("bay", crs="geographic", view={"center": [-30.5, 20.5], "zoom": 8})
    site.log_in()
    page = site.page
    page.goto(site.address + "/regions/?feed=bay")
    scale = page.locator(".leaflet-control-scale-line")
    scale.wait_for()
    far = scale.inner_text()
    files = page.locator("input[type=file]")
    files.set_input_files([{"name": "harbour.geojson", "mimeType": "application/json", "buffer": json.dumps(GEOJSON).encode()}])  # type: ignore[list-item]
    page.locator(".region-name", has_text="anchorage").wait_for()
    site.world.wait(lambda: scale.inner_text() != far, 20, "the map shows the region that came")
    points = [{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [n, 0]}} for n in range(3)]
    bad = json.dumps({"type": "FeatureCollection", "features": points}).encode()
    files.set_input_files([{"name": "bad.geojson", "mimeType": "application/json", "buffer": bad}])  # type: ignore[list-item]
    page.get_by_text("Nothing was stored: the file has 3 faults. Row 1: ").wait_for()
    ring = [[x + 0.5, y] for x, y in SQUARE]
    pier = {"type": "Feature", "properties": {"name": "pier"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    mixed = json.dumps({"type": "FeatureCollection", "features": [points[0], pier]}).encode()
    files.set_input_files([{"name": "mixed.geojson", "mimeType": "application/json", "buffer": mixed}])  # type: ignore[list-item]
    page.get_by_role("dialog").get_by_text("Row 1").wait_for()
    page.get_by_role("button", name="Import the other one").click()
    page.locator(".region-name", has_text="pier").wait_for()


def test_a_region_is_made_by_keyboard_and_not_lost_by_a_click(site: Site) -> None:
    a_feed("bay", crs="geographic", view={"center": [10.5, 55.5], "zoom": 8})
    site.log_in()
    page = site.page
    page.goto(site.address + "/regions/?feed=bay")
    page.get_by_role("button", name="New region by numbers").press("Enter")
    page.keyboard.type("by numbers")
    for corner, (x, y) in enumerate([(10, 55), (11, 55), (11, 56), (10, 56)], start=1):
        for axis, value in (("Longitude", x), ("Latitude", y)):
            field = page.get_by_label(f"Corner {corner}, {axis}", exact=True)
            near = float(field.input_value())
            assert abs(near - value) < 2, "it begins in the middle of the map"
            field.fill(str(value))
            field.press("Tab")
            if axis == "Longitude":
                following = page.get_by_label(f"Corner {corner}, Latitude", exact=True)
                assert following.evaluate("field => field === document.activeElement"), "Tab leads to the next number"
    assert page.locator("#region-name").input_value() == "by numbers", "what was typed stays"
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    page.get_by_text("“by numbers” is saved.").wait_for()
    assert Region.objects.get(name="by numbers").geometry["coordinates"] == [[[10, 55], [11, 55], [11, 56], [10, 56], [10, 55]]]
    page.get_by_role("button", name="New region by numbers").press("Enter")
    asked = page_asks(page)
    assert "by numbers" in _exported(site, "CSV") and asked == [], "a file is no reason to leave the page"
    page.locator(".region-item", has_text="by numbers").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").press("Enter")
    page.get_by_role("heading", name="New region").wait_for()
    page.locator(".region-item", has_text="by numbers").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Discard").press("Enter")
    page.get_by_role("heading", name="by numbers").wait_for()
    assert site.faults == []


def test_a_viewer_sees_before_the_work_that_it_cannot_be_saved(site: Site) -> None:
    a_feed("bay", crs="geographic", view={"center": [10.5, 55.5], "zoom": 8}, public=True)
    Membership.objects.update(role=Role.VIEWER)
    site.log_in()
    page = site.page
    page.goto(site.address + "/queries/new?feed=bay")
    page.get_by_text("You can preview a query here, but not register it").wait_for()
    page.goto(site.address + "/regions/?feed=bay")
    page.get_by_role("button", name="Export").wait_for()
    for maker in ("Import", "Draw a polygon", "Draw a rectangle", "Draw a circle"):
        assert page.get_by_role("button", name=maker).count() == 0
    page.get_by_text("To make one, you need the role analyst in a team.").wait_for()
    assert site.faults == []


def _draw(site: Site) -> None:
    page = site.page
    page.get_by_role("button", name="Draw a rectangle").click()
    box = page.locator(".regions-map .leaflet-container").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.click(x - 60, y + 40)
    page.mouse.move(x, y)
    page.mouse.click(x + 70, y - 50)
    page.get_by_text("Polygon, 4 corners").wait_for()
    page.fill("#region-name", "drawn here")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("“drawn here” is saved.").wait_for()
    (ring,) = Region.objects.get(name="drawn here").geometry["coordinates"]
    assert len(ring) == 5
    west, south = min(x for x, _ in ring), min(y for _, y in ring)
    east, north = max(x for x, _ in ring), max(y for _, y in ring)
    # 130 by 90 pixels around the middle of the view, at zoom 8: 256 * 2^8 pixels for
    # 360 degrees of longitude.
    assert west < 10.5 < east and south < 55.5 < north
    assert east - west == pytest.approx(130 * 360 / 65536, rel=0.05)


def _exported(site: Site, kind: str) -> str:
    page = site.page
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name=kind).click()
    return Path(download.value.path()).read_text()
