"""A feed whose rows have no places, such as reads of tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from engine.model.events import row_schema
from tests.webapp.answers import a_feed
from webapp.detections.services import feed_head_ensure
from webapp.feeds.logs import event_log

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]
MINUTE = 60_000


def test_pages_of_a_feed_without_places_do_not_begin_with_places(site: Site) -> None:
    feed = a_feed("gate", columns={"reader": "string"})
    feed_head_ensure(feed)
    rows = [{"event": "read", "entity": f"tag{n % 7}", "t": n * 10 * MINUTE, "reader": ("dock", "gate")[n % 2]} for n in range(100)]
    event_log("gate").append(pa.Table.from_pylist(rows, schema=row_schema(feed.engine_feed())))
    site.log_in()
    page = site.page

    page.goto(f"{site.address}/?feed=gate")
    expect(page.get_by_text("The rows of this feed have no places.")).to_be_visible()
    timeline, map_area = (page.locator(selector).bounding_box() for selector in (".live-timeline", ".live-map"))
    assert timeline is not None and map_area is not None and timeline["height"] > map_area["height"]

    page.goto(f"{site.address}/queries/new?feed=gate")
    expect(page.get_by_role("radio", name="Composite event")).to_be_checked()
    note = "Begins with places, which this feed’s rows do not have."
    expect(page.locator(".family-card").first).not_to_contain_text(note)
    expect(page.locator(".family-card").last).to_contain_text(note)
    _try_rules(site)
    page.goto(f"{site.address}/queries/new?feed=yard")
    expect(page.get_by_role("radio", name="Crossing a border")).to_be_checked()
    expect(page.get_by_text(note)).to_have_count(0)
    assert site.faults == []


def _try_rules(site: Site) -> None:
    """The sandbox begins with an hour of a history; where nothing holds in it, the next longer
    period is a click away."""
    page = site.page
    page.goto(f"{site.address}/queries/new?feed=gate&family=calculus")
    page.get_by_text("Stays too long at one place", exact=True).click()
    page.get_by_label("Rules of the program").get_by_text("happensAt(read(V, ").first.wait_for()
    period, nothing = page.locator("#sandbox-period"), page.get_by_text("Nothing holds in this period")
    expect(period).to_have_value("60")
    page.locator(".sentence-text", has_text="overstays").wait_for()
    page.get_by_role("button", name="Try it").click()
    nothing.wait_for()
    page.get_by_role("button", name="Try the last 6 h").click()
    nothing.wait_for()
    expect(period).to_have_value("360")
