"""A stored region is changed on the map: corners, holes, and changes that are not kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.forms import DROPPED, page_asks, shot
from tests.webapp.answers import a_feed
from webapp.feeds.models import Region
from webapp.feeds.services import region_create
from webapp.queries.models import QueryVersion
from webapp.queries.services import query_register

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

FIELD = [[10.0, 55.0], [11.0, 55.0], [11.0, 55.5], [10.0, 55.5], [10.0, 55.0]]
MAP = ".regions-map .leaflet-container"


@pytest.fixture
def page(site: Site) -> Page:
    """The page of regions, with one region."""
    feed = a_feed("bay", crs="geographic", view={"center": [10.5, 55.25], "zoom": 8})
    region_create(owner=feed.owner, feed=feed, name="field", geometry={"type": "Polygon", "coordinates": [FIELD]}, tags=["b", "a"])
    site.log_in()
    site.page.goto(site.address + "/regions/?feed=bay")
    site.page.locator(".region-name", has_text="field").wait_for()
    return site.page


def middle(page: Page) -> tuple[float, float]:
    box = page.locator(MAP).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def clicked(page: Page, *places: tuple[float, float]) -> None:
    """On the map, in pixels from its middle."""
    x, y = middle(page)
    for dx, dy in places:
        page.mouse.move(x + dx, y + dy, steps=2)
        page.mouse.click(x + dx, y + dy)


def opened(page: Page) -> None:
    page.locator(".region-item", has_text="field").click()
    page.get_by_role("heading", name="field").wait_for()


def vertices(page: Page) -> list[Any]:
    """Of the region with handles, by their places on the screen."""
    places = "markers => markers.map(one => one.getBoundingClientRect()).map(box => [box.x + box.width / 2, box.y + box.height / 2])"
    found: list[Any] = page.locator(f"{MAP} .marker-icon:not(.marker-icon-middle)").evaluate_all(places)
    return sorted(found)


def dragged(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=8)
    page.mouse.up()


def stored() -> Any:
    return Region.objects.get(name="field").geometry["coordinates"]


def test_corners_are_taken_back_and_set_again_while_a_polygon_is_drawn(page: Page, site: Site) -> None:
    drawn = page.locator(f"{MAP} .marker-icon:not(.cursor-marker)")
    page.get_by_role("button", name="Draw a polygon").click()
    undo, redo = page.get_by_role("button", name="Take back the last corner"), page.get_by_role("button", name="Set the corner again")
    assert undo.is_disabled() and redo.is_disabled()
    clicked(page, (-200, 150), (200, 150), (200, -150))
    assert drawn.count() == 3
    undo.click()
    page.keyboard.press("Backspace")
    page.keyboard.press("Control+z")
    assert drawn.count() == 0 and undo.is_disabled(), "the first corner, too"
    redo.click()
    page.keyboard.press("Control+Shift+z")
    page.keyboard.press("Control+y")
    assert drawn.count() == 3 and redo.is_disabled()
    undo.click()
    clicked(page, (0, -150))
    assert redo.is_disabled(), "another corner was set instead"
    clicked(page, (-200, 150))
    page.get_by_text("Polygon, 3 corners").wait_for()
    assert not undo.is_visible()
    assert site.faults == []


def test_an_edge_that_would_cross_another_is_refused_with_the_reason(page: Page, site: Site) -> None:
    page.get_by_role("button", name="Draw a polygon").click()
    clicked(page, (-200, 150), (200, 150), (200, -150), (-100, 250))
    page.get_by_text("An edge to there would cross another edge").wait_for()
    clicked(page, (-200, -150))
    page.get_by_text("Click to set corners").wait_for()
    assert site.faults == []


def test_changes_that_are_not_saved_can_be_discarded_and_are_not_lost_by_leaving(page: Page, site: Site) -> None:
    opened(page)
    discard = page.get_by_role("button", name="Discard", exact=True)
    assert not discard.is_visible()
    before = vertices(page)
    dragged(page, before[0], (before[0][0] - 30, before[0][1] - 20))
    discard.wait_for()
    assert vertices(page) != before
    page.fill("#region-name", "another name")
    discard.click()
    discard.wait_for(state="hidden")
    assert vertices(page) == before and page.locator("#region-name").input_value() == "field"
    page.fill("#region-tags", "c")
    asked = page_asks(page)
    page.get_by_label("Feed", exact=True).select_option("yard")
    site.world.wait(lambda: asked == ["beforeunload"], 10, "the browser asks")
    assert page.get_by_label("Feed", exact=True).input_value() == "bay"
    page.get_by_role("button", name="New region by numbers").click()
    page.get_by_role("dialog").get_by_text("They are not saved.").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    page.get_by_role("heading", name="New region").wait_for()
    assert Region.objects.get().tags == ["a", "b"] and stored() == [FIELD]
    assert site.faults == []


def test_a_shape_whose_edges_cross_is_not_saved_and_can_be_corrected(page: Page, site: Site) -> None:
    opened(page)
    north_west, south_west, north_east, _ = vertices(page)
    over = (north_east[0] + 60, (north_west[1] + south_west[1]) / 2)
    dragged(page, north_west, over)
    problem = "Edges of the region cross, so it cannot be saved."
    page.locator(".map-note").get_by_text(problem).wait_for()
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".region-card .fault").get_by_text(problem).wait_for()
    assert page.get_by_text("is saved").count() == 0 and stored() == [FIELD]
    dragged(page, over, (north_west[0] - 20, north_west[1] - 20))
    page.locator(".map-note").wait_for(state="hidden")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("“field” is saved.").wait_for()
    assert stored() != [FIELD] and len(stored()[0]) == 5
    site.faults.clear()  # The refusal is in the console.


def test_a_hole_is_drawn_and_removed_by_mouse(page: Page, site: Site) -> None:
    hole = page.get_by_role("button", name="Draw a hole in the region")
    assert hole.is_disabled()
    opened(page)
    hole.click()
    clicked(page, (-40, 30), (40, 30), (0, -30), (-40, 30))
    page.get_by_text("Polygon, 4 corners, 1 hole").wait_for()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("“field” is saved.").wait_for()
    outer, inner = stored()
    assert outer == FIELD and len(inner) == 4
    remover = page.get_by_role("button", name="Remove a hole")
    remover.click()
    clicked(page, (0, 5))
    page.get_by_role("button", name="Remove a hole", disabled=True).wait_for()
    hole.click()
    clicked(page, (-40, 30), (40, 30), (0, -400), (-40, 30))
    page.get_by_text("Edges of the region cross").wait_for()
    page.get_by_text("Corners as numbers").click()
    page.get_by_role("button", name="Remove hole 1").click()
    page.locator(".map-note").wait_for(state="hidden")
    page.get_by_role("button", name="Save", exact=True).click()
    site.world.wait(lambda: len(stored()) == 1, 10, "without holes")
    assert site.faults == []


def test_the_tool_that_removes_the_region_deletes_a_stored_one_if_wanted(page: Page, site: Site) -> None:
    opened(page)
    page.get_by_role("button", name="Remove the region").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="field").wait_for()
    assert len(vertices(page)) == 4
    page.get_by_role("button", name="Remove the region").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete region").click()
    page.get_by_text("No regions yet").wait_for()
    assert not Region.objects.exists() and site.faults == []


def test_files_dropped_on_the_page_are_imported(page: Page, site: Site) -> None:
    ring = [[x + 2, y] for x, y in FIELD]
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}} for name in ("pier", "quay")
    ]
    assert page.evaluate(DROPPED, ["h1", "piers.geojson", json.dumps({"type": "FeatureCollection", "features": features})])
    page.locator(".region-name", has_text="quay").wait_for()
    assert sorted(Region.objects.values_list("name", flat=True)) == ["field", "pier", "quay"]
    assert site.faults == []


@pytest.mark.parametrize("size", [(1440, 900), (1024, 700), (390, 844)])
def test_nothing_hides_the_corners_of_the_chosen_region(size: tuple[int, int], page: Page, site: Site) -> None:
    site.resize(*size)
    wide, tall = [[x, 55 + (y - 55) / 5] for x, y in FIELD], [[10 + (x - 10) / 5, y] for x, y in FIELD]
    for name, ring in (("field", FIELD), ("wide", wide), ("tall", tall)):
        Region.objects.filter(name="field").update(geometry={"type": "Polygon", "coordinates": [ring]})
        page.reload()
        opened(page)
        shot(page, f"regions-{name}-{size[0]}")
        for x, y in vertices(page):
            found = page.evaluate("([x, y]) => document.elementFromPoint(x, y)?.className ?? 'outside of the window'", [x, y])
            assert "marker-icon" in found, (name, x, y, found)
    assert site.faults == []


def test_an_edited_export_replaces_regions_after_the_page_has_named_them(page: Page, site: Site) -> None:
    feed = Region.objects.get().feed
    specification = {"family": "border", "version": 1, "region": {"region": "field"}}
    query_register(owner=feed.owner, feed=feed, name="Into the field", specification=specification)
    region_create(owner=feed.owner, feed=feed, name="untouched", geometry={"center": [10, 56], "radius": 500})
    page.reload()
    opened(page)
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="GeoJSON").click()
    text = Path(download.value.path()).read_text().replace("55.5", "55.75")
    assert page.evaluate(DROPPED, ["h1", "edited.geojson", text])
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("“field” has another shape; a copy would be called “field 2”").wait_for()
    dialog.get_by_text("Replacing gives these queries new versions: Into the field.").wait_for()
    dialog.get_by_text("1 other region is stored as it is in the file").wait_for()
    shot(page, "regions-replace")
    assert dialog.get_by_role("button", name="Cancel").evaluate("one => one === document.activeElement"), "Enter replaces nothing"
    dialog.get_by_role("button", name="Replace it").click()
    page.get_by_text("1 region replaced.").wait_for()
    assert stored()[0][2] == [11.0, 55.75] and Region.objects.count() == 2
    assert QueryVersion.objects.filter(query__name="Into the field").count() == 2
    page.get_by_text("Corners as numbers").click()
    site.world.wait(lambda: page.get_by_label("Corner 3, Latitude", exact=True).input_value() == "55.75", 10, "the open card follows")
    assert site.faults == []
