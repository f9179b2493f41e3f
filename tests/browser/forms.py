"""Fills in the form of a query like a user: by Tab and keys, with a preview, and saving it
twice."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.browser.conftest import Site

SQUARE = {"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}
MOST_TABS = 90
"""More presses of Tab than from anywhere on the page to any field of the form."""
MOST_TRIALS = 5
TOO_BUSY = 429
"""Responses with this status or more may differ when repeated."""
MOST_PRESSES = 10
"""Options of one list that begin with the same letter."""
LATENCY_MS = 500
KEY_MS = 100
"""Between two keys of a fast typist: a word takes longer than a response of a slow server."""
DROPPED = """([place, name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  const event = new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true });
  document.querySelector(place).dispatchEvent(event);
  return event.defaultPrevented;
}"""
"""Drops a file on a place; whether the browser is kept from opening it instead of the page."""


def walked(site: Site) -> Site:
    """A stored square with forty walkers about it."""
    from webapp.feeds.services import region_create

    feed = site.world.feed
    region_create(owner=feed.owner, feed=feed, name="square", geometry=SQUARE)
    site.world.append(600)
    site.log_in()
    return site


def new_query(site: Site, family: str) -> Page:
    site.page.goto(f"{site.address}/queries/new?feed=yard&family={family}")
    return site.page


def tab_to(page: Page, selector: str) -> None:
    """Presses Tab until the element, which may still have to be drawn, has the focus."""
    page.locator(selector).first.wait_for()
    for _ in range(MOST_TABS):
        if page.evaluate("selector => document.activeElement?.matches(selector) ?? false", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached by Tab")


def press(page: Page, name: str) -> None:
    """Goes by Tab to the button `name`, which may still have to be drawn, and presses it."""
    page.get_by_role("button", name=name, exact=True).first.wait_for()
    for _ in range(MOST_TABS):
        if page.evaluate("name => document.activeElement?.matches('button') && document.activeElement.innerText === name", name):
            page.keyboard.press("Enter")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the button {name} cannot be reached by Tab")


def choose(page: Page, selector: str, option: str) -> None:
    """Goes to a list by Tab and presses the first letter of `option` until one that
    begins with `option` is chosen.

    Not the whole word: keys that come more than a second apart begin a new search.
    """
    tab_to(page, selector)
    chosen = page.locator(selector).locator("option:checked")
    for _ in range(MOST_PRESSES):
        if chosen.inner_text().startswith(option):
            return
        page.keyboard.press(option[0].lower())
    raise AssertionError(f"{selector} has no option that begins with {option}")


@contextmanager
def slow_network(page: Page) -> Iterator[None]:
    """Every response of the server takes at least `LATENCY_MS`."""
    session = page.context.new_cdp_session(page)

    def wait(latency: int) -> None:
        conditions = {"offline": False, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1}
        session.send("Network.emulateNetworkConditions", conditions)

    session.send("Network.enable")
    wait(LATENCY_MS)
    yield
    wait(0)
    session.detach()


def type_in(page: Page, selector: str, text: str) -> None:
    """Goes to a field by Tab and replaces its text by `text`."""
    tab_to(page, selector)
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def preview(page: Page, by_keyboard: bool = False) -> int:
    """The number of answers of the preview. On a busy machine a preview may exceed the server's
    time limit, which is reported: it is repeated."""
    for _ in range(MOST_TRIALS):
        with page.expect_response(lambda answer: answer.url.endswith("/queries/preview")) as answered:
            if by_keyboard:
                tab_to(page, "#run-preview:not([aria-disabled])")
                page.keyboard.press("Enter")
            else:
                page.locator("#run-preview").click()
        if answered.value.ok:
            page.locator(".preview-total").wait_for()
            return int(page.locator(".preview-total").inner_text().replace(",", ""))
        assert answered.value.status >= TOO_BUSY, answered.value.text()
    raise AssertionError("no preview came in time")


def saved(site: Site, name: str, by_keyboard: bool = False) -> Any:
    """The stored document, after it was opened again and saved unchanged."""
    from webapp.queries.models import Query

    page = site.page
    page.locator(".sentence .sentence-text").wait_for()
    if by_keyboard:
        type_in(page, "#query-name", name)
        tab_to(page, "#save-query")
        page.keyboard.press("Enter")
    else:
        page.fill("#query-name", name)
        page.locator("#save-query").click()
    page.wait_for_url(re.compile(r"/\?feed=yard"))
    stored = Query.objects.get(name=name)
    page.goto(f"{site.address}/queries/{stored.pk}")
    page.locator(".sentence .sentence-text").wait_for()
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as answered:
        page.locator("#save-query").click()
    assert answered.value.status == 200
    again = Query.objects.get(name=name)
    assert (again.specification, again.version) == (stored.specification, 1)
    return stored.specification


def shot(page: Page, name: str) -> None:
    """Screenshots, light and dark, if a folder for them is set."""
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        for scheme in ("light", "dark"):
            page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
            page.screenshot(path=f"{folder}/{name}-{scheme}.png", full_page=True)
        page.evaluate("document.documentElement.dataset.theme = 'light'")


def page_asks(page: Page) -> list[str]:
    """The kinds of the browser's own questions from now on; each is answered by staying."""
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    return asked
