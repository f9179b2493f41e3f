"""Every page in both themes and two widths: no error in the console (the content security policy speaks there), nothing wider than the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

PAGES = {
    "/": "Live view",
    "/queries/": "Queries",
    "/queries/new": "New query",
    "/alerts/": "Alerts",
    "/regions/": "Regions",
    "/feeds/": "Feeds and jobs",
    "/account/": "Account",
}

CUT = """(width) => [...document.querySelectorAll(".bar button, .bar a")]
  .filter((one) => one.getClientRects().length > 0 && (one.getBoundingClientRect().right > width || one.getBoundingClientRect().left < 0))
  .map((one) => one.textContent)"""
"""Controls of the header that a window so wide does not show whole."""


def test_every_page_is_whole_in_light_and_dark_wide_and_narrow(site: Site) -> None:
    from webapp.queries.models import Query

    query = Query.objects.order_by("pk")[0]
    pages = {**PAGES, f"/queries/{query.pk}": query.name}
    site.log_in()
    page = site.page
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            for path, title in pages.items():
                page.goto(site.address + path)
                page.get_by_role("heading", name=title, exact=True).first.wait_for(state="attached")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{path} at {width} pixels scrolls sideways"
                cut = page.evaluate(CUT, width)
                assert cut == [], f"{path} at {width} pixels cuts off {cut}"
    assert site.faults == []


def test_the_chosen_theme_is_in_the_page_as_it_comes(site: Site) -> None:
    site.log_in()
    site.page.goto(site.address + "/account/")
    site.page.get_by_role("button", name="Dark", exact=True).click()
    site.page.goto(site.address + "/queries/")
    assert 'data-theme="dark"' in site.page.request.get(site.address + "/queries/").text()
    assert site.page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"


def test_a_wrong_password_is_told_and_nothing_else(site: Site) -> None:
    site.page.goto(site.address + "/alerts/")
    site.page.fill("#username", "ada")
    site.page.fill("#password", "guessed")
    site.page.click("button[type=submit]")
    assert site.page.get_by_role("alert").is_visible()
    assert site.page.locator(".shell").count() == 0


def test_a_stranger_address_says_so(site: Site) -> None:
    site.log_in()
    site.page.goto(site.address + "/queries/999999")
    assert site.page.get_by_role("heading", name="Nothing to see here").is_visible()


def test_a_region_drawn_by_keyboard_is_stored(site: Site) -> None:
    """The corners are a table: no pointer is needed."""
    from webapp.feeds.models import Region

    site.log_in()
    page = site.page
    page.goto(site.address + "/queries/new?feed=yard")
    page.get_by_text("Corners as numbers").click()
    page.get_by_role("button", name="Start with a circle").press("Enter")
    page.get_by_label("Radius").fill("3")
    page.get_by_label("Radius").press("Tab")
    page.get_by_text("Circle, radius 3").wait_for()
    page.locator(".sentence-text").wait_for()
    page.fill("#query-name", "round the middle")
    page.get_by_role("button", name="Register query").press("Enter")
    page.wait_for_url(site.address + "/?feed=yard**")
    from webapp.queries.models import Query

    assert Query.objects.get(name="round the middle").specification["region"] == {"center": [0, 0], "radius": 3}
    assert not Region.objects.exists()


def test_the_audit_log_shows_who_did_what(site: Site) -> None:
    from webapp.accounts.models import User

    site.log_in()
    assert site.page.goto(site.address + "/audit/").status == 403  # type: ignore[union-attr]
    site.faults.clear()
    User.objects.filter(username="ada").update(is_superuser=True)
    page = site.page
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(site.address + "/audit/")
        page.get_by_role("row").filter(has_text="session.open").filter(has_text="ada").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("searchbox", name="User").fill("nobody of this name")
    page.get_by_role("searchbox", name="User").press("Enter")
    page.get_by_text("Nothing in the log matches").wait_for()
    assert site.faults == []
