"""What readers type into a query's form: names of regions, lengths of time,
and Ctrl+Z while they draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.forms import choose, new_query, press, walked
from webapp.feeds.models import Feed

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]


def test_what_the_form_cannot_read_is_said_in_its_own_words(site: Site) -> None:
    page = new_query(walked(site), "transition")
    page.set_default_timeout(15_000)
    _region(page)
    _time(page)
    _drawing(page)
    assert site.faults == []


def _region(page: Page) -> None:
    stored = page.locator("#region-stored")
    stored.fill("nowhere")
    stored.blur()
    page.get_by_text("No stored region is called “nowhere”.").wait_for()
    stored.fill("SQUARE")
    stored.blur()
    page.get_by_text("Uses the stored region square").wait_for()
    assert stored.input_value() == "square"


def _time(page: Page) -> None:
    page.locator("#within").fill("soon")
    page.get_by_text("a number of 0 or more.").wait_for()
    assert page.get_by_text("ISO 8601").count() == 0
    page.locator("#within").fill("1,5")
    page.locator(".sentence-text", has_text="90 seconds").or_(page.locator(".sentence-text", has_text="1 minute 30 seconds")).wait_for()


def _drawing(page: Page) -> None:
    """Ctrl+Z takes back a corner, not what was typed before."""
    page.get_by_role("button", name="Take another region").click()
    page.fill("#query-name", "drawn")
    page.get_by_role("button", name="Draw", exact=True).click()
    box = page.locator(".query-map .map-canvas").bounding_box()
    assert box is not None
    for right, down in ((0.4, 0.4), (0.6, 0.4), (0.5, 0.6)):
        page.mouse.click(box["x"] + right * box["width"], box["y"] + down * box["height"])
    corners = page.locator(".marker-icon:not(.cursor-marker)")
    assert corners.count() == 3
    page.keyboard.press("Control+z")
    assert corners.count() == 2
    assert page.input_value("#query-name") == "drawn"


def test_a_condition_offers_values_of_the_feed(site: Site) -> None:
    page = new_query(walked(site), "transition")
    page.get_by_role("button", name="Add a condition").first.click()
    column, value = page.get_by_label("Column", exact=True).first, page.get_by_label("Value", exact=True).first
    column.select_option("entity")
    value.focus()
    offered = page.locator(f"datalist#{value.get_attribute('list')} option")
    offered.first.wait_for(state="attached")
    names = offered.evaluate_all("options => options.map((one) => one.value)")
    assert names and all(name.startswith("w") for name in names)
    page.get_by_label("Comparison").first.select_option("in")
    value.fill(f"{names[0]}, ")
    offered.and_(page.locator(f"[value^='{names[0]}, ']")).first.wait_for(state="attached")
    column.select_option("x")
    value.fill("1")
    offered.first.wait_for(state="detached")
    assert site.faults == []


def test_drawing_on_a_phone_brings_the_map_into_view(site: Site) -> None:
    """The map is above the form, whose button *Draw* did nothing that could be seen."""
    walked(site).resize(390)
    page = new_query(site, "border")
    page.get_by_role("button", name="Draw", exact=True).click()
    tool = page.locator(".map-tools button[aria-pressed=true]")
    tool.wait_for()
    box = tool.bounding_box()
    assert box is not None
    found = "([x, y]) => document.elementFromPoint(x, y)?.closest('.map-tools') instanceof Element"
    assert page.evaluate(found, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
    assert site.faults == []


def test_the_focus_stays_with_what_the_keys_change(site: Site) -> None:
    page = new_query(walked(site), "motion")
    press(page, "Outside")
    page.locator(".step-title", has_text="Outside").first.wait_for()
    assert page.evaluate("document.activeElement.innerText") == "Outside"
    press(page, "Add a condition")
    assert page.evaluate("document.activeElement.ariaLabel") == "Column"
    yard = Feed.objects.get(name="yard")
    Feed.objects.create(name="other", title="Other", crs=yard.crs, columns=yard.columns, owner=yard.owner, team=yard.team, public=True)
    page.reload()
    choose(page, "#query-feed", "Other")
    page.wait_for_url("**feed=other**")
    page.locator("#query-feed:focus option:checked", has_text="Other").wait_for(state="attached")
    assert site.faults == []
