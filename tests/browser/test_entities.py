"""The page of an entity and the page of a region, over the yard's forty walkers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from tests.browser.forms import walked

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def shot(site: Site, name: str) -> None:
    """Takes a screenshot, if a folder for screenshots is set."""
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        site.page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_an_entity_and_a_region_have_pages(site: Site) -> None:
    from webapp.entities.services import watches_look
    from webapp.feeds.models import Region
    from webapp.feeds.recent import newest_rows

    walked(site)
    feed, region, page = site.world.feed, Region.objects.get(), site.page
    page.goto(f"{site.address}/?feed=yard")
    # The feed has no stored view: the map is fitted to its walkers, not to the whole plane.
    page.wait_for_url(lambda address: "&at=" in address and float(unquote(address).rpartition("~")[2]) > 3)
    page.goto(f"{site.address}/regions/{region.pk}")
    page.get_by_text("Inside now").first.wait_for()
    names = page.locator(".table a").all_inner_texts()
    assert names, "somebody is in the square"
    shot(site, "region")
    page.locator(".table a").first.click()
    page.get_by_role("heading", name="Regions visited").wait_for()
    page.get_by_role("link", name="square").first.wait_for()

    page.get_by_label("Name", exact=True).fill("Old Aurora")
    page.get_by_label("Attributes, one per line").fill("flag: NO")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("write name = value").wait_for()
    page.get_by_label("Attributes, one per line").fill("flag = NO")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("heading", name=f"Old Aurora ({names[0]})").wait_for()
    page.get_by_label("Note", exact=True).fill("Drifts at night.")
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".note-text", has_text="Drifts at night.").wait_for()

    # On the live page it is found by its name.
    live = site.context.new_page()
    live.goto(f"{site.address}/?feed=yard")
    live.get_by_role("combobox", name="Find entity").fill("old aur")
    live.get_by_role("option", name=f"Old Aurora ({names[0]})").click()
    live.get_by_role("region", name="The chosen entity").get_by_role("heading", name=names[0], exact=True).wait_for()
    live.close()

    page.get_by_role("button", name="Notify me when it reports again").click()
    page.get_by_role("button", name="Stop waiting").wait_for()
    shot(site, "entity")
    last = max(newest_rows(feed, 1000, ["t"]).column("t").to_pylist())
    site.world.append(40)
    watches_look()
    assert max(newest_rows(feed, 1000, ["t"]).column("t").to_pylist()) > last
    page.goto(f"{site.address}/queries/")
    page.get_by_text(f"{names[0]} reported again").wait_for()
    page.get_by_role("link", name="Look at it").click()
    page.get_by_text("Reported again at").wait_for()
    site.resize(390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert site.faults == []
