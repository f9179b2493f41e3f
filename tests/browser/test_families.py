"""Newer forms as an analyst fills them, each by mouse and by keyboard: how many are there, and who meets whom.

Each query is tried, saved, opened again and saved unchanged: the stored document stays as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.forms import choose, new_query, preview, saved, tab_to, type_in, walked

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]


def test_who_is_there_and_who_meets_whom(site: Site) -> None:
    yard = walked(site)
    _occupancy_by_mouse(yard)
    _occupancy_by_keyboard(yard)
    _encounter_by_mouse(yard)
    _encounter_by_keyboard(yard)
    yard.page.close()
    assert yard.faults == []


# -- how many are there ---------------------------------------------------------------------------------------------------------------


def _occupancy_by_mouse(site: Site) -> None:
    """A stored region, a number; the count stands over the region as a stepped line."""
    page = new_query(site, "occupancy")
    page.locator("#region-stored").click()
    page.locator("#region-stored").fill("square")
    page.locator("#region-stored").blur()
    page.locator("#occupancy-count").click()
    page.locator("#occupancy-count").fill("6")
    assert preview(page) > 0
    page.locator(".count-line .count-steps").wait_for()
    assert page.locator(".count-line svg").get_attribute("aria-label") is not None
    page.locator("#occupancy-count").fill("7")
    page.locator(".count-line").wait_for(state="detached")
    stored = saved(site, "crowd")
    wanted = {"family": "occupancy", "version": 1, "region": {"region": "square"}, "count": [">=", 7], "stale": "PT5M"}
    assert stored == wanted


def _occupancy_by_keyboard(site: Site) -> None:
    """At most two in a range of values, and what is wrong stands at its field."""
    page = new_query(site, "occupancy")
    type_in(page, "#region-stored", "square")
    tab_to(page, "#occupancy-counting")
    page.keyboard.press("ArrowDown")
    type_in(page, "#occupancy-count", "many")
    page.locator(".todo", has_text="must be a number").wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type("30")
    type_in(page, "#lasting", "1")
    choose(page, "#lasting-unit", "second")
    assert preview(page, by_keyboard=True) > 0
    stored = saved(site, "quiet", by_keyboard=True)
    assert (stored["count"], stored["lasting"]) == (["<=", 30], "PT1S")


# -- who meets whom -------------------------------------------------------------------------------------------------------------------


def _encounter_by_mouse(site: Site) -> None:
    """Two kinds, interpolated; an answer of the preview shows two ways and how near they came."""
    page = new_query(site, "encounter")
    page.get_by_role("button", name="One of each of two kinds").click()
    page.get_by_role("group", name="One", exact=True).get_by_role("button", name="Add a condition").click()
    page.locator("#role-a-column-0").select_option("entity")
    page.locator("#role-a-value-0").fill("w1")
    page.locator("#encounter-distance").fill("2")
    page.locator("#encounter-every").fill("0.5")
    page.locator("#encounter-every-unit").select_option("s")
    page.get_by_text("On the straight way between two reports").click()
    assert preview(page) > 0
    page.locator(".preview-timeline canvas").first.wait_for()
    stored = saved(site, "escort")
    assert stored["a"] == {"where": [["entity", "=", "w1"]]} and "b" not in stored
    assert (stored["distance"], stored["every"], stored["position"]) == (2, 500, "interpolated")


def _encounter_by_keyboard(site: Site) -> None:
    page = new_query(site, "encounter")
    type_in(page, "#encounter-distance", "1")
    type_in(page, "#encounter-lasting", "2")
    choose(page, "#encounter-lasting-unit", "second")
    type_in(page, "#encounter-every", "1")
    choose(page, "#encounter-every-unit", "second")
    assert preview(page, by_keyboard=True) >= 0
    stored = saved(site, "contact", by_keyboard=True)
    assert stored == {"family": "encounter", "version": 1, "distance": 1, "every": "PT1S", "gap": "PT1M", "lasting": "PT2S"}
