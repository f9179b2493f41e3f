"""The page Feeds: feeds are made and changed on it, and one whose log is damaged says what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from webapp.feeds.models import Feed

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def test_a_damaged_feed_says_the_file_and_the_remedy_and_goes_on_when_it_is_mended(site: Site) -> None:
    from django.core.management import call_command

    site.world.append(50)
    (segment,) = site.world.log.live.glob("*.parquet")
    segment.write_bytes(segment.read_bytes()[:100])
    site.log_in()
    site.page.goto(site.address + "/feeds/")
    card = site.page.get_by_role("article", name="Feed yard")
    card.locator("[data-state=damaged]").wait_for()
    assert card.locator("[data-state=damaged]").inner_text() == "Set aside"
    card.get_by_text(re.compile(rf"{segment.name}.*manage\.py repair yard")).first.wait_for()
    call_command("repair", "yard", verbosity=0)
    card.locator("[data-state=new]").wait_for()
    assert site.faults == []


def test_a_feed_is_made_and_its_guard_against_the_future_is_changed(site: Site) -> None:
    site.log_in()
    page = site.page
    page.goto(site.address + "/feeds/")
    page.get_by_role("button", name="New feed").click()
    form = page.get_by_role("dialog", name="New feed")
    form.get_by_label("Name").fill("Quay 1")
    form.get_by_label("Places").select_option("planar")
    form.get_by_label("Times", exact=True).select_option("ms")
    form.get_by_label("Other columns").fill("speed: float\nkind: string")
    form.get_by_label("How far ahead of the clock a row may be").select_option("bound")
    form.get_by_label("At most", exact=True).fill("90")
    form.get_by_label("Unit: At most").select_option("s")
    form.get_by_role("button", name="Make feed").click()
    form.get_by_role("alert").first.wait_for()
    form.get_by_label("Name").fill("quay")
    form.get_by_role("button", name="Make feed").click()
    page.get_by_role("article", name="Feed quay").wait_for()
    feed = Feed.objects.get(name="quay")
    assert (feed.crs, feed.ahead, feed.columns) == ("planar", 90_000, {"speed": "float", "kind": "string"})
    assert feed.team is not None

    page.get_by_role("button", name="Settings of the feed quay").click()
    form = page.get_by_role("dialog", name="Settings of quay")
    assert form.get_by_label("At most", exact=True).input_value() == "90"
    form.get_by_label("How far ahead of the clock a row may be").select_option("none")
    form.get_by_role("button", name="Save").click()
    form.wait_for(state="detached")
    feed.refresh_from_db()
    assert feed.ahead is None
    # The one fault is the refused name.
    assert [fault for fault in site.faults if "400" not in fault] == []
