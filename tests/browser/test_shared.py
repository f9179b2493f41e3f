"""A link to a live view in a browser without a log-in: map and timeline are live, the API is not
used, and revoking the link disconnects the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.forms import shot

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def test_a_link_shows_the_live_view_until_it_is_revoked(site: Site) -> None:

    from tests.webapp.live.pages import store
    from webapp.detections.partitions import partitions_ensure, span_of
    from webapp.live.models import SharedView
    from webapp.live.shares import share_revoke

    site.log_in()
    page = site.page
    page.goto(site.address + "/?feed=yard")
    page.get_by_role("button", name="Share this view with a link").click()
    page.get_by_label("For whom").fill("Open day")
    page.get_by_role("button", name="Make link").click()
    link = page.get_by_role("textbox", name="The link").input_value()
    page.get_by_text("Made by ada").wait_for()

    partitions_ensure([span_of(0)])
    site.context.clear_cookies()
    # The previous page sends requests as long as it is open.
    page.goto("about:blank")
    page.goto(f"{site.address}/shared/")
    page.get_by_text("This link is incomplete").wait_for()
    shot(page, "link-not-complete")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(link)
    # No job is running, and the page shows this.
    page.locator(".state-down", has_text="Job is down").wait_for()
    page.get_by_text("Shared until").wait_for()
    secret = link.partition("#")[2]
    assert secret and secret not in page.url and not [url for url in asked if secret in url.partition("#")[0]]
    site.world.append(200)
    store(site.world.feed, site.world.crossings, "w1", 10, 900)
    counted = page.locator(".query-item", has_text="crossings").locator(".query-count > div").first
    site.world.wait(lambda: counted.inner_text() == "1", 30, "an answer comes by the socket")
    assert page.locator("a[href^='/']:visible").count() == 0
    assert [url for url in asked if "/api/" in url] == []
    share_revoke(share=SharedView.objects.get())
    page.locator(".state-forbidden").wait_for()
    assert site.faults == []
