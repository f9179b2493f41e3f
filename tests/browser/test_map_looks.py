"""How a feed's map is drawn: clusters that open, colours by an attribute with their legend,
heat maps; the choice stays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.browser.accessibility import violations
from tests.browser.forms import walked

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]
CELLS = """() => Number(document.querySelector('canvas[data-layer="heat"]')?.dataset.cells ?? 0)"""


def choose(site: Site, item: str) -> None:
    site.page.get_by_role("button", name="Map layers").click()
    site.page.get_by_role("menuitem", name=item).click()


def picture(site: Site, name: str) -> None:
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        site.page.screenshot(path=f"{folder}/{name}.png")


def test_clusters_colours_and_heat_maps(site: Site) -> None:
    walked(site)
    page, legend = site.page, site.page.locator(".map-legend")
    page.goto(f"{site.address}/?feed=yard")
    page.get_by_role("button", name="Map layers").wait_for()
    assert not legend.is_visible()
    page.get_by_role("button", name="Map layers").click()
    page.get_by_role("menu").wait_for()
    assert violations(page) == []
    page.keyboard.press("Escape")

    choose(site, "Colour by speed")
    legend.get_by_text("No value").wait_for()
    picture(site, "colours")
    choose(site, "Heat map of reports")
    legend.get_by_text("reports,").wait_for()
    assert page.evaluate(CELLS) > 3
    picture(site, "heat")

    page.reload()
    site.world.wait(lambda: page.evaluate(CELLS) > 3, 60, "the heat map is drawn again")
    legend.get_by_text("No value").wait_for()
    choose(site, "No heat map")
    choose(site, "One colour")
    legend.wait_for(state="hidden")
    choose(site, "Always clusters")
    picture(site, "clusters")
    assert site.faults == []
