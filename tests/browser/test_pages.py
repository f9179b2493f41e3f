"""Every page in both themes and two widths: axe finds no fault, the console has no error (including
violations of the content security policy), and nothing is wider than the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.accessibility import violations
from tests.browser.answering import Answering
from tests.browser.forms import walked
from webapp.queries.sentences import SENTENCES

if TYPE_CHECKING:
    from playwright.sync_api import Page

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
    "/alerts/numbers/": "Alert numbers",
    "/feeds/new": "New feed",
    "/teams/": "Teams",
    "/audit/": "Audit log",
}
OWN = {
    "/account/security/": "Second factor",
    "/account/password/": "Change password",
    "/account/sessions/": "Sessions",
    "/account/security/passkeys/": "Passkeys and security keys",
    "/account/providers/": "Log-in providers",
}

CUT = """(width) => [...document.querySelectorAll(".bar button, .bar a")]
  .filter((one) => one.getClientRects().length > 0 && (one.getBoundingClientRect().right > width || one.getBoundingClientRect().left < 0))
  .map((one) => one.textContent)"""
"""The controls of the header that are not wholly within a window of this width."""


BEFORE_LOG_IN = {"/login/": "Log in", "/login/password/": "Forgotten password", "/login/no-account/": "No account"}
BUSY = """() => [
  ...[...document.querySelectorAll("[aria-busy=true], .skeleton")].map((one) => one.outerHTML.slice(0, 200)),
  ...document.getAnimations().filter((one) => one instanceof CSSTransition && one.playState === "running").map((one) => one.transitionProperty),
]"""
"""Elements that still wait for the server, and running colour transitions."""


def _settle(page: Page, path: str) -> None:
    busy = ["not looked at"]
    for _ in range(600):
        busy = page.evaluate(BUSY)
        if not busy:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{path} waits for {busy}")


def _look(site: Site, path: str, title: str, widths: tuple[int, ...] = (1280, 390)) -> None:
    """Tests one page in both themes and all widths."""
    page = site.page
    for width in widths:
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(site.address + path)
        page.get_by_role("heading", name=title, exact=True).first.wait_for(state="attached")
        _settle(page, path)
        assert violations(page) == [], f"{path} at {width} pixels"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{path} at {width} pixels scrolls sideways"
        cut = page.evaluate(CUT, width)
        assert cut == [], f"{path} at {width} pixels cuts off {cut}"
    # Colours are the same at all widths.
    page.emulate_media(color_scheme="dark")
    _settle(page, path)
    assert violations(page, "color-contrast") == [], f"{path}, dark"


def test_every_page_is_complete_and_accessible_in_both_themes_and_widths(site: Site) -> None:
    from webapp.accounts.models import User
    from webapp.alerts.models import Alert
    from webapp.feeds.models import Region
    from webapp.queries.models import Query

    User.objects.filter(username="ada").update(is_superuser=True)
    for path, title in BEFORE_LOG_IN.items():
        _look(site, path, title)
    walked(site)
    Answering(site.world).catch_up()
    query, alert, region = Query.objects.order_by("pk")[0], Alert.objects.order_by("pk")[0], Region.objects.get()
    of_objects = {
        "/?feed=yard&view=list": "Live view",
        f"/queries/{query.pk}": query.name,
        f"/alerts/{alert.pk}": "Alerts",
        f"/regions/{region.pk}": region.name,
        "/feeds/yard/entity?id=w1": "w1",
    }
    for path, title in {**PAGES, **of_objects}.items():
        _look(site, path, title)
    for path, title in {**OWN, **{f"/queries/new?feed=yard&family={family}": "New query" for family in SENTENCES}}.items():
        _look(site, path, title, widths=(1280,))
    assert site.faults == []


def test_the_server_renders_the_chosen_theme(site: Site) -> None:
    site.log_in()
    site.page.goto(site.address + "/account/")
    site.page.get_by_role("button", name="Dark", exact=True).click()
    site.page.goto(site.address + "/queries/")
    assert 'data-theme="dark"' in site.page.request.get(site.address + "/queries/").text()
    assert site.page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"


def test_a_wrong_password_is_reported_and_nothing_else(site: Site) -> None:
    site.page.goto(site.address + "/alerts/")
    site.page.fill("#username", "ada")
    site.page.fill("#password", "guessed")
    site.page.click("button[type=submit]")
    assert site.page.get_by_role("alert").is_visible()
    assert site.page.locator(".shell").count() == 0


def test_an_unknown_address_shows_the_page_for_404(site: Site) -> None:
    site.log_in()
    site.page.goto(site.address + "/queries/999999")
    assert site.page.get_by_role("heading", name="Nothing to see here").is_visible()


def test_a_region_drawn_by_keyboard_is_stored(site: Site) -> None:
    """The corners are entered in a table, without a pointer."""
    from webapp.feeds.models import Region

    site.log_in()
    page = site.page
    page.goto(site.address + "/queries/new?feed=yard")
    page.get_by_text("Corners as numbers").click()
    page.get_by_role("button", name="Start with a circle").press("Enter")
    for label, value in (("Centre, x", "0"), ("Centre, y", "0"), ("Radius", "3")):
        page.get_by_label(label).fill(value)
        page.get_by_label(label).press("Tab")
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
